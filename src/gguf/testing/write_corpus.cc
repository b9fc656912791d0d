// Writes tests/corpus/gguf anew: gguf_write_corpus FOLDER.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "gguf/testing/refusals.h"

namespace {

void Write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: gguf_write_corpus FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder / "good");
  std::filesystem::create_directories(folder / "bad");
  for (const auto& good : boltbeam::gguf::testing::GoodFiles()) {
    Write(folder / "good" / (good.name + ".gguf"), good.bytes);
  }
  for (const auto& refusal : boltbeam::gguf::testing::Refusals()) {
    const std::string variant = refusal.variant.empty() ? "" : "-" + refusal.variant;
    Write(folder / "bad" /
              fmt::format("{}{}{}.gguf", refusal.strict ? "strict-" : "", boltbeam::CodeName(refusal.code), variant),
          refusal.bytes);
  }
  return 0;
}
