// SPDX-License-Identifier: Apache-2.0
// What a function computes, by the interpreter, and whether two functions compute the same.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "definitions.h"
#include "steps.h"
#include "tenon/ir/constant.h"
#include "tenon/ir/module.h"

namespace tenon::fuzz {

using Tensors = std::vector<Ref<TensorData>>;

/// What must not happen.
struct Fault {
  std::string kind;  // "difference", "internal error", ...: what stays while a case is made smaller
  std::string detail;  // for a person to read
};

/// Contents for every buffer of `function`, outputs too: small whole numbers, so that sums and
/// products are exact. `sizes` stands for its symbolic dimensions in order (repeated where they are
/// more).
Tensors contents_of(const tir::PrimFunc& function, const std::vector<int64_t>& sizes, uint64_t seed,
                    bool indices);

/// All buffers after a run of `name`. \throws CompileError as the interpreter does.
Tensors interpret(const IRModule& module, const std::string& name, const Tensors& contents);

/// min and max may give either of two zeros.
enum class ZeroSigns : uint8_t { kSame, kAny };

/// Why they are not the same (see Kernel::tolerance).
std::optional<std::string> difference_of(const Tensors& got, const Tensors& expected,
                                         double tolerance, ZeroSigns zeros = ZeroSigns::kSame);

/// A message without what stands in backticks and without numbers: alike for faults that are alike.
std::string plain(const std::string& message);

/// Runs `body`; what it throws that is no diagnostic is a fault.
std::optional<Fault> internal_fault(const std::function<void()>& body);

/// How often each primitive was tried, and how often it was taken.
struct StepCounts {
  struct Count {
    int64_t tried = 0, taken = 0;
  };
  int64_t tried = 0, taken = 0;
  std::map<std::string, Count> by_primitive;
  std::map<std::string, int64_t> reasons;  // of refusals, without the names in them
};

struct ScheduleCase {
  Kernel kernel;
  std::vector<Step> steps;
  std::vector<int64_t> sizes;
  uint64_t seed = 0;
};

ScheduleCase random_schedule_case(uint64_t seed);

/// Applies the steps. A refusal must be a diagnostic that leaves the function as it was; what is
/// accepted must verify and compute the same; the whole must print and parse back, and its trace
/// must give the same function again. Some are compiled and run too. A step after which the
/// function runs too long to be interpreted is taken back.
///
/// \param trace   may be null: gets the text of what was applied.
/// \param counts  may be null.
std::optional<Fault> run_case(const ScheduleCase& c, std::string* trace, StepCounts* counts);

/// A module `kernel` with comments: `# > ` before each line of a trace, and `# expect: same` (the
/// trace applies, and the results stay) or `# expect: refused: WORDS` of the diagnostic.
struct KnownCase {
  Ref<tir::PrimFunc> function;
  std::string trace;
  std::string expected;
};
KnownCase known_case_of(const std::string& text);

/// What comes of it, in the words of `expected` where it is that.
std::string outcome_of(const KnownCase& known);

/// TVMScript with the steps as comments, and back.
std::string text_of(const ScheduleCase& c);
ScheduleCase schedule_case_of(const std::string& text);

}  // namespace tenon::fuzz
