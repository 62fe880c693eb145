// SPDX-License-Identifier: Apache-2.0
// Monte Carlo arithmetic: a floating-point operation that is not exact is rounded at random, so
// that the results of a few runs scatter as far as rounding errors may take them. Source: Parker,
// "Monte Carlo Arithmetic", UCLA CSD-970002, 1997.
#pragma once

#include "tenon/interp/code.h"
#include "tenon/support/random.h"

namespace tenon::interp {

class RandomRounding {
 public:
  explicit RandomRounding(uint64_t seed) : random_(seed) {}

  /// `result` of an operation, correctly rounded, moved by up to a unit in the last place where the
  /// operation was not exact.
  Slot binary(BinaryOp op, DType dtype, Slot a, Slot b, Slot result);
  Slot cast(DType to, DType from, Slot value, Slot result);
  /// Elementary functions, which other implementations compute with other errors: by up to two.
  Slot intrinsic(IntrinsicId id, DType dtype, Slot a, Slot b, Slot c, Slot result);

 private:
  double move(DType dtype, double value, double units);

  Random random_;
};

}  // namespace tenon::interp
