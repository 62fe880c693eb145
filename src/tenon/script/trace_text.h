// SPDX-License-Identifier: Apache-2.0
// Reads the text of a schedule's trace, as Trace::str() prints it and people write it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tenon/support/diagnostics.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::script {

/// A line for each primitive: `l1, l2 = sch.split(l0, factors=[None, 16])`. Arguments stand in the
/// order of the primitive's parameters or under their names; what has a default may be left out. A
/// block may also be given as `sch.get_block("name")`, or by its name. Expressions may name the
/// dimensions of `function`; an index map is a lambda.
///
/// \param intrins  what tensorize may name, by the implementations' names.
/// \returns what replay() takes.
/// \throws CompileError with the place: kSyntax, kUndefined (a name), kBadArgument (no such
/// primitive or argument, a result too many).
tir::Trace parse_trace(const std::shared_ptr<const SourceFile>& file,
                       const Ref<tir::PrimFunc>& function,
                       const std::vector<tir::TensorIntrin>& intrins = {});
tir::Trace parse_trace(const std::string& text, const Ref<tir::PrimFunc>& function,
                       const std::vector<tir::TensorIntrin>& intrins = {});

}  // namespace tenon::script
