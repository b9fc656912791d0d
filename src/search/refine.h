// The most promising candidates foretold once more, from their compiled code: what the compiler makes of a point (in
// which order it reads the table, and how its reads lie among the instructions) stands in no knob.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/codegen.h"
#include "codegen/listing_facts.h"
#include "search/predict.h"

namespace boltbeam::search {

/// Compiles candidates of one part and says how their code reads the table; nothing is run. Each is compiled once.
class CodeReader {
 public:
  /// part and target must outlive it.
  CodeReader(const Part& part, const codegen::Target& target) : part_(part), target_(target) {}

  /// In parallel, by so many threads.
  void Prepare(std::span<const kernel::GemvGeometry> points, unsigned threads);
  /// Nothing when it can't be compiled or its reads can't be seen.
  std::optional<codegen::StreamFacts> Of(const kernel::GemvGeometry& point);
  /// What is known already, by CandidateName.
  [[nodiscard]] const std::map<std::string, std::optional<codegen::StreamFacts>>& known() const { return known_; }
  void Know(const std::string& candidate, const std::optional<codegen::StreamFacts>& stream) {
    known_[candidate] = stream;
  }

 private:
  [[nodiscard]] std::optional<codegen::StreamFacts> Read(const kernel::GemvGeometry& point) const;

  const Part& part_;
  const codegen::Target& target_;
  std::map<std::string, std::optional<codegen::StreamFacts>> known_;
};

/// Foretells those of the points that survived again, with what the reader sees of them, and puts all in order.
Result<void> Refine(Foresight& foresight, const Part& part, const chip::Chip& chip, std::uint32_t threads,
                    const Coefficients& coefficients, CodeReader& reader, std::span<const kernel::GemvGeometry> points,
                    unsigned compilers);

/// Geometries of the first `count` survivors.
std::vector<kernel::GemvGeometry> FirstSurvivors(const Foresight& foresight, std::size_t count);

}  // namespace boltbeam::search
