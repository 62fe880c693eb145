// SPDX-License-Identifier: Apache-2.0
// Plans that are worth a measurement: those next to a plan, in an order that the model of the machine
// gives.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/ir/module.h"

namespace tenon::tune {

/// What a proposal changes.
enum class Move : uint8_t {
  kTile,
  kUnrolling,
  kTasks,
  kSerial,     // one thread, or all
  kAlgorithm,  // and the forms of Winograd's
  kOrder,      // of loops
  kPrefetches,
  kLanes,
  kRows,    // joined or not
  kChunks,  // of a long reduction
};

struct Proposal {
  Move move;
  std::string plan;         // canonical (job.h)
  double predicted_us = 0;  // 0: there is no model of it
};

/// Proposes plans of one kernel.
class Proposer {
 public:
  /// \param module   the kernel alone, with the attributes by which it is scheduled
  /// \param threads  that it will run on
  Proposer(IRModule module, std::string hash, int64_t threads);

  /// What the model chooses; empty where no block of the kernel is planned.
  const std::string& default_plan() const { return default_; }
  /// Plans that differ from `plan` in one choice and fit the kernel: of each kind of change the one
  /// that the model holds for fastest, then of each the next, and so on. The same in every process.
  std::vector<Proposal> next_to(const std::string& plan);

 private:
  struct Scheduled {
    std::string plan;
    double predicted_us;
  };
  /// Nothing where the plan does not fit.
  std::optional<Scheduled> schedule(const std::string& plan);
  void add(std::vector<Proposal>& out, Move move, const std::string& plan);

  IRModule module_;
  std::string hash_, default_;
  int64_t threads_;
  std::map<std::string, std::optional<Scheduled>> known_;  // by what was asked for
};

}  // namespace tenon::tune
