// The results of `bench` in llama-bench's output formats: the same fields under the same names in the same order.
//
// Fields that describe settings this engine does not have hold the value that llama-bench prints for a run on a CPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/bench.h"

namespace boltbeam::report {

/// What a row says about the model and the machine.
struct BenchSubject {
  std::string cpu_info;
  std::string model_filename;
  std::string model_type;  // "qwen3 0.6B Q4_K - Medium"
  std::uint64_t model_bytes = 0;
  std::uint64_t model_parameters = 0;
  std::uint32_t batch = 0;  // tokens per pass over the weights
  std::uint32_t threads = 0;
};

/// Type, size and parameters as llama-bench states them.
Result<BenchSubject> DescribeModel(const model::Model& model);

/// Writes a stream of rows; what Begin, Row and End return, joined, is a valid document after any number of rows.
class BenchFormat {
 public:
  /// name: md, csv, json or jsonl.
  /// In md, the columns of settings that are shown: type_k, type_v.
  explicit BenchFormat(std::string name, bool show_type_k = false, bool show_type_v = false);
  std::string Begin();
  std::string Row(const BenchSubject& subject, const measure::BenchSamples& samples);
  std::string End();

 private:
  std::string name_;
  bool show_type_k_, show_type_v_;
  std::uint64_t rows_ = 0;
};

}  // namespace boltbeam::report
