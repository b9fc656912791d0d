// The roof over this program's own code on a chip: the peak of the arithmetic that each format's kernel uses there, and
// the vector instructions that a token's machine code spends, part by part.
#pragma once

#include <string>
#include <string_view>

#include "chip/facts.h"
#include "formats/format.h"
#include "kernel/weight_layout.h"
#include "model/model.h"
#include "roofline/bound.h"

namespace boltbeam::engine {

/// The chip fact that says how fast this instruction goes: "dot_i8_flop_s".
std::string_view RateOfDot(kernel::Dot dot);

/// Of a format's default product on this chip, with vectors of the width that it uses, on all threads.
roofline::Peak PeakOf(const formats::Format& format, const chip::Chip& chip);
/// Of attention over such a cache: as much for keys as for values.
roofline::Peak AttentionPeakOf(const model::CacheFormats& cache, const chip::Chip& chip);

/// Fills in what a measured CPU's roof has beside its bandwidth: rates by threads, instructions of a decoded token at
/// each depth, and, where no row or flag says a peak for all, the formats' peaks. What is not known stays out, and the
/// roof says why.
void AddCode(const model::Model& model, const chip::Chip& chip, const roofline::BoundOptions& options,
             roofline::Roof& roof);

}  // namespace boltbeam::engine
