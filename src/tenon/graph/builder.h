// SPDX-License-Identifier: Apache-2.0
// Builds graph functions in A-normal form: names every value, infers every type.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/op.h"
#include "tenon/tir/stmt.h"

namespace tenon::graph {

/// Emits bindings into the function under construction, and PrimFuncs into its module.
class BlockBuilder {
 public:
  explicit BlockBuilder(IRModule& module) : module_(module) {}
  IRModule& module() { return module_; }

  /// Begins a function (functions nest as values only). Parameters' symbolic dimensions are in
  /// scope after it.
  void begin_function(std::vector<Ref<Var>> params);
  /// Ends it and returns it; `result` may be any leaf.
  Ref<Function> end_function(Value result, Attrs attrs = {}, bool pure = true, Origin origin = {});
  /// Bindings between these are pure and stand in one dataflow block. Without them, pure bindings
  /// open one by themselves and an impure one closes it.
  void begin_dataflow();
  void end_dataflow();

  /// Binds `value` (its arguments normalised to leaves, its type inferred) to a new variable and
  /// returns that; a leaf comes back as it is. `name` is a hint; names are made unique in the
  /// function.
  Value emit(Value value, const std::string& name = "lv");
  /// `emit(call_op(op, args, attrs))`.
  Value op(std::string_view op, std::vector<Value> args, Attrs attrs = {},
           const std::string& name = "lv");
  /// The next `emit` of the very value of `binding` under its name (or `match_cast` of value and
  /// type) gives this binding again, not a new one: what a pass leaves alone keeps its variable.
  /// \param in_dataflow  whether it stands in a dataflow block, where it has to end up again.
  void keep(Ref<Binding> binding, bool in_dataflow = false) {
    kept_ = std::move(binding);
    kept_in_dataflow_ = in_dataflow;
  }
  /// How many bindings were emitted, and the last of them.
  size_t emitted() const { return emitted_; }
  const Binding& last() const;
  /// `R.match_cast(value, type)`.
  Value match_cast(Value value, Type type, const std::string& name = "lv");
  /// Branches of an If are built between these.
  void begin_branch();
  Ref<SeqExpr> end_branch(Value result);

  /// Adds `function` to the module (or finds one that is structurally equal, with the same name
  /// hint) and emits `R.call_tir(cls.name, args, out_types)`; several outputs come back as a tuple.
  /// `tir_vars`: scalar arguments after the buffers.
  Value call_tir(const std::string& name, Ref<tir::PrimFunc> function, std::vector<Value> args,
                 std::vector<Type> out_types, std::vector<Expr> tir_vars = {});

  /// The origin given to what is emitted from now on.
  void set_origin(Origin origin) { origin_ = std::move(origin); }
  const Origin& origin() const { return origin_; }

 private:
  struct Frame;
  bool emit_kept(const Value& value, const Type& match, const std::string& name, bool dataflow);
  void push(Ref<Binding> binding);

  IRModule& module_;
  Origin origin_;
  Ref<Binding> kept_;
  bool kept_in_dataflow_ = false;
  size_t emitted_ = 0;
  std::vector<std::shared_ptr<Frame>> frames_;
  std::map<uint64_t, std::vector<std::string>> by_hash_;  // PrimFuncs of the module by structure
};

}  // namespace tenon::graph
