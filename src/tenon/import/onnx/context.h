// SPDX-License-Identifier: Apache-2.0
// The interface of an ONNX converter: one node with its operands and attributes, and the builder of
// the function.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/import/converter_context.h"
#include "tenon/import/names.h"
#include "tenon/import/onnx/model.h"

namespace tenon::onnx {

using namespace importers;

class RunTimeNumbers;  // run_time_numbers.h
struct Producer;
struct Collection;  // collection.h

/// What a name of the network stands for.
struct Item {
  Value value;                       // null until elements are needed as a tensor
  std::optional<Elements> elements;  // where known
  bool elements_asked = false;
  Ref<TensorData> data;     // of a parameter that stands for a constant
  bool poisoned = false;    // the result of a node that is not supported, which is listed already
  std::string unsupported;  // why it cannot be used: "a tensor of type string"
  bool is_input = false;    // of the network
  std::optional<int64_t> least_rank = {};         // where the run may drop leading dimensions of 1
  std::shared_ptr<const Producer> producer = {};  // null where it is not worth computing again
  std::shared_ptr<const Collection> collection = {};  // of a sequence or an optional: nothing else

  Ref<graph::TensorType> type() const;
};
using ItemRef = std::shared_ptr<Item>;

/// The attributes of a model-local function's call, which its body refers to.
using AttributeValues = std::map<std::string, Attribute>;

/// A dimension of a slice whose end is an expression: `min(n, 1024)`, held in its axis, where the
/// network means `n`.
struct ClampedDim {
  Expr clamped, plain;
  bool may_be_one = false;   // where `plain` is not: the axis may have an extent of 1
  bool is_asserted = false;  // a check that both are equal stands in the module
};

/// Thrown where a converter needs the numbers of operand `operand` and only the run knows them: it is
/// converted for each list that they may be, and the run chooses.
struct NumberChoice {
  size_t operand;
  std::string what;  // the operand's name
  std::vector<Ints> lists;
  std::vector<Expr> conditions;  // of each list, over symbolic variables
  std::string otherwise;         // what is wrong where none holds: "no list of distinct axes"
};

class Context final : public ConverterContext {
 public:
  /// `clamped` is shared by the nodes of a model.
  Context(const Node& node, std::vector<ItemRef> inputs, int64_t opset,
          graph::BlockBuilder& builder, const AttributeValues* enclosing, bool in_branch,
          std::vector<ClampedDim>& clamped)
      : ConverterContext(builder, node.op_type, hint_of(node)),
        node_(node),
        inputs_(std::move(inputs)),
        opset_(opset),
        enclosing_(enclosing),
        in_branch_(in_branch),
        clamped_(clamped) {}

  const Node& node() const { return node_; }
  /// Version of the operator set of the node's domain.
  int64_t opset() const { return opset_; }

  /// The node with other operands, as version `opset` of another operator's set reads it.
  Context with_operands(std::vector<ItemRef> inputs, int64_t opset) const {
    Context out(*this);
    out.inputs_ = std::move(inputs);
    out.opset_ = opset;
    return out;
  }
  /// Attributes that `other`, a context of the same node, asked for were asked for.
  void joins(const Context& other) { read_.insert(other.read_.begin(), other.read_.end()); }

  /// Whether the node becomes a function by itself (node_function.h): an operator of the graph that
  /// is all of it may stand in that, even where it is taken apart afterwards.
  void stand_alone(bool alone) { stands_alone_ = alone; }
  bool stands_alone() const { return stands_alone_; }
  /// From now on operands that only the run knows may be asked for as numbers.
  void set_run_time_numbers(RunTimeNumbers* numbers) { run_time_ = numbers; }

  // ---- operands. Those that are left out may be asked for by has() only.

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  /// \throws CompileError (kBadModel) where it is left out.
  const Item& item(size_t i) const;
  ItemRef ref(size_t i) const { return (void)item(i), inputs_[i]; }
  Value value(size_t i) { return value_of(ref(i)); }
  /// Of any item that is a tensor.
  Value value_of(const ItemRef& item);
  Value value_or_null(size_t i) { return has(i) ? value(i) : nullptr; }
  Ref<graph::TensorType> type(size_t i) const override { return item(i).type(); }
  const Elements* elements(size_t i) override;
  Ref<TensorData> constant(size_t i) const override;
  /// Distinct axes in [0, ndim), or a condition, from an operand. \throws NumberChoice where only the
  /// run knows them: ask for them after all other operands.
  Ints axes_operand(size_t i, std::string_view what, int64_t ndim);
  bool flag_operand(size_t i, std::string_view what);
  /// `value`, which is `what`, with these dimensions, which the run checks where they are not known to
  /// agree; a null one is what it is. \throws CompileError (kRankMismatch, kShapeMismatch)
  Value fitted(const Value& value, const Dims& dims, std::string_view what);
  /// The elements of a small integer tensor of static shape. \throws Unsupported where these are too
  /// many, or stand in a function that is made of a node alone.
  Dims numbers_of(const Value& value, std::string_view what);
  /// Ends the program with `message` where the condition, over symbolic variables, does not hold.
  /// What is known to fail now is an error of `code`.
  void require(const Expr& condition, const Code& code, const std::string& message);

  // ---- attributes. \throws CompileError (kBadAttribute) where one has another kind, or is
  // missing.

  bool has_attr(const std::string& name);
  int64_t int_attr(const std::string& name);
  int64_t int_attr(const std::string& name, int64_t otherwise);
  bool flag_attr(const std::string& name, bool otherwise = false);
  double float_attr(const std::string& name);
  double float_attr(const std::string& name, double otherwise);
  std::string string_attr(const std::string& name, const std::string& otherwise);
  std::vector<int64_t> ints_attr(const std::string& name);
  std::vector<int64_t> ints_attr(const std::string& name, std::vector<int64_t> otherwise);
  std::vector<double> floats_attr(const std::string& name, std::vector<double> otherwise);
  std::vector<std::string> strings_attr(const std::string& name,
                                        std::vector<std::string> otherwise);
  Tensor tensor_attr(const std::string& name);
  std::shared_ptr<const Graph> graph_attr(const std::string& name);
  const ValueInfo& type_attr(const std::string& name);
  /// The results of a graph that an attribute holds, in place, on values for its inputs. Set by the
  /// importer, which knows the names around the node. \throws Unsupported where it is not set.
  using Inline = std::function<std::vector<ItemRef>(const Graph&, const std::vector<ItemRef>&)>;
  void set_inline(Inline rule) { inline_ = std::move(rule); }
  std::vector<ItemRef> inlined(const Graph& graph, const std::vector<ItemRef>& inputs) const {
    if (!inline_) unsupported("a graph outside of its network");
    return inline_(graph, inputs);
  }
  /// The rank that the nodes behind this one take of a result, where they say it.
  std::optional<size_t> wanted_rank(size_t output) const {
    return wanted_ranks_ && output < node_.outputs.size() ? wanted_ranks_(node_.outputs[output])
                                                          : std::nullopt;
  }
  void set_wanted_ranks(std::function<std::optional<size_t>(const std::string&)> rule) {
    wanted_ranks_ = std::move(rule);
  }
  std::vector<Value> inlined(const Graph& graph, const std::vector<Value>& inputs) const;
  /// Attributes that change nothing here.
  void ignore(std::initializer_list<const char*> names);
  /// The first attribute that nobody asked for; empty where there is none.
  std::string unread_attribute() const;

  /// Attributes as they are in effect: those that were asked for, with their defaults, and operands
  /// that were asked for as numbers, by their names. note() states one that follows from others.
  const AttrValue::Map& effective() const { return effective_; }
  void note(const std::string& name, AttrValue value) {
    effective_.insert_or_assign(name, std::move(value));
  }
  /// An operand that was asked for as a number in another way.
  void note_number(size_t i, const std::string& name, const Expr& value);
  /// Operands that were asked for as numbers, and whether some depend on symbolic dimensions.
  const std::set<size_t>& numbers() const { return numbers_; }
  bool has_symbolic_numbers() const { return has_symbolic_numbers_; }

  // ---- building

  /// Operands with a clamped dimension that do not go together with the others are taken to have
  /// the plain one, which is checked at run time. Dimensions that may be 1 or equal are broadcast.
  Value op(std::string_view name, std::vector<Value> args, Attrs attrs = {}) override;
  /// Notes a dimension of a slice of an axis of that extent.
  void clamps(Expr clamped, Expr plain, const Expr& extent);
  /// Known elements as a tensor.
  Value materialise(const Elements& elements);

 protected:
  const Elements* run_time_elements(size_t i) override;
  void used_as_number(size_t i, std::string_view what, const Dims& values) override;

 private:
  static std::string hint_of(const Node& node);
  const Attribute* find(const std::string& name);
  template <typename T>
  const T* typed(const std::string& name, std::string_view wanted);
  // The same of a list whose length only the run knows.
  [[noreturn]] void choose_axes(size_t i, std::string_view what, int64_t ndim);
  void reconcile(std::string_view name, std::vector<Value>& args, const Attrs& attrs);
  void broadcast_args(std::string_view name, std::vector<Value>& args, const Attrs& attrs);
  // Emits checks of what the type rule of a call takes for equal without a proof.
  void check_dims(std::string_view name, const std::vector<Value>& args, const Attrs& attrs);
  Value with_plain_dims(const Value& value, std::optional<int64_t> but_axis,
                        bool broadcasts = false);
  void plain_shape(std::vector<Value>& args);

  const Node& node_;
  std::vector<ItemRef> inputs_;
  int64_t opset_;
  const AttributeValues* enclosing_;
  bool in_branch_;
  std::vector<ClampedDim>& clamped_;
  RunTimeNumbers* run_time_ = nullptr;
  std::set<std::string> read_;
  AttrValue::Map effective_;
  std::set<size_t> numbers_;
  Inline inline_;
  std::function<std::optional<size_t>(const std::string&)> wanted_ranks_;
  bool has_symbolic_numbers_ = false, stands_alone_ = false;
};

using graph::exact_quotient;
using graph::product;

}  // namespace tenon::onnx
