// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/database.h"

#include <sqlite3.h>

#include <array>
#include <filesystem>

#include "tenon/support/diagnostics.h"
#include "tenon/support/usage_codes.h"

namespace tenon::tune {

namespace {

constexpr int64_t kApplication = 0x54656e6f;  // "Teno", of the file's header
constexpr int64_t kVersion = 1;               // of the tables
constexpr int kPatience = 60'000;             // milliseconds that others may hold the file

constexpr const char* kTables = R"(
  CREATE TABLE machine(fingerprint TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE measurement(
    id INTEGER PRIMARY KEY,
    kernel TEXT NOT NULL, target TEXT NOT NULL, machine TEXT NOT NULL, threads INTEGER NOT NULL,
    compiler TEXT NOT NULL, plan TEXT NOT NULL, stage INTEGER NOT NULL,
    status TEXT NOT NULL, ratio REAL NOT NULL, median_us REAL NOT NULL, default_us REAL NOT NULL,
    detail TEXT NOT NULL,
    UNIQUE(kernel, target, machine, threads, compiler, plan, stage));
  CREATE TABLE choice(
    kernel TEXT NOT NULL, target TEXT NOT NULL, machine TEXT NOT NULL, threads INTEGER NOT NULL,
    compiler TEXT NOT NULL, plan TEXT NOT NULL, ratio REAL NOT NULL,
    PRIMARY KEY(kernel, target, machine, threads, compiler)) WITHOUT ROWID;
)";

// In the order of the enumeration.
constexpr std::array<const char*, 8> kStatuses = {"ok",    "wrong",   "refused", "failed",
                                                  "crash", "timeout", "memory",  "lost"};
static_assert(static_cast<size_t>(Status::kLost) + 1 == kStatuses.size());

}  // namespace

const char* name_of(Status status) { return kStatuses.at(static_cast<size_t>(status)); }

std::optional<Status> status_from(const std::string& name) {
  for (size_t i = 0; i < kStatuses.size(); ++i)
    if (name == kStatuses[i]) return static_cast<Status>(i);
  return std::nullopt;
}

/// A statement with its values; rows are read one by one.
class Database::Statement {
 public:
  Statement(const Database& database, const char* sql) : database_(database) {
    if (const int code = sqlite3_prepare_v2(database.db_, sql, -1, &statement_, nullptr))
      database.fail(code);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    return checked(sqlite3_bind_text(statement_, ++bound_, text.data(),
                                     static_cast<int>(text.size()), SQLITE_TRANSIENT));
  }
  Statement& bind(int64_t number) {
    return checked(sqlite3_bind_int64(statement_, ++bound_, number));
  }
  Statement& bind(double number) {
    return checked(sqlite3_bind_double(statement_, ++bound_, number));
  }
  Statement& bind(const MeasureKey& key) {
    return bind(key.kernel).bind(key.target).bind(key.machine).bind(key.threads).bind(key.compiler);
  }
  /// Whether there is one more row.
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) database_.fail(code);
    return code == SQLITE_ROW;
  }
  std::string text(int column) const {
    const unsigned char* text = sqlite3_column_text(statement_, column);
    return text ? reinterpret_cast<const char*>(text) : "";
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double number(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  Statement& checked(int code) {
    if (code != SQLITE_OK) database_.fail(code);
    return *this;
  }

  const Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

Database::Database(const std::string& path, Open mode) : path_(path) {
  const int flags =
      mode == Open::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  try {
    if (const int code = sqlite3_open_v2(path.c_str(), &db_, flags, nullptr)) fail(code);
    sqlite3_busy_timeout(db_, kPatience);
    if (mode == Open::kWrite) {
      // Readers go on while one process writes, and what is committed outlives the process.
      create();
      execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
    }
    check_version();
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}

Database::~Database() { sqlite3_close(db_); }

void Database::fail(int code) const {
  const std::string what = db_ ? sqlite3_errmsg(db_) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:
    case SQLITE_MISMATCH:
      throw CompileError(kBadDatabase, {}, "{}: {}; expected a database of `tenon tune`", path_,
                         what);
    default: throw CompileError(kFileError, {}, "{}: {}", path_, what);
  }
}

void Database::execute(const char* sql) const {
  if (const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)) fail(code);
}

// In an empty file; one transaction, as another process may find it empty too.
void Database::create() {
  const auto is_empty = [&] {
    Statement tables(*this, "SELECT count(*) FROM sqlite_schema");
    tables.step();
    Statement owner(*this, "PRAGMA application_id");
    owner.step();
    return tables.integer(0) == 0 && owner.integer(0) == 0;
  };
  if (!is_empty()) return;
  execute("BEGIN IMMEDIATE");
  if (is_empty()) {
    execute(kTables);
    execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};", kApplication, kVersion)
            .c_str());
  }
  execute("COMMIT");
}

void Database::check_version() {
  Statement owner(*this, "PRAGMA application_id");
  owner.step();
  if (owner.integer(0) != kApplication)
    throw CompileError(kBadDatabase, {},
                       "{}: the file is a SQLite database of another program; expected one of "
                       "`tenon tune`",
                       path_);
  Statement version(*this, "PRAGMA user_version");
  version.step();
  if (version.integer(0) != kVersion)
    throw CompileError(kBadDatabase, {}, "{}: the database has version {}; expected {}", path_,
                       version.integer(0), kVersion);
}

void Database::add(const MeasureKey& key, const Measurement& measurement) {
  Statement(*this,
            "INSERT OR IGNORE INTO measurement(kernel, target, machine, threads, compiler, plan, "
            "stage, status, ratio, median_us, default_us, detail) "
            "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(key)
      .bind(measurement.plan)
      .bind(measurement.stage)
      .bind(std::string(name_of(measurement.status)))
      .bind(measurement.ratio)
      .bind(measurement.median_us)
      .bind(measurement.default_us)
      .bind(measurement.detail)
      .step();
}

Measurement Database::measurement_of(const Statement& row) const {
  const auto status = status_from(row.text(2));
  if (!status)
    throw CompileError(kBadDatabase, {}, "{}: a measurement has status `{}`; expected one of {}",
                       path_, row.text(2), fmt::join(kStatuses, ", "));
  return {row.text(0),   row.integer(1), *status,    row.number(3),
          row.number(4), row.number(5),  row.text(6)};
}

std::vector<Measurement> Database::measurements(const MeasureKey& key) const {
  Statement rows(
      *this,
      "SELECT plan, stage, status, ratio, median_us, default_us, detail FROM measurement "
      "WHERE kernel = ? AND target = ? AND machine = ? AND threads = ? AND compiler = ? "
      "ORDER BY id");
  rows.bind(key);
  std::vector<Measurement> out;
  while (rows.step()) out.push_back(measurement_of(rows));
  return out;
}

std::map<std::string, std::vector<Measurement>> Database::first_measurements(
    const std::string& target, const std::string& machine) const {
  Statement rows(*this,
                 "SELECT plan, stage, status, ratio, median_us, default_us, detail, kernel "
                 "FROM measurement AS each WHERE target = ?1 AND machine = ?2 AND stage = 0 "
                 "AND threads = (SELECT max(threads) FROM measurement "
                 "WHERE kernel = each.kernel AND target = ?1 AND machine = ?2) ORDER BY id");
  rows.bind(target).bind(machine);
  std::map<std::string, std::vector<Measurement>> out;
  while (rows.step()) out[rows.text(7)].push_back(measurement_of(rows));
  return out;
}

void Database::add_machine(const std::string& fingerprint, const std::string& text) {
  Statement(*this, "INSERT OR IGNORE INTO machine(fingerprint, text) VALUES(?, ?)")
      .bind(fingerprint)
      .bind(text)
      .step();
}

std::map<std::string, std::string> Database::machines(const std::string& target) const {
  Statement rows(*this,
                 "SELECT known.machine, machine.text FROM "
                 "(SELECT machine FROM choice WHERE target = ?1 UNION "
                 "SELECT machine FROM measurement WHERE target = ?1 AND kernel LIKE ?2 || '%') "
                 "AS known LEFT JOIN machine ON machine.fingerprint = known.machine");
  rows.bind(target).bind(std::string(kPartHash));
  std::map<std::string, std::string> out;
  while (rows.step()) out.emplace(rows.text(0), rows.text(1));
  return out;
}

void Database::choose(const MeasureKey& key, const std::optional<Choice>& choice) {
  if (!choice) {
    Statement(*this,
              "DELETE FROM choice WHERE kernel = ? AND target = ? AND machine = ? AND threads = ? "
              "AND compiler = ?")
        .bind(key)
        .step();
    return;
  }
  Statement(*this, "INSERT OR REPLACE INTO choice VALUES(?, ?, ?, ?, ?, ?, ?)")
      .bind(key)
      .bind(choice->plan)
      .bind(choice->ratio)
      .step();
}

std::optional<Choice> Database::choice(const MeasureKey& key) const {
  Statement rows(*this,
                 "SELECT plan, ratio FROM choice WHERE kernel = ? AND target = ? AND machine = ? "
                 "AND threads = ? AND compiler = ?");
  rows.bind(key);
  if (!rows.step()) return std::nullopt;
  return Choice{rows.text(0), rows.number(1)};
}

std::map<std::string, Choice> Database::choices(const std::string& target,
                                                const std::string& machine) const {
  Statement rows(*this,
                 "SELECT kernel, plan, ratio FROM choice WHERE target = ?1 AND machine = ?2 "
                 "AND threads = (SELECT max(threads) FROM measurement "
                 "WHERE kernel = choice.kernel AND target = ?1 AND machine = ?2) "
                 "ORDER BY ratio, compiler");
  rows.bind(target).bind(machine);
  std::map<std::string, Choice> out;
  while (rows.step()) out.emplace(rows.text(0), Choice{rows.text(1), rows.number(2)});
  return out;
}

}  // namespace tenon::tune
