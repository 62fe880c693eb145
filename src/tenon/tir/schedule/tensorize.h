// SPDX-License-Identifier: Apache-2.0
// The schedule primitive tensorize as a pass over a module.
#pragma once

#include <string>

#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

struct TensorizeOptions {
  std::string function;     // in which
  std::string block, loop;  // one of both, by name: a block made by blockize, or a loop
  std::string description;  // PrimFuncs of the module
  std::string implementation;
};

/// Schedule::tensorize. The description stays in the module.
/// \throws CompileError (kBadOption) where something of these names is not there,
/// (kScheduleIllegal) where the description does not fit.
IRModule tensorize(IRModule module, const TensorizeOptions& options);

}  // namespace tenon::tir
