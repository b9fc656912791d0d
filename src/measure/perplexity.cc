#include "measure/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "measure/statistics.h"

namespace boltbeam::measure {
namespace {

constexpr double kNegligible = -16;  // as in the file of logits: what lies at its lower end says nothing

struct LogSoftmax {
  std::size_t best = 0;  // of equal logits the lowest id
  double log_sum = 0;    // a token's log-probability is its logit less this
};

Result<LogSoftmax> ComputeLogSoftmax(std::span<const float> logits) {
  LogSoftmax result;
  for (std::size_t id = 1; id < logits.size(); ++id) {
    if (logits[id] > logits[result.best]) result.best = id;
  }
  const double largest = logits.empty() ? NAN : logits[result.best];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  result.log_sum = largest + std::log(sum);
  if (!std::isfinite(result.log_sum)) {
    return Fail(Code::kLogits, "logits", "numbers that are not finite",
                "finite weights; the model file may be damaged");
  }
  return result;
}

Miss MakeMiss(std::span<const float> logits, const LogitsRow& base, std::size_t ours, std::size_t theirs) {
  Miss miss;
  miss.base_token = static_cast<std::int32_t>(theirs);
  miss.our_token = static_cast<std::int32_t>(ours);
  const float logit = logits[theirs];
  miss.rank = 1 + static_cast<std::uint64_t>(std::ranges::count_if(logits, [&](float other) { return other > logit; }));
  miss.gap = static_cast<double>(logits[ours]) - logit;
  miss.base_gap = base.At(theirs) - base.At(ours);
  return miss;
}

// One measurement: the loop over chunks, and what it adds up.
class Measurement {
 public:
  Measurement(engine::Session& session, const PerplexityRequest& request) : session_(session), request_(request) {}

  Result<PerplexityResult> Run() {
    BOLTBEAM_TRY(Prepare());
    for (chunk_ = 0; chunk_ < chunks_; ++chunk_) BOLTBEAM_TRY(RunChunk());
    if (writer_) BOLTBEAM_TRY(writer_->Finish());
    return Summarise();
  }

 private:
  Result<void> Prepare() {
    constexpr std::uint32_t kLeastContext = 4;
    const std::uint64_t context = request_.context;
    chunks_ = context < kLeastContext ? 0 : request_.tokens.size() / context;
    if (chunks_ == 0) {
      return Fail(Code::kTextTooShort, request_.text_name, fmt::format("{} tokens", request_.tokens.size()),
                  fmt::format("at least {}, one chunk: take a longer text or a smaller -c",
                              std::max(context, std::uint64_t{4})));
    }
    if (request_.max_chunks != 0) chunks_ = std::min(chunks_, request_.max_chunks);
    header_ = {static_cast<std::int32_t>(context), static_cast<std::int32_t>(request_.vocabulary),
               static_cast<std::int32_t>(chunks_)};
    if (request_.base != nullptr && request_.base->header().vocabulary != header_.vocabulary) {
      return Fail(Code::kLogitsFile, request_.base->path(),
                  fmt::format("a vocabulary of {} tokens", request_.base->header().vocabulary),
                  fmt::format("the model's {}: logits of the same model", header_.vocabulary));
    }
    if (!request_.save_base.empty()) {
      BOLTBEAM_ASSIGN(LogitsWriter writer, LogitsWriter::Create(request_.save_base, header_, request_.tokens));
      writer_.emplace(std::move(writer));
    }
    return {};
  }

  // The last token is only predicted, never computed. The first half is context without logits.
  Result<void> RunChunk() {
    const auto all = std::span(request_.tokens).subspan(chunk_ * request_.context, request_.context);
    std::vector<std::int32_t> tokens(all.begin(), all.end());
    if (request_.bos) tokens.front() = *request_.bos;
    next_ = std::span(all).subspan(1);
    BOLTBEAM_TRY(session_.Truncate(0));
    const std::size_t first = header_.FirstScored(), end = tokens.size() - 1;
    const std::size_t step = request_.token_by_token ? 1 : std::max(1U, request_.batch);
    for (std::size_t at = 0; at < end;) {
      if (request_.cancelled && request_.cancelled()) {
        return Fail(Code::kInterrupted, "perplexity", fmt::format("stopped in chunk {} of {}", chunk_ + 1, chunks_));
      }
      const std::size_t stop = at < first ? first : end;
      const std::size_t count = std::min(step, stop - at);
      BOLTBEAM_TRY(Compute(std::span(tokens).subspan(at, count), at, at >= first));
      at += count;
      if (request_.progress) request_.progress(chunk_ * end + at, chunks_ * end);
    }
    return {};
  }

  Result<void> Compute(std::span<const std::int32_t> tokens, std::size_t position, bool scored) {
    if (request_.token_by_token) {
      BOLTBEAM_TRY(session_.Decode(tokens.front()));
      return scored ? Score(session_.logits(), position) : Result<void>();
    }
    if (!scored) return session_.Prompt(tokens);
    Result<void> result;
    BOLTBEAM_TRY(session_.Prompt(tokens, [&](std::size_t index, std::span<const float> logits) {
      if (result) result = Score(logits, position + index);
    }));
    return result;
  }

  Result<void> Score(std::span<const float> logits, std::size_t position) {
    if (logits.size() != request_.vocabulary) {
      return Fail(Code::kInternal, "logits", fmt::format("{} numbers", logits.size()),
                  fmt::format("{}", request_.vocabulary));
    }
    LogitsRow row;
    if (request_.base != nullptr) {
      const std::uint64_t index = chunk_ * header_.ScoredPerChunk() + position - header_.FirstScored();
      BOLTBEAM_ASSIGN(row, request_.base->Row(index));
    }
    BOLTBEAM_ASSIGN(PositionScore score,
                    ScorePosition(logits, next_[position], request_.base != nullptr ? &row : nullptr));
    negative_logs_.push_back(score.negative_log);
    base_negative_log_ += score.base_negative_log;
    kls_.push_back(score.kl);
    if (score.miss) {
      score.miss->chunk = chunk_;
      score.miss->position = position;
      misses_.push_back(*score.miss);
    }
    return writer_ ? writer_->Append(logits) : Result<void>();
  }

  PerplexityResult Summarise() {
    PerplexityResult result;
    const auto count = static_cast<double>(negative_logs_.size());
    result.chunks = chunks_;
    result.tokens = negative_logs_.size();
    result.perplexity = std::exp(Mean(negative_logs_));
    result.perplexity_error = result.perplexity * StandardDeviation(negative_logs_) / std::sqrt(count);
    if (request_.base == nullptr) return result;
    result.has_base = true;
    result.base_perplexity = std::exp(base_negative_log_ / count);
    result.kl_mean = Mean(kls_);
    result.kl_mean_error = StandardDeviation(kls_) / std::sqrt(count);
    result.kl_median = Median(kls_);
    result.kl_p99 = Quantile(kls_, 0.99);
    result.kl_max = std::ranges::max(kls_);
    result.top1_agreement = 1 - static_cast<double>(misses_.size()) / count;
    result.misses = std::move(misses_);
    return result;
  }

  engine::Session& session_;
  const PerplexityRequest& request_;
  LogitsHeader header_;
  std::uint64_t chunks_ = 0, chunk_ = 0;
  std::span<const std::int32_t> next_;  // the token that follows each position of the chunk
  std::optional<LogitsWriter> writer_;
  std::vector<double> negative_logs_, kls_;
  double base_negative_log_ = 0;
  std::vector<Miss> misses_;
};

}  // namespace

Result<PositionScore> ScorePosition(std::span<const float> logits, std::int32_t next, const LogitsRow* base) {
  BOLTBEAM_ASSIGN(const LogSoftmax ours, ComputeLogSoftmax(logits));
  PositionScore score;
  const auto target = static_cast<std::size_t>(next);
  score.negative_log = ours.log_sum - logits[target];
  if (base == nullptr) return score;
  score.base_negative_log = -base->At(target);
  std::size_t best = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (base->codes[id] > base->codes[best]) best = id;
    const double log_base = base->At(id);
    if (log_base > kNegligible) score.kl += std::exp(log_base) * (log_base - logits[id] + ours.log_sum);
  }
  if (best != ours.best) {
    score.miss = MakeMiss(logits, *base, ours.best, best);
    score.miss->kl = score.kl;
  }
  return score;
}

Result<PerplexityResult> MeasurePerplexity(engine::Session& session, const PerplexityRequest& request) {
  return Measurement(session, request).Run();
}

}  // namespace boltbeam::measure
