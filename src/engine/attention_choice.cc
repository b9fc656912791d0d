#include "engine/attention_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/checked.h"
#include "kernel/attention_space.h"

namespace boltbeam::engine {
namespace {

constexpr std::string_view kDots[] = {"maddhalves", "dot4"};

Error Unknown(std::string_view word) {
  return Fail(Code::kUsage, "attention", std::string(word),
              "lanes=N, chunk=N, dot=maddhalves|dot4 or prefetch=BYTES, by comma")
      .error();
}

Result<std::uint32_t> NumberOf(std::string_view text, std::string_view word) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::unexpected(Unknown(word));
  return value;
}

Result<void> TurnOne(std::string_view word, kernel::AttentionShape& shape) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return std::unexpected(Unknown(word));
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  if (name == "dot" && (value == kDots[0] || value == kDots[1])) {
    shape.dot = value == kDots[1] ? kernel::Dot::kDot4 : kernel::Dot::kMaddHalves;
    return {};
  }
  if (name != "lanes" && name != "chunk" && name != "prefetch") return std::unexpected(Unknown(word));
  BOLTBEAM_ASSIGN(const std::uint32_t number, NumberOf(value, word));
  if (name == "chunk") shape.chunk = number;
  if (name == "prefetch") shape.prefetch_bytes = number;
  if (name == "lanes") shape.lanes = static_cast<std::uint16_t>(std::min<std::uint32_t>(number, UINT16_MAX));
  return {};
}

kernel::CacheElement ElementOf(const formats::Format& format) {
  const std::optional<formats::Encoding> encoding = format.layout->encoding;
  if (!encoding) return {kernel::Memory::kU8, format.elements};
  return {*encoding == formats::Encoding::kF16 ? kernel::Memory::kF16 : kernel::Memory::kWord};
}

/// Whole blocks of a head's dims.
Result<void> CheckCache(const model::CacheFormats& cache, std::uint32_t head_dim) {
  for (const formats::Format* format : {cache.keys, cache.values}) {
    if (!model::CanCache(*format) || head_dim % format->elements != 0) {
      return Fail(Code::kKernelIllegal, fmt::format("a KV cache in {}", format->name),
                  fmt::format("heads of {} dimensions", head_dim),
                  fmt::format("a multiple of the {} that share a scale, or another -ctk, -ctv", format->elements));
    }
  }
  return {};
}

}  // namespace

Result<kernel::AttentionShape> TurnAttention(std::string_view knobs, kernel::AttentionShape shape) {
  while (!knobs.empty()) {
    const std::size_t comma = std::min(knobs.find(','), knobs.size());
    BOLTBEAM_TRY(TurnOne(knobs.substr(0, comma), shape));
    knobs.remove_prefix(std::min(comma + 1, knobs.size()));
  }
  return shape;
}

std::string AttentionText(const kernel::AttentionShape& shape) {
  return fmt::format("lanes={},chunk={},dot={}{}", shape.lanes, shape.chunk, kDots[shape.dot == kernel::Dot::kDot4],
                     shape.prefetch_bytes == 0 ? "" : fmt::format(",prefetch={}", shape.prefetch_bytes));
}

std::string AttentionFault(const kernel::AttentionShape& shape, const kernel::VectorFacts& facts) {
  for (kernel::AttentionReason& reason : kernel::AttentionRefusals(shape, kernel::SpaceFactsOf(facts))) {
    if (reason.refusal != kernel::Refusal::kNoMeaning) return std::move(reason.evidence);
  }
  return {};
}

Result<kernel::AttentionShape> AttentionFor(std::span<const GeometryChoice> choices, kernel::AttentionShape shape,
                                            const kernel::VectorFacts& facts) {
  std::string fault;
  for (const GeometryChoice& choice : choices) {
    if (choice.table != kAttentionTable) continue;
    BOLTBEAM_ASSIGN(shape, TurnAttention(choice.knobs, shape));
    fault = AttentionFault(shape, facts);
  }
  if (fault.empty()) return shape;
  return Fail(Code::kKernelIllegal, "geometry of attention", AttentionText(shape) + ": " + fault, "a legal geometry");
}

Result<kernel::AttentionShape> AttentionShapeOf(const model::Model& model, const Options& options,
                                                const kernel::VectorFacts& facts) {
  const model::HyperParameters& hyper = model.hyper();
  BOLTBEAM_TRY(CheckCache(options.cache, hyper.head_dim));
  kernel::AttentionShape shape;
  shape.heads = hyper.heads;
  shape.kv_heads = hyper.kv_heads;
  shape.head_dim = hyper.head_dim;
  shape.rope_dims = hyper.rope_dims;
  shape.rope_neox = model.architecture().rope == model::RopeKind::kNeox;
  shape.has_norm = model.architecture().qk_norm;
  shape.epsilon = static_cast<float>(hyper.rms_epsilon);
  shape.scale = static_cast<float>(hyper.attention_scale);
  shape.key = ElementOf(*options.cache.keys);
  shape.value = ElementOf(*options.cache.values);
  shape.dot = facts.has_dot4 ? kernel::Dot::kDot4 : kernel::Dot::kMaddHalves;
  shape.lanes = facts.lanes;
  shape.registers = facts.registers;
  shape.prefetch_bytes = facts.prefetch_bytes;
  BOLTBEAM_ASSIGN(shape, AttentionFor(options.geometry, shape, facts));
  shape.context = AlignUp<std::uint64_t>(options.context, shape.chunk);
  return shape;
}

}  // namespace boltbeam::engine
