// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/import.h"

#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/assertion.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/kernels.h"
#include "tenon/import/onnx/choices.h"
#include "tenon/import/onnx/declared_attribute.h"
#include "tenon/import/onnx/node_function.h"
#include "tenon/import/onnx/operators.h"
#include "tenon/import/onnx/propagate.h"
#include "tenon/import/onnx/run_time_numbers.h"
#include "tenon/import/onnx/scope.h"
#include "tenon/support/limit_codes.h"
#include "tenon/support/names.h"

namespace tenon::onnx {

namespace {

using graph::TensorType;

// Where nodes stand: which operator sets they mean, and the attributes of the function around them.
struct Body {
  const Opsets* opsets;
  const AttributeValues* attributes = nullptr;
  std::vector<const FunctionDef*> functions = {};  // that are being inlined, outermost first
  int depth = 0;                                   // of graphs within one another
  bool in_branch = false;
};

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options)
      : model_(model), options_(options), builder_(module_), numbers_(builder_), budget_(model) {
    for (const FunctionDef& function : model.functions) {
      if (!functions_.emplace(std::pair(function.domain, function.name), &function).second)
        throw CompileError(kBadModel, {}, "{}: function `{}` is defined twice", model.path,
                           printable(function.name));
    }
    for (const auto& [name, function] : options.operators) {
      declared_.emplace(*function->attrs.get<std::string>("op"), std::pair(name, function));
      module_.set(name, function);
    }
  }

  IRModule run() {
    check_opsets(model_.opsets, "the model");
    for (const auto& [name, shape] : options_.input_shapes) check_input_exists(name);
    Scope scope;
    std::vector<Ref<graph::Var>> params = parameters(scope);
    add_initializers(model_.graph, scope);
    builder_.begin_function(params);
    Body body{&model_.opsets};
    convert_nodes(model_.graph, scope, body);
    std::vector<Value> results = outputs(scope);
    refuse_if_any();
    std::vector<std::string> input_names, output_names;
    for (const ValueInfo* input : inputs_) input_names.push_back(input->name);
    for (const ValueInfo& output : model_.graph.outputs) output_names.push_back(output.name);
    Value result = results.size() == 1 ? results[0] : Value(make<graph::Tuple>(std::move(results)));
    module_.set("main", builder_.end_function(std::move(result), {{"input_names", input_names},
                                                                  {"output_names", output_names}}));
    return std::move(module_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void bad(const Code& code, fmt::format_string<Args...> format, Args&&... args) {
    throw CompileError(code, {}, "{}: {}", model_.path,
                       fmt::format(format, std::forward<Args>(args)...));
  }

  void check_opsets(const Opsets& opsets, const std::string& who) {
    const auto it = opsets.find("");
    if (it == opsets.end()) return;
    if (it->second < 1 || it->second > kNewestOpset)
      bad(kUnsupportedOperator, "{} imports opset {} of ai.onnx; expected 1 to {}", who, it->second,
          kNewestOpset);
  }

  void check_input_exists(const std::string& name) {
    for (const ValueInfo& input : model_.graph.inputs)
      if (input.name == name) return;
    bad(kBadOption, "there is no input `{}`", printable(name));
  }

  // ---- inputs

  std::vector<Ref<graph::Var>> parameters(Scope& scope) {
    std::set<std::string> initialized, seen;
    for (const Tensor& tensor : model_.graph.initializers) initialized.insert(tensor.name);
    std::vector<Ref<graph::Var>> params;
    for (const ValueInfo& input : model_.graph.inputs) {
      if (input.name.empty()) bad(kBadModel, "a graph input has no name");
      if (!seen.insert(input.name).second)
        bad(kBadModel, "graph input `{}` is declared twice", printable(input.name));
      if (initialized.count(input.name)) continue;
      inputs_.push_back(&input);
      auto item = std::make_shared<Item>();
      if (!input.unsupported.empty()) {
        item->unsupported = input.unsupported;
      } else if (!input.shape && !options_.input_shapes.count(input.name)) {
        item->unsupported = "a tensor of no declared rank";
      }
      if (!item->unsupported.empty()) {
        item->poisoned = true;
        refusals_.add(Origin::model(model_.path, printable(input.name), "graph input"),
                      "graph input", item->unsupported);
      } else {
        const Origin origin = Origin::model(model_.path, printable(input.name), "graph input");
        auto type = make<TensorType>(dims_of(input), *input.dtype);
        auto param = make<graph::Var>(names_.take(identifier(input.name)), type, false, origin);
        item->value = param;
        item->is_input = true;
        params.push_back(std::move(param));
      }
      scope.set(input.name, std::move(item));
    }
    return params;
  }

  Dims dims_of(const ValueInfo& input) {
    std::vector<Dim> declared = input.shape.value_or(std::vector<Dim>{});
    if (const auto given = options_.input_shapes.find(input.name);
        given != options_.input_shapes.end()) {
      if (input.shape && declared.size() != given->second.size())
        bad(kBadOption, "input `{}` has rank {}; the shape given, {}, has rank {}",
            printable(input.name), declared.size(), str(given->second), given->second.size());
      declared.resize(given->second.size());
      for (size_t d = 0; d < declared.size(); ++d) {
        const int64_t asked = given->second[d];
        if (asked < 0) continue;
        if (declared[d].value && *declared[d].value != asked)
          bad(kBadOption, "dimension {} of input `{}` is {}; the shape given has {}", d,
              printable(input.name), *declared[d].value, asked);
        if (!declared[d].name.empty()) named_.emplace(declared[d].name, int64(asked));
        declared[d].value = asked;
      }
    }
    Dims dims;
    std::vector<int64_t> constant;
    for (size_t d = 0; d < declared.size(); ++d) {
      const Dim& dim = declared[d];
      if (dim.value) {
        if (*dim.value < 0)
          bad(kBadModel, "dimension {} of graph input `{}` is {}", d, printable(input.name),
              *dim.value);
        constant.push_back(*dim.value);
        dims.push_back(int64(*dim.value));
        continue;
      }
      if (dim.name.empty()) {
        dims.push_back(Var::size(names_.take(fmt::format("{}_d{}", identifier(input.name), d))));
        continue;
      }
      Expr& known = named_[dim.name];
      if (!known) {
        const auto fixed = options_.dims.find(dim.name);
        known = fixed != options_.dims.end() ? int64(fixed->second)
                                             : Expr(Var::size(names_.take(identifier(dim.name))));
        if (fixed != options_.dims.end() && fixed->second < 0)
          bad(kBadOption, "dimension `{}` is set to {}", printable(dim.name), fixed->second);
      }
      dims.push_back(known);
    }
    (void)checked_elements(constant, input.dtype->bytes(),
                           Origin::model(model_.path, printable(input.name), "graph input"));
    return dims;
  }

  void add_initializers(const Graph& graph, Scope& scope) {
    std::set<std::string> seen;
    for (const Tensor& tensor : graph.initializers) {
      if (!seen.insert(tensor.name).second)
        bad(kBadModel, "initialiser `{}` is given twice", printable(tensor.name));
      auto item = std::make_shared<Item>();
      if (tensor.data) {
        item->value = make<graph::Constant>(
            tensor.data, Origin::model(model_.path, printable(tensor.name), "initializer"));
      } else {
        item->unsupported = "a tensor of " + tensor.unsupported;
      }
      scope.set(tensor.name, std::move(item));
    }
    for (const std::string& name : graph.sparse_initializers) {
      auto item = std::make_shared<Item>();
      item->unsupported = "a sparse tensor";
      scope.set(name, std::move(item));
    }
  }

  static std::set<std::string> given_names(const Graph& graph) {
    std::set<std::string> names;
    for (const ValueInfo& input : graph.inputs) names.insert(input.name);
    for (const Tensor& tensor : graph.initializers) names.insert(tensor.name);
    names.insert(graph.sparse_initializers.begin(), graph.sparse_initializers.end());
    return names;
  }

  // ---- nodes

  void convert_nodes(const Graph& graph, Scope& scope, const Body& body) {
    budget_.charge(graph.nodes, builder_.origin());
    std::vector<std::string> results;
    for (const ValueInfo& output : graph.outputs) results.push_back(output.name);
    for (const Node* node : ordered(graph.nodes, given_names(graph), scope, results, model_.path))
      convert(*node, scope, body);
  }

  void convert(const Node& node, Scope& scope, const Body& body) {
    const Origin origin = origin_of(node, model_.path).numbered(++converted_nodes_);
    builder_.set_origin(origin);
    const auto function = functions_.find(std::pair(node.domain, node.op_type));
    if (!declaration_of(node) && function != functions_.end()) {
      inline_function(node, *function->second, scope, body);
      return;
    }
    if (!refusals_.attempt(origin, name_of(node), [&]() {
          if (declaration_of(node))
            convert_declared(node, scope, body);
          else
            convert_operator(node, scope, body);
        }))
      poison(node, scope);
  }

  static std::string name_of_result(const Node& node) {
    return node.outputs.empty() ? "v" : identifier(node.outputs[0]);
  }

  static void poison(const Node& node, Scope& scope) {
    for (const std::string& output : node.outputs) {
      if (output.empty()) continue;
      auto item = std::make_shared<Item>();
      item->poisoned = true;
      scope.set(output, std::move(item));
    }
  }

  // The operands of a node; nothing where one is the result of a node that is refused.
  static std::optional<std::vector<ItemRef>> operands_of(const Node& node, const Scope& scope) {
    std::vector<ItemRef> inputs;
    bool poisoned = false;
    for (const std::string& name : node.inputs) {
      ItemRef item = name.empty() ? nullptr : scope.find(name);
      poisoned |= item && item->poisoned;
      inputs.push_back(std::move(item));
    }
    if (poisoned) return std::nullopt;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] && !inputs[i]->unsupported.empty())
        unsupported("operand `{}`, {}", printable(node.inputs[i]), inputs[i]->unsupported);
    return inputs;
  }

  void convert_operator(const Node& node, Scope& scope, const Body& body) {
    const bool is_if = node.domain.empty() && node.op_type == "If";
    const OperatorRow* row = find_operator(node.domain, node.op_type);
    if (!row && !is_if) unsupported(kNoOperator);
    const auto opset = body.opsets->find(node.domain);
    if (opset == body.opsets->end())
      throw CompileError(kBadModel, builder_.origin(), "operator set `{}` is not imported",
                         node.domain.empty() ? "ai.onnx" : printable(node.domain));
    if (row && opset->second < row->first_opset)
      unsupported("the form of opset {}; expected at least {}", opset->second, row->first_opset);
    if (row) check_operands(node, *row);

    const auto operands = operands_of(node, scope);
    if (!operands) return poison(node, scope);
    const std::vector<ItemRef>& inputs = *operands;
    Context context(node, inputs, opset->second, builder_, body.attributes, body.in_branch,
                    clamped_);
    if (is_if) {
      convert_if(context, scope, body);
      return;
    }
    if (auto known = propagate(context, *row, inputs, body.attributes)) {
      for (size_t i = 0; i < node.outputs.size() && i < known->size(); ++i) {
        auto item = std::make_shared<Item>();
        item->elements = std::move((*known)[i]);
        scope.set(node.outputs[i], std::move(item));
      }
      check_outputs(node, known->size());
      return;
    }
    context.set_inline([&](const Graph& graph, const std::vector<Value>& values) {
      return inline_graph(context, graph, values, scope, body);
    });
    if (stays_whole(node) && call_whole(node, *row, context, inputs, scope, body)) return;
    context.set_run_time_numbers(&numbers_);
    const bool may_repeat = std::ranges::none_of(
        node.attributes, [](const auto& entry) { return !entry.second.ref.empty(); });
    const auto producer =
        may_repeat ? std::make_shared<Producer>(Producer{&node, row, inputs, opset->second, 0})
                   : nullptr;
    try {
      set_results(node, converted(context, *row), scope, producer);
    } catch (const NumberChoice& choice) {
      set_results(node, convert_choices(node, *row, inputs, opset->second, body, choice), scope,
                  nullptr);
    }
  }

  static Results converted(Context& context, const OperatorRow& row) {
    Results results = row.convert(context);
    if (const std::string name = context.unread_attribute(); !name.empty())
      unsupported("attribute `{}` in opset {}", printable(name), context.opset());
    return results;
  }

  static void set_results(const Node& node, const Results& results, Scope& scope,
                          const std::shared_ptr<const Producer>& producer = nullptr) {
    check_outputs(node, results.size());
    for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      auto item = std::make_shared<Item>();
      if (!results[i]) unsupported("output {}", i);
      (void)shaped(results[i]);
      item->value = results[i];
      if (producer) {
        Producer made = *producer;
        made.output = i;
        item->producer = std::make_shared<Producer>(std::move(made));
      }
      scope.set(node.outputs[i], std::move(item));
    }
  }

  // ---- numbers that only the run knows

  // The node converted for each list of numbers, one behind the other's else.
  Results convert_choices(const Node& node, const OperatorRow& row,
                          const std::vector<ItemRef>& inputs, int64_t opset, const Body& body,
                          const NumberChoice& choice) {
    std::vector<Ref<graph::SeqExpr>> versions;
    std::vector<Expr> conditions;
    std::optional<CompileError> wrong;
    Expr any = boolean(false);
    for (size_t i = 0; i < choice.lists.size(); ++i) {
      std::vector<ItemRef> known = inputs;
      known[choice.operand] = std::make_shared<Item>(*inputs[choice.operand]);
      known[choice.operand]->elements =
          known_elements(*inputs[choice.operand]->type(), choice.lists[i]);
      try {
        versions.push_back(version(node, row, known, opset, body));
      } catch (const CompileError& error) {
        wrong = error;  // these numbers are not for these operands: the run may not have them
        continue;
      }
      conditions.push_back(choice.conditions[i]);
      any = logical_or(any, choice.conditions[i]);
    }
    if (versions.empty()) throw *wrong;
    builder_.emit(
        graph::assertion(any,
                         fmt::format("operand `{}` of `{}` is not {}{}", choice.what, name_of(node),
                                     choice.otherwise, wrong ? " that suit its operands" : ""),
                         builder_.origin()));
    const Value chosen = choose(builder_, versions, conditions, name_of_result(node));
    if (node.outputs.size() == 1) return {chosen};
    Results results;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      results.push_back(builder_.emit(make<graph::TupleGetItem>(chosen, static_cast<int64_t>(i))));
    return results;
  }

  Ref<graph::SeqExpr> version(const Node& node, const OperatorRow& row,
                              const std::vector<ItemRef>& inputs, int64_t opset, const Body& body) {
    builder_.begin_branch();
    numbers_.enter_branch();
    Results results;
    const auto end = [&] {
      numbers_.leave_branch();
      return builder_.end_branch(
          results.size() == 1 ? results[0] : Value(make<graph::Tuple>(std::move(results))));
    };
    try {
      Context context(node, inputs, opset, builder_, body.attributes, true, clamped_);
      context.set_run_time_numbers(&numbers_);
      results = converted(context, row);
      check_outputs(node, results.size());
      results.resize(std::min(results.size(), node.outputs.size()));
    } catch (...) {
      results.clear();
      (void)end();
      throw;
    }
    return end();
  }

  static Elements known_elements(const TensorType& type, const Ints& numbers) {
    Elements out{type.dtype, *type.static_shape(), {}};
    for (const int64_t number : numbers)
      out.values.push_back(type.dtype.is_bool() ? boolean(number != 0) : int64(number));
    return out;
  }

  // ---- nodes that stay whole

  bool stays_whole(const Node& node) const {
    return options_.whole.count(qualified_name(node.domain, node.op_type)) ||
           options_.whole_nodes.count(builder_.origin().name());
  }

  // False where the node is no function by itself.
  bool call_whole(const Node& node, const OperatorRow& row, Context& context,
                  const std::vector<ItemRef>& inputs, Scope& scope, const Body& body) {
    const auto whole =
        node_function(node, row, inputs, context.opset(), body.attributes, builder_.origin());
    if (!whole) return false;
    std::vector<Value> args;
    for (const size_t i : whole->operands) args.push_back(context.value(i));
    const std::string name = module_.add_unique(
        identifier(node.name.empty() ? node.op_type : node.name), whole->function);
    const auto call = make<graph::Call>(make<graph::FuncRef>(name), std::move(args), Attrs{},
                                        std::vector<graph::Type>{}, builder_.origin());
    if (!has_known_shapes(graph::type_of(call, module_))) {
      module_.erase(name);
      return false;
    }
    set_outputs(node, call, scope);
    return true;
  }

  static bool has_known_shapes(const graph::Type& type) {
    if (const auto* tuple = type.as<graph::TupleType>())
      return std::all_of(tuple->types.begin(), tuple->types.end(), has_known_shapes);
    const auto* tensor = type.as<TensorType>();
    return tensor && tensor->shape && !tensor->dtype.is_void();
  }

  // The results of a call of a function are the node's.
  void set_outputs(const Node& node, const Value& call, Scope& scope) {
    const Value result =
        builder_.emit(call, node.outputs.empty() ? "v" : identifier(node.outputs[0]));
    std::vector<Value> results;
    const graph::Type type = graph::type_of(result);
    if (const auto* tuple = type.as<graph::TupleType>()) {
      for (size_t i = 0; i < tuple->types.size(); ++i)
        results.push_back(make<graph::TupleGetItem>(result, static_cast<int64_t>(i)));
    } else {
      results.push_back(result);
    }
    set_results(node, results, scope);
  }

  // ---- operators that are declared beside the network

  using Declaration = std::pair<std::string, Ref<graph::Function>>;
  const Declaration* declaration_of(const Node& node) const {
    if (declared_.empty()) return nullptr;
    const auto found = declared_.find(qualified_name(node.domain, node.op_type));
    return found == declared_.end() ? nullptr : &found->second;
  }

  void convert_declared(const Node& node, Scope& scope, const Body& body) {
    auto [name, function] = *declaration_of(node);
    ++declared_nodes_;
    const auto opset = body.opsets->find(node.domain);
    auto operands = operands_of(node, scope);
    if (!operands) return poison(node, scope);
    std::vector<ItemRef>& inputs = *operands;
    if (const auto left_out = left_out_of(node, *function, inputs); !left_out.empty()) {
      name = form_without(name, *function, left_out);
      function = module_.find<graph::Function>(name);
      std::erase(inputs, nullptr);
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i]) unsupported("operand {} left out", i);
    Context context(node, inputs, opset == body.opsets->end() ? 1 : opset->second, builder_,
                    body.attributes, body.in_branch, clamped_);
    size_t tensors = 0;
    for (const Ref<graph::Var>& param : function->params)
      tensors += param->type.as<TensorType>() != nullptr;
    if (tensors != inputs.size())
      throw CompileError(kBadModel, builder_.origin(), "`{}` has {} inputs; it is declared with {}",
                         name_of(node), inputs.size(), tensors)
          .note(function->origin, "it is declared here");
    std::vector<Value> args;
    Substitution bound;
    size_t next = 0;
    for (const Ref<graph::Var>& param : function->params) {
      Value arg = param->type.as<TensorType>()
                      ? context.value(next++)
                      : declared_attribute(context, *function, *param, declared_nodes_);
      graph::unify(param->type, graph::type_of(arg), bound);
      args.push_back(std::move(arg));
    }
    for (size_t i = 0; i < args.size(); ++i) {
      const graph::Type wanted = substitute(function->params[i]->type, bound),
                        given = graph::type_of(args[i]);
      if (!wanted.as<TensorType>() || graph::is_subtype(given, wanted)) continue;
      throw CompileError(kTypeMismatch, builder_.origin(), "input `{}` of `{}` is {}; expected {}",
                         function->params[i]->name, name_of(node), graph::str(given),
                         graph::str(wanted))
          .note(function->params[i]->origin, "it is declared as {}",
                graph::str(function->params[i]->type));
    }
    if (const std::string extra = context.unread_attribute(); !extra.empty())
      throw CompileError(kBadAttribute, builder_.origin(),
                         "`{}` has attribute `{}`, which its declaration does not have",
                         name_of(node), printable(extra))
          .note(function->origin, "it is declared here");
    set_outputs(node,
                make<graph::Call>(make<graph::FuncRef>(name), std::move(args), Attrs{},
                                  std::vector<graph::Type>{}, builder_.origin()),
                scope);
  }

  // The optional inputs that a node leaves out: by an empty name, or at the end.
  static std::vector<std::string> left_out_of(const Node& node, const graph::Function& function,
                                              const std::vector<ItemRef>& inputs) {
    const std::vector<std::string> optional = graph::optional_inputs(function);
    std::vector<std::string> out;
    size_t next = 0;
    for (const Ref<graph::Var>& param : function.params) {
      if (!param->type.as<TensorType>()) continue;
      const size_t i = next++;
      if (i < inputs.size() && inputs[i]) continue;
      if (std::find(optional.begin(), optional.end(), param->name) != optional.end())
        out.push_back(param->name);
      else if (i < inputs.size())
        unsupported("operand `{}` left out, which has no default in the declaration of `{}`",
                    param->name, name_of(node));
    }
    return out;
  }

  // The name of the operator's form without these inputs, which the module has from now on.
  std::string form_without(const std::string& name, const graph::Function& function,
                           const std::vector<std::string>& left_out) {
    std::string key = name + "_without";
    for (const std::string& input : left_out) key += "_" + input;
    const auto known = forms_.find(key);
    if (known != forms_.end()) return known->second;
    return forms_[key] = module_.add_unique(key, graph::without_inputs(function, left_out));
  }

  void check_operands(const Node& node, const OperatorRow& row) {
    const std::string wanted =
        expected_count(node.inputs.size(), row.least_inputs, row.most_inputs);
    if (!wanted.empty())
      throw CompileError(kBadModel, builder_.origin(), "`{}` has {} inputs; expected {}",
                         name_of(node), node.inputs.size(), wanted);
  }

  static void check_outputs(const Node& node, size_t results) {
    for (size_t i = results; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty()) unsupported("output {}", i);
  }

  // ---- functions of the model

  void inline_function(const Node& node, const FunctionDef& function, Scope& scope,
                       const Body& body) {
    if (std::find(body.functions.begin(), body.functions.end(), &function) != body.functions.end())
      throw CompileError(kBadModel, builder_.origin(), "function `{}` calls itself",
                         printable(function.name));
    if (static_cast<int>(body.functions.size()) >= kDeepest)
      throw CompileError(kLimitExceeded, builder_.origin(),
                         "functions call one another more than {} deep", kDeepest);
    check_opsets(function.opsets, "function `" + printable(function.name) + "`");
    if (node.inputs.size() > function.inputs.size() ||
        node.outputs.size() > function.outputs.size())
      throw CompileError(kBadModel, builder_.origin(),
                         "function `{}` is called with {} inputs and {} outputs; it has {} and {}",
                         printable(function.name), node.inputs.size(), node.outputs.size(),
                         function.inputs.size(), function.outputs.size());
    AttributeValues attributes = function.default_attributes;
    for (const auto& [name, attribute] : node.attributes) {
      if (attribute.ref.empty()) {
        attributes[name] = attribute;
      } else if (body.attributes) {
        const auto outer = body.attributes->find(attribute.ref);
        if (outer != body.attributes->end()) attributes[name] = outer->second;
      }
    }
    Scope inner;
    std::set<std::string> own;
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      own.insert(function.inputs[i]);
      if (i < node.inputs.size() && !node.inputs[i].empty())
        inner.set(function.inputs[i], scope.find(node.inputs[i]));
    }
    Body callee = body;
    callee.opsets = &function.opsets;
    callee.attributes = &attributes;
    callee.functions.push_back(&function);
    const Scope nothing;
    budget_.charge(function.nodes, builder_.origin());
    for (const Node* n : ordered(function.nodes, own, nothing, function.outputs, model_.path))
      convert(*n, inner, callee);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty()) scope.set(node.outputs[i], inner.find(function.outputs[i]));
  }

  // A graph of an attribute, in place of its node.
  std::vector<Value> inline_graph(Context& context, const Graph& graph,
                                  const std::vector<Value>& values, const Scope& scope,
                                  const Body& body) {
    if (graph.inputs.size() != values.size())
      context.bad(kBadModel, "a graph of `{}` has {} inputs; expected {}", name_of(context.node()),
                  graph.inputs.size(), values.size());
    if (body.depth >= kDeepest)
      context.bad(kLimitExceeded, "graphs stand more than {} deep within one another", kDeepest);
    Body inner = body;
    inner.depth++;
    Scope own(&scope);
    for (size_t i = 0; i < values.size(); ++i) {
      auto item = std::make_shared<Item>();
      item->value = values[i];
      own.set(graph.inputs[i].name, std::move(item));
    }
    const Origin origin = builder_.origin();
    add_initializers(graph, own);
    convert_nodes(graph, own, inner);
    builder_.set_origin(origin);
    std::vector<Value> results;
    for (const ValueInfo& output : graph.outputs) {
      const ItemRef item = own.find(output.name);
      if (item->poisoned) unsupported("a graph with nodes that are not supported");
      results.push_back(value_of(item, context.node()));
    }
    return results;
  }

  // ---- branches

  void convert_if(Context& context, Scope& scope, const Body& body) {
    const Node& node = context.node();
    const auto then_graph = context.graph_attr("then_branch");
    const auto else_graph = context.graph_attr("else_branch");
    for (const auto& branch : {then_graph, else_graph})
      if (branch->outputs.size() != node.outputs.size())
        context.bad(kBadModel, "`If` has {} outputs; a branch has {}", node.outputs.size(),
                    branch->outputs.size());
    if (body.depth >= kDeepest)
      context.bad(kLimitExceeded, "graphs stand more than {} deep within one another", kDeepest);
    Body inner = body;
    inner.depth++;
    const Elements* condition = context.elements(0);
    if (condition && condition->values.size() == 1 && as_int(condition->values[0])) {
      // Known now: the branch stands in place of the node.
      const Graph& taken = *as_int(condition->values[0]) ? *then_graph : *else_graph;
      Scope own(&scope);
      add_initializers(taken, own);
      convert_nodes(taken, own, inner);
      for (size_t i = 0; i < node.outputs.size(); ++i)
        if (!node.outputs[i].empty()) scope.set(node.outputs[i], own.find(taken.outputs[i].name));
      return;
    }
    if (context.dtype(0) != kBool)
      context.bad(kDTypeMismatch, "the condition of `If` has dtype {}; expected bool",
                  context.dtype(0).str());
    inner.in_branch = true;
    const auto then_seq = branch(*then_graph, scope, inner, node);
    const auto else_seq = branch(*else_graph, scope, inner, node);
    if (!then_seq || !else_seq) {
      poison(node, scope);
      return;
    }
    const Value result = if_else(context, then_seq, else_seq, node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      auto item = std::make_shared<Item>();
      item->value = node.outputs.size() == 1
                        ? result
                        : builder_.emit(make<graph::TupleGetItem>(result, static_cast<int64_t>(i)),
                                        identifier(node.outputs[i]));
      scope.set(node.outputs[i], std::move(item));
    }
  }

  // Branches of one type may be chosen by a tensor. Where their dimensions differ, what follows
  // needs the condition as a number.
  Value if_else(Context& context, const Ref<graph::SeqExpr>& then_seq,
                const Ref<graph::SeqExpr>& else_seq, const Node& node) {
    const graph::Type a = graph::type_of(then_seq->body), b = graph::type_of(else_seq->body);
    const Elements* known = context.elements(0);
    if (!known && structural_equal(a, b))
      return builder_.emit(make<graph::If>(context.reshape(context.value(0), {}), then_seq,
                                           else_seq, builder_.origin()),
                           name_of_result(node));
    context.set_run_time_numbers(&numbers_);
    const Dims condition = context.dims(0, "cond");
    if (condition.size() != 1)
      context.bad(kShapeMismatch, "the condition of `If` has {} elements; expected 1",
                  condition.size());
    const Expr& holds = condition[0];
    return choose(builder_, {then_seq, else_seq},
                  {holds->dtype.is_bool() ? holds : ne(holds, imm(holds->dtype, int64_t{0}))},
                  name_of_result(node));
  }

  // Null where something in it is not supported.
  Ref<graph::SeqExpr> branch(const Graph& graph, const Scope& outer, const Body& body,
                             const Node& node) {
    builder_.begin_branch();
    numbers_.enter_branch();
    Scope scope(&outer);
    add_initializers(graph, scope);
    convert_nodes(graph, scope, body);
    builder_.set_origin(origin_of(node, model_.path));
    std::vector<Value> results;
    bool poisoned = false;
    for (const ValueInfo& output : graph.outputs) {
      const ItemRef item = scope.find(output.name);
      poisoned |= item->poisoned || !item->unsupported.empty();
      results.push_back(poisoned ? nullptr : value_of(item, node));
    }
    if (poisoned) results.assign(1, make<graph::PrimValue>(int64(0)));
    auto seq = builder_.end_branch(
        results.size() == 1 ? results[0] : Value(make<graph::Tuple>(std::move(results))));
    numbers_.leave_branch();
    return poisoned ? nullptr : seq;
  }

  // ---- results

  Value value_of(const ItemRef& item, const Node& node) {
    const Opsets none;
    return Context(node, {item}, 0, builder_, nullptr, false, clamped_).value(0);
  }

  std::vector<Value> outputs(Scope& scope) {
    std::vector<Value> results;
    if (model_.graph.outputs.empty()) bad(kBadModel, "the graph has no outputs");
    for (const ValueInfo& output : model_.graph.outputs) {
      const ItemRef item = scope.find(output.name);
      const Origin origin = Origin::model(model_.path, printable(output.name), "graph output");
      builder_.set_origin(origin);
      if (item->poisoned) continue;
      if (!item->unsupported.empty()) {
        refusals_.add(origin, "graph output", item->unsupported);
        continue;
      }
      Node node;
      node.op_type = "graph output";
      node.outputs = {output.name};
      refusals_.attempt(origin, node.op_type, [&]() { results.push_back(value_of(item, node)); });
    }
    return results;
  }

  // One diagnostic for all nodes that cannot be imported: what they need, and below it each node.
  void refuse_if_any() {
    if (refusals_.empty()) return;
    CompileError error(kUnsupportedOperator, {}, "{}: {}", model_.path,
                       refusals_.str("node", "supported"));
    for (const Refusal& refusal : refusals_.all()) error.note(refusal.origin, "{}", refusal.form);
    const auto lacks = std::ranges::find(refusals_.all(), kNoOperator, &Refusal::form);
    if (lacks != refusals_.all().end())
      error.note({},
                 "a file of --kernels may declare what is missing, by a graph function with "
                 "{{\"op\": \"{}\"}}, and a kernel compute it",
                 lacks->name.find('.') == std::string::npos
                     ? "ai.onnx::" + lacks->name
                     : std::string(lacks->name).replace(lacks->name.rfind('.'), 1, "::"));
    throw error;
  }

  const Model& model_;
  const ImportOptions& options_;
  IRModule module_;
  graph::BlockBuilder builder_;
  RunTimeNumbers numbers_;
  std::vector<ClampedDim> clamped_;
  std::map<std::pair<std::string, std::string>, const FunctionDef*> functions_;
  std::map<std::string, std::string> forms_;     // of declared operators without optional inputs
  std::map<std::string, Declaration> declared_;  // by "domain::Name"
  std::vector<const ValueInfo*> inputs_;
  std::map<std::string, Expr> named_;  // dimensions by dim_param
  NameSupply names_;
  Refusals refusals_;
  NodeBudget budget_;
  uint32_t converted_nodes_ = 0;  // one for each copy that inlining makes
  int64_t declared_nodes_ = 0;    // nodes of declared operators so far
};

}  // namespace

IRModule import_onnx(const Model& model, const ImportOptions& options) {
  return Importer(model, options).run();
}

IRModule import_onnx(const std::string& path, const ImportOptions& options) {
  return import_onnx(read_model(path), options);
}

}  // namespace tenon::onnx
