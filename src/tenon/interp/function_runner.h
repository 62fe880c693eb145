// SPDX-License-Identifier: Apache-2.0
// Runs PrimFuncs and library functions: the part of the interpreter below graph functions.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/interp/interpreter.h"
#include "tenon/interp/machine.h"
#include "tenon/interp/races.h"
#include "tenon/interp/random_rounding.h"

namespace tenon::interp {

/// A copy of the tensor's elements.
View view_of(const TensorData& data);
/// Memory of its own. \throws CompileError at `origin` where the shape is negative or too large.
View fresh_view(DType dtype, const std::vector<int64_t>& shape, const Origin& origin);
/// What the view's memory holds, which it gives away.
Ref<TensorData> data_of(View&& view);

/// Keeps the code of functions, of any module, for the dimensions that they were run with. Modules
/// must outlive it.
class FunctionRunner {
 public:
  FunctionRunner(const IRModule& module, Options options);

  /// As Interpreter::run_prim_func().
  std::vector<Ref<TensorData>> run(const IRModule& module, const Ref<tir::PrimFunc>& function,
                                   const std::vector<Ref<TensorData>>& buffers,
                                   const std::vector<Slot>& scalars);
  void call(const IRModule& module, const Ref<tir::PrimFunc>& function, std::vector<View>& buffers,
            const std::vector<Slot>& scalars, const Origin& origin);
  /// Runs the reference body of a library function, or calls the library where it has none.
  void call(const IRModule& module, const Ref<tir::ExternFunction>& function,
            std::vector<View>& buffers, const std::vector<Slot>& scalars, const Origin& origin);

  /// Outputs of the function that `run` ran last that are no parameters of it, by their index.
  std::map<int64_t, Ref<TensorData>> take_host_outputs();

  /// How much scratch a library function needs, by the library.
  AskLibrary ask();
  int64_t steps_used() const { return steps_; }
  /// As Interpreter::last_writer().
  Origin last_writer(size_t buffer, int64_t element) const;

 private:
  /// For these arguments: code is made for the values of symbolic dimensions.
  const Code* code_of(const Ref<tir::PrimFunc>& function, const std::vector<View>& buffers);
  /// Of its reference body; null where it has none.
  const Code* code_of(const Ref<tir::ExternFunction>& function, const std::vector<View>& buffers);
  Machine machine_for(const IRModule& module);
  Slot call_opaque(const tenon::Call& call, const std::vector<OpaqueArgument>& given);
  void call_library(const tir::ExternFunction& function, std::vector<View>& buffers,
                    const std::vector<Slot>& scalars, const Origin& origin);

  Options options_;
  int64_t steps_ = 0;
  std::unique_ptr<RaceTracker> races_;
  std::unordered_set<const Node*> open_;  // functions that are watched wherever they run
  std::optional<RandomRounding> rounding_;
  std::map<int64_t, View> host_outputs_;
  std::vector<View> watched_;
  // Code by the module that it calls functions of, which lives as long as this does.
  std::map<std::pair<const IRModule*, const Code*>, MemoProgram*> programs_;
  struct Codes {
    Ref<tir::PrimFunc> function;
    std::map<std::pair<std::vector<int64_t>, bool>, std::unique_ptr<Code>> by_dims;  // watched?
  };
  std::unordered_map<const Node*, Codes> code_;
  std::unordered_map<const Node*, std::pair<Ref<tir::ExternFunction>, Ref<tir::PrimFunc>>>
      references_;  // of extern functions
};

}  // namespace tenon::interp
