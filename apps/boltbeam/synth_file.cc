#include "synth_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/paths.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

/// What sets a file apart from the plain model: `make audit` must not find holes or two layers under that name.
std::string Suffix(const model::SynthOptions& options) {
  std::string suffix;
  if (options.layers != 0) suffix += fmt::format("-{}-layers", options.layers);
  if (options.seed != model::SynthOptions{}.seed) suffix += fmt::format("-seed-{}", options.seed);
  if (options.tokenizer) suffix += "-tokenizer";
  if (options.sparse) suffix += "-sparse";
  return suffix;
}

}  // namespace

Result<std::string> SynthPath(const Globals& globals, const model::SynthPlan& plan,
                              const model::SynthOptions& options) {
  std::string name = plan.shape.name + "-" + plan.mixture.name;
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const std::filesystem::path folder = base::ResolvePaths(globals.home).cache / "models";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Fail(Code::kFileWrite, folder.string(), error.message(), "a folder that can be made; or --out FILE");
  return (folder / (name + Suffix(options) + ".gguf")).string();
}

Result<void> MakeSynth(const model::SynthPlan& plan, const std::string& path, model::SynthOptions options) {
  CatchInterrupts();
  {
    Progress progress("synth " + plan.shape.name);
    options.cancelled = Interrupted;
    options.progress = [&](std::uint64_t done, std::uint64_t total) { progress.Show(done, total); };
    BOLTBEAM_TRY(model::WriteSynth(plan, path, options));
  }
  Note(fmt::format("wrote {} tensors, {:.3f} GB{}", plan.tensors.size(), static_cast<double>(plan.data_bytes()) / 1e9,
                   options.sparse ? " of holes" : ""));
  return {};
}

}  // namespace boltbeam::app
