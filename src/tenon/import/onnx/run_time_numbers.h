// SPDX-License-Identifier: Apache-2.0
// Operands that a network asks for as numbers (a shape, axes, pads) and that only the run knows:
// their elements become symbolic variables, which the program reads.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "tenon/import/onnx/context.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

/// A node and what it was given: its elements can be computed again when its operands' are known.
struct Producer {
  const Node* node;
  const OperatorRow* row;
  mutable std::vector<ItemRef> inputs;  // the destructor takes those of others
  int64_t opset;
  size_t output;

  /// Frees a chain of producers one by one: a network may have one of any length.
  ~Producer();
};

class RunTimeNumbers {
 public:
  explicit RunTimeNumbers(graph::BlockBuilder& builder) : builder_(builder), scopes_(1) {}

  /// What is defined in a branch is known in it only.
  class Branch {
   public:
    explicit Branch(RunTimeNumbers& numbers) : numbers_(numbers) { numbers.scopes_.emplace_back(); }
    ~Branch() { numbers_.scopes_.pop_back(); }
    Branch(const Branch&) = delete;
    Branch& operator=(const Branch&) = delete;

   private:
    RunTimeNumbers& numbers_;
  };

  /// The elements of `item`, integers or bools of static shape: expressions of the elements of the
  /// network's inputs where they follow from these by arithmetic, so that they are known before
  /// anything runs, otherwise variables that are read where the value is computed. Null where there
  /// are too many.
  const Elements* of(const ItemRef& item);

  /// `value`, a tensor, with a variable in place of each dimension that is a large expression: those
  /// of what follows would be larger each time. The program computes it once, where `value` is.
  graph::Value with_small_dims(const graph::Value& value);

 private:
  struct Numbers {
    std::map<const Item*, Elements> items;
    std::unordered_map<Expr, Ref<Var>, StructuralHash, StructuralEqual> dims;
  };
  const Elements* find(const Item& item) const;
  const Elements* computed(const ItemRef& item, int depth);
  const Elements* define(const ItemRef& item);

  graph::BlockBuilder& builder_;
  const Ref<Var>* find(const Expr& dim) const;
  void define(const Dims& dims, const std::string& name);

  std::vector<Numbers> scopes_;
  std::vector<ItemRef> held_;  // so that no other item gets the address of one that is known
};

/// A branch of the function under construction. One that is not ended is left out.
class OpenBranch {
 public:
  OpenBranch(graph::BlockBuilder& builder, RunTimeNumbers& numbers)
      : builder_(builder), numbers_(numbers) {
    builder.begin_branch();
  }
  ~OpenBranch() {
    if (is_open_) (void)end(make<graph::Tuple>(std::vector<Value>()));
  }
  OpenBranch(const OpenBranch&) = delete;
  OpenBranch& operator=(const OpenBranch&) = delete;

  Ref<graph::SeqExpr> end(Value result) {
    is_open_ = false;
    return builder_.end_branch(std::move(result));
  }

 private:
  graph::BlockBuilder& builder_;
  RunTimeNumbers::Branch numbers_;
  bool is_open_ = true;
};

}  // namespace tenon::onnx
