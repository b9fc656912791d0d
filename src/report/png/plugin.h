// Between the program and its plugin that draws.
#pragma once

#include <cstddef>

namespace boltbeam::report {

inline constexpr const char* kPngPluginFile = "libboltbeam-png.so";
inline constexpr const char* kPngPluginFunction = "BoltbeamDrawPng";

/// Called with pieces of the PNG, or of a text that says what went wrong.
using PngSink = void (*)(void* to, const char* bytes, std::size_t count);

/// Whether it was drawn: `png` got the file then, and `error` a text otherwise.
using PngFunction = bool (*)(const char* svg, std::size_t bytes, double scale, PngSink sink, void* png, void* error);

}  // namespace boltbeam::report
