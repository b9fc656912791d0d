// The version of the program and of the library, as CMakeLists.txt states it; a test compares the two.
#pragma once

namespace boltbeam::base {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace boltbeam::base
