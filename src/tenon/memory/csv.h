// SPDX-License-Identifier: Apache-2.0
// Reads and writes MiniMalloc's CSV form of a memory planning problem and its solution.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include "tenon/memory/plan.h"
#include "tenon/support/origin.h"

namespace tenon::memory {

/// A problem of one pool as it was read, and the offsets where the file has them.
struct CsvProblem {
  Problem problem;
  std::vector<int64_t> offsets;  // empty where the file has no column `offset`
};

/// Reads a header with the columns `id`, `lower`, `upper`, `size` in any order, and `alignment`
/// and `offset` where present; then a line for each buffer, alive at lower <= step < upper.
///
/// \throws CompileError at the line: kBadProblem where the text is malformed, a number is negative
/// or does not fit 64 bits, an id repeats, or validate() finds a fault.
CsvProblem parse_csv(std::shared_ptr<const SourceFile> file);

/// The same from a file. \throws CompileError also kFileError where it cannot be read, and
/// kLimitExceeded where it is greater than 1 GiB.
CsvProblem read_csv(const std::string& path);

/// Writes `id,lower,upper,size,offset` (and `alignment` before the offset where one is not 1), a
/// line for each buffer in the order of the problem.
void write_csv(const Problem& problem, const Plan& plan, std::ostream& out);

}  // namespace tenon::memory
