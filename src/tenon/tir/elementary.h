// SPDX-License-Identifier: Apache-2.0
// The elementary functions of TensorIR (exp, log, tanh, erf, ...) as arithmetic. Generated code,
// the interpreter and constant folding compute with the very same steps: the algorithms are written
// once and run either on numbers or on expressions. Code alone joins some with what they are added
// to or multiplied with (one_plus_erf, logistic).
//
// float32 `exp`, `log`, `tanh`, `erf`, `sigmoid` run in float32, with errors of at most 2 units in the
// last place (`sigmoid`: 2.4 from -87.3 on; for less it is 0); the other functions of float32 run in
// float64 and are rounded once; 16-bit floats go through float32. float64 functions are within a few
// units in the last place, but `pow`, whose relative error grows with |y log x| to 1e-13. `fmod`,
// and `floormod` whose result has the sign of the divisor, are exact.
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
/// 1 + erf(scale * x) of float32 in about half of the steps, for a scale above 0. The error is at
/// most 1.4e-7 for x above 0 and 8e-8 below, about that of the sum of what `elementary` gives; from
/// -7.1 / scale down the result is 0.
Expr one_plus_erf(const Expr& x, double scale, ElementaryOptions options = {});
float one_plus_erf(float x, double scale);
/// numerator / (1 + e^(factor * x)) of float32, for a factor of -1 or -2: numerator * sigmoid(x), or
/// half of numerator * (1 + tanh(x)). For a numerator of 1 the error is at most 2.4 units in the last
/// place where factor * x is at most 87.3; beyond that the result is 0.
Expr logistic(const Expr& x, double factor, const Expr& numerator, ElementaryOptions options = {});
float logistic(float x, double factor, float numerator);
/// The remainder whose sign is the divisor's, which is an operation of TensorIR, not an intrinsic.
Expr elementary_floormod(const Expr& x, const Expr& y, ElementaryOptions options = {});
float elementary_floormod(float x, float y);
double elementary_floormod(double x, double y);
/// `elementary` of one float32 as a function, for those that run in float32; null for the others.
float (*elementary_of_float(IntrinsicId id))(float);

}  // namespace tenon::tir
