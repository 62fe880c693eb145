// SPDX-License-Identifier: Apache-2.0
// Values that a program computes in one of several ways, as numbers say that only the run knows.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/builder.h"

namespace tenon::onnx {

/// The value of the first of `versions` whose condition, a bool over symbolic variables, holds; of
/// the last where none does. Where the versions' dimensions differ, those of the result are chosen
/// like the values; where they depend on numbers that a version reads while it runs, it is cut there
/// (branch_numbers.h). \throws Unsupported where their types differ in more.
graph::Value choose(graph::BlockBuilder& builder, const std::vector<Ref<graph::SeqExpr>>& versions,
                    const std::vector<Expr>& conditions, const std::string& name);

}  // namespace tenon::onnx
