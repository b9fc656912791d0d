// Machine code in this process: loads the objects that codegen makes, and keeps them on disk between runs.
//
// With a warm cache nothing is compiled and LLVM is never loaded. The loader is our own, of some hundred lines: an
// object has one function, its constants and relocations between the two.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/codegen.h"
#include "kernel/program.h"

namespace boltbeam::runtime {

/// What a compiled kernel is filed under: whatever changes its machine code.
std::string KernelKey(const std::string& identity, const codegen::Target& target);

using KernelFunction = void (*)(void* const* buffers, std::int64_t begin, std::int64_t end);

/// One object, mapped read and execute.
class Code {
 public:
  static Result<Code> Load(const std::string& object);
  Code(Code&&) noexcept;
  Code& operator=(Code&&) noexcept;
  ~Code();
  [[nodiscard]] KernelFunction function() const { return function_; }
  /// The instructions and constants of an object, and how they refer to each other: the same for two that differ in
  /// names only.
  static Result<std::string> ContentOf(const std::string& object);

 private:
  Code() = default;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  KernelFunction function_ = nullptr;
};

using KernelFunctions = std::map<const kernel::Program*, KernelFunction>;

/// Program -> function, compiled once. The disk key holds the program's identity, triple, features and compiler; a
/// damaged or foreign file is compiled again, and a cache that can't be written is no error. Get may be called from any
/// thread; Prepare compiles many programs in parallel. Functions stay valid for the life of the cache.
class KernelCache {
 public:
  KernelCache(codegen::Target target, std::string folder);  // folder empty: no disk
  Result<KernelFunction> Get(const kernel::Program& program);
  Result<KernelFunctions> Prepare(const std::vector<const kernel::Program*>& programs, unsigned threads);
  /// SHA-256 of Code::ContentOf the program's object.
  Result<std::string> CodeHash(const kernel::Program& program);

  [[nodiscard]] std::uint64_t compiled() const { return compiled_; }
  [[nodiscard]] const codegen::Target& target() const { return target_; }

 private:
  [[nodiscard]] std::filesystem::path PathOf(const std::string& key) const;
  Result<KernelFunction> Get(const kernel::Program& program, const std::string& identity);
  Result<Code> Make(const kernel::Program& program, const std::string& identity);

  codegen::Target target_;
  std::string folder_;
  std::mutex mutex_;                   // guards codes_
  std::map<std::string, Code> codes_;  // by identity
  std::atomic<std::uint64_t> compiled_ = 0;
};

}  // namespace boltbeam::runtime
