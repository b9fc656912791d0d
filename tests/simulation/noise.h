// Test support: sessions on machines that do not exist, with the noise of one that does.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "measure/paired.h"

namespace boltbeam::simulation {

/// What disturbs windows, as logarithms of their time: fitted to recorded windows (tests/data/noise).
struct NoiseModel {
  double white = 0;                         // of each window for itself
  double tail_share = 0, tail_scale = 1;    // a share of the windows has that many times the white noise
  double slow = 0, slow_windows = 1;        // wanders, forgotten after so many windows
  double drift = 0;                         // standard deviation of what a session gains from its start to its end
  double mode_shift = 0, mode_windows = 1;  // two speeds, each kept for so many windows
  double burst_rate = 0, burst_windows = 1, burst_size = 0;  // others: + size x an exponential

  /// Every kind of noise that many times as large; bursts also that many times as frequent.
  [[nodiscard]] NoiseModel Times(double factor) const;
};

struct Recording {
  NoiseModel fitted;
  std::vector<std::vector<double>> log_ratios;  // of windows in a row
};
Recording LoadRecording();

/// Gives the noise of one window after the other.
class Noise {
 public:
  Noise(const NoiseModel& model, std::uint64_t seed, double session_windows);
  /// Blocks of one run of the recording itself, times a factor, instead of a model of it.
  Noise(const Recording& recording, std::size_t run, double factor, std::uint64_t seed);

  struct Window {
    double log_ratio = 0;
    bool burst = false;
  };
  Window Next();

 private:
  double Uniform();
  double Normal();
  Window NextRecorded();

  NoiseModel model_;
  const std::vector<double>* recorded_ = nullptr;
  double factor_ = 1;
  std::mt19937_64 random_;
  double slow_ = 0, slope_ = 0, at_ = 0, mode_ = 0, burst_ = 0, spare_ = 0;
  bool has_spare_ = false;
  std::size_t place_ = 0, left_ = 0;
};

/// Rounds of such windows: what the judge's own protocol is fed with.
class SimulatedSource final : public measure::RoundSource {
 public:
  /// ratio: the true time of B over that of A.
  SimulatedSource(Noise noise, double ratio, std::uint64_t seed);
  Result<measure::PairedRound> Next(bool b_first) override;

 private:
  Noise noise_;
  double ratio_;
  std::mt19937_64 random_;
  double spent_s_ = 0;
  std::uint64_t rounds_ = 0;
};

inline constexpr double kWindowS = 0.012, kBetweenS = 0.0005, kProbeS = 0.01;

}  // namespace boltbeam::simulation
