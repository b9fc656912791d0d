#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>

#include "base/printable.h"
#include "base/shell.h"
#include "base/version.h"
#include "chip/facts.h"
#include "lab/ladder.h"
#include "measure/bench.h"
#include "measure/printed_rate.h"
#include "measure/statistics.h"

namespace boltbeam::lab {
namespace {

constexpr std::string_view kFileMark = "{}";

/// The weights are copied out of the file: its pages only stand in the way of the next model's huge pages.
void ForgetPages(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

/// A model that stays loaded between visits. Its parts end in the reverse order.
struct Loaded {
  std::string path;
  std::uint64_t context = 0;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<engine::Engine> engine;
};

class EngineRunner final : public Runner {
 public:
  EngineRunner(LoadModel load, TellSettings settings, audit::BandwidthSource& bandwidth,
               std::function<bool()> cancelled)
      : load_(std::move(load)),
        settings_(std::move(settings)),
        bandwidth_(bandwidth),
        cancelled_(std::move(cancelled)) {}

  std::string name() const override { return "boltbeam"; }
  std::string version() const override { return base::kVersion; }
  Result<Settings> SettingsFor(const ModelFacts& model) override { return settings_(model); }

  Result<Visit> Run(const ModelFacts& facts, const VisitOptions& options) override {
    BOLTBEAM_ASSIGN(Loaded * loaded, Get(facts, options));
    BOLTBEAM_ASSIGN(const auto session, loaded->engine->NewSession());
    return MeasureWindows(*loaded->engine, *session, bandwidth_, options, cancelled_);
  }

 private:
  /// Positions that a visit needs: a context of its own is kept small, so that it takes no time to clear.
  static std::uint64_t ContextFor(const VisitOptions& options) {
    constexpr std::uint64_t kWindow = 512;
    return options.depth + kWindow;
  }

  Result<Loaded*> Get(const ModelFacts& facts, const VisitOptions& options) {
    const std::uint64_t context = ContextFor(options);
    const auto found = std::ranges::find_if(
        loaded_, [&](const Loaded& loaded) { return loaded.path == facts.path && loaded.context == context; });
    if (found != loaded_.end()) {
      loaded_.splice(loaded_.end(), loaded_, found);  // the last one is the one used last
      return &loaded_.back();
    }
    Loaded next{facts.path, context, nullptr, nullptr};
    BOLTBEAM_ASSIGN(model::Model model, model::Model::Load(facts.path));
    BOLTBEAM_TRY(measure::RefuseSparse(model));
    next.model = std::make_unique<model::Model>(std::move(model));
    // Its weights, and room for everything else.
    constexpr std::uint64_t kRoom = std::uint64_t{1} << 30;
    const std::uint64_t need = static_cast<std::uint64_t>(facts.weight_bytes) + kRoom;
    while (!loaded_.empty() && chip::AvailableMemoryBytes() < need) loaded_.pop_front();
    BOLTBEAM_ASSIGN(next.engine, load_(*next.model, context));
    ForgetPages(facts.path);
    loaded_.push_back(std::move(next));
    return &loaded_.back();
  }

  LoadModel load_;
  TellSettings settings_;
  audit::BandwidthSource& bandwidth_;
  std::function<bool()> cancelled_;
  std::list<Loaded> loaded_;
};

class CommandRunner final : public Runner {
 public:
  CommandRunner(CommandProgram program, audit::BandwidthSource* bandwidth)
      : program_(std::move(program)), bandwidth_(bandwidth) {}

  std::string name() const override { return program_.name; }
  std::string version() const override { return program_.version; }
  Result<Settings> SettingsFor(const ModelFacts&) override { return program_.settings; }

  Result<Visit> Run(const ModelFacts& facts, const VisitOptions& options) override {
    std::string command = program_.command;
    const std::string file = base::ShellQuoted(facts.path);
    for (std::size_t at = command.find(kFileMark); at != std::string::npos; at = command.find(kFileMark, at)) {
      command.replace(at, kFileMark.size(), file);
      at += file.size();
    }
    std::vector<double> readings;
    ReadMemory(readings);
    BOLTBEAM_ASSIGN(const std::string text, base::RunProgram(command));
    ReadMemory(readings);
    BOLTBEAM_ASSIGN(const std::vector<double> rates, RatesIn(text));
    Visit visit;
    visit.threads = options.threads;
    for (const double rate : rates) visit.token_s.push_back(1 / rate);
    if (!readings.empty()) visit.streamed_gb_s = {measure::Median(readings)};
    return visit;
  }

 private:
  void ReadMemory(std::vector<double>& readings) {
    constexpr int kReadings = 9;
    for (int i = 0; bandwidth_ != nullptr && i < kReadings; ++i)
      readings.push_back(std::ranges::max(bandwidth_->Read()));
  }

  CommandProgram program_;
  audit::BandwidthSource* bandwidth_;
};

}  // namespace

std::unique_ptr<Runner> MakeEngineRunner(LoadModel load, TellSettings settings, audit::BandwidthSource& bandwidth,
                                         std::function<bool()> cancelled) {
  return std::make_unique<EngineRunner>(std::move(load), std::move(settings), bandwidth, std::move(cancelled));
}

std::unique_ptr<Runner> MakeCommandRunner(CommandProgram program, audit::BandwidthSource* bandwidth) {
  return std::make_unique<CommandRunner>(std::move(program), bandwidth);
}

std::string LlamaBuild(std::string_view text) {
  for (const std::string_view before : {"build ", "version: "}) {
    const std::size_t at = text.find(before);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = text.substr(at + before.size());
    const std::size_t end = rest.find_first_not_of("0123456789");
    const std::string_view digits = rest.substr(0, end);
    const bool is_part = end != std::string_view::npos && rest[end] == '.';  // of "0.7.0"
    if (!digits.empty() && !is_part) return std::string(digits);
  }
  return "";
}

Result<std::vector<double>> RatesIn(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const nlohmann::json* last = json.is_array() && !json.empty() ? &json.back() : &json;
  if (!json.is_discarded() && last->is_object() && last->contains("samples_ts") && last->at("samples_ts").is_array()) {
    std::vector<double> rates;
    for (const nlohmann::json& rate : last->at("samples_ts")) {
      const double value = rate.is_number() ? rate.get<double>() : std::nan("");
      if (!std::isfinite(value) || value <= 0) {
        return Fail(Code::kMeasurementImpossible, "samples_ts", base::Printable(rate.dump()), "rates above 0");
      }
      rates.push_back(value);
    }
    if (!rates.empty()) return rates;
  }
  BOLTBEAM_ASSIGN(const double rate, measure::TokensPerSecond(text));
  return std::vector<double>{rate};
}

}  // namespace boltbeam::lab
