#include "report/trace_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace boltbeam::report {
namespace {

using Json = nlohmann::json;

class Writer {
 public:
  Writer(std::uint64_t begin, const measure::Clock& clock) : begin_(begin), clock_(clock) {}

  void Name(std::size_t thread) {
    events_.push_back({{"ph", "M"},
                       {"name", "thread_name"},
                       {"pid", 1},
                       {"tid", thread},
                       {"args", {{"name", fmt::format("thread {}", thread)}}}});
  }
  void Span(std::size_t thread, std::string name, const char* category, std::uint64_t begin, std::uint64_t end,
            Json args) {
    if (begin < begin_ || end < begin) return;
    constexpr double kNsPerUs = 1e3;
    events_.push_back({{"ph", "X"},
                       {"name", std::move(name)},
                       {"cat", category},
                       {"pid", 1},
                       {"tid", thread},
                       {"ts", clock_.ToNs(begin - begin_) / kNsPerUs},
                       {"dur", clock_.ToNs(end - begin) / kNsPerUs},
                       {"args", std::move(args)}});
  }
  [[nodiscard]] std::string Text() const {
    const Json document = {{"displayTimeUnit", "ns"}, {"traceEvents", events_}};
    return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  std::uint64_t begin_;
  const measure::Clock& clock_;
  Json events_ = Json::array();
};

}  // namespace

std::string ChromeTrace(const engine::Trace& trace, std::span<const engine::StepInfo> steps,
                        const measure::Clock& clock) {
  Writer writer(trace.token_begin, clock);
  for (std::size_t thread = 0; thread < trace.step_begin.size(); ++thread) {
    writer.Name(thread);
    const auto& begins = trace.step_begin[thread];
    const auto& ends = trace.step_end[thread];
    for (std::size_t i = 0; i < std::min({begins.size(), ends.size(), steps.size()}); ++i) {
      const engine::StepInfo& step = steps[i];
      writer.Span(
          thread, fmt::format("{} {}", step.role, step.format), "kernel", begins[i], ends[i],
          {{"layer", step.layer}, {"kernel", step.kernel}, {"phase", step.phase}, {"bytes", step.stored_bytes}});
    }
    const auto& waits = trace.barrier_begin[thread];
    const auto& released = trace.barrier_end[thread];
    for (std::size_t phase = 0; phase < std::min(waits.size(), released.size()); ++phase) {
      writer.Span(thread, "wait", "barrier", waits[phase], released[phase], {{"phase", phase}});
    }
  }
  return writer.Text();
}

}  // namespace boltbeam::report
