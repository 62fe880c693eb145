// SPDX-License-Identifier: Apache-2.0
// The elementary functions of TensorIR (exp, log, tanh, erf, ...) as arithmetic. Generated code,
// the interpreter and constant folding compute with the very same steps: the algorithms are written
// once and run either on numbers or on expressions.
//
// float32 `exp`, `log`, `tanh`, `erf`, `sigmoid` run in float32, with errors of at most 2 units in the
// last place (`sigmoid`: 2.4 from -87.3 on; for less it is 0); the other functions of float32 run in
// float64 and are rounded once; 16-bit floats go through float32. float64 functions are within a few units in the last place, but `pow`, whose
// relative error grows with |y log x| to 1e-13. `fmod`, and `floormod` whose result has the sign of
// the divisor, are exact.
#pragma once

#include <vector>

#include "tenon/ir/expr.h"

namespace tenon::tir {

/// Whether the intrinsic is one of the functions here.
bool is_elementary(IntrinsicId id);

struct ElementaryOptions {
  bool fma = true;  // steps are joined where the target joins them
};

/// `id(args...)` as arithmetic, for a float dtype of any lanes.
Expr elementary(IntrinsicId id, const std::vector<Expr>& args, ElementaryOptions options = {});

/// The same on numbers, bit for bit what generated code computes (with fma).
float elementary(IntrinsicId id, float x, float y = 0);
double elementary(IntrinsicId id, double x, double y = 0);
/// The remainder whose sign is the divisor's, which is an operation of TensorIR, not an intrinsic.
Expr elementary_floormod(const Expr& x, const Expr& y, ElementaryOptions options = {});
float elementary_floormod(float x, float y);
double elementary_floormod(double x, double y);
/// `elementary` of one float32 as a function, for those that run in float32; null for the others.
float (*elementary_of_float(IntrinsicId id))(float);

}  // namespace tenon::tir
