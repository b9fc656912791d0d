// Writes a GGUF file: metadata, tensor infos, then the data of each tensor in order, streamed.
//
// The file appears under its name only when Finish succeeds; a full disk or an interruption leaves nothing behind.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace boltbeam::gguf {

class Writer {
 public:
  struct Tensor {
    std::string name;
    std::uint32_t type = 0;            // ggml's type number
    std::vector<std::uint64_t> shape;  // ne order
  };

  static Result<Writer> Create(const std::string& path, std::uint32_t alignment = 32);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();  // removes the temporary file unless Finish succeeded

  void Add(std::string_view key, std::uint32_t value);
  void Add(std::string_view key, std::uint64_t value);
  void Add(std::string_view key, float value);
  void Add(std::string_view key, bool value);
  void Add(std::string_view key, std::string_view value);
  void Add(std::string_view key, const std::vector<std::string>& value);
  void Add(std::string_view key, const std::vector<std::int32_t>& value);
  void Add(std::string_view key, const std::vector<float>& value);

  /// Writes header, metadata and infos. Returns the total bytes of tensor data that must follow.
  Result<std::uint64_t> Begin(std::span<const Tensor> tensors);
  /// Appends data of the current tensor; tensors follow in the order given to Begin, padded automatically.
  Result<void> Write(std::span<const std::byte> bytes);
  /// Leaves a hole as large as the rest of the current tensor (a sparse file, for reading shapes only).
  Result<void> SkipTensor();
  /// Checks that every byte was written, syncs and renames into place.
  Result<void> Finish();

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace boltbeam::gguf
