// The windows of a ladder's rows, model by model, brought to one memory speed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/fit.h"
#include "lab/sessions.h"

namespace boltbeam::lab {

/// Windows of all visits to one model.
struct Windows {
  ModelPoint point;
  std::vector<double> seconds, gb_s;  // gb_s is empty when a visit has none
  std::vector<std::size_t> session;   // of each
  bool has_readings = true;
  std::optional<double> spec_gb_s;
};

/// Every model of the rows, in the order of their bytes. session: of each row.
std::vector<Windows> ByModel(std::span<const Row* const> rows, std::span<const std::size_t> session);

/// What each window would have taken at the reference bandwidth.
std::vector<double> SecondsAt(const Windows& windows, double reference_gb_s, double memory_factor);

/// How much of a stream's time per byte a token's bytes follow when the memory changes its speed: the slope of seconds
/// per byte against the stream's, within each model over all its sessions, which often differ most. 1 where the memory
/// kept its speed, so that nothing is to be corrected.
double MemoryFactor(std::span<const Windows> models);

/// The median of each session's times: a cell for every model and session that was measured. seconds: of each model's
/// windows, in the order of `models`.
std::vector<Cell> CellsOf(std::span<const Windows> models, std::span<const std::vector<double>> seconds);

}  // namespace boltbeam::lab
