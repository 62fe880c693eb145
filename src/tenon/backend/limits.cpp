// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/limits.h"

#include <limits>

namespace tenon::backend {

double float_limit(const Call& call) {
  if (call.is(IntrinsicId::kInfinity)) return std::numeric_limits<double>::infinity();
  const DType dtype = call.dtype;
  const bool brain = dtype.code == DType::Code::kBFloat;
  const double most = dtype.bits == 64   ? std::numeric_limits<double>::max()
                      : dtype.bits == 32 ? static_cast<double>(std::numeric_limits<float>::max())
                      : brain            ? 0x1.fep127
                                         : 65504.0;
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

}  // namespace tenon::backend
