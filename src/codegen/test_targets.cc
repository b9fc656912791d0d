#include "codegen/test_targets.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace boltbeam::codegen {

std::vector<std::string> DeclaredFeatures() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::vector<std::string> features;
    for (std::string word; words >> word;) features.push_back(word);
    return features;
  }
  return {};
}

std::vector<NamedTarget> RunnableTargets() {
  const std::vector<std::string> declared = DeclaredFeatures();
  const std::vector<std::string> ssse3 = {"pni", "ssse3"};
  const std::vector<std::string> avx2 = {"pni", "ssse3", "sse4_1", "sse4_2", "avx", "avx2"};
  std::vector<std::string> avx2_fma = avx2;
  avx2_fma.insert(avx2_fma.end(), {"fma", "f16c"});
  std::vector<std::string> avx512 = avx2_fma;
  avx512.insert(avx512.end(), {"avx512f", "avx512bw", "avx512vl", "avx512dq"});
  std::vector<std::string> avx512_narrow = avx2_fma;
  avx512_narrow.insert(avx512_narrow.end(), {"avx512f"});
  std::vector<NamedTarget> targets;
  const auto add = [&](std::string name, const std::vector<std::string>& features) {
    const bool all = std::ranges::all_of(
        features, [&](const std::string& feature) { return std::ranges::find(declared, feature) != declared.end(); });
    if (!all) return;
    chip::Chip chip;
    chip.features = features;
    targets.push_back({std::move(name), TargetFor(chip)});
  };
  add("this machine", declared);
  add("avx512 without vnni", avx512);
  add("avx512f alone", avx512_narrow);
  add("avx2 fma f16c", avx2_fma);
  add("avx2", avx2);
  add("ssse3", ssse3);
  add("plain", {});
  return targets;
}

}  // namespace boltbeam::codegen
