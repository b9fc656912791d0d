#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>

#include "chip/test_facts.h"
#include "lab/line.h"
#include "lab/variance.h"
#include "roofline/bound.h"
#include "roofline/formulas.h"
#include "roofline/price.h"
#include "test_model.h"

namespace boltbeam::roofline {
namespace {

using nlohmann::json;

json Golden(const std::string& name) {
  std::ifstream stream(std::string(BOLTBEAM_TEST_DATA) + "/" + name);
  return json::parse(stream);
}

std::string ReadText(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// ---------------------------------------------------------------- docs/formulas.md

using Arguments = std::vector<double>;

/// Pairs of GB and ms.
std::vector<lab::Point> PointsOf(const Arguments& a) {
  std::vector<lab::Point> points;
  for (std::size_t i = 0; i + 1 < a.size(); i += 2) points.push_back({a[i] * 1e9, a[i + 1] / 1e3});
  return points;
}
lab::Line FitOf(const Arguments& a) { return lab::Line::Fit(PointsOf(a)).value(); }

const std::map<std::string, std::function<double(const Arguments&)>>& Functions() {
  static const std::map<std::string, std::function<double(const Arguments&)>> kFunctions = {
      {"MemoryFloorNs", [](const Arguments& a) { return MemoryFloorNs(a.at(0), a.at(1)); }},
      {"ComputeFloorNs", [](const Arguments& a) { return ComputeFloorNs(a.at(0), a.at(1)); }},
      {"LimitTokensPerSecond", [](const Arguments& a) { return LimitTokensPerSecond(a.at(0), a.at(1)); }},
      {"Ridge", [](const Arguments& a) { return Ridge(a.at(0), a.at(1)); }},
      {"CrossoverBatch", [](const Arguments& a) { return CrossoverBatch(a.at(0), a.at(1)); }},
      {"DecodeIntensity", [](const Arguments& a) { return DecodeIntensity(a.at(0)); }},
      {"BitsPerWeight", [](const Arguments& a) { return BitsPerWeight(a.at(0), a.at(1)); }},
      {"TableBytes", [](const Arguments& a) { return TableBytes(a.at(0), a.at(1), a.at(2)); }},
      {"ActivationBytes", [](const Arguments& a) { return ActivationBytes(a.at(0), a.at(1)); }},
      {"KvBytes", [](const Arguments& a) { return KvBytes(a.at(0), a.at(1), a.at(2), a.at(3), a.at(4)); }},
      {"MatmulFlops", [](const Arguments& a) { return MatmulFlops(a.at(0), a.at(1)); }},
      {"AttentionFlops",
       [](const Arguments& a) { return AttentionFlops(a.at(0), a.at(1), a.at(2), a.at(3), a.at(4)); }},
      {"UnpackFloorNs", [](const Arguments& a) { return UnpackFloorNs(a.at(0), a.at(1)); }},
      {"MixedPeak", [](const Arguments& a) { return MixedPeak(a.at(0), a.at(1), a.at(2), a.at(3)); }},
      {"BytesInFlight", [](const Arguments& a) { return BytesInFlight(a.at(0), a.at(1)); }},
      {"LostNs", [](const Arguments& a) { return LostNs(a.at(0), a.at(1)); }},
      {"UnaccountedNs", [](const Arguments& a) { return UnaccountedNs(a.at(0), a.at(1), a.at(2), a.at(3)); }},
      {"Band", [](const Arguments& a) { return Band(a.at(0)); }},
      {"CachedShare", [](const Arguments& a) { return CachedShare(a.at(0), a.at(1)); }},
      {"LineSeconds", [](const Arguments& a) { return LineSeconds(a.at(0), a.at(1), a.at(2)); }},
      {"MemoryShiftS", [](const Arguments& a) { return MemoryShiftS(a.at(0), a.at(1), a.at(2), a.at(3)); }},
      {"FittedBandwidth", [](const Arguments& a) { return FitOf(a).bandwidth_bytes_s() / 1e9; }},
      {"FittedFixedMs", [](const Arguments& a) { return 1e3 * FitOf(a).fixed_s(); }},
      {"FixedHalfWidthMs", [](const Arguments& a) { return 1e3 * (FitOf(a).Fixed(0.95).high - FitOf(a).fixed_s()); }},
      {"RobustBandwidth", [](const Arguments& a) { return lab::FitRobust(PointsOf(a))->bandwidth_bytes_s / 1e9; }},
      {"RobustFixedMs", [](const Arguments& a) { return 1e3 * lab::FitRobust(PointsOf(a))->fixed_s; }},
      {"Sequences", [](const Arguments& a) { return std::pow(a.at(0), a.at(1)); }},
      {"Product", [](const Arguments& a) { return std::accumulate(a.begin(), a.end(), 1.0, std::multiplies<>()); }},
      {"ImpliedBandwidth", [](const Arguments& a) { return ImpliedBandwidth(a.at(0), a.at(1)); }},
      {"MemoryShareOfGap", [](const Arguments& a) { return MemoryShareOfGap(a.at(0), a.at(1), a.at(2)); }},
      {"UsdPerMillion", [](const Arguments& a) { return UsdPerMillion(a.at(0), a.at(1), a.at(2)); }},
      {"BreakEvenTokensPerDay", [](const Arguments& a) { return BreakEvenTokensPerDay(a.at(0), a.at(1)); }},
      {"BreakEvenLoad", [](const Arguments& a) { return BreakEvenLoad(a.at(0), a.at(1), a.at(2)); }},
      {"UsdPerYear", [](const Arguments& a) { return UsdPerYear(a.at(0)); }},
      {"PowerUsdPerYear", [](const Arguments& a) { return PowerUsdPerYear(a.at(0), a.at(1)); }},
      {"OwnedUsdPerHour", [](const Arguments& a) { return OwnedUsdPerHour(a.at(0), a.at(1), a.at(2), a.at(3)); }},
      {"MonthsToBuy", [](const Arguments& a) { return MonthsToBuy(a.at(0), a.at(1)); }},
      {"MonthsToOwn", [](const Arguments& a) { return MonthsToOwn(a.at(0), a.at(1), a.at(2), a.at(3)); }},
      {"RentUsd", [](const Arguments& a) { return RentUsd(a.at(0), a.at(1)); }},
      {"OwnUsd", [](const Arguments& a) { return OwnUsd(a.at(0), a.at(1), a.at(2), a.at(3)); }},
      {"WithFee", [](const Arguments& a) { return WithFee(a.at(0), a.at(1)); }},
      {"MicrosecondUsdPerYear", [](const Arguments& a) { return MicrosecondUsdPerYear(a.at(0), a.at(1), a.at(2)); }},
      {"BatchRate", [](const Arguments& a) { return BatchRate(a.at(0), a.at(1), a.at(2)); }},
      {"HalfWidth",  // a list of variances with their degrees of freedom, and at last the confidence
       [](const Arguments& a) {
         std::vector<lab::Variance> parts;
         for (std::size_t i = 0; i + 2 < a.size(); i += 2) parts.push_back({a[i], a[i + 1]});
         return lab::HalfWidth(parts, a.back());
       }},
  };
  return kFunctions;
}

TEST(Formulas, EveryExampleOfTheDocumentHolds) {
  const std::string text = ReadText(BOLTBEAM_SOURCE_DIR "/docs/formulas.md");
  const std::regex example(R"(`([A-Z]\w+)\(([^)`]*)\) = (-?[0-9.e+]+)`)");
  std::set<std::string> seen;
  for (std::sregex_iterator it(text.begin(), text.end(), example), end; it != end; ++it) {
    const std::string name = (*it)[1];
    ASSERT_TRUE(Functions().contains(name)) << name;
    Arguments arguments;
    std::istringstream list((*it)[2]);
    for (std::string number; std::getline(list, number, ',');) arguments.push_back(std::stod(number));
    const double printed = std::stod((*it)[3]);
    EXPECT_NEAR(Functions().at(name)(arguments), printed, std::abs(printed) * 5e-6) << it->str();
    seen.insert(name);
  }
  for (const auto& [name, function] : Functions()) EXPECT_TRUE(seen.contains(name)) << name << " has no example";
  const std::string header =
      ReadText(BOLTBEAM_SOURCE_DIR "/src/roofline/formulas.h") + ReadText(BOLTBEAM_SOURCE_DIR "/src/roofline/price.h");
  const std::regex declaration(R"(constexpr double (\w+)\()");
  for (std::sregex_iterator it(header.begin(), header.end(), declaration), end; it != end; ++it) {
    EXPECT_TRUE(seen.contains((*it)[1])) << (*it)[1] << " is not in the document";
  }
}

/// "7,112,465,842,176" as a number.
double Grouped(std::string digits) {
  std::erase(digits, ',');
  return std::stod(digits);
}

// What the prose works out: sums of bytes and operations, and that no example is written in a form that no test reads.
TEST(Formulas, SumsInTheProseHold) {
  std::string text = ReadText(BOLTBEAM_SOURCE_DIR "/docs/formulas.md");
  std::ranges::replace(text, '\n', ' ');
  const std::regex sum(R"(([0-9][0-9,]+) \+ ([0-9][0-9,]+) = ([0-9][0-9,]*[0-9]))");
  int sums = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), sum), end; it != end; ++it, ++sums) {
    EXPECT_EQ(Grouped((*it)[1]) + Grouped((*it)[2]), Grouped((*it)[3])) << it->str();
  }
  EXPECT_GE(sums, 2);
  const std::regex example(R"(`([A-Z]\w+)\(([^)`]*)\) = (-?[0-9.e+]+)`)"), any(R"(`[A-Z]\w+\([^`]*`)");
  const auto count = [&](const std::regex& what) {
    return std::distance(std::sregex_iterator(text.begin(), text.end(), what), std::sregex_iterator());
  };
  EXPECT_EQ(count(example), count(any)) << "an example that is not computed";
}

// ---------------------------------------------------------------- recorded bounds

double At(const json& values, const char* key) { return values.at(key).get<double>(); }

void ExpectNear(double computed, double expected, const std::string& name) {
  EXPECT_NEAR(computed, expected, std::abs(expected) * 1e-6) << name;
}

TEST(Golden, RecordedBounds) {
  std::map<std::string, int> checked;
  const json golden = Golden("bounds.json");
  for (const json& entry : golden["cases"]) {
    const std::string group = entry["group"], name = entry["name"];
    const json &in = entry["inputs"], &out = entry["expected"];
    ++checked[group];
    if (group == "decode_limit") {
      const double floor = MemoryFloorNs(At(in, "bytes_per_token_bytes"), At(in, "bandwidth_gb_s"));
      ExpectNear(LimitTokensPerSecond(floor), At(out, "limit_tok_s"), name);
      ExpectNear(floor / 1e6, At(out, "limit_ms"), name);
    } else if (group == "vocabulary_floor" && out.contains("floor_us")) {
      ExpectNear(MemoryFloorNs(At(in, "tensor_bytes"), At(in, "bandwidth_gb_s")) / 1e3, At(out, "floor_us"), name);
    } else if (group == "role_floor") {
      for (const json& row : out["rows"]) {
        const double each = MemoryFloorNs(At(row, "tensor_bytes"), At(in, "bandwidth_gb_s"));
        ExpectNear(each / 1e3, At(row, "floor_each_us"), name);
        const double bytes = At(row, "tensor_bytes") + ActivationBytes(At(row, "rows"), At(row, "cols"));
        ExpectNear(At(row, "count") * bytes, At(row, "limit_row_bytes"), name);
      }
    } else if (group == "ridge") {
      ExpectNear(Ridge(At(in, "peak_flop_s"), At(in, "bandwidth_gb_s")), At(out, "ridge_flop_per_byte"), name);
    } else if (group == "m_star" && out.contains("m_star")) {
      const double ridge = Ridge(At(in, "peak_flop_s"), At(in, "bandwidth_gb_s"));
      ExpectNear(CrossoverBatch(At(in, "bits_per_weight"), ridge), At(out, "m_star"), name);
    } else if (group == "intensity") {
      ExpectNear(DecodeIntensity(At(in, "bits_per_weight")), At(out, "flop_per_byte"), name);
    } else if (group == "kv" && out.contains("kv_bytes")) {
      ExpectNear(At(in, "per_token_bytes") * At(in, "context"), At(out, "kv_bytes"), name);
    } else if (group == "bytes_in_flight" && out.contains("in_flight_bytes")) {
      const double bytes = BytesInFlight(At(in, "bandwidth_gb_s"), At(in, "latency_us") * 1e3);
      ExpectNear(bytes, At(out, "in_flight_bytes"), name);
    }
  }
  for (const char* group : {"decode_limit", "vocabulary_floor", "role_floor", "ridge", "m_star", "intensity", "kv"}) {
    EXPECT_GT(checked[group], 0) << group;
  }
}

// ---------------------------------------------------------------- a whole model

const model::Model& EightB() {
  static const model::Model kLoaded = model::Model::Load(model::Qwen3EightB().Write()).value();
  return kLoaded;
}

Bound BoundOn(const std::string& chip_name, const BoundOptions& options = {{0, 512, 4096}, 1, 0},
              std::optional<double> bandwidth = {}) {
  const chip::Chip chip = chip::FindChip(chip_name, "").value();
  return ComputeBound(EightB(), RoofOf(chip, bandwidth).value(), options).value();
}

const Part& PartOf(const Bound& bound, std::string_view role, std::string_view format) {
  for (const Part& part : bound.parts) {
    if (part.role == role && part.format == format) return part;
  }
  ADD_FAILURE() << role << " " << format;
  return bound.parts.front();
}

TEST(Bound, GoldenOnTheRtx5090) {
  const Bound bound = BoundOn("rtx-5090");
  EXPECT_EQ(bound.pass.weight_bytes, 4670533632.0);
  EXPECT_EQ(bound.pass.bytes(), 4676301568.0);
  EXPECT_NEAR(bound.pass.limit_tok_s(), 363.535152, 1e-5);
  EXPECT_NEAR(bound.pass.floor_ns, 2750765.63, 0.01);
  EXPECT_EQ(bound.depths[1].kv_bytes, 75497472.0);
  EXPECT_NEAR(bound.depths[1].limit_tok_s(), 357.76, 0.005);
  EXPECT_NEAR(*bound.ridge_ops_per_byte, 150.2, 0.05);
  EXPECT_NEAR(*bound.crossover_batch, 46.36, 0.005);
  EXPECT_NEAR(bound.bits_per_weight, 4.937, 0.0005);
  const Part& head = PartOf(bound, "lm_head", "Q6_K");
  EXPECT_NEAR(*head.floor_ns, 300297.035, 0.001);
  EXPECT_EQ(head.limit, Limit::kMemory);
  EXPECT_NEAR(*PartOf(bound, "attn_qo", "Q4_K").crossover_batch, 42.25, 0.005);
  EXPECT_EQ(PartOf(bound, "attn_qo", "Q4_K").calls, 72u);
  EXPECT_EQ(PartOf(bound, "activations", "f16").bytes, 5767936.0);
}

TEST(Bound, GoldenOnTheAppleM3) {
  const Bound bound = BoundOn("apple-m3-10c");
  EXPECT_NEAR(bound.pass.limit_tok_s(), 19.22, 0.005);
  EXPECT_NEAR(bound.depths[1].limit_tok_s(), 18.92, 0.005);
  EXPECT_NEAR(*bound.ridge_ops_per_byte, 35.06, 0.005);
  EXPECT_NEAR(*bound.crossover_batch, 10.82, 0.005);
  EXPECT_NEAR(*PartOf(bound, "ffn_gate_up", "Q4_K").crossover_batch, 9.86, 0.005);
}

TEST(Bound, TheLedgersOwnBandwidth) {
  EXPECT_NEAR(*PartOf(BoundOn("rtx-5090", {}, 1701.32), "lm_head", "Q6_K").floor_ns, 300064, 0.5);
}

TEST(Bound, APromptIsBoundByItsSumsAndComputesTheHeadOnce) {
  const Bound bound = BoundOn("apple-m3-10c", {{0}, 1, 512});
  EXPECT_EQ(bound.pass.weight_flops, 7113710501888.0);
  EXPECT_EQ(bound.pass.limit, Limit::kCompute);
  EXPECT_EQ(PartOf(bound, "lm_head", "Q6_K").limit, Limit::kMemory) << "one column";
  EXPECT_EQ(PartOf(bound, "ffn_down", "Q4_K").limit, Limit::kCompute);
  EXPECT_GE(bound.pass.parts_floor_ns, bound.pass.floor_ns);
  EXPECT_NEAR(bound.pass.floor_ns, ComputeFloorNs(bound.pass.weight_flops + bound.pass.attention_flops, 3.152e12), 1);
}

TEST(Bound, ABatchReadsTablesOnceAndEveryCache) {
  const Bound one = BoundOn("rtx-5090", {{512}, 1, 0});
  const Bound four = BoundOn("rtx-5090", {{512}, 4, 0});
  EXPECT_EQ(four.pass.weight_bytes, one.pass.weight_bytes);
  EXPECT_EQ(four.pass.kv_bytes, 4 * one.pass.kv_bytes);
  EXPECT_EQ(four.pass.activation_bytes, 4 * one.pass.activation_bytes);
  EXPECT_GT(four.pass.limit_tok_s(), 3.8 * one.pass.limit_tok_s());
}

TEST(Bound, CachedPartsAreKnownOnlyWithACacheBandwidth) {
  const Part with = PartOf(BoundOn("rtx-5090"), "norm", "f16");
  EXPECT_EQ(with.limit, Limit::kCache);
  EXPECT_NEAR(*with.floor_ns, with.bytes / 5811.8, 1e-6);
  const Part without = PartOf(BoundOn("apple-m3-10c"), "norm", "f16");
  EXPECT_EQ(without.limit, Limit::kUnknown);
  EXPECT_FALSE(without.floor_ns.has_value());
}

TEST(Bound, WithoutAPeakOnlyTheMemoryIsKnown) {
  const chip::Chip h200 = chip::FindChip("h200", "").value();
  const Bound bound = ComputeBound(EightB(), RoofOf(h200, 4800).value(), {}).value();
  EXPECT_FALSE(bound.ridge_ops_per_byte.has_value());
  EXPECT_FALSE(PartOf(bound, "lm_head", "Q6_K").crossover_batch.has_value());
  EXPECT_EQ(bound.pass.limit, Limit::kMemory);
}

TEST(Refuse, AChipWithoutABandwidth) {
  const Error error = RoofOf(chip::FindChip("h200", "").value()).error();
  EXPECT_EQ(error.code, Code::kBoundNoBandwidth);
  EXPECT_NE(error.Message().find("--bandwidth 4800"), std::string::npos);
  EXPECT_NE(error.Message().find("chip measure"), std::string::npos);
  EXPECT_EQ(RoofOf(chip::Chip{}).error().code, Code::kBoundNoBandwidth);
}

TEST(Refuse, NumbersThatMakeNoSense) {
  const chip::Chip chip = chip::FindChip("rtx-5090", "").value();
  EXPECT_EQ(RoofOf(chip, 0).error().code, Code::kBoundOptions);
  EXPECT_EQ(RoofOf(chip, -1).error().code, Code::kBoundOptions);
  EXPECT_EQ(RoofOf(chip, {}, std::nan("")).error().code, Code::kBoundOptions);
  const Roof roof = RoofOf(chip).value();
  for (const BoundOptions& options : {BoundOptions{{}, 1, 0}, BoundOptions{{1ull << 40}, 1, 0}, BoundOptions{{0}, 0, 0},
                                      BoundOptions{{0}, 1, 1ull << 40}, BoundOptions{{0}, 1ull << 18, 1ull << 18}}) {
    EXPECT_EQ(ComputeBound(EightB(), roof, options).error().code, Code::kBoundOptions);
  }
}

TEST(Little, BytesInFlightWhereALatencyIsKnown) {
  chip::Chip chip = chip::FindChip("rtx-5090", "").value();
  std::erase_if(chip.facts, [](const chip::Fact& fact) { return fact.name.starts_with("memory_latency"); });
  EXPECT_EQ(InFlightText(ComputeBound(EightB(), RoofOf(chip, 1700).value(), {})->in_flight), "");
  chip::AddMeasured(chip, {{"memory_latency_ns", 1000}});
  const InFlight idle = ComputeBound(EightB(), RoofOf(chip, 1700).value(), {})->in_flight;
  EXPECT_NEAR(*idle.bytes, 1.7e6, 1e-3);
  EXPECT_FALSE(idle.bytes_loaded);
  chip::AddMeasured(chip, {{"memory_latency_loaded_ns", 3000}});
  const InFlight both = ComputeBound(EightB(), RoofOf(chip, 1700).value(), {})->in_flight;
  EXPECT_EQ(both.bytes, idle.bytes) << "the idle one, whatever else is known";
  EXPECT_NEAR(*both.bytes_loaded, 5.1e6, 1e-3);
  EXPECT_EQ(InFlightText(both), "1700.0 kB asked for by 1000 ns (idle), 5100.0 kB under way at 3000 ns (loaded)");
}

TEST(Ceilings, OfEveryPartAtEveryNumberOfThreads) {
  Roof roof;
  roof.bandwidth_gb_s = 50;
  const auto wide = [](double count) { return chip::VectorCounts::Of(512, count); };
  roof.threads = {{1, {30, 100, {{128, 2e9}, {512, 1e9}}}}, {2, {50, 200, {{128, 8e9}, {512, 4e9}}}}};
  roof.instructions = {
      {{"lm_head", "Q6_K", wide(1.2e7)}, {"norm", "", wide(5e5), 0, false}, {"quantize", "", wide(1e5)}},
      {{"lm_head", "Q6_K", wide(1.2e7)}, {"attention", "", wide(3e6)}}};
  const Bound bound = ComputeBound(EightB(), roof, {{0, 512}, 1, 0}).value();
  const Part head = PartOf(bound, "lm_head", "Q6_K");
  ASSERT_EQ(head.ceilings.size(), 2U);
  EXPECT_NEAR(*head.ceilings[0].bytes_floor_ns, head.bytes / 30, 1e-3);  // 17.0 ms
  EXPECT_NEAR(head.ceilings[0].unpack_floor_ns, 1.2e7, 1e-3);            // 12 ms
  EXPECT_FALSE(head.ceilings[0].BindsInstructions());
  EXPECT_NEAR(*head.unpack_floor_ns, 3e6, 1e-3);
  const Part norm = PartOf(bound, "norm", "f16");
  EXPECT_NEAR(*norm.ceilings[1].bytes_floor_ns, norm.bytes / 200, 1e-3);  // of the caches: 73 bytes, 36 layers
  EXPECT_TRUE(norm.ceilings[1].BindsInstructions());
  EXPECT_FALSE(norm.is_from_listing);
  ASSERT_EQ(bound.code_parts.size(), 1U);
  EXPECT_EQ(bound.code_parts[0].role, "quantize");
  EXPECT_NEAR(*bound.depths[0].instructions, 1.26e7, 1e-3);
  EXPECT_NEAR(*bound.depths[1].attention_instructions, 3e6, 1e-3);
  EXPECT_NEAR(bound.depths[1].ceilings[1].unpack_floor_ns, 1.5e7 / 4, 1e-3);
}

TEST(Ceilings, EveryWidthAtItsOwnRate) {
  const RatesByThreads rates = {{1, {10, {}, {{128, 2e9}, {256, 2e9}, {512, 1e9}}}}};
  chip::VectorCounts counts = chip::VectorCounts::Of(512, 1000);
  counts += chip::VectorCounts::Of(128, 1000);
  const Ceiling ceiling = CeilingsOf(rates, 12000, 0, counts).front();
  EXPECT_NEAR(ceiling.unpack_floor_ns, 1500, 1e-9);
  EXPECT_TRUE(ceiling.BindsInstructions()) << "1200 ns for the bytes";
}

// What binds stands in the first table too, and is decided by the bytes that the code reads.
TEST(Ceilings, TheLimitIsThatOfTheCode) {
  Roof roof;
  roof.bandwidth_gb_s = 50;
  roof.threads = {{1, {30, 100, {{128, 1e9}}}}, {2, {50, 200, {{128, 2e9}}}}};
  const double bytes = PartOf(*ComputeBound(EightB(), roof, {}), "lm_head", "Q6_K").bytes;
  const auto limit = [&](double instructions_ns, double stored_bytes) {
    roof.instructions = {{{"lm_head", "Q6_K", chip::VectorCounts::Of(128, 2 * instructions_ns), stored_bytes}}};
    const Bound bound = ComputeBound(EightB(), roof, {}).value();
    EXPECT_NEAR(*PartOf(bound, "lm_head", "Q6_K").floor_ns, bytes / 50, 1e-3);
    return PartOf(bound, "lm_head", "Q6_K").limit;
  };
  EXPECT_EQ(limit(bytes / 50 * 0.9, 0), Limit::kMemory);
  EXPECT_EQ(limit(bytes / 50 * 1.1, 0), Limit::kInstructions);
  EXPECT_EQ(limit(bytes / 50 * 1.1, bytes * 1.2), Limit::kMemory);
  roof.instructions = {{{"lm_head", "Q6_K", chip::VectorCounts::Of(128, 1e12)}}};
  EXPECT_EQ(ComputeBound(EightB(), roof, {})->pass.limit, Limit::kInstructions);
}

TEST(Peaks, EveryFormatHasItsOwn) {
  Roof roof;
  roof.bandwidth_gb_s = 50;
  roof.peaks = {{"Q4_K", {400e9, "a"}}, {"Q6_K", {200e9, "b"}}, {"attention f16", {100e9, "c"}}};
  const Bound bound = ComputeBound(EightB(), roof, {{0}, 1, 512}).value();
  const Part down = PartOf(bound, "ffn_down", "Q4_K"), more = PartOf(bound, "ffn_down", "Q6_K");
  EXPECT_NEAR(*down.floor_ns, ComputeFloorNs(down.flops, 400e9), 1);
  EXPECT_NEAR(*more.floor_ns, ComputeFloorNs(more.flops, 200e9), 1);
  EXPECT_NEAR(*down.crossover_batch, CrossoverBatch(4.5, Ridge(400e9, 50)), 1e-9);
  EXPECT_NEAR(*more.crossover_batch, CrossoverBatch(6.5625, Ridge(200e9, 50)), 1e-9);
  EXPECT_EQ(more.peak.from, "b");
  EXPECT_GT(*bound.roof.peak_flop_s, 200e9);
  EXPECT_LT(*bound.roof.peak_flop_s, 400e9);
  EXPECT_EQ(bound.roof.peak_from, "a; b");
  double compute = 0;
  for (const Part& part : bound.parts) {
    if (part.streams && part.flops > 0) compute += ComputeFloorNs(part.flops, *part.peak.flop_s);
  }
  EXPECT_EQ(bound.pass.limit, Limit::kCompute);
  EXPECT_NEAR(bound.pass.floor_ns, compute, 1);
  roof.peaks.erase("Q6_K");
  EXPECT_EQ(ComputeBound(EightB(), roof, {{0}, 1, 512})->pass.limit, Limit::kMemory) << "not all are known";
}

}  // namespace
}  // namespace boltbeam::roofline
