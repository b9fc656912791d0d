// Test support: the real model files that scripts/fetch-test-models fetches.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace boltbeam {

/// Where the model lies, or would.
inline std::string RealModelPath(const std::string& name) {
  const auto variable = [](const char* key) -> std::filesystem::path {
    const char* value = std::getenv(key);
    return value != nullptr ? value : "";
  };
  std::filesystem::path folder = variable("BOLTBEAM_TEST_MODELS");
  if (folder.empty()) {
    const std::filesystem::path cache = variable("XDG_CACHE_HOME");
    folder = (cache.empty() ? variable("HOME") / ".cache" : cache) / "boltbeam" / "test-models";
  }
  return (folder / (name + ".gguf")).string();
}

}  // namespace boltbeam

// Ends a test, as skipped and with the reason, when the model is not there.
#define BOLTBEAM_NEED_REAL_MODEL(name)                         \
  if (!std::filesystem::exists(boltbeam::RealModelPath(name))) \
  GTEST_SKIP() << boltbeam::RealModelPath(name) << " is not there: scripts/fetch-test-models fetches it"
