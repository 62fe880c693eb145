// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/warnings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "tenon/graph/backend.h"
#include "tenon/support/usage_codes.h"

namespace tenon {

static thread_local WarningScope* innermost = nullptr;

WarningScope::WarningScope(Take take) : take_(std::move(take)), outer_(innermost) {
  innermost = this;
}
WarningScope::~WarningScope() { innermost = outer_; }

void print_warning(const Code& code, const Origin& origin, const std::string& message) {
  if (innermost) return innermost->take_(code, origin, message);
  std::fflush(stdout);
  // In the place of a line of progress.
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
  fmt::print(stderr, "{}warning[{}]: {}\n", origin ? origin.str() + ": " : "", code.id, message);
}

// A pattern, rule or plan of the user's own.
static bool is_users(const Remark& remark) {
  if (remark.pass == "FuseOpsByPattern" || remark.pass == "RewritePatterns" ||
      remark.pass == "CallByName")
    return true;
  if (remark.pass == "AnnotatePlacement")
    return remark.verdict == "matched" || remark.verdict == "unmatched";
  if (remark.pass == "DefaultSchedule") return remark.reason == "plan";
  if (remark.pass != "SplitCallTIRByPattern") return false;
  const auto backend = graph::find_backend(remark.subject.substr(0, remark.subject.find('.')));
  return !backend || std::any_of(backend->patterns.begin(), backend->patterns.end(),
                                 [&](const graph::FusionPattern& pattern) {
                                   return pattern.is_users && pattern.name == remark.subject;
                                 });
}

void warn_of_unmatched(const std::vector<Remark>& remarks, const std::string& model) {
  // A pass may stand in the pipeline several times.
  std::set<std::string> told;
  for (const Remark& remark : remarks)
    if (is_users(remark) && remark.verdict != "unmatched") told.insert(remark.subject);
  for (const Remark& remark : remarks) {
    if (!is_users(remark) || !told.insert(remark.subject).second) continue;
    if (remark.pass == "CallByName") {
      warn(kMatchesNothing, {},
           "{} has no composite of `{}`, whose functions are called by name{}{}", model,
           remark.subject, remark.detail.empty() ? "" : "; ", remark.detail);
      continue;
    }
    if (remark.reason == "plan") {
      warn(kMatchesNothing, remark.origin, "plan of `{}` is for no block of {}: {}", remark.subject,
           model, remark.detail);
      continue;
    }
    if (remark.reason == "refused") {
      warn(kMatchesNothing, remark.origin, "pattern `{}` takes none of its matches in {}: {}",
           remark.subject, model, remark.detail);
      continue;
    }
    warn(kMatchesNothing, remark.origin, "{} `{}` matches nothing in {}{}",
         remark.pass == "RewritePatterns" ? "rewriter" : "pattern", remark.subject, model,
         remark.detail.empty() ? "" : "; nearest: " + remark.detail);
  }
}

}  // namespace tenon
