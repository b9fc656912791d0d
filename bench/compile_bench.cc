// What a kernel costs before it runs: compiling its program, and loading its object from the cache.
#include <benchmark/benchmark.h>

#include "chip/facts.h"
#include "codegen/codegen.h"
#include "formats/format.h"
#include "kernel/families/gemv.h"
#include "runtime/code.h"

namespace boltbeam {
namespace {

Result<kernel::Program> Product(const char* format_name) {
  const formats::Format* format = formats::FindFormat(format_name);
  BOLTBEAM_ASSIGN(const kernel::WeightLayout layout, kernel::LayoutFor(*format, 16));
  kernel::GemvGeometry geometry;
  geometry.lanes = 16;
  geometry.dot = kernel::Dot::kDot4;
  return kernel::BuildGemv(layout, geometry, {.rows = 1024, .cols = 1024});
}

Result<codegen::Target> ThisTarget() {
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::DetectThisMachine());
  return codegen::TargetFor(machine);
}

void Compile(benchmark::State& state, const char* format) {
  const Result<kernel::Program> program = Product(format);
  const Result<codegen::Target> target = ThisTarget();
  if (!program || !target) return state.SkipWithError("no program for this machine");
  for (auto _ : state) {
    Result<std::string> object = codegen::Compile(*program, *target);
    if (!object) return state.SkipWithError(object.error().Message().c_str());
    benchmark::DoNotOptimize(object);
  }
}
BENCHMARK_CAPTURE(Compile, Q8_0, "Q8_0")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Compile, Q4_K, "Q4_K")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Compile, Q6_K, "Q6_K")->Unit(benchmark::kMillisecond);

void Load(benchmark::State& state) {
  const Result<kernel::Program> program = Product("Q4_K");
  const Result<codegen::Target> target = ThisTarget();
  if (!program || !target) return state.SkipWithError("no program for this machine");
  const Result<std::string> object = codegen::Compile(*program, *target);
  if (!object) return state.SkipWithError(object.error().Message().c_str());
  for (auto _ : state) {
    Result<runtime::Code> code = runtime::Code::Load(*object);
    benchmark::DoNotOptimize(code);
  }
}
BENCHMARK(Load)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace boltbeam

BENCHMARK_MAIN();
