// `boltbeam compare MODEL`: llama.cpp, or a command, run beside our engine.
#pragma once

#include <string>

#include "loading.h"

namespace boltbeam::app {

struct LiveArguments {
  std::string model, peer, command;
  std::uint64_t depth = 0;
  std::uint32_t window = 32;
  double seconds = 10;
  EngineFlags engine;
};

Result<void> CompareWithProgram(const Globals& globals, const LiveArguments& arguments);

}  // namespace boltbeam::app
