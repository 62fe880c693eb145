// SPDX-License-Identifier: Apache-2.0
// `tenon report`, and what `tenon explain -o` shares with it.
#pragma once

#include <string>

#include "tenon/driver/commands.h"
#include "tenon/driver/report/report.h"

namespace tenon {

/// Compiles the model at `path` for `target`, runs it as `options` say, and tells of warnings.
/// \throws CompileError, UsageError what reading, compiling and running find.
Report report_of(const std::string& path, const TargetOptions& target, ReportOptions options);

/// Writes the page, and a line about it to the standard output. \throws CompileError (kFileError).
void write_page(const std::string& path, const Report& report);

}  // namespace tenon
