// SPDX-License-Identifier: Apache-2.0
// Converts the nodes of one network in order: names to values, graphs within graphs, functions, and
// what is refused. What a node computes is a matter of its operator's row (operators.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tenon/import/names.h"
#include "tenon/import/onnx/import.h"
#include "tenon/import/onnx/named_dims.h"
#include "tenon/import/onnx/operators.h"
#include "tenon/import/onnx/run_time_numbers.h"
#include "tenon/import/onnx/scope.h"
#include "tenon/support/names.h"

namespace tenon::onnx {

struct OpenShapes;  // loop_body.h

/// Nodes of one graph or function, in an order in which they can be converted.
struct NodeList {
  std::vector<const Node*> order;
  std::vector<std::string> results = {};  // names that are asked for behind them all
  size_t next = 0;                        // those before are converted
  std::set<const Node*> delayed = {};     // stand as far behind as they can

  std::vector<const Node*> rest() const {
    return {order.begin() + static_cast<std::ptrdiff_t>(next), order.end()};
  }
};

/// Where nodes stand: which operator sets they mean, and the attributes of the function around them.
struct Body {
  const Opsets* opsets;
  const AttributeValues* attributes = nullptr;
  std::vector<const FunctionDef*> functions = {};  // that are being inlined, outermost first
  int depth = 0;                                   // of graphs within one another
  bool in_branch = false;
  const Graph* graph = nullptr;  // whose nodes are converted; null in a function
  NodeList* list = nullptr;      // with the node that is converted
  int64_t versions = 1;          // of the nodes that stand here, for branches of several ranks
};

/// The function of an operator that is declared beside the network, with its name; of one with a
/// rule its schema, without a name.
using Declaration = std::pair<std::string, Ref<graph::Function>>;

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options);
  IRModule run();

 private:
  template <typename... Args>
  [[noreturn]] void bad(const Code& code, fmt::format_string<Args...> format, Args&&... args) {
    throw CompileError(code, {}, "{}: {}", model_.path,
                       fmt::format(format, std::forward<Args>(args)...));
  }

  void check_opsets(const Opsets& opsets, const std::string& who);
  void check_input_exists(const std::string& name);

  // ---- inputs

  std::vector<Ref<graph::Var>> parameters(Scope& scope);
  std::optional<size_t> rank_of(const ValueInfo& input) const;
  ItemRef parameter(const ValueInfo& input, std::vector<Ref<graph::Var>>& params);
  // Of a sequence or an optional, as long as the options say.
  ItemRef parameters_of(const ValueInfo& input, std::vector<Ref<graph::Var>>& params);
  std::optional<int64_t> length_of(const ValueInfo& input) const;
  void check_lengths();
  Dims dims_of(const ValueInfo& input);
  void add_initializers(const Graph& graph, Scope& scope);
  static std::set<std::string> given_names(const Graph& graph);

  // ---- nodes

  void convert_nodes(const Graph& graph, Scope& scope, const Body& body);
  void convert_list(NodeList list, Scope& scope, const Body& body);
  void convert(const Node& node, Scope& scope, const Body& body);
  static std::string name_of_result(const Node& node);
  static void poison(const Node& node, Scope& scope);

  // The operands of a node; nothing where one is the result of a node that is refused.
  static std::optional<std::vector<ItemRef>> operands_of(const Node& node, const Scope& scope);
  void convert_operator(const Node& node, Scope& scope, const Body& body);
  // Results of operands whose rank the run decides may be such themselves.
  static void pass_open_ranks(const Node& node, const Scope& scope);
  static Results converted(Context& context, const OperatorRow& row);
  void set_results(const Node& node, const Results& results, Scope& scope,
                   const std::shared_ptr<const Producer>& producer = nullptr);

  // ---- numbers that only the run knows

  // The node converted for each list of numbers, one behind the other's else.
  Results convert_choices(const Node& node, const OperatorRow& row,
                          const std::vector<ItemRef>& inputs, int64_t opset, const Body& body,
                          const NumberChoice& choice);
  Ref<graph::SeqExpr> version(const Node& node, const OperatorRow& row,
                              const std::vector<ItemRef>& inputs, int64_t opset, const Body& body);
  static Elements known_elements(const graph::TensorType& type, const Ints& numbers);

  // ---- nodes that stay whole

  bool stays_whole(const Node& node) const;

  // False where the node is no function by itself.
  bool call_whole(const Node& node, const OperatorRow& row, Context& context,
                  const std::vector<ItemRef>& inputs, Scope& scope, const Body& body);
  static bool has_known_shapes(const graph::Type& type);

  // The results of a call of a function are the node's.
  void set_outputs(const Node& node, const Value& call, Scope& scope);

  // ---- operators that are declared beside the network
  // The function of this call of an operator with a rule (graph/operator_rules.h).
  std::string form_of(const std::string& op, const graph::Function& schema,
                      const std::vector<Value>& args, const std::vector<std::string>& left_out);

  const Declaration* declaration_of(const Node& node);
  void convert_declared(const Node& node, Scope& scope, const Body& body);

  // The optional inputs that a node leaves out: by an empty name, or at the end.
  static std::vector<std::string> left_out_of(const Node& node, const graph::Function& function,
                                              const std::vector<ItemRef>& inputs);

  // The name of the operator's form without these inputs, which the module has from now on.
  std::string form_without(const std::string& name, const graph::Function& function,
                           const std::vector<std::string>& left_out);
  void check_operands(const Node& node, const OperatorRow& row);
  static void check_outputs(const Node& node, size_t results);

  // ---- functions of the model

  void inline_function(const Node& node, const FunctionDef& function, Scope& scope,
                       const Body& body);

  // A graph of an attribute, in place of its node.
  std::vector<ItemRef> inline_graph(Context& context, const Graph& graph,
                                    const std::vector<ItemRef>& items, const Scope& scope,
                                    const Body& body);

  // ---- branches

  void convert_if(Context& context, Scope& scope, const Body& body);

  // Branches of one type may be chosen by a tensor. Where their dimensions differ, what follows
  // needs the condition as a number.
  Value if_else(Context& context, const Ref<graph::SeqExpr>& then_seq,
                const Ref<graph::SeqExpr>& else_seq, const Node& node);

  // A branch, and what it gives; null where something in it is not supported.
  struct Branch {
    Ref<graph::SeqExpr> seq;
    std::vector<ItemRef> results;
  };
  // \param packs  the outputs that are packed, with so many dimensions; of tensors those that stand
  //               with this rank
  using Packs = std::map<size_t, int64_t>;
  // Nodes behind an If that stand in both of its branches, and the names of what these give then.
  struct Behind {
    std::vector<const Node*> nodes;
    std::vector<std::string> names;
  };
  Branch branch(const Graph& graph, const Scope& outer, const Body& body, const Node& node,
                const Packs& packs, const Behind& behind);
  // The results of an If of these branches, under the names of `behind`.
  void set_branches(Context& context, const std::vector<std::string>& names,
                    const Branch& then_side, const Branch& else_side, Scope& scope);
  // The one branch whose results have the ranks that the nodes behind `If` take, where the other's
  // have others: true for the first. Nothing where ranks agree, or no node says which it takes.
  static std::optional<bool> branch_by_ranks(const Branch& a, const Branch& b, const Node& node,
                                             const Graph* graph);
  void take_branch(const Graph& taken, const Node& node, Scope& scope, const Body& body);
  // The same with a check that the condition says so; `otherwise` is what is wrong where it does not.
  void require_branch(Context& context, bool first, const std::string& otherwise, Scope& scope,
                      const Body& body);
  Expr condition_of(Context& context);
  // What branches give in different forms is packed; tensors have the greater rank.
  static Packs packs_of(const Branch& a, const Branch& b);

  // ---- branches of several ranks (rank_versions.cpp)

  static bool differ_in_rank(const ItemRef& a, const ItemRef& b);
  static bool differ_in_rank(const Branch& a, const Branch& b);
  // Moves the node behind all nodes that do not need it. False where it stands there.
  bool delay(const Node& node, NodeList& list) const;
  // What nodes make of the values in a scope, in code that is thrown away.
  struct Trial {
    Scope scope;
    std::map<const Node*, CompileError> wrong = {};  // nodes that do not take their operands
    bool is_refused = false;                         // a node, or a result of the network
  };
  // Stops at the first node that is refused or wrong, unless `all` are asked for.
  void try_nodes(const std::vector<const Node*>& nodes, Trial& trial, const Body& body, bool all);
  // Whether the nodes behind take results that stand with the greatest rank.
  bool take_greatest_rank(Context& context, const Branch& then_side, const Branch& else_side,
                          const Scope& scope, const Body& body);
  // Which nodes behind an If stand in its branches, so that what these give is of one rank; or the
  // one branch (true: the first) whose results they take, and why not the other's.
  struct Versions {
    Behind behind;
    std::optional<bool> first = {};
    std::string otherwise = {};
  };
  Versions versions_of(const Node& node, const Graph& then_graph, const Graph& else_graph,
                       const Scope& scope, const Body& body);

  // ---- sequences and optionals

  // The body of a Loop for each iteration, where it deals with sequences and their number is known.
  // False where it is none.
  bool unroll(Context& context, Scope& scope, const Body& body);
  bool repeat_items(Context& context, Scope& scope, const Body& body);
  bool deals_with_sequences(const Context& context, const Graph& graph, const Scope& scope) const;
  // A loop that inserts results in sequences, which are stacked behind it: the program checks that
  // they are of one shape.
  void collect_results(Context& context, const OpenShapes& open, Scope& scope, const Body& body);
  void convert_items(Context& context, const OperatorRow& row, Scope& scope, const Body& body);
  void set_items(const Node& node, const std::vector<ItemRef>& items, Scope& scope);
  static bool is_packed(const Item& item);
  std::vector<ItemRef> map_packed(Context& context, const Scope& scope, const Body& around);
  static void refuse_sequences(const Node& node, const std::vector<ItemRef>& inputs,
                               const Origin& origin);

  // ---- results

  Value value_of(const ItemRef& item, const Node& node);
  // Their names stand in output_names_.
  std::vector<Value> outputs(Scope& scope);
  void add_output(const std::string& name, const ItemRef& item, Context& context,
                  std::vector<Value>& results);

  // One diagnostic for all nodes that cannot be imported: what they need, and below it each node.
  void refuse_if_any();
  // Warns of values whose declared type is not the one computed.
  void compare_declared(const Scope& scope);

  const Model& model_;
  const ImportOptions& options_;
  IRModule module_;
  graph::BlockBuilder builder_;
  RunTimeNumbers numbers_;
  std::vector<ClampedDim> clamped_;
  std::map<std::pair<std::string, std::string>, const FunctionDef*> functions_;
  std::map<std::string, std::string> forms_;     // of declared operators without optional inputs
  std::map<std::string, Declaration> declared_;  // by "domain::Name"
  std::vector<std::string> input_names_, output_names_;
  NameSupply names_;
  NamedDims named_;
  Refusals refusals_;
  NodeBudget budget_;
  std::vector<std::shared_ptr<const Graph>> made_graphs_;  // that the file has in another form
  uint32_t converted_nodes_ = 0;                           // one for each copy that inlining makes
  int64_t declared_nodes_ = 0;                             // nodes of declared operators so far
};

}  // namespace tenon::onnx
