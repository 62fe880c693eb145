// SPDX-License-Identifier: Apache-2.0
// Functions of Python that programs call by name.
#pragma once

#include <memory>
#include <string>

#include "common.h"
#include "tenon/runtime/registry.h"

namespace tenon::python {

/// How a function of Python gives its results.
enum class Results : bool {
  kReturned,    // it returns them
  kDestination  // it is called with arrays to write to, behind the others
};

/// \param what  for messages: "packed function `f`"
runtime::PackedFunction packed_function(std::string what, nb::object function, Results results);

/// Registers it under `name` or, where that is taken, a name like it. It stays registered as long as
/// the token lives; programs that were linked keep it.
struct Registration {
  std::string name;
  std::shared_ptr<const void> token;
};
Registration register_temporarily(const std::string& name, nb::object function, Results results);

}  // namespace tenon::python
