// What calls of PrimFuncs and extern functions do to the buffers that they are given.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/ir/module.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// What a function does to each buffer parameter (scalars: neither).
struct ParamEffect {
  bool reads = false, writes = false;
  bool operator==(const ParamEffect&) const = default;
};

/// The effects of the functions of a module, found once each; calls inside count as what the callee
/// does, those of a declared extern function as it declares them. A parameter whose address is
/// taken, or that an undeclared extern function gets, counts as both.
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
    known_[name] = std::move(effects);
  }

 private:
  std::vector<ParamEffect> find(const std::string& name) const;

  const IRModule& module_;
  std::map<std::string, std::vector<ParamEffect>> known_;
};

}  // namespace tenon::tir
