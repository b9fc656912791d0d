#include <fmt/format.h>

#include <algorithm>

#include "lab/fit.h"
#include "roofline/formulas.h"

namespace boltbeam::lab {
namespace {

// Where the memory of one die gives this share of what is published, nothing is missing in the memory system: it is
// what single-die chips stream.
constexpr double kSoundMemory = 0.85;
// A kernel this near to the streamed rate leaves nothing to gain.
constexpr double kSoundKernel = 0.95;

double Percent(double part, double whole) { return 100 * part / whole; }

std::string Between(const Gap& gap) {
  const double streamed = *gap.streamed_gb_s, published = *gap.published_gb_s;
  const bool is_memory_sound = streamed >= kSoundMemory * published;
  const bool is_kernel_sound = gap.fitted_gb_s >= kSoundKernel * streamed;
  if (is_memory_sound && is_kernel_sound) return "the runtime draws nearly all that there is";
  if (is_memory_sound) return "the memory streams as a single die does: the gap is almost all the decode kernels'";
  if (is_kernel_sound) return "the decode kernels draw all that streams: the gap is the memory system's";
  return fmt::format("part of the gap is the memory system ({:.0f} %), part the decode kernels' own ({:.0f} %)",
                     100 * *gap.memory_share, 100 * (1 - *gap.memory_share));
}

}  // namespace

Gap ExplainGap(double fitted_gb_s, std::optional<double> streamed_gb_s, std::optional<double> published_gb_s,
               std::optional<double> reached_gb_s) {
  Gap gap{fitted_gb_s, streamed_gb_s, published_gb_s, reached_gb_s, {}, {}};
  if (published_gb_s) {
    gap.sentences.push_back(fmt::format("fitted {:.1f} GB/s is {:.0f} % of the published {:.0f}", fitted_gb_s,
                                        Percent(fitted_gb_s, *published_gb_s), *published_gb_s));
  }
  if (streamed_gb_s) {
    gap.sentences.push_back(fmt::format(
        "fitted {:.1f} GB/s is {:.0f} % of the streamed {:.1f}: {}", fitted_gb_s, Percent(fitted_gb_s, *streamed_gb_s),
        *streamed_gb_s,
        fitted_gb_s <= *streamed_gb_s ? "the rest is the decode kernels'"
                                      : "a cache kept bytes that are counted as read, or the runs were disturbed"));
  }
  if (streamed_gb_s && published_gb_s) {
    const double whole = *published_gb_s - fitted_gb_s;
    if (whole > 0)
      gap.memory_share = std::clamp(roofline::MemoryShareOfGap(fitted_gb_s, *streamed_gb_s, *published_gb_s), 0.0, 1.0);
    gap.sentences.push_back(fmt::format("a kernel that only streams gets {:.0f} % of the published: {}",
                                        Percent(*streamed_gb_s, *published_gb_s),
                                        gap.memory_share ? Between(gap) : "nothing is missing"));
  } else if (published_gb_s || streamed_gb_s) {
    gap.sentences.push_back(published_gb_s
                                ? "without a streamed bandwidth memory system and kernels can't be told apart"
                                : "without a published bandwidth nothing is said of the memory system");
  }
  if (reached_gb_s) {
    const double gain = Percent(*reached_gb_s, fitted_gb_s) - 100;
    const bool is_possible = !published_gb_s || *reached_gb_s <= *published_gb_s;
    gap.sentences.push_back(
        is_possible
            ? fmt::format("another kernel reached {:.0f} GB/s, {:+.0f} %: the fit is what this runtime draws, a "
                          "floor and not a limit of the memory",
                          *reached_gb_s, gain)
            : fmt::format("the {:.0f} GB/s said of another kernel are above the published bandwidth: nothing "
                          "reads faster than that",
                          *reached_gb_s));
  }
  return gap;
}

RateCheck CheckRate(double bytes, double tok_s, std::optional<double> streamed_gb_s,
                    std::optional<double> published_gb_s) {
  RateCheck check;
  check.implied_gb_s = roofline::ImpliedBandwidth(bytes, tok_s);
  check.is_above_published = published_gb_s && check.implied_gb_s > *published_gb_s;
  check.is_above_streamed = streamed_gb_s && check.implied_gb_s > *streamed_gb_s;
  if (check.is_above_published) {
    check.text =
        fmt::format("{:.4g} tok/s would read {:.4g} GB/s, above the published {:.4g}: not the rate of single tokens",
                    tok_s, check.implied_gb_s, *published_gb_s);
  } else if (check.is_above_streamed) {
    check.text = fmt::format(
        "{:.4g} tok/s would read {:.4g} GB/s, above the streamed {:.4g}: more than one token per pass (speculation), a "
        "cache that holds part of the model, or a fault",
        tok_s, check.implied_gb_s, *streamed_gb_s);
  }
  return check;
}

}  // namespace boltbeam::lab
