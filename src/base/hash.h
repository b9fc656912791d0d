// SHA-256: the identity of kernels, plans, records and samples.
#pragma once

#include <string>
#include <string_view>

namespace boltbeam::base {

/// 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

}  // namespace boltbeam::base
