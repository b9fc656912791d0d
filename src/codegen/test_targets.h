// The targets that tests generate code for: this machine's own and lesser ones that it can run as well.
#pragma once

#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace boltbeam::codegen {

struct NamedTarget {
  std::string name;
  Target target;
};

/// The features of /proc/cpuinfo, without the chip module: codegen stands below it in the tests.
std::vector<std::string> DeclaredFeatures();
/// Everything this machine declares, AVX2 with FMA and F16C, the same without F16C and FMA, SSSE3, and the plain
/// architecture; only those that this machine can run.
std::vector<NamedTarget> RunnableTargets();

}  // namespace boltbeam::codegen
