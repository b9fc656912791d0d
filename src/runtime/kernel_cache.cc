// A file of the cache: a line that says what it is, the key, the object's SHA-256, then the object.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "base/hash.h"
#include "base/paths.h"
#include "runtime/code.h"

namespace boltbeam::runtime {
namespace {

constexpr std::string_view kFirstLine = "boltbeam compiled kernel 1\n";
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kHeaderBytes = kFirstLine.size() + 2 * (kHashDigits + 1);

std::string Header(const std::string& key, std::string_view object) {
  return fmt::format("{}{}\n{}\n", kFirstLine, key, base::Sha256Hex(object));
}

/// The object of a file that is whole and of this key; nothing otherwise, and then it is compiled again.
std::optional<std::string> ReadObject(const std::filesystem::path& path, const std::string& key) {
  Result<std::string> file = base::ReadWholeFile(path);
  if (!file || file->size() < kHeaderBytes) return std::nullopt;
  std::string object = file->substr(kHeaderBytes);
  if (!file->starts_with(Header(key, object))) return std::nullopt;
  return object;
}

}  // namespace

KernelCache::KernelCache(codegen::Target target, std::string folder)
    : target_(std::move(target)), folder_(std::move(folder)) {}

std::string KernelKey(const std::string& identity, const codegen::Target& target) {
  return base::Sha256Hex(fmt::format("{}\n{}\n{}\n{}\n", identity, target.triple, fmt::join(target.features, ","),
                                     codegen::CompilerVersion()));
}

std::filesystem::path KernelCache::PathOf(const std::string& key) const {
  return std::filesystem::path(folder_) / "kernels" / (key + ".o");
}

Result<Code> KernelCache::Make(const kernel::Program& program, const std::string& identity) {
  const std::string key = KernelKey(identity, target_);
  const std::filesystem::path path = PathOf(key);
  if (!folder_.empty()) {
    if (const std::optional<std::string> object = ReadObject(path, key)) {
      if (Result<Code> code = Code::Load(*object)) return code;
    }
  }
  BOLTBEAM_ASSIGN(const std::string object, codegen::Compile(program, target_));
  BOLTBEAM_ASSIGN(Code code, Code::Load(object));
  ++compiled_;
  if (!folder_.empty()) {
    // A cache that can't be written costs time, not the work: a failure is no error.
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (!error) static_cast<void>(base::WriteFileAtomically(path, Header(key, object) + object));
  }
  return code;
}

Result<KernelFunction> KernelCache::Get(const kernel::Program& program) {
  return Get(program, kernel::Identity(program));
}

Result<KernelFunction> KernelCache::Get(const kernel::Program& program, const std::string& identity) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = codes_.find(identity); found != codes_.end()) return found->second.function();
  }
  BOLTBEAM_ASSIGN(Code code, Make(program, identity));
  const std::lock_guard lock(mutex_);
  return codes_.try_emplace(identity, std::move(code)).first->second.function();  // another thread's may be there
}

Result<std::string> KernelCache::CodeHash(const kernel::Program& program) {
  const std::string identity = kernel::Identity(program);
  BOLTBEAM_TRY(Get(program, identity));  // from now on it lies on the disk, where that can be written
  const std::string key = KernelKey(identity, target_);
  std::optional<std::string> object = folder_.empty() ? std::nullopt : ReadObject(PathOf(key), key);
  if (!object) {
    BOLTBEAM_ASSIGN(object, codegen::Compile(program, target_));
  }
  BOLTBEAM_ASSIGN(const std::string content, Code::ContentOf(*object));
  return base::Sha256Hex(content);
}

Result<KernelFunctions> KernelCache::Prepare(const std::vector<const kernel::Program*>& programs, unsigned threads) {
  std::map<std::string, std::vector<const kernel::Program*>> equal;
  for (const kernel::Program* program : programs) equal[kernel::Identity(*program)].push_back(program);
  struct Work {
    const std::string& identity;
    const kernel::Program& program;
    Result<KernelFunction> function;
  };
  std::vector<Work> work;
  for (const auto& [identity, all] : equal) work.push_back({identity, *all.front(), nullptr});
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < work.size(); i = next++) work[i].function = Get(work[i].program, work[i].identity);
  };
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < std::min<std::size_t>(threads, work.size()); ++i) others.emplace_back(run);
    } catch (const std::system_error&) {  // fewer threads do the same work
    }
    run();
  }
  KernelFunctions functions;
  for (Work& one : work) {
    BOLTBEAM_ASSIGN(const KernelFunction function, std::move(one.function));
    for (const kernel::Program* program : equal.at(one.identity)) functions.emplace(program, function);
  }
  return functions;
}

}  // namespace boltbeam::runtime
