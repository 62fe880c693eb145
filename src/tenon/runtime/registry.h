// SPDX-License-Identifier: Apache-2.0
// Functions that programs call by name (R.call_packed, T.call_packed): registered by the host.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/runtime/abi.h"

namespace tenon::runtime {

/// A packed function with the context that it is called with. One of C++ may throw: the exception
/// leaves the run on the thread that began it.
struct PackedFunction {
  TenonPackedFunction function = nullptr;
  void* context = nullptr;
  /// Keeps the context: the registry and every program that may call the function hold a copy.
  std::shared_ptr<void> life = {};
};

/// Registers a function for this process. A second registration of a name replaces the first for
/// programs that are loaded from now on.
/// \throws Error (TENON_ERROR_ARGUMENT) where the name is empty or the function null
void register_packed(const std::string& name, PackedFunction function);
/// Registers it under `name` or, where that is taken, `name_1` and so on. \returns the name
std::string register_packed_beside(const std::string& name, PackedFunction function);
/// Programs that were loaded before keep the function. \returns whether there was one
bool unregister_packed(const std::string& name);
/// The same where it is still the function of this context.
bool unregister_packed(const std::string& name, const void* context);
std::optional<PackedFunction> find_packed(const std::string& name);
/// Of those that are registered, in order.
std::vector<std::string> packed_names();

/// The functions of a program's table, in its order: a linked one, else a registered one, else none
/// for the runtime's own on strings.
/// \throws Error (TENON_ERROR_LOAD) naming those that are neither
std::vector<PackedFunction> resolve_packed(std::span<const TenonPacked> table);

/// Calls a packed function and takes over the tensors that it gives (see TenonPackedFunction).
/// \returns TENON_OK, or what `context` was given as the report
int32_t call_packed(TenonContext* context, const char* name, const PackedFunction& function,
                    TenonValue* args, int32_t* codes, int32_t count, TenonValue* results,
                    int32_t* result_codes, int32_t result_count, const char* where);

}  // namespace tenon::runtime
