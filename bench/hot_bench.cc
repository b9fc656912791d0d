// One thread, one table in the caches: a product with the quantisation of its column, as another program's benchmark of
// the same operation times it. A coprocess, so that two programs can be timed in turns (hot_side_by_side.py):
//   $ echo 'Q4_K 4096 14336 vectors=2' | hot_bench [--without=PREFIX]
//   561.3 33030144        microseconds, bytes of the table as it is stored
// "formats" prints the formats that are known: name, number of the file's type, elements and bytes of a block.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "chip/facts.h"
#include "codegen/codegen.h"
#include "formats/format.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/gemv.h"
#include "kernel/geometry.h"
#include "kernel/knobs.h"
#include "kernel/space.h"
#include "measure/clock.h"
#include "runtime/code.h"
#include "runtime/memory.h"

namespace boltbeam {
namespace {

constexpr double kWarmNs = 5e7, kTimedNs = 4e8;

class HotBench {
 public:
  static Result<std::unique_ptr<HotBench>> Create(const std::vector<std::string>& without) {
    BOLTBEAM_ASSIGN(chip::Chip chip, chip::DetectThisMachine());
    for (const std::string& prefix : without) {
      std::erase_if(chip.features, [&](const std::string& feature) { return feature.starts_with(prefix); });
    }
    BOLTBEAM_ASSIGN(const measure::Clock clock, measure::GetClock());
    return std::unique_ptr<HotBench>(new HotBench(chip, clock));
  }

  Result<std::string> Time(std::string_view name, std::uint64_t rows, std::uint64_t cols, std::string_view knobs) {
    const formats::Format* format = formats::FindFormat(name);
    if (format == nullptr) return Fail(Code::kUsage, "format", std::string(name), "a format that is known");
    BOLTBEAM_ASSIGN(const kernel::GemvGeometry geometry,
                    kernel::ParseGeometry(knobs, kernel::DefaultGeometry(*format, facts_, false)));
    const kernel::GemvShape shape{.rows = rows, .cols = cols};
    for (const kernel::Reason& reason : kernel::Refusals(geometry, *format, shape, kernel::SpaceFactsOf(facts_))) {
      return Fail(Code::kKernelIllegal, std::string(knobs), reason.evidence, "a legal geometry");
    }
    BOLTBEAM_ASSIGN(const kernel::WeightLayout layout, kernel::LayoutFor(*format, geometry));
    BOLTBEAM_ASSIGN(const kernel::Program product, kernel::BuildGemv(layout, geometry, shape));
    BOLTBEAM_ASSIGN(const runtime::KernelFunction multiply, kernels_.Get(product));
    const kernel::ActivationLayout activations = kernel::ActivationsFor(layout, geometry.dot);
    runtime::KernelFunction quantize = nullptr;
    if (!activations.is_float) {
      BOLTBEAM_ASSIGN(quantize, kernels_.Get(kernel::BuildQuantize({cols, cols * 4, 0, facts_.lanes}, activations)));
    }
    const std::uint64_t bytes = layout.TableBytes(rows, cols);
    BOLTBEAM_ASSIGN(runtime::HugeBuffer weights, runtime::HugeBuffer::Allocate(bytes));
    // No infinity or NaN in any encoding of a scale, nor so small that sums are subnormal.
    std::uint64_t state = 1;
    for (std::uint64_t at = 0; at + 8 <= bytes; at += 8) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      const std::uint64_t word = (state & 0x1F1F1F1F1F1F1F1FU) | 0x2020202020202020U;
      std::memcpy(weights.data() + at, &word, sizeof(word));
    }
    std::vector<float> column(cols);
    for (std::uint64_t i = 0; i < cols; ++i) column[i] = static_cast<float>(i % 17) - 8;
    std::vector<std::byte> input(activations.ColumnBytes(cols));
    std::vector<float> output(kernel::OutputStride(rows));
    const auto groups = static_cast<std::int64_t>((rows + layout.lanes - 1) / layout.lanes);
    const auto pass = [&] {
      void* const quantised[] = {column.data(), input.data()};
      if (quantize != nullptr) quantize(quantised, 0, 1);
      void* const buffers[] = {weights.data(), quantize != nullptr ? static_cast<void*>(input.data()) : column.data(),
                               output.data()};
      multiply(buffers, 0, groups);
    };
    Repeat(pass, kWarmNs);
    return fmt::format("{:.2f} {}", Repeat(pass, kTimedNs) / 1e3, bytes);
  }

 private:
  HotBench(const chip::Chip& chip, const measure::Clock& clock)
      : facts_(kernel::VectorFactsOf(chip)), kernels_(codegen::TargetFor(chip), ""), clock_(clock) {}

  /// Nanoseconds of one pass, on average over about so long.
  template <typename Pass>
  double Repeat(const Pass& pass, double for_ns) const {
    const std::uint64_t begin = base::Ticks();
    std::uint64_t passes = 0;
    double ns = 0;
    while (ns < for_ns) {
      pass();
      ++passes;
      ns = clock_.ToNs(base::Ticks() - begin);
    }
    return ns / static_cast<double>(passes);
  }

  kernel::VectorFacts facts_;
  runtime::KernelCache kernels_;
  measure::Clock clock_;
};

int Serve(int argc, char** argv) {
  std::vector<std::string> without;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    constexpr std::string_view kWithout = "--without=";
    if (argument.starts_with(kWithout)) without.emplace_back(argument.substr(kWithout.size()));
  }
  auto bench = HotBench::Create(without);
  if (!bench) {
    std::cerr << "hot_bench: " << bench.error().Message() << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "formats") {
      for (const formats::Format& format : formats::AllFormats()) {
        if (format.IsKnown()) {
          std::cout << fmt::format("{} {} {} {}\n", format.name, format.type, format.elements, format.bytes);
        }
      }
      std::cout << std::endl;
      continue;
    }
    std::istringstream words(line);
    std::string name, knobs;
    std::uint64_t rows = 0, cols = 0;
    words >> name >> rows >> cols >> knobs;
    const auto timed = (*bench)->Time(name, rows, cols, knobs);
    std::cout << (timed ? *timed : "refused: " + timed.error().Message()) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace boltbeam

int main(int argc, char** argv) { return boltbeam::Serve(argc, argv); }
