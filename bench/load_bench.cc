// Loading a model beside a plain copy of its file into fresh huge pages by as many threads: load_bench MODEL.gguf
// [PAIRS]. Pairs in the order load copy, copy load; the file is in the page cache. Prints each pair and the ratio of
// the times.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/paths.h"
#include "base/temporary_folder.h"
#include "base/ticks.h"
#include "chip/facts.h"
#include "codegen/codegen.h"
#include "engine/engine.h"
#include "measure/statistics.h"
#include "model/model.h"
#include "runtime/code.h"
#include "runtime/memory.h"

namespace boltbeam {
namespace {

constexpr std::uint64_t kSeed = 20261129;
constexpr std::uint32_t kThreads = 2;

/// Seconds; the buffer is made and touched first within them, as loading does.
Result<double> CopyFile(const std::string& path) {
  constexpr std::uint64_t kBlock = std::uint64_t{4} << 20;
  const std::uint64_t bytes = std::filesystem::file_size(path);
  const std::uint64_t begin = base::MonotonicNs();
  BOLTBEAM_ASSIGN(const runtime::HugeBuffer buffer, runtime::HugeBuffer::Allocate(bytes));
  const auto copy = [&](std::uint64_t from, std::uint64_t to) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    while (from < to) {
      const ssize_t got = pread(file, buffer.data() + from, std::min(kBlock, to - from), static_cast<off_t>(from));
      if (got <= 0) break;
      from += static_cast<std::uint64_t>(got);
    }
    close(file);
  };
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back(copy, bytes * i / kThreads, bytes * (i + 1) / kThreads);
  threads.clear();
  return base::SecondsSince(begin);
}

Result<double> LoadModel(const std::string& path, const chip::Chip& machine, const std::string& cache_folder) {
  const std::uint64_t begin = base::MonotonicNs();
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(path));
  engine::Options options;
  options.threads = kThreads;
  options.cache_folder = cache_folder;
  BOLTBEAM_ASSIGN(const auto engine, engine::Engine::Load(model, machine, options));
  return base::SecondsSince(begin);
}

/// All kernels of the model's plans, compiled into an empty folder and then read from it.
Result<void> TimeKernels(const std::string& path, const chip::Chip& machine, const std::string& cache_folder) {
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(path));
  engine::Options options;
  options.threads = kThreads;
  options.cache_folder = cache_folder;
  BOLTBEAM_ASSIGN(const auto engine, engine::Engine::Load(model, machine, options));
  std::vector<const kernel::Program*> programs;
  for (const auto& [identity, program] : engine->programs()) programs.push_back(&program);

  BOLTBEAM_ASSIGN(const base::TemporaryFolder folder, base::TemporaryFolder::Make());
  for (const char* how : {"empty cache", "full cache"}) {
    runtime::KernelCache kernels(codegen::TargetFor(machine), folder.path().string());
    const std::uint64_t begin = base::MonotonicNs();
    BOLTBEAM_TRY(kernels.Prepare(programs, kThreads));
    fmt::print("{} kernels, {} compiled, {}: {:.3f} s\n", programs.size(), kernels.compiled(), how,
               base::SecondsSince(begin));
  }
  return {};
}

Result<void> Run(const std::string& path, int pairs) {
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::DetectThisMachine());
  const std::string cache = (base::ResolvePaths({}).cache / "kernels").string();
  BOLTBEAM_TRY(TimeKernels(path, machine, cache));
  // Loading gives the file's pages back: the first copy brings them into the page cache again, and is not timed.
  BOLTBEAM_TRY(CopyFile(path));
  std::vector<double> loads, copies;
  for (int pair = 0; pair < pairs; ++pair) {
    for (int turn = 0; turn < 2; ++turn) {
      const bool is_load = (turn == 0) == (pair % 2 == 0);
      BOLTBEAM_ASSIGN(const double seconds, is_load ? LoadModel(path, machine, cache) : CopyFile(path));
      (is_load ? loads : copies).push_back(seconds);
    }
    fmt::print("pair {}: load {:.3f} s, copy {:.3f} s\n", pair + 1, loads.back(), copies.back());
  }
  const measure::Interval ratio = measure::PairedRatio(copies, loads, kSeed);
  fmt::print("load {:.3f} s, copy {:.3f} s (medians), {} threads\nratio {:.3f} ({:.3f} to {:.3f}), {} pairs\n",
             measure::Median(loads), measure::Median(copies), kThreads, ratio.estimate, ratio.low, ratio.high, pairs);
  return {};
}

}  // namespace
}  // namespace boltbeam

int main(int argc, char** argv) {
  constexpr int kPairs = 5;
  if (argc < 2) {
    fmt::print(stderr, "usage: load_bench MODEL.gguf [PAIRS]\n");
    return 2;
  }
  const auto done = boltbeam::Run(argv[1], argc > 2 ? std::atoi(argv[2]) : kPairs);
  if (!done) fmt::print(stderr, "load_bench: {}\n", done.error().Message());
  return done ? 0 : 1;
}
