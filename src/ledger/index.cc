#include "ledger/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/printable.h"
#include "ledger/durable.h"

namespace boltbeam::ledger {
namespace {

// Another number makes every index anew.
constexpr int kVersion = 1;
constexpr std::size_t kLeastHashDigits = 8;

constexpr const char* kTables = R"(
  CREATE TABLE IF NOT EXISTS ledger(folder TEXT);
  CREATE TABLE IF NOT EXISTS chain(writer TEXT PRIMARY KEY, seq INTEGER, hash TEXT, size INTEGER, last_line INTEGER);
  CREATE TABLE IF NOT EXISTS record(
    writer TEXT, seq INTEGER, hash TEXT, time TEXT, kind TEXT, payload TEXT, offset INTEGER, size INTEGER,
    candidate TEXT, chip TEXT, model TEXT, model_hash TEXT, shape TEXT, verdict TEXT, about TEXT,
    PRIMARY KEY(writer, seq));
  CREATE INDEX IF NOT EXISTS record_hash ON record(hash);
  CREATE INDEX IF NOT EXISTS record_candidate ON record(candidate, chip);
  CREATE INDEX IF NOT EXISTS record_about ON record(about);
)";
constexpr const char* kColumns = "writer, seq, hash, time, kind, payload, offset, size";
constexpr const char* kStanding =
    "kind = 'verdict' AND verdict IN ('refute', 'search-space-incomplete') AND NOT EXISTS "
    "(SELECT 1 FROM record AS r WHERE r.kind = 'reopening' AND r.about = record.hash)";

/// Text of a field, or of a field of the subject; empty when there is none.
std::string Field(const nlohmann::json& payload, const char* key) {
  const auto found = payload.find(key);
  if (found != payload.end() && found->is_string()) return found->get<std::string>();
  const auto subject = payload.find("subject");
  if (subject == payload.end() || !subject->is_object()) return {};
  const auto inner = subject->find(key);
  return inner != subject->end() && inner->is_string() ? inner->get<std::string>() : std::string();
}

/// The record that it answers.
std::string About(const Record& record) {
  return Field(record.payload, record.kind == Kind::kReopening ? "refutation" : "prediction");
}

Result<Row> RowOf(const Statement& statement) {
  Row row;
  row.writer = statement.Text(0);
  row.seq = statement.Number(1);
  row.hash = statement.Text(2);
  row.time = statement.Text(3);
  BOLTBEAM_ASSIGN(row.kind, ParseKind(statement.Text(4)));
  BOLTBEAM_ASSIGN(row.payload, ParseJson(statement.Text(5), "the ledger's index"));
  row.offset = statement.Number(6);
  row.size_bytes = statement.Number(7);
  return row;
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 19 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::unexpected<Error> NoRecord(const std::string& id) {
  return Fail(Code::kLedgerNoRecord, id, "no such record",
              "a number, WRITER:NUMBER or 8 digits of a hash, as `boltbeam ledger list` shows them");
}

}  // namespace

Result<Index> Index::Open(const Ledger& ledger) {
  const std::string& path = ledger.options().index_file;
  if (!path.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    Result<Index> index = OpenFile(ledger, path);
    if (index || index.error().code != Code::kLedgerIndex) return index;
    // Whatever it is, it holds nothing that the chains do not hold.
    std::filesystem::remove(path, ignored);
    index = OpenFile(ledger, path);
    if (index) return index;
  }
  return OpenFile(ledger, ":memory:");
}

Result<Index> Index::OpenFile(const Ledger& ledger, const std::string& path) {
  BOLTBEAM_ASSIGN(Database database, Database::Open(path));
  BOLTBEAM_TRY(database.Run("PRAGMA synchronous = OFF"));  // nothing is lost with it
  BOLTBEAM_TRY(database.Run("BEGIN IMMEDIATE"));
  std::uint64_t version = 0;
  {
    BOLTBEAM_ASSIGN(Statement statement, database.Prepare("PRAGMA user_version"));
    BOLTBEAM_ASSIGN(const bool row, statement.Step());
    if (row) version = statement.Number(0);
  }
  if (version != kVersion) {
    BOLTBEAM_TRY(database.Run("DROP TABLE IF EXISTS ledger; DROP TABLE IF EXISTS chain; DROP TABLE IF EXISTS record;"));
  }
  BOLTBEAM_TRY(database.Run(kTables));
  BOLTBEAM_TRY(database.Run(fmt::format("PRAGMA user_version = {}", kVersion)));
  Index index(ledger, std::move(database));
  BOLTBEAM_TRY(index.Update());
  BOLTBEAM_TRY(index.database_.Run("COMMIT"));
  return index;
}

Result<void> Index::Update() {
  const std::string& folder = ledger_->options().folder;
  std::string known;
  {
    BOLTBEAM_ASSIGN(Statement statement, database_.Prepare("SELECT folder FROM ledger"));
    BOLTBEAM_ASSIGN(const bool row, statement.Step());
    if (row) known = statement.Text(0);
  }
  if (known != folder) {
    BOLTBEAM_TRY(database_.Run("DELETE FROM ledger; DELETE FROM chain; DELETE FROM record;"));
    BOLTBEAM_ASSIGN(Statement statement, database_.Prepare("INSERT INTO ledger VALUES (?)"));
    BOLTBEAM_TRY(statement.Bind(1, folder).Step());
  }
  BOLTBEAM_ASSIGN(const std::vector<std::string> paths, ChainFiles(*ledger_->options().files, folder));
  for (const std::string& path : paths) BOLTBEAM_TRY(UpdateChain(path));
  return ForgetOthers(paths);
}

Result<std::optional<Anchor>> Index::Known(const std::string& writer) {
  BOLTBEAM_ASSIGN(Statement statement,
                  database_.Prepare("SELECT seq, hash, size, last_line FROM chain WHERE writer = ?"));
  BOLTBEAM_ASSIGN(const bool row, statement.Bind(1, writer).Step());
  if (!row) return std::nullopt;
  return Anchor{statement.Number(0), statement.Text(1), statement.Number(2), statement.Number(3)};
}

/// What stands behind the last line that is known; nothing when that line is no longer where it stood.
Result<std::optional<std::string>> Index::Added(const std::string& path, const Anchor& known) {
  BOLTBEAM_ASSIGN(ledger::OpenFile file, ledger::OpenFile::Open(*ledger_->options().files, path, Access::kRead));
  BOLTBEAM_ASSIGN(const std::uint64_t size, file.Size());
  const std::uint64_t line_bytes = known.last_line_bytes;
  if (size < known.size_bytes || line_bytes == 0 || line_bytes > known.size_bytes || line_bytes > kMostLineBytes) {
    return std::nullopt;
  }
  BOLTBEAM_ASSIGN(const std::string line, file.Read(known.size_bytes - line_bytes, line_bytes));
  const Result<Record> last = ReadLine(std::string_view(line).substr(0, line.size() - 1));
  if (!last || last->hash != known.hash) return std::nullopt;
  BOLTBEAM_ASSIGN(std::string added, file.Read(known.size_bytes, size - known.size_bytes));
  return added;
}

/// Reads what was added since, when the last line that is known still stands where it stood; otherwise everything.
Result<void> Index::UpdateChain(const std::string& path) {
  const std::string writer = WriterOf(path);
  BOLTBEAM_ASSIGN(const std::optional<Anchor> known, Known(writer));
  if (known && known->seq > 0) {
    BOLTBEAM_ASSIGN(const std::optional<std::string> added, Added(path, *known));
    if (added) {
      const Chain chain = ParseChain(path, writer, *added, *known, std::nullopt);
      if (chain.state == ChainState::kDamaged) faults_.push_back(*chain.fault);
      return chain.entries.empty() ? Result<void>() : Insert(chain, *known);
    }
  }
  for (const char* table : {"record", "chain"}) {
    BOLTBEAM_ASSIGN(Statement statement, database_.Prepare(fmt::format("DELETE FROM {} WHERE writer = ?", table)));
    BOLTBEAM_TRY(statement.Bind(1, writer).Step());
  }
  BOLTBEAM_ASSIGN(const Chain chain, ReadChain(*ledger_->options().files, path));
  if (chain.state == ChainState::kDamaged) faults_.push_back(*chain.fault);
  return Insert(chain, {});
}

Result<void> Index::Insert(const Chain& chain, const Anchor& from) {
  BOLTBEAM_ASSIGN(Statement insert, database_.Prepare("INSERT INTO record VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  Anchor last = from;
  for (const Entry& entry : chain.entries) {
    const Record& record = entry.record;
    BOLTBEAM_ASSIGN(const std::string payload, Canonical(record.payload));
    const std::string candidate = Field(record.payload, "candidate"), chip = Field(record.payload, "chip"),
                      model = Field(record.payload, "model"), model_hash = Field(record.payload, "model_hash"),
                      shape = Field(record.payload, "shape"), verdict = Field(record.payload, "verdict"),
                      about = About(record);
    insert.Bind(1, record.writer).Bind(2, record.seq).Bind(3, record.hash).Bind(4, record.time);
    insert.Bind(5, KindName(record.kind)).Bind(6, payload).Bind(7, entry.offset).Bind(8, entry.size_bytes);
    insert.Bind(9, candidate).Bind(10, chip).Bind(11, model).Bind(12, model_hash).Bind(13, shape);
    insert.Bind(14, verdict).Bind(15, about);
    BOLTBEAM_TRY(insert.Step());
    insert.Reset();
    ++lines_read_;
    last = {record.seq, record.hash, entry.offset + entry.size_bytes, entry.size_bytes};
  }
  BOLTBEAM_ASSIGN(Statement update, database_.Prepare("INSERT OR REPLACE INTO chain VALUES (?,?,?,?,?)"));
  update.Bind(1, chain.writer).Bind(2, last.seq).Bind(3, last.hash).Bind(4, last.size_bytes);
  BOLTBEAM_TRY(update.Bind(5, last.last_line_bytes).Step());
  return {};
}

Result<void> Index::ForgetOthers(const std::vector<std::string>& paths) {
  std::set<std::string> gone;
  {
    BOLTBEAM_ASSIGN(Statement statement, database_.Prepare("SELECT writer FROM chain"));
    while (true) {
      BOLTBEAM_ASSIGN(const bool row, statement.Step());
      if (!row) break;
      gone.insert(statement.Text(0));
    }
  }
  for (const std::string& path : paths) gone.erase(WriterOf(path));
  for (const std::string& writer : gone) {
    for (const char* table : {"record", "chain"}) {
      BOLTBEAM_ASSIGN(Statement statement, database_.Prepare(fmt::format("DELETE FROM {} WHERE writer = ?", table)));
      BOLTBEAM_TRY(statement.Bind(1, writer).Step());
    }
  }
  return {};
}

Result<std::vector<Row>> Index::Select(const std::string& condition, const std::vector<std::string>& values,
                                       std::uint64_t limit) {
  std::string sql = fmt::format("SELECT {} FROM record WHERE {} ORDER BY time DESC, writer DESC, seq DESC", kColumns,
                                condition.empty() ? "1" : condition);
  if (limit > 0) sql += fmt::format(" LIMIT {}", limit);
  BOLTBEAM_ASSIGN(Statement statement, database_.Prepare(sql));
  for (std::size_t i = 0; i < values.size(); ++i) statement.Bind(static_cast<int>(i) + 1, values[i]);
  std::vector<Row> rows;
  while (true) {
    BOLTBEAM_ASSIGN(const bool more, statement.Step());
    if (!more) break;
    BOLTBEAM_ASSIGN(Row row, RowOf(statement));
    rows.push_back(std::move(row));
  }
  std::ranges::reverse(rows);
  return rows;
}

Result<std::vector<Row>> Index::List(const Filter& filter) {
  std::string condition = "1";
  std::vector<std::string> values;
  const auto add = [&](const char* column, const std::string& value) {
    if (value.empty()) return;
    condition += fmt::format(" AND {} = ?", column);
    values.push_back(value);
  };
  add("kind", filter.kind ? std::string(KindName(*filter.kind)) : std::string());
  if (!filter.candidate.empty()) {
    condition += " AND (candidate = ? OR json_extract(payload, '$.subject.candidate_words') = ?)";
    values.insert(values.end(), 2, filter.candidate);
  }
  add("chip", filter.chip);
  add("verdict", filter.verdict);
  add("writer", filter.writer);
  add("about", filter.about);
  if (!filter.model.empty()) {
    condition += " AND (model = ? OR substr(model_hash, 1, length(?)) = ?)";
    values.insert(values.end(), 3, filter.model);
  }
  return Select(condition, values, filter.limit);
}

Result<Row> Index::Find(const std::string& id) {
  std::vector<Row> rows;
  const std::size_t colon = id.rfind(':');
  if (colon != std::string::npos && IsNumber(id.substr(colon + 1))) {
    BOLTBEAM_ASSIGN(rows,
                    Select("writer = ? AND seq = CAST(? AS INTEGER)", {id.substr(0, colon), id.substr(colon + 1)}, 0));
  } else if (IsNumber(id)) {
    BOLTBEAM_ASSIGN(rows, Select("writer = ? AND seq = CAST(? AS INTEGER)", {ledger_->options().writer, id}, 0));
    if (rows.empty()) {  // a ledger that was only imported: its one chain is meant
      BOLTBEAM_ASSIGN(rows,
                      Select("seq = CAST(? AS INTEGER) AND (SELECT count(*) FROM chain WHERE seq > 0) = 1", {id}, 0));
    }
  }
  if (rows.empty() && id.size() >= kLeastHashDigits) {
    BOLTBEAM_ASSIGN(rows, Select("substr(hash, 1, length(?)) = ?", {id, id}, 0));
  }
  if (rows.size() == 1) return rows.front();
  return NoRecord(base::Printable(id));
}

Result<std::vector<Row>> Index::Refutations(const std::string& candidate, const std::string& chip,
                                            const std::string& shape) {
  return Select(std::string(kStanding) + " AND candidate = ? AND chip = ? AND (shape = '' OR shape = ?)",
                {candidate, chip, shape}, 0);
}

Result<std::vector<Row>> Index::StandingRefutations() { return Select(kStanding, {}, 0); }

bool IsBefore(const Row& a, const Row& b) { return a.writer == b.writer ? a.seq < b.seq : a.time <= b.time; }

Result<Record> LoadRecord(const Ledger& ledger, const Row& row) {
  const std::string path = ChainPath(ledger.options().folder, row.writer);
  BOLTBEAM_ASSIGN(OpenFile file, OpenFile::Open(*ledger.options().files, path, Access::kRead));
  const Result<std::string> line = file.Read(row.offset, row.size_bytes);
  const std::string where = fmt::format("{}: line {}", path, row.seq);
  if (!line) return Fail(Code::kLedgerDamaged, where, "the end of the file", "the record that was there");
  Result<Record> record = ReadLine(std::string_view(*line).substr(0, line->size() - 1));
  if (!record) return Fail(Code::kLedgerDamaged, where, record.error().found, record.error().expected);
  if (record->hash != row.hash) return Fail(Code::kLedgerDamaged, where, "another record", "the one that was there");
  return record;
}

}  // namespace boltbeam::ledger
