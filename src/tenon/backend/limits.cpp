// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/limits.h"

#include <limits>

#include "tenon/support/narrow_float.h"

namespace tenon::backend {

double float_limit(const Call& call) {
  if (call.is(IntrinsicId::kInfinity)) return std::numeric_limits<double>::infinity();
  const DType dtype = call.dtype;
  const double most = dtype.bits == 64   ? std::numeric_limits<double>::max()
                      : dtype.bits == 32 ? static_cast<double>(std::numeric_limits<float>::max())
                                         : largest_narrow_float(dtype);
  return call.is(IntrinsicId::kMinValue) ? -most : most;
}

int64_t integer_limit(const Call& call) {
  const DType dtype = call.dtype;
  const bool least = call.is(IntrinsicId::kMinValue);
  if (dtype.is_bool()) return least ? 0 : 1;
  const uint64_t ones = ~uint64_t{0} >> (64 - dtype.bits);
  if (!dtype.is_int()) return least ? 0 : static_cast<int64_t>(ones);
  const auto most = static_cast<int64_t>(ones >> 1);
  return least ? -most - 1 : most;
}

void check_wide(DType dtype, const Origin& origin) {
  if (dtype.is_narrow())
    throw CompileError(kUnsupported, origin, "arithmetic of {} has no code before LowerIntrinsics",
                       dtype.str());
}

}  // namespace tenon::backend
