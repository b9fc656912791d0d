#include "simulation/noise.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/paths.h"

namespace boltbeam::simulation {

NoiseModel NoiseModel::Times(double factor) const {
  NoiseModel more = *this;
  more.white *= factor;
  more.slow *= factor;
  more.drift *= factor;
  more.mode_shift *= factor;
  more.burst_size *= factor;
  more.burst_rate *= factor;
  return more;
}

Recording LoadRecording() {
  const auto text = base::ReadWholeFile(BOLTBEAM_TEST_DATA "/noise/windows-0.6b.json");
  const nlohmann::json json = nlohmann::json::parse(text.value());
  const nlohmann::json& fitted = json.at("fitted");
  Recording recording;
  recording.fitted = {.white = fitted.at("white"),
                      .tail_share = fitted.at("tail_share"),
                      .tail_scale = fitted.at("tail_scale"),
                      .slow = fitted.at("slow"),
                      .slow_windows = fitted.at("slow_windows"),
                      .drift = fitted.at("drift"),
                      .mode_shift = fitted.at("mode_shift"),
                      .mode_windows = fitted.at("mode_windows"),
                      .burst_rate = fitted.at("burst_rate"),
                      .burst_windows = fitted.at("burst_windows"),
                      .burst_size = fitted.at("burst_size")};
  for (const nlohmann::json& run : json.at("log_ratios")) {
    std::vector<double>& row = recording.log_ratios.emplace_back();
    for (const nlohmann::json& value : run) row.push_back(value.get<double>() * 1e-4);
  }
  return recording;
}

Noise::Noise(const NoiseModel& model, std::uint64_t seed, double session_windows) : model_(model), random_(seed) {
  slope_ = model_.drift * Normal() / session_windows;
  slow_ = model_.slow * Normal();
}

Noise::Noise(const Recording& recording, std::size_t run, double factor, std::uint64_t seed)
    : recorded_(&recording.log_ratios.at(run)), factor_(factor), random_(seed) {}

double Noise::Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

// Box and Muller, both of the pair used.
double Noise::Normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * std::log1p(-Uniform())), angle = 2 * std::numbers::pi * Uniform();
  has_spare_ = true;
  spare_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

Noise::Window Noise::Next() {
  if (recorded_ != nullptr) return NextRecorded();
  const double keep = 1 - 1 / model_.slow_windows;
  slow_ = keep * slow_ + std::sqrt(1 - keep * keep) * model_.slow * Normal();
  at_ += slope_;
  if (Uniform() < 1 / model_.mode_windows) mode_ = mode_ == 0 ? model_.mode_shift : 0;
  if (burst_ > 0 && Uniform() < 1 / model_.burst_windows) burst_ = 0;
  if (burst_ == 0 && Uniform() < model_.burst_rate) burst_ = -std::log1p(-Uniform()) * model_.burst_size;
  const double white = model_.white * (Uniform() < model_.tail_share ? model_.tail_scale : 1) * Normal();
  return {white + slow_ + at_ + mode_ + std::log1p(burst_), burst_ > 0};
}

Noise::Window Noise::NextRecorded() {
  constexpr std::size_t kBlock = 100;  // about a second: longer than what is remembered
  if (left_ == 0) {
    place_ = random_() % (recorded_->size() - kBlock);
    left_ = kBlock;
  }
  --left_;
  const double value = (*recorded_)[place_++];
  constexpr double kBurst = 0.2;
  return {value * factor_, value > kBurst};
}

SimulatedSource::SimulatedSource(Noise noise, double ratio, std::uint64_t seed)
    : noise_(std::move(noise)), ratio_(ratio), random_(seed) {}

Result<measure::PairedRound> SimulatedSource::Next(bool b_first) {
  measure::PairedRound round;
  round.b_first = b_first;
  const bool probed = rounds_++ % 4 == 0;
  if (probed) spent_s_ += kProbeS;
  for (std::size_t i = 0; i < round.windows.size(); ++i) {
    const Noise::Window noise = noise_.Next();
    const double seconds = kWindowS * (round.IsB(i) ? ratio_ : 1) * std::exp(noise.log_ratio);
    round.windows[i].ns = seconds * 1e9;
    // The machine's counters see some of the bursts.
    if (noise.burst && random_() % 4 == 0) {
      round.windows[i].causes.set(static_cast<std::size_t>(measure::Cause::kInterrupted));
    }
    spent_s_ += seconds + kBetweenS;
  }
  round.limit = probed ? 20 : 0;
  round.at_s = spent_s_;
  return round;
}

}  // namespace boltbeam::simulation
