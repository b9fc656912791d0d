// SHA-256: the identity of kernels, plans, records and samples.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace boltbeam::base {

/// 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);
/// The same of a file of any size. kFileNotFound, kFileRead.
Result<std::string> Sha256OfFile(const std::string& path);

}  // namespace boltbeam::base
