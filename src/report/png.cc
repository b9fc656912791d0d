#include "report/png.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "report/png/plugin.h"

namespace boltbeam::report {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAdvice =
    "the plugin beside the program's other one, with the package librsvg2-2; or an SVG";

/// $BOLTBEAM_PNG_PLUGIN alone when it is set; else beside where the program is installed, or where it was built.
std::vector<std::string> Places() {
  if (const char* chosen = std::getenv("BOLTBEAM_PNG_PLUGIN"); chosen != nullptr && *chosen != '\0') return {chosen};
  std::vector<std::string> places;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path prefix = program.parent_path().parent_path();
    for (const fs::path& folder : {prefix / BOLTBEAM_PLUGIN_LIBDIR, prefix / "lib/boltbeam"}) {
      places.push_back((folder / kPngPluginFile).string());
    }
  }
  places.emplace_back(BOLTBEAM_PNG_BUILD_PATH);
  return places;
}

Result<PngFunction> Open() {
  std::string tried;
  for (const std::string& place : Places()) {
    std::error_code error;
    if (!fs::exists(place, error)) {
      tried += fmt::format("{}{} does not exist", tried.empty() ? "" : "; ", place);
      continue;
    }
    void* plugin = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = plugin != nullptr ? dlsym(plugin, kPngPluginFunction) : nullptr;
    if (symbol != nullptr) return reinterpret_cast<PngFunction>(symbol);
    const char* reason = dlerror();
    return Fail(Code::kImage, place, reason == nullptr ? "can't be loaded" : reason, std::string(kAdvice));
  }
  return Fail(Code::kImage, kPngPluginFile, tried, std::string(kAdvice));
}

void Append(void* to, const char* bytes, std::size_t count) { static_cast<std::string*>(to)->append(bytes, count); }

}  // namespace

Result<std::string> PngOf(std::string_view svg, double scale) {
  BOLTBEAM_ASSIGN(const PngFunction draw, Open());
  std::string png, error;
  if (draw(svg.data(), svg.size(), scale, Append, &png, &error)) return png;
  return Fail(Code::kImage, "the drawing", error, "an SVG document");
}

}  // namespace boltbeam::report
