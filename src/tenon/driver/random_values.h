// SPDX-License-Identifier: Apache-2.0
// Makes random tensors by the roles of inputs; the distributions are in docs/reliability.md. The
// same arguments give the same elements on every host.
#pragma once

#include "tenon/driver/input_meaning.h"
#include "tenon/ir/constant.h"

namespace tenon {

/// Which values are among those that may be anything.
enum class Values : uint8_t {
  kUniform,   // floats of [-1, 1); integers 0 or 1
  kScales,    // of several scales and both signs, whole numbers among them
  kExtreme,   // the same with zeros of both signs, subnormal and large values
  kInfinite,  // the same as kScales with infinities
  kNaN,       // with NaNs
};

struct RandomRange {
  InputMeaning::Kind kind = InputMeaning::Kind::kValue;
  int64_t extent = 0;     // of indices and counts
  bool from_end = false;  // indices below 0 too
  Values values = Values::kUniform;
  double largest = 1e4;  // of kExtreme; at most what the type holds
};

/// \throws CompileError kLimitExceeded above 64 GiB, kUnsupported at a type without random values.
Ref<TensorData> random_values(DType dtype, std::vector<int64_t> shape, uint64_t seed,
                              const RandomRange& range);

}  // namespace tenon
