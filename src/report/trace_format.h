// One token of ours as a trace that Perfetto and Chrome open: every thread's steps and waits, in Chrome's JSON form.
#pragma once

#include <span>
#include <string>

#include "engine/engine.h"
#include "measure/clock.h"

namespace boltbeam::report {

/// Times in microseconds from the token's begin, as the form asks for. Steps have the category "kernel", waits at the
/// end of a phase "barrier".
std::string ChromeTrace(const engine::Trace& trace, std::span<const engine::StepInfo> steps,
                        const measure::Clock& clock);

}  // namespace boltbeam::report
