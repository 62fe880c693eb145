// SPDX-License-Identifier: Apache-2.0
// Pipelines as text: passes with options, as `--passes` takes them and files of `--pipeline` hold
// them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tenon/ir/pass.h"

namespace tenon {

/// Reads `FuseOps, PlanMemory(work_limit=3)`: names of passes with commas or line ends between
/// them, `#` beginning a comment. Options are Python literals (None, True, numbers, strings, lists,
/// tuples, dictionaries with string keys) and may span lines. Each pass has its place as origin. An
/// empty text is an empty pipeline.
/// \throws CompileError at the place: kUnknownPass (with the nearest name), kSyntax, kBadOption
/// where an option is given twice.
Pipeline parse_pass_list(const std::shared_ptr<const SourceFile>& file);
/// The same of the argument of `--passes`.
Pipeline parse_pass_list(std::string_view text);

/// `PlanMemory(work_limit=3)`: reads back as the same pass with the same options.
std::string pass_text(const Pass& pass);

}  // namespace tenon
