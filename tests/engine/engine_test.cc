#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "engine/loaded.h"
#include "engine/plan_identity.h"
#include "engine/reference_model.h"
#include "engine/routes.h"
#include "gguf/writer.h"

namespace boltbeam::engine {
namespace {

namespace fs = std::filesystem;

std::vector<std::int32_t> Greedy(Session& session, std::span<const std::int32_t> prompt, int count) {
  EXPECT_TRUE(session.Prompt(prompt));
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(session.argmax());
    EXPECT_TRUE(session.Decode(tokens.back()));
  }
  return tokens;
}

class ExactnessTest : public testing::TestWithParam<std::string> {};

model::CacheFormats InF32() { return {formats::FindFormat("F32"), formats::FindFormat("F32")}; }

TEST_P(ExactnessTest, LogitsAgreeWithDoublePrecisionInBatchesAndTokenByToken) {
  Options options;
  options.cache = InF32();
  options.prompt_batch = 8;
  const Loaded loaded = Load(Synth(GetParam()), options);
  ReferenceModel reference(*loaded.model);
  const std::vector<std::int32_t> tokens = Tokens(21, loaded.model->hyper().vocab);
  std::vector<std::vector<double>> expected;
  for (const std::int32_t token : tokens) expected.push_back(reference.Append(token));
  const auto prompted = loaded.session->Prompt(tokens, [&](std::size_t i, std::span<const float> logits) {
    EXPECT_LT(Divergence(expected[i], logits), 1e-9) << "in batches, token " << i;
  });
  ASSERT_TRUE(prompted) << prompted.error().Message();
  EXPECT_LT(Divergence(expected.back(), loaded.session->logits()), 1e-9);
  ASSERT_TRUE(loaded.session->Truncate(0));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ASSERT_TRUE(loaded.session->Decode(tokens[i]));
    EXPECT_LT(Divergence(expected[i], loaded.session->logits()), 1e-9) << "token by token, token " << i;
  }
}

TEST_P(ExactnessTest, MistakesAreFound) {
  Options options;
  options.cache = InF32();
  const Loaded loaded = Load(Synth(GetParam()), options);
  const std::vector<std::int32_t> tokens = Tokens(12, loaded.model->hyper().vocab);
  ASSERT_TRUE(loaded.session->Prompt(tokens));
  std::vector<Mistakes> all = {
      {.other_rope_kind = true}, {.rope_base_factor = 10}, {.shifted_head = true}, {.other_activation = true}};
  if (loaded.model->hyper().sliding_window > 0)
    all.insert(all.end(), {{.wider_window = true}, {.one_rope_base = true}});
  if (loaded.model->architecture().post_norms) all.push_back({.no_post_norms = true});
  if (loaded.model->architecture().scale_embedding) all.push_back({.plain_embedding = true});
  for (const Mistakes& mistakes : all) {
    ReferenceModel wrong(*loaded.model, mistakes);
    std::vector<double> logits;
    for (const std::int32_t token : tokens) logits = wrong.Append(token);
    EXPECT_GT(Divergence(logits, loaded.session->logits()), 1e-5) << "mistake " << &mistakes - all.data();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExactnessTest,
                         testing::Values("tiny-llama:F32", "tiny-qwen2:F32", "tiny-qwen3:F32", "tiny-gemma3:F32"));

// A window that begins in a later chunk of the KV cache than the context.
TEST(WindowTest, ChunksBeforeTheWindowAreLeftOut) {
  Options options;
  options.cache = InF32();
  options.prompt_batch = 16;
  const Loaded loaded = Load(Synth("tiny-gemma3:F32"), options);
  ReferenceModel reference(*loaded.model);
  const std::vector<std::int32_t> tokens = Tokens(150, loaded.model->hyper().vocab);
  std::vector<std::vector<double>> expected;
  for (const std::int32_t token : tokens) expected.push_back(reference.Append(token));
  const auto prompted = loaded.session->Prompt(tokens, [&](std::size_t i, std::span<const float> logits) {
    EXPECT_LT(Divergence(expected[i], logits), 1e-9) << "in batches, token " << i;
  });
  ASSERT_TRUE(prompted) << prompted.error().Message();
  ASSERT_TRUE(loaded.session->Truncate(120));
  for (std::size_t i = 120; i < tokens.size(); ++i) {
    ASSERT_TRUE(loaded.session->Decode(tokens[i]));
    EXPECT_LT(Divergence(expected[i], loaded.session->logits()), 1e-9) << "token by token, token " << i;
  }
}

class QuantisedTest : public testing::TestWithParam<std::string> {};

TEST_P(QuantisedTest, DistanceFromDoublePrecisionIsThatOfEightBitActivations) {
  const Loaded loaded = Load(Synth(GetParam()));
  ReferenceModel reference(*loaded.model);
  double total = 0;
  const std::vector<std::int32_t> tokens = Tokens(12, loaded.model->hyper().vocab);
  for (const std::int32_t token : tokens) {
    ASSERT_TRUE(loaded.session->Decode(token));
    total += Divergence(reference.Append(token), loaded.session->logits());
  }
  EXPECT_LT(total / static_cast<double>(tokens.size()), 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantisedTest,
                         testing::Values("tiny-qwen3:Q8_0", "tiny-llama:Q4_1", "tiny-llama:F16", "tiny-gemma3:Q4_K_M"));

TEST(EngineTest, TheSameTokensAtAnyNumberOfThreads) {
  if (chip::UsableCpus().size() < 2) GTEST_SKIP() << "one usable CPU";
  for (const char* spec : {"tiny-llama:Q8_0", "tiny-gemma3:Q8_0"}) {
    std::vector<std::vector<std::int32_t>> streams;
    for (const std::uint32_t threads : {1U, 2U}) {
      Options options;
      options.threads = threads;
      const Loaded loaded = Load(Synth(spec), options);
      streams.push_back(Greedy(*loaded.session, Tokens(150, loaded.model->hyper().vocab), 40));
    }
    EXPECT_EQ(streams[0], streams[1]) << spec;
  }
}

/// Whether the plan may take a route at all: shared tails need another thread, and gate-by-rows is what is left when
/// gate and up are not put together in registers.
bool IsPossible(const Route& route, std::uint32_t threads, const std::vector<std::string>& without) {
  if (route.name == kSharedTails) return threads > 1;
  return route.name != kGateByRows || std::ranges::find(without, kGateInRegisters) != without.end();
}

/// The logits, and the tokens before them.
std::pair<std::vector<float>, std::vector<std::int32_t>> Outcome(const Loaded& loaded, int count) {
  std::vector<std::int32_t> tokens = Greedy(*loaded.session, Tokens(130, loaded.model->hyper().vocab), count);
  return {{loaded.session->logits().begin(), loaded.session->logits().end()}, std::move(tokens)};
}

TEST(EngineTest, EveryRouteAndAnyNumberOfThreadsGivesTheSameLogits) {
  const std::string path = Synth("tiny-qwen3:Q8_0");  // two KV heads: every route is open to two threads
  std::vector<std::vector<std::string>> switched_off{{}};
  for (const Route& route : Routes()) {
    switched_off.push_back({route.name});
    if (route.name == kGateByRows) switched_off.back().emplace_back(kGateInRegisters);
  }
  std::vector<std::vector<float>> logits;
  for (const std::uint32_t threads : {1U, 2U}) {
    if (chip::UsableCpus().size() < threads) GTEST_SKIP() << "one usable CPU";
    for (const std::vector<std::string>& without : switched_off) {
      Options options;
      options.threads = threads;
      options.without = without;
      for (const Route& route : Routes()) options.with.push_back(route.name);
      options.geometry = {*ParseGeometryChoice("tails:piece=1")};
      const Loaded loaded = Load(path, options);
      for (const Route& route : Routes()) {
        const bool is_off = std::ranges::find(without, route.name) != without.end();
        EXPECT_EQ(loaded.engine->route_uses().contains(route.name), IsPossible(route, threads, without) && !is_off)
            << route.name;
      }
      logits.push_back(Outcome(loaded, 10).first);
      EXPECT_EQ(logits.back(), logits.front())
          << threads << " threads, without " << (without.empty() ? "" : without[0]);
    }
  }
}

// Biases; a head that no two threads can share out; a file of several formats.
TEST(EngineTest, AllRoutesOrNoneGiveTheSameLogits) {
  std::vector<std::string> all;
  for (const Route& route : Routes()) all.push_back(route.name);
  for (const char* spec : {"tiny-qwen2:Q8_0", "tiny-gemma3:Q8_0", "tiny-llama:Q4_K_M"}) {
    std::vector<std::pair<std::vector<float>, std::vector<std::int32_t>>> outcomes;
    for (const std::uint32_t threads : {1U, 2U}) {
      if (chip::UsableCpus().size() < threads) GTEST_SKIP() << "one usable CPU";
      for (const bool on : {false, true}) {
        Options options;
        options.threads = threads;
        (on ? options.with : options.without) = all;
        options.piece_bytes = 1;
        outcomes.push_back(Outcome(Load(Synth(spec), options), 5));
        EXPECT_EQ(outcomes.back(), outcomes.front()) << spec << ", " << threads << " threads, " << on;
      }
    }
  }
}

TEST(EngineTest, WithoutItsLogitsATokenIsTheSame) {
  const Loaded loaded = Load(Synth("tiny-llama:Q8_0"));
  const std::vector<std::int32_t> prompt = Tokens(20, loaded.model->hyper().vocab);
  const std::vector<std::int32_t> kept = Greedy(*loaded.session, prompt, 8);
  ASSERT_TRUE(loaded.session->Truncate(0));
  loaded.session->KeepLogits(false);
  const std::vector<float> before(loaded.session->logits().begin(), loaded.session->logits().end());
  EXPECT_EQ(Greedy(*loaded.session, prompt, 8), kept);
  EXPECT_TRUE(std::ranges::equal(loaded.session->logits(), before)) << "nothing was written";
}

TEST(EngineTest, TruncatingGoesBackExactly) {
  const Loaded loaded = Load(Synth("tiny-llama:Q8_0"));
  const std::vector<std::int32_t> prompt = Tokens(20, loaded.model->hyper().vocab);
  const std::vector<std::int32_t> first = Greedy(*loaded.session, prompt, 10);
  ASSERT_TRUE(loaded.session->Truncate(0));
  EXPECT_EQ(Greedy(*loaded.session, prompt, 10), first);
  EXPECT_EQ(loaded.session->Truncate(1000).error().code, Code::kUsage);
}

TEST(EngineTest, TheTraceStampsEveryStepAndBarrierInOrder) {
  const Loaded loaded = Load(Synth("tiny-llama:Q8_0"));
  Trace trace;
  ASSERT_TRUE(loaded.session->Decode(1, &trace));
  ASSERT_EQ(trace.step_begin.size(), loaded.engine->options().threads);
  std::uint64_t last = trace.token_begin;
  for (std::size_t step = 0; step < loaded.engine->steps().size(); ++step) {
    EXPECT_LE(last, trace.step_begin[0][step]);
    EXPECT_LE(trace.step_begin[0][step], trace.step_end[0][step]);
    last = trace.step_end[0][step];
  }
  EXPECT_LE(last, trace.token_end);
  EXPECT_EQ(trace.barrier_end[0].size(), loaded.engine->phases());
}

TEST(EngineTest, APlansIdentityIsKnownWithoutItsWeights) {
  for (const char* spec : {"tiny-qwen3:Q8_0", "tiny-gemma3:F32"}) {
    const auto model = model::Model::Load(Synth(spec));
    ASSERT_TRUE(model);
    const chip::Chip machine = *chip::DetectThisMachine();
    Options options;
    options.context = 64;
    options.cache_folder = (fs::current_path() / "kernel-cache").string();
    std::set<std::string> identities;
    for (const std::vector<std::string>& without : {std::vector<std::string>{}, {"norm-in-consumer"}}) {
      for (const std::uint32_t threads : {1U, 2U}) {
        options.without = without;
        options.threads = threads;
        const auto engine = Engine::Load(*model, machine, options);
        if (!engine && engine.error().code == Code::kThreads) continue;
        ASSERT_TRUE(engine) << engine.error().Message();
        EXPECT_EQ(PlanIdentity(*model, machine, options).value(), (*engine)->plan_id()) << spec << threads;
        identities.insert((*engine)->plan_id());
      }
    }
    EXPECT_GE(identities.size(), 2U) << spec;
  }
}

TEST(EngineTest, EveryKernelOfThePlanIsGenerated) {
  const Loaded loaded = Load(Synth("tiny-llama:Q8_0"));
  for (const StepInfo& step : loaded.engine->steps()) {
    EXPECT_TRUE(step.provenance == "compiler_generated" || step.provenance == "search_generated") << step.kernel;
  }
}

TEST(EngineTest, RefusalsSayWhatIsWrong) {
  Options options;
  options.context = 8;
  const Loaded loaded = Load(Synth("tiny-llama:Q8_0"), options);
  EXPECT_EQ(loaded.session->Prompt(Tokens(9, 64)).error().code, Code::kContextFull);
  EXPECT_EQ(loaded.session->Decode(-1).error().code, Code::kBadToken);
  EXPECT_EQ(loaded.session->Decode(static_cast<std::int32_t>(loaded.model->hyper().vocab)).error().code,
            Code::kBadToken);
  EXPECT_EQ(loaded.engine->NewSession().error().code, Code::kUsage);
  const auto load = [&](const Options& wrong) {
    return Engine::Load(*loaded.model, chip::DetectThisMachine().value(), wrong).error().code;
  };
  Options many;
  many.threads = 100000;
  EXPECT_EQ(load(many), Code::kThreads);
  Options large;
  large.context = 1ULL << 40;
  EXPECT_EQ(load(large), Code::kUsage);
  large.context = 1ULL << 24;
  EXPECT_EQ(load(large), Code::kOutOfMemory);
  Options stopped;
  stopped.cancelled = [] { return true; };
  EXPECT_EQ(load(stopped), Code::kInterrupted);
}

TEST(EngineTest, AFileThatIsCutWhileItIsOpenEndsInAnError) {
  const std::string original = Synth("tiny-llama:Q8_0");
  const std::string path = original + ".cut";
  fs::copy_file(original, path, fs::copy_options::overwrite_existing);
  const Loaded loaded = Load(path);
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_EQ(loaded.session->Decode(1).error().code, Code::kFileRead);  // the embedding's row
  EXPECT_EQ(Engine::Load(*loaded.model, chip::DetectThisMachine().value(), {}).error().code, Code::kFileRead);
  fs::remove(path);
}

/// Writes the tensors of `from`, those from `begin` to `end`, as a part of a split model; the first has its keys too.
void WritePart(const gguf::File& from, const std::string& path, std::uint32_t number, std::size_t begin,
               std::size_t end) {
  gguf::Writer writer = gguf::Writer::Create(path).value();
  for (const gguf::KeyValue& pair : from.metadata()) {
    if (number != 0) break;
    if (const auto* text = std::get_if<std::string>(&pair.value)) writer.Add(pair.key, std::string_view(*text));
    if (const auto* value = std::get_if<std::uint64_t>(&pair.value)) {
      writer.Add(pair.key, static_cast<std::uint32_t>(*value));
    }
    if (const auto* real = std::get_if<double>(&pair.value)) writer.Add(pair.key, static_cast<float>(*real));
  }
  writer.Add("split.no", number);
  writer.Add("split.count", std::uint32_t{3});
  writer.Add("split.tensors.count", static_cast<std::uint32_t>(from.tensors().size()));
  std::vector<gguf::Writer::Tensor> infos;
  for (const gguf::TensorInfo& info : from.tensors().subspan(begin, end - begin)) {
    infos.push_back({info.name, info.type, {info.shape.begin(), info.shape.begin() + info.dimensions}});
  }
  ASSERT_TRUE(writer.Begin(infos));
  for (const gguf::TensorInfo& info : from.tensors().subspan(begin, end - begin)) {
    std::vector<std::byte> bytes(info.bytes);
    ASSERT_TRUE(from.Read(info.file_offset, bytes));
    ASSERT_TRUE(writer.Write(bytes));
  }
  ASSERT_TRUE(writer.Finish());
}

TEST(EngineTest, ASplitModelComputesWhatTheWholeOneDoes) {
  const std::string path = Synth("tiny-llama:Q8_0");
  const gguf::File file = gguf::File::Open(path).value();
  const std::size_t cuts[] = {0, 0, 20, file.tensors().size()};  // the first part may hold metadata alone
  std::string part;
  for (std::uint32_t number = 0; number < 3; ++number) {
    part = (Folder() / ("split-0000" + std::to_string(number + 1) + "-of-00003.gguf")).string();
    WritePart(file, part, number, cuts[number], cuts[number + 1]);
  }
  const std::vector<std::int32_t> tokens = Tokens(5, 1024);
  std::vector<std::vector<float>> logits;
  for (const std::string& name : {path, part}) {
    const Loaded loaded = Load(name);
    ASSERT_TRUE(loaded.session->Prompt(tokens));
    logits.emplace_back(loaded.session->logits().begin(), loaded.session->logits().end());
  }
  EXPECT_EQ(logits[0], logits[1]);
}

TEST(EngineTest, ASparseFileIsRefused) {
  const fs::path path = Folder() / "sparse.gguf";
  model::SynthOptions options;
  options.sparse = true;
  ASSERT_TRUE(model::WriteSynth(model::PlanSynth("qwen3-0.6b:Q4_K_M", options).value(), path.string(), options));
  const auto model = model::Model::Load(path.string());
  ASSERT_TRUE(model) << model.error().Message();
  EXPECT_EQ(Engine::Load(*model, chip::DetectThisMachine().value(), {}).error().code, Code::kSparseModel);
  fs::remove(path);
}

}  // namespace
}  // namespace boltbeam::engine
