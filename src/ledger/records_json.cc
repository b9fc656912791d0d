#include <algorithm>
#include <array>

#include "base/printable.h"
#include "ledger/records.h"

namespace boltbeam::ledger {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kComparisons = {"changes", "at_least", "below", "stated"};

json SubjectJson(const Subject& subject) {
  json value = {{"candidate", subject.candidate}, {"chip", subject.chip}};
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) value[key] = text;
  };
  add("model", subject.model);
  add("model_hash", subject.model_hash);
  add("shape", subject.shape);
  add("plan", subject.plan);
  add("baseline", subject.baseline);
  add("candidate_words", subject.candidate_words);
  add("baseline_words", subject.baseline_words);
  return value;
}

void AddSamples(json& value, const Samples& samples) {
  if (!samples.sha256.empty()) value["samples"] = {{"sha256", samples.sha256}, {"format", samples.format}};
}

void AddText(json& value, const char* key, const std::string& text) {
  if (!text.empty()) value[key] = text;
}

/// Reads fields of an object and remembers the first that has a wrong type.
class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {
    if (!object.is_object()) Wrong("the payload", object);
  }

  void Text(const char* key, std::string& to) {
    const json* value = Find(key);
    if (value != nullptr && value->is_string()) to = value->get<std::string>();
    if (value != nullptr && !value->is_string()) Wrong(key, *value);
  }
  void Number(const char* key, double& to) {
    const json* value = Find(key);
    if (value != nullptr && value->is_number()) to = value->get<double>();
    if (value != nullptr && !value->is_number()) Wrong(key, *value);
  }
  void Number(const char* key, std::optional<double>& to) {
    double number = 0;
    Number(key, number);
    if (Find(key) != nullptr) to = number;
  }
  void Count(const char* key, std::uint64_t& to) {
    const json* value = Find(key);
    if (value != nullptr && value->is_number_unsigned()) to = value->get<std::uint64_t>();
    if (value != nullptr && !value->is_number_unsigned()) Wrong(key, *value);
  }
  void Count(const char* key, std::optional<std::uint64_t>& to) {
    std::uint64_t number = 0;
    Count(key, number);
    if (Find(key) != nullptr) to = number;
  }
  void Flag(const char* key, bool& to) {
    const json* value = Find(key);
    if (value != nullptr && value->is_boolean()) to = value->get<bool>();
    if (value != nullptr && !value->is_boolean()) Wrong(key, *value);
  }
  void Object(const char* key, json& to) {
    const json* value = Find(key);
    if (value != nullptr && value->is_object()) to = *value;
    if (value != nullptr && !value->is_object()) Wrong(key, *value);
  }
  template <typename Each>
  void List(const char* key, Each each) {
    const json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return Wrong(key, *value);
    for (const json& element : *value) each(element);
  }
  /// The fields of an inner object; its first trouble is ours.
  template <typename Fields>
  void Inner(const char* key, Fields fields) {
    const json* value = Find(key);
    if (value != nullptr) Take(*value, fields);
  }
  template <typename Fields>
  void Take(const json& value, Fields fields) {
    Reader inner(value);
    if (value.is_object()) fields(inner);
    if (inner.error_ && !error_) error_ = inner.error_;
  }
  void Note(const Error& error) {
    if (!error_) error_ = error;
  }
  [[nodiscard]] const json* Find(const char* key) const {
    const auto found = object_.is_object() ? object_.find(key) : object_.end();
    return object_.is_object() && found != object_.end() && !found->is_null() ? &*found : nullptr;
  }
  template <typename T>
  Result<T> Finish(T record) {
    if (error_) return std::unexpected(*error_);
    return record;
  }

 private:
  void Wrong(const std::string& key, const json& value) {
    Note({Code::kLedgerRecord, key, base::Printable(value.dump(-1, ' ', true, json::error_handler_t::replace), 60),
          "a value of another type"});
  }

  const json& object_;
  std::optional<Error> error_;
};

void ReadSubject(Reader& reader, Subject& subject) {
  reader.Inner("subject", [&](Reader& inner) {
    inner.Text("candidate", subject.candidate);
    inner.Text("chip", subject.chip);
    inner.Text("model", subject.model);
    inner.Text("model_hash", subject.model_hash);
    inner.Text("shape", subject.shape);
    inner.Text("plan", subject.plan);
    inner.Text("baseline", subject.baseline);
    inner.Text("candidate_words", subject.candidate_words);
    inner.Text("baseline_words", subject.baseline_words);
  });
}

void ReadSamples(Reader& reader, Samples& samples) {
  reader.Inner("samples", [&](Reader& inner) {
    inner.Text("sha256", samples.sha256);
    inner.Text("format", samples.format);
  });
}

void ReadCondition(Reader& reader, Condition& condition) {
  reader.Text("name", condition.name);
  reader.Text("detail", condition.detail);
  std::string state;
  reader.Text("state", state);
  for (const State known : {State::kPass, State::kFail, State::kUnknown}) {
    if (StateName(known) == state) condition.state = known;
  }
}

void ReadVerdictLists(Reader& reader, Verdict& verdict) {
  reader.List("depths", [&](const json& element) {
    DepthRatio at;
    reader.Take(element, [&](Reader& inner) {
      inner.Count("depth", at.depth);
      inner.Number("ratio", at.ratio);
      inner.Number("ratio_low", at.low);
      inner.Number("ratio_high", at.high);
      inner.Count("windows", at.windows);
    });
    verdict.depths.push_back(at);
  });
  reader.List("conditions", [&](const json& element) {
    Condition condition;
    reader.Take(element, [&](Reader& inner) { ReadCondition(inner, condition); });
    verdict.conditions.push_back(std::move(condition));
  });
  reader.List("reopen_when", [&](const json& element) {
    Result<ReopenWhen> when = ReopenWhenFrom(element);
    if (when) verdict.reopen_when.push_back(std::move(*when));
    if (!when) reader.Note(when.error());
  });
}

}  // namespace

json ToJson(const ChipFacts& record) {
  json value = {{"chip", record.chip}, {"facts", record.facts}, {"environment", record.environment}};
  AddSamples(value, record.samples);
  return value;
}

json ToJson(const Prediction& record) {
  json value = {{"subject", SubjectJson(record.subject)},
                {"quantity", record.quantity},
                {"value", record.value},
                {"low", record.low},
                {"high", record.high},
                {"confidence", record.confidence},
                {"method", record.method}};
  if (record.depth) value["depth"] = *record.depth;
  return value;
}

json ToJson(const Measurement& record) {
  json value = {{"subject", SubjectJson(record.subject)},
                {"quantity", record.quantity},
                {"value", record.value},
                {"low", record.low},
                {"high", record.high},
                {"repetitions", record.repetitions},
                {"environment", record.environment}};
  if (record.depth) value["depth"] = *record.depth;
  AddText(value, "prediction", record.prediction);
  AddSamples(value, record.samples);
  return value;
}

json ToJson(const ReopenWhen& condition) {
  json value = {{"comparison", kComparisons[static_cast<std::size_t>(condition.comparison)]}};
  AddText(value, "fact", condition.fact);
  AddText(value, "text", condition.text);
  if (!condition.value.is_null()) value["value"] = condition.value;
  return value;
}

json ToJson(const Verdict& record) {
  json value = {{"subject", SubjectJson(record.subject)},
                {"verdict", RulingName(record.ruling)},
                {"reason", record.reason},
                {"repetitions", record.repetitions},
                {"sessions", record.sessions},
                {"environment", record.environment},
                {"conditions", json::array()},
                {"details", record.details}};
  for (const Condition& condition : record.conditions) {
    value["conditions"].push_back(
        {{"name", condition.name}, {"state", StateName(condition.state)}, {"detail", condition.detail}});
  }
  for (const DepthRatio& at : record.depths) {
    value["depths"].push_back({{"depth", at.depth},
                               {"ratio", at.ratio},
                               {"ratio_low", at.low},
                               {"ratio_high", at.high},
                               {"windows", at.windows}});
  }
  for (const ReopenWhen& when : record.reopen_when) value["reopen_when"].push_back(ToJson(when));
  if (record.ratio) value["ratio"] = *record.ratio;
  if (record.ratio_low) value["ratio_low"] = *record.ratio_low;
  if (record.ratio_high) value["ratio_high"] = *record.ratio_high;
  if (record.smallest_difference) value["smallest_difference"] = *record.smallest_difference;
  if (record.refused) value["refused"] = true;
  AddText(value, "outcome", record.outcome);
  AddText(value, "tier", record.tier);
  AddText(value, "off_switch", record.off_switch);
  AddText(value, "prediction", record.prediction);
  AddSamples(value, record.samples);
  if (!record.origin.is_null()) value["origin"] = record.origin;
  return value;
}

json ToJson(const Reopening& record) {
  return {{"subject", SubjectJson(record.subject)}, {"refutation", record.refutation}, {"reason", record.reason}};
}

Result<ChipFacts> ChipFactsFrom(const json& payload) {
  ChipFacts record;
  Reader reader(payload);
  reader.Text("chip", record.chip);
  reader.Object("facts", record.facts);
  reader.Object("environment", record.environment);
  ReadSamples(reader, record.samples);
  return reader.Finish(std::move(record));
}

Result<Prediction> PredictionFrom(const json& payload) {
  Prediction record;
  Reader reader(payload);
  ReadSubject(reader, record.subject);
  reader.Count("depth", record.depth);
  reader.Text("quantity", record.quantity);
  reader.Number("value", record.value);
  reader.Number("low", record.low);
  reader.Number("high", record.high);
  reader.Number("confidence", record.confidence);
  reader.Text("method", record.method);
  return reader.Finish(std::move(record));
}

Result<Measurement> MeasurementFrom(const json& payload) {
  Measurement record;
  Reader reader(payload);
  ReadSubject(reader, record.subject);
  reader.Count("depth", record.depth);
  reader.Text("quantity", record.quantity);
  reader.Number("value", record.value);
  reader.Number("low", record.low);
  reader.Number("high", record.high);
  reader.Count("repetitions", record.repetitions);
  reader.Text("prediction", record.prediction);
  ReadSamples(reader, record.samples);
  reader.Object("environment", record.environment);
  return reader.Finish(std::move(record));
}

Result<Verdict> VerdictFrom(const json& payload) {
  Verdict record;
  Reader reader(payload);
  ReadSubject(reader, record.subject);
  std::string ruling;
  reader.Text("verdict", ruling);
  const Result<Ruling> parsed = ParseRuling(ruling);
  if (!parsed) reader.Note(parsed.error());
  if (parsed) record.ruling = *parsed;
  reader.Flag("refused", record.refused);
  reader.Text("outcome", record.outcome);
  reader.Number("ratio", record.ratio);
  reader.Number("ratio_low", record.ratio_low);
  reader.Number("ratio_high", record.ratio_high);
  reader.Number("smallest_difference", record.smallest_difference);
  ReadVerdictLists(reader, record);
  reader.Text("reason", record.reason);
  reader.Text("tier", record.tier);
  reader.Text("off_switch", record.off_switch);
  reader.Text("prediction", record.prediction);
  ReadSamples(reader, record.samples);
  reader.Count("repetitions", record.repetitions);
  reader.Count("sessions", record.sessions);
  reader.Object("environment", record.environment);
  reader.Object("details", record.details);
  reader.Object("origin", record.origin);
  return reader.Finish(std::move(record));
}

Result<Reopening> ReopeningFrom(const json& payload) {
  Reopening record;
  Reader reader(payload);
  ReadSubject(reader, record.subject);
  reader.Text("refutation", record.refutation);
  reader.Text("reason", record.reason);
  return reader.Finish(std::move(record));
}

Result<ReopenWhen> ReopenWhenFrom(const json& condition) {
  ReopenWhen when;
  Reader reader(condition);
  std::string comparison;
  reader.Text("comparison", comparison);
  const auto found = std::ranges::find(kComparisons, comparison);
  if (found == kComparisons.end()) {
    reader.Note({Code::kLedgerRecord, "reopen_when.comparison", base::Printable(comparison),
                 "changes, at_least, below or stated"});
  } else {
    when.comparison = static_cast<Comparison>(found - kComparisons.begin());
  }
  reader.Text("fact", when.fact);
  reader.Text("text", when.text);
  if (const json* value = reader.Find("value")) when.value = *value;
  return reader.Finish(std::move(when));
}

}  // namespace boltbeam::ledger
