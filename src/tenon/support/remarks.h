// SPDX-License-Identifier: Apache-2.0
// Remarks: every decision of a pass, recorded as data. The command line, the JSON and the report
// are renderings of them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tenon/support/decision.h"
#include "tenon/support/origin.h"

namespace tenon {

struct Remark {
  std::string pass;     // "FuseOps"
  std::string subject;  // the function, binding or block decided about
  std::string verdict;  // "fused", "kept", "scheduled", ...
  std::string reason;   // a reason code: "reduction-consumer"
  std::vector<std::pair<std::string, double>> numbers;
  std::string detail;  // words for a person; may be empty
  Origin origin;
  /// What was decided about an operator's provider, where it is about that. The words above render
  /// it; code reads this and never the words.
  std::optional<Decision> decision = std::nullopt;
  /// What was chosen, as JSON, where it is more than numbers: --json of remarks has it as data.
  std::string choice = {};
};

/// Receives the remarks of everything that runs on this thread while it lives; the innermost one
/// gets them.
class RemarkScope {
 public:
  RemarkScope();
  ~RemarkScope();
  RemarkScope(const RemarkScope&) = delete;
  RemarkScope& operator=(const RemarkScope&) = delete;
  const std::vector<Remark>& remarks() const { return remarks_; }

 private:
  friend void record(Remark remark);
  std::vector<Remark> remarks_;
  RemarkScope* outer_;
};

/// Records a remark in the innermost scope of this thread; dropped where there is none.
void record(Remark remark);

}  // namespace tenon
