// SPDX-License-Identifier: Apache-2.0
// The record of a schedule: each primitive with its arguments and results, printable and
// replayable.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tenon/ir/attrs.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// A block of a schedule, by its name (which is unique in it).
struct BlockRV {
  std::string name;
  bool operator==(const BlockRV&) const = default;
};

/// A loop of a schedule, by its variable.
struct LoopRV {
  Ref<Var> var;
  bool operator==(const LoopRV& other) const { return var.same_as(other.var); }
};

/// A number that a schedule has decided on at random. Sizes and numbers that primitives are given may
/// be expressions of it.
struct NumberRV {
  Ref<Var> var;
  bool operator==(const NumberRV& other) const { return var.same_as(other.var); }
};

/// What a primitive takes and gives.
using TraceValue = std::variant<BlockRV, LoopRV, NumberRV>;

/// One applied primitive: `outputs = sch.name(inputs..., attrs...)`.
struct Instruction {
  std::string name;
  std::vector<TraceValue> inputs;
  std::vector<std::pair<std::string, AttrValue>> attrs;  // in the order in which they print
  std::vector<TraceValue> outputs;
};

/// A kernel that does what a description says, by names of the module that both are in.
struct TensorIntrin {
  std::string description_name, implementation_name;
  Ref<PrimFunc> description;     // a pattern over TensorIR: docs/tir-patterns.md
  Ref<PrimFunc> implementation;  // of the same parameters
};

/// The primitives applied so far, in order.
class Trace {
 public:
  void add(Instruction instruction) { instructions_.push_back(std::move(instruction)); }
  /// States an attribute of the last primitive as it was given: in terms of random numbers.
  void restate(const std::string& key, const AttrValue& value);
  const std::vector<Instruction>& instructions() const { return instructions_; }

  /// A line of Python for each: `l1, l2 = sch.split(loop=l0, factors=[None, 16])`.
  std::string str() const;

  /// The dimensions of the function that expressions in attributes may name, in order.
  std::vector<Ref<Var>> symbols;
  /// Those that tensorize was given, by the name of their implementation.
  std::map<std::string, TensorIntrin> intrins;

 private:
  std::vector<Instruction> instructions_;
};

}  // namespace tenon::tir
