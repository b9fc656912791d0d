// What a tokenizer costs: making one from merges of a large vocabulary, and cutting text.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <unordered_set>

#include "model/bpe.h"
#include "model/pretokenizer.h"

namespace {

using boltbeam::model::Bpe;
using boltbeam::model::ByteText;
using boltbeam::model::Pretokenizer;

struct Vocabulary {
  std::vector<std::string> tokens, merges;
};

// Merges of random pairs of earlier tokens, as training makes them: every result is a new token.
Vocabulary MakeVocabulary(std::size_t size) {
  Vocabulary vocabulary;
  std::unordered_set<std::string> known;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(ByteText(static_cast<std::uint8_t>(byte)));
  std::mt19937 random(1);
  while (vocabulary.tokens.size() < size) {
    const std::size_t reach = std::min<std::size_t>(vocabulary.tokens.size(), 20000);
    const std::string left = vocabulary.tokens[random() % reach], right = vocabulary.tokens[random() % reach];
    if (left.size() + right.size() > 16 || !known.insert(left + right).second) continue;
    vocabulary.tokens.push_back(left + right);
    vocabulary.merges.push_back(left + " " + right);
  }
  return vocabulary;
}

void MakeBpe(benchmark::State& state) {
  const Vocabulary vocabulary = MakeVocabulary(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(Bpe::Make(vocabulary.tokens, vocabulary.merges, false));
  }
}
BENCHMARK(MakeBpe)->Arg(50000)->Arg(150000)->Unit(benchmark::kMillisecond);

void MakePretokenizer(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Pretokenizer::Make("qwen2"));
}
BENCHMARK(MakePretokenizer)->Unit(benchmark::kMillisecond);

void Encode(benchmark::State& state) {
  const Vocabulary vocabulary = MakeVocabulary(50000);
  const auto bpe = Bpe::Make(vocabulary.tokens, vocabulary.merges, false);
  const auto pretokenizer = Pretokenizer::Make("qwen2");
  std::stringstream text;
  text << std::ifstream(BOLTBEAM_SOURCE_DIR "/tests/data/prose.txt").rdbuf();
  std::vector<std::int32_t> ids;
  for (auto _ : state) {
    ids.clear();
    const auto done =
        pretokenizer->Split(text.str(), [&](std::string_view piece) { return bpe->Encode(piece, {}, ids); });
    if (!done) state.SkipWithError(done.error().Message().c_str());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(text.str().size()) * state.iterations());
}
BENCHMARK(Encode)->Unit(benchmark::kMillisecond);

}  // namespace
