// Where a synthetic model lies, and its making: what `synth` and `ladder` share.
#pragma once

#include <string>

#include "command.h"
#include "model/synth.h"

namespace boltbeam::app {

/// The file below the cache folder that a plan with these options is written to; the folder is made.
Result<std::string> SynthPath(const Globals& globals, const model::SynthPlan& plan, const model::SynthOptions& options);

/// Writes the file with a progress bar and says so.
Result<void> MakeSynth(const model::SynthPlan& plan, const std::string& path, model::SynthOptions options);

}  // namespace boltbeam::app
