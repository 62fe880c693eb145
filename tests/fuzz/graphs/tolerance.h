// SPDX-License-Identifier: Apache-2.0
// Whether a program's numbers are those of the network.
//
// Exact: what no rounding touched (integers, bools, moved and selected elements, sums and products
// of numbers on a coarse grid) is compared bit for bit, zeros of either sign apart. Half of the
// networks have such data only, so that a wrong element cannot hide behind a tolerance. The rest by
// driver/expectation.h, which holds for all comparisons of floats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "draft.h"
#include "tenon/driver/expectation.h"

namespace tenon::fuzz {

class Outputs {
 public:
  /// \param takes_forms  convolutions may be computed by forms with fewer operations, which err by at
  /// most 1e-5 of a layer's largest output (docs/design/0016-winograd.md)
  Outputs(const Network& network, bool takes_forms);
  /// Why `got` are not the outputs of the network; nothing where they are.
  std::optional<std::string> wrong(const std::vector<Ref<TensorData>>& got);

 private:
  const Network& network_;
  bool takes_forms_;
  std::optional<Expectation> expectation_;  // made where something is rounded and not equal
};

}  // namespace tenon::fuzz
