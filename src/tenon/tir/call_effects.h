// SPDX-License-Identifier: Apache-2.0
// What calls of PrimFuncs and extern functions do to the buffers that they are given.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tenon/ir/module.h"
#include "tenon/tir/effects.h"

namespace tenon::tir {

std::string_view name_of(const ParamEffect& effect);  // "in", "out", "inout", "unused"

/// The effects of the functions of a module, found once each; calls inside count as what the callee
/// does, those of a declared extern function as it declares them. A parameter whose address is
/// taken, or that an undeclared extern function gets, counts as both. Several threads may ask.
class CallEffects {
 public:
  explicit CallEffects(const IRModule& module) : module_(module) {}
  /// Of a function of the module, in the order of its parameters. Of a recursive function,
  /// both for what is given to the call that closes the cycle; empty for an unknown one.
  const std::vector<ParamEffect>& of(const std::string& name);
  /// The same, where those of its callees have been asked for.
  const std::vector<ParamEffect>& after_callees(const std::string& name);
  /// States what is known already.
  void set(const std::string& name, std::vector<ParamEffect> effects) {
    const std::lock_guard lock(mutex_);
    known_[name] = std::move(effects);
  }
  /// Of argument `i` of a call; reads and writes where nothing is known of the callee.
  ParamEffect of(const std::string& callee, size_t argument);
  CalleeEffects callees() {
    return [this](const std::string& callee, size_t i, const Buffer&) { return of(callee, i); };
  }
  /// Whether a call has no effect but on the buffers that it is given: no check in it that can
  /// fail, nothing printed, no foreign function that is not declared pure.
  bool is_pure(const std::string& name);

 private:
  std::vector<ParamEffect> find(const std::string& name);

  const IRModule& module_;
  std::recursive_mutex mutex_;
  bool is_searching_ = false;  // then what is not known is the callee that closes a cycle
  std::map<std::string, std::vector<ParamEffect>> known_;
  std::map<std::string, bool> pure_;
};

/// What a statement does to each of `buffers`, which are defined outside of it, as a function whose
/// parameters they are.
std::vector<ParamEffect> effects_on(const Stmt& stmt, const std::vector<Ref<Buffer>>& buffers,
                                    CallEffects& effects);

}  // namespace tenon::tir
