// SPDX-License-Identifier: Apache-2.0
// The database of the tuner: what was measured, and which plans came of it. A SQLite file that any
// number of processes may use at once. docs/tuning.md describes its tables.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace tenon::tune {

/// What measurements are kept by: the structure of a kernel (tir::plan_hash) or of a part of a graph
/// (part.h), what code was made for
/// (Target::str), on which kind of machine (machine.h), on how many threads, and by which compiler.
/// What differs in any of these is never compared.
struct MeasureKey {
  std::string kernel, target, machine;
  int64_t threads = 1;
  std::string compiler;
  auto operator<=>(const MeasureKey&) const = default;
};

/// What the hashes of parts of a graph begin with; those of kernels are digits.
inline constexpr std::string_view kPartHash = "graph-";

/// How a measurement ended.
enum class Status : uint8_t {
  kOk,
  kWrong,        // it computes something else than the default plan
  kRefused,      // the plan does not fit the kernel, or needs more memory than the default plan
  kFailed,       // it reported an error when it was compiled or run
  kCrash,        // a signal ended it
  kTimeout,      // it took longer than it may
  kOutOfMemory,  // it took more memory than it may
  kLost,         // its machine went away, each time
};
const char* name_of(Status status);
std::optional<Status> status_from(const std::string& name);

struct Measurement {
  /// Of all blocks of a kernel, as canonical text; of a part of a graph the provider ("dnnl.conv2d"). Empty:
  /// the default plan, or own code, alone.
  std::string plan;
  int64_t stage = 0;  // 0: the first, 1: to confirm it, 2: in the whole network
  Status status = Status::kOk;
  double ratio = 0;  // of its time to the default plan's, in alternating runs
  double median_us = 0, default_us = 0;
  std::string detail;  // what went wrong
};

/// The plan that takes the default one's place, or the provider that takes own code's.
struct Choice {
  std::string plan;
  double ratio = 1;
};

class Database {
 public:
  /// Opens the file, or makes one. \throws CompileError (kFileError) where it cannot be opened,
  /// (kBadDatabase) where it is no database of the tuner's, is damaged, or has another version.
  enum class Open : uint8_t { kRead, kWrite };
  Database(const std::string& path, Open mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// One transaction: when this returns, the record stays whatever happens to the process. A record
  /// that is there already, of another process, is left as it is.
  void add(const MeasureKey& key, const Measurement& measurement);
  /// In the order in which they were added.
  std::vector<Measurement> measurements(const MeasureKey& key) const;

  /// What a machine kind's fingerprint stands for.
  void add_machine(const std::string& fingerprint, const std::string& text);
  /// Those with a choice for the target, or with measurements of parts of a graph, which count where none
  /// was chosen, too; by fingerprint.
  std::map<std::string, std::string> machines(const std::string& target) const;

  /// \param choice  nothing: the default plan again
  void choose(const MeasureKey& key, const std::optional<Choice>& choice);
  std::optional<Choice> choice(const MeasureKey& key) const;
  /// Of all kernels, by their hashes. A kernel that was measured on several numbers of threads has the
  /// plan of the most, or none; of several compilers the one of the largest gain.
  std::map<std::string, Choice> choices(const std::string& target,
                                        const std::string& machine) const;

  /// First measurements of all alternatives, by the hash of what they are for; of one that was measured on
  /// several numbers of threads those of the most.
  std::map<std::string, std::vector<Measurement>> first_measurements(
      const std::string& target, const std::string& machine) const;

  const std::string& path() const { return path_; }

 private:
  class Statement;
  Measurement measurement_of(const Statement& row) const;
  void create();
  void check_version();
  void execute(const char* sql) const;
  [[noreturn]] void fail(int code) const;

  std::string path_;
  sqlite3* db_ = nullptr;
};

}  // namespace tenon::tune
