// SPDX-License-Identifier: Apache-2.0
// Scalar parameters of a program's entry: numbers that stand in its inputs (a shape, an axis), known
// before anything runs.
#pragma once

#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Where the entry's host reads a scalar parameter.
struct ScalarSource {
  size_t input = 0;     // among the entry's inputs
  int64_t element = 0;  // of it, row-major
};

/// Attribute of an entry: a list of [input, element], one for each scalar parameter in order.
inline constexpr const char* kScalarSources = "tenon.scalar_sources";

/// What it says; empty where it is absent. \throws CompileError (kBadAttribute) where it is
/// malformed, or says another number than there are scalar parameters.
std::vector<ScalarSource> scalar_sources(const PrimFunc& function);

}  // namespace tenon::tir
