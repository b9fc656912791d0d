#include "codegen/codegen.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "codegen/plugin.h"
#include "codegen/revision.h"
#include "kernel/verify.h"

namespace boltbeam::codegen {
namespace {

/// Where the plugin may lie, in the order of trying; $BOLTBEAM_LLVM_PLUGIN alone when it is set.
std::vector<std::string> PluginPaths() {
  if (const char* chosen = std::getenv("BOLTBEAM_LLVM_PLUGIN"); chosen != nullptr && *chosen != '\0') return {chosen};
  std::vector<std::string> paths;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path folder = program.parent_path();
    for (const std::filesystem::path& place :
         {folder.parent_path() / BOLTBEAM_PLUGIN_LIBDIR, folder.parent_path() / "lib/boltbeam", folder}) {
      paths.push_back((place / kPluginFileName).string());
    }
  }
  paths.emplace_back(BOLTBEAM_PLUGIN_BUILD_PATH);
  return paths;
}

Result<PluginFunction> OpenPlugin() {
  std::string tried;
  for (const std::string& path : PluginPaths()) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      tried += fmt::format("{}{} does not exist", tried.empty() ? "" : "; ", path);
      continue;
    }
    void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      const char* reason = dlerror();
      return Fail(Code::kCodegenMissing, path, reason == nullptr ? "can't be loaded" : reason,
                  "LLVM 19's library: install the package libllvm19");
    }
    if (void* symbol = dlsym(plugin, kPluginFunctionName); symbol != nullptr) {
      return reinterpret_cast<PluginFunction>(symbol);
    }
    dlclose(plugin);
    return Fail(Code::kCodegenMissing, path, fmt::format("it lacks {}", kPluginFunctionName),
                "the plugin of this very build of boltbeam: install both again");
  }
  return Fail(Code::kCodegenMissing, kPluginFileName, tried,
              "the plugin in one of these places, or its path in $BOLTBEAM_LLVM_PLUGIN");
}

/// The plugin stays open for the life of the process; a failure is not kept, so that it may be mended meanwhile.
Result<PluginFunction> Plugin() {
  static std::mutex mutex;
  static PluginFunction function = nullptr;
  const std::lock_guard lock(mutex);
  if (function == nullptr) {
    BOLTBEAM_ASSIGN(function, OpenPlugin());
  }
  return function;
}

Result<std::string> Generate(const kernel::Program& program, const Target& target, Output output) {
  BOLTBEAM_TRY(kernel::Verify(program));
  BOLTBEAM_ASSIGN(const PluginFunction generate, Plugin());
  std::string text;
  if (!generate(&program, &target, output, &text)) {
    return Fail(Code::kCodegen, fmt::format("kernel {}", program.name), std::move(text));
  }
  return text;
}

}  // namespace

Result<std::string> Compile(const kernel::Program& program, const Target& target) {
  return Generate(program, target, Output::kObject);
}

Result<std::string> EmitListing(const kernel::Program& program, const Target& target, Listing listing) {
  return Generate(program, target, listing == Listing::kLlvmIr ? Output::kLlvmIr : Output::kAssembly);
}

Result<void> LoadPlugin() {
  BOLTBEAM_TRY(Plugin());
  return {};
}

std::string CompilerVersion() { return BOLTBEAM_COMPILER_VERSION; }

}  // namespace boltbeam::codegen
