// SPDX-License-Identifier: Apache-2.0
// R.loop: a function of the module that is called again and again.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

/// A call of `loop` by its parts.
struct LoopCall {
  std::string body;           // the function's name
  Expr count;                 // of iterations, at most
  std::vector<Expr> dims;     // numbers of the caller that the body uses
  std::vector<Value> states;  // as they begin
  std::vector<Value> slices;  // tensors of which each iteration gets a part of the first axis
  std::vector<Value> captured;
  bool while_first = false;  // the first state says whether there is another iteration
  std::set<size_t> reversed_inputs, reversed_outputs;  // among the slices; among what is stacked

  /// States, slices, captured values: what the body gets behind its numbers.
  std::vector<Value> operands() const;
};

/// The parts of `call`, which is one of `loop` and passed its type rule.
LoopCall loop_call(const Call& call);

/// The type of the numbers that the body gets: the iteration, then those of the caller.
Type loop_numbers(const LoopCall& loop, const Expr& iteration);
/// The types of what it gets behind them, those of the states as they begin.
std::vector<Type> loop_operand_types(const LoopCall& loop);
/// The types of what a loop's body gives. \throws CompileError (kTypeMismatch) where it is no tuple.
std::vector<Type> loop_result_types(const Function& body);

/// Of each of the first `states` results of a body, for each dimension, whether it may be another
/// than the parameter's.
std::vector<std::vector<bool>> changing_dims(const Function& body, size_t states);

/// The functions of `module` that loops in others call.
std::set<std::string> loop_bodies(const IRModule& module);

/// What a program says at a loop that comes to more than `most` iterations (module attribute
/// `max_steps`).
std::string steps_message(int64_t most);

/// What is wrong between a call of `loop` and its body. \throws CompileError at the call.
void check_loop(const Call& call, const Function& body);

}  // namespace tenon::graph
