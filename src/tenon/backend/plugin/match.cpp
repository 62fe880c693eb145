// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/match.h"

#include <atomic>
#include <optional>
#include <unordered_map>

#include "tenon/arith/analyzer.h"
#include "tenon/backend/plugin/choose.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/op.h"
#include "tenon/graph/patterns/constant_order.h"
#include "tenon/ir/visit.h"
#include "tenon/script/printer.h"
#include "tenon/tir/stmt.h"

namespace tenon::plugin {

namespace {

using graph::Value;
using Operand = TenonMatch::Operand;
using Tensor = TenonMatch::Tensor;

constexpr uint32_t kExpressionsAreSymbols = uint32_t{1} << 16 | 1;  // since version 1.1

/// Of a match in this process: the graph itself answers.
class GraphSource final : public MatchSource {
 public:
  std::string text(const TenonMatch& match) const override {
    IRModule alone;
    alone.set(match.symbol.empty() ? "match" : match.symbol, match.function);
    for (const TenonMatch::Operator& op : match.operators)
      if (op.part)
        for (const auto& [name, function] : match.module.functions())
          if (function.same_as(op.part->function)) alone.set(name, function);
    walk<graph::FuncRef>(match.function, [&](const graph::FuncRef& ref) {
      const auto kernel = match.module.find<tir::PrimFunc>(ref.name);
      if (kernel && !alone.contains(ref.name)) alone.set(ref.name, kernel);
    });
    return script::print(alone);
  }
  std::optional<std::string> choice(const TenonMatch& match, int32_t op) const override {
    return chosen_kernel(match.module, *match.function, op);
  }
  const void* data(const TenonMatch& match, int32_t input) const override {
    const Ref<TensorData>& data = match.inputs[static_cast<size_t>(input)]->data;
    return data ? data->data().data() : nullptr;
  }
};
const MatchSource& graph_source() {
  static const GraphSource kSource;
  return kSource;
}

/// What a graph value is: one operand for a tensor, several for a tuple.
struct Source {
  std::vector<TenonOperand> items;
  bool is_tuple = false;
};

// The constants that a pattern over TensorIR captured are attributes by their names.
Attrs with_captured(const Attrs& attrs) {
  const AttrValue* constants = attrs.find("constants");
  const auto* captured = constants ? constants->as<AttrValue::Map>() : nullptr;
  Attrs own = attrs.without(kBindings).without(graph::kConstantOrder);
  if (!captured) return own;
  Attrs out = own.without("constants");
  for (const auto& [name, value] : *captured)
    if (!out.contains(name)) out.set(name, value);
  return out;
}

class MatchReader {
 public:
  MatchReader(const IRModule& module, const Ref<graph::Function>& function,
              const MatchContext& context)
      : context_(context), match_(std::make_unique<TenonMatch>()) {
    static std::atomic<uint64_t> last{0};
    match_->number = ++last;
    match_->source = &graph_source();
    match_->module = module;
    match_->function = function;
    match_->symbol = context.symbol;
    match_->options = context.options;
    match_->where = function->origin.str();
    match_->target = module.attrs.get<std::string>("target").value_or("");
    match_->attrs = with_captured(function->attrs);
    match_->pattern =
        function->attrs.get<std::string>("Composite").value_or(graph::backend_of(*function));
  }

  std::unique_ptr<TenonMatch> run() {
    const graph::Function& function = *match_->function;
    for (const Ref<graph::Var>& param : function.params) {
      const TenonOperand operand = add_input(param->name, param->type, {}, param->origin);
      known_[param.get()] = {{operand}, false};
    }
    read(*function.body);
    add_outputs(function.body->body);
    order_constants(function.params.size());
    find_symbols();
    for (const auto& symbol : match_->symbols) match_->symbol_names.push_back(symbol->name);
    for (auto& input : match_->inputs) finish(*input);
    for (auto& output : match_->outputs) finish(*output);
    for (auto& op : match_->operators)
      for (auto& result : op.results) finish(*result);
    if (const auto bindings = function.attrs.get<AttrValue::Map>(kBindings))
      annotate(*match_, *bindings);
    return std::move(match_);
  }

 private:
  CompileError unsupported(const Origin& origin, const std::string& what) const {
    return CompileError(kUnsupported, origin ? origin : match_->function->origin,
                        "`{}` cannot be given to a plugin: {}", match_->pattern, what);
  }

  std::unique_ptr<Tensor> tensor_of(const std::string& name, const graph::Type& type,
                                    const Origin& origin) {
    const auto tensor = cast<graph::TensorType>(type);
    if (!tensor || tensor->dtype.is_void())
      throw unsupported(origin,
                        fmt::format("`{}` has type {}; expected a tensor", name, str(type)));
    auto out = std::make_unique<Tensor>();
    out->name = name;
    out->tensor = tensor;
    return out;
  }

  TenonOperand add_input(const std::string& name, const graph::Type& type,
                         const Ref<TensorData>& data, const Origin& origin) {
    auto input = tensor_of(name, type, origin);
    input->data = data;
    match_->inputs.push_back(std::move(input));
    TenonOperand operand = {};
    operand.kind = TENON_OPERAND_INPUT;
    operand.index = static_cast<int32_t>(match_->inputs.size() - 1);
    return operand;
  }

  // Those of the body in the order of the pattern, behind the `first` parameters.
  void order_constants(size_t first) {
    const auto order = match_->function->attrs.ints(graph::kConstantOrder);
    std::vector<std::unique_ptr<Tensor>>& inputs = match_->inputs;
    if (!order || order->size() != inputs.size() - first) return;
    std::vector<int32_t> place(inputs.size(), -1);
    for (size_t i = 0; i < first; ++i) place[i] = static_cast<int32_t>(i);
    for (size_t i = 0; i < order->size(); ++i) {
      const int64_t from = (*order)[i];
      if (from < 0 || from >= static_cast<int64_t>(order->size()) ||
          place[first + static_cast<size_t>(from)] >= 0)
        return;  // the attribute is somebody else's
      place[first + static_cast<size_t>(from)] = static_cast<int32_t>(first + i);
    }
    std::vector<std::unique_ptr<Tensor>> ordered(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      ordered[static_cast<size_t>(place[i])] = std::move(inputs[i]);
    for (size_t i = first; i < ordered.size(); ++i)
      ordered[i]->name = "const_" + std::to_string(i - first);
    inputs = std::move(ordered);
    const auto follow = [&](std::vector<std::unique_ptr<Operand>>& operands) {
      for (auto& operand : operands)
        if (operand->view.kind == TENON_OPERAND_INPUT)
          operand->view.index = place[static_cast<size_t>(operand->view.index)];
    };
    for (TenonMatch::Operator& op : match_->operators) follow(op.operands);
    follow(match_->output_sources);
  }

  template <typename Visit>
  void each_input_dimension(const Visit& visit) const {
    for (const auto& input : match_->inputs)
      if (input->tensor->shape)
        for (const Expr& dim : *input->tensor->shape)
          if (!as_int(dim)) visit(dim);
  }

  // Variables, then expressions, each in order of appearance.
  void find_symbols() {
    std::vector<Ref<tenon::Var>>& symbols = match_->symbols;
    each_input_dimension([&](const Expr& dim) {
      const auto var = cast<tenon::Var>(dim);
      if (var && !is_symbol(*var)) symbols.push_back(var);
    });
    if (context_.abi < kExpressionsAreSymbols) return;
    each_input_dimension([&](const Expr& dim) {
      if (cast<tenon::Var>(dim) || !named(dim).same_as(dim)) return;
      const size_t n = symbols.size() + expressions_.size();
      expressions_.emplace_back(dim, tenon::Var::size(fmt::format("dim_{}", n), dim->dtype));
    });
    for (const auto& [expression, var] : expressions_) symbols.push_back(var);
  }

  bool is_symbol(const tenon::Var& var) const {
    for (const auto& known : match_->symbols)
      if (known.get() == &var) return true;
    return false;
  }
  Expr named(const Expr& dim) const {
    if (as_int(dim) || cast<tenon::Var>(dim)) return dim;
    for (const auto& [expression, var] : expressions_)
      if (arith::proves_equal(expression, dim)) return var;
    return dim;
  }
  Ref<graph::TensorType> named(const Ref<graph::TensorType>& type) const {
    if (!type->shape || expressions_.empty()) return type;
    std::vector<Expr> shape;
    for (const Expr& dim : *type->shape) shape.push_back(named(dim));
    return make<graph::TensorType>(std::move(shape), type->dtype, type->origin);
  }

  // The numbers of a tensor, once all symbols are known.
  void finish(Tensor& tensor) {
    tensor.tensor = named(tensor.tensor);
    tensor.type = str(graph::Type(tensor.tensor));
    tensor.dtype = tensor.tensor->dtype.str();
    TenonTensor& view = tensor.view;
    view.name = tensor.name.c_str();
    view.type = tensor.type.c_str();
    view.dtype = tensor.dtype.c_str();
    view.element_bytes = static_cast<int32_t>(tensor.tensor->dtype.bytes());
    view.rank = -1;
    view.bytes = -1;
    if (!tensor.tensor->shape) {
      match_->has_symbolic_shapes = true;
      return;
    }
    view.rank = static_cast<int32_t>(tensor.tensor->shape->size());
    bool is_static = true;
    for (const Expr& dim : *tensor.tensor->shape) {
      const auto number = as_int(dim);
      is_static &= number.has_value();
      tensor.shape.push_back(number.value_or(TENON_SYMBOLIC));
      tensor.symbols.push_back(-1);
      for (size_t s = 0; s < match_->symbols.size(); ++s)
        if (match_->symbols[s].same_as(dim)) tensor.symbols.back() = static_cast<int32_t>(s);
    }
    match_->has_symbolic_shapes |= !is_static;
    if (is_static)
      view.bytes = checked_elements(tensor.shape, view.element_bytes) * view.element_bytes;
    view.shape = tensor.shape.data();
    view.symbols = tensor.symbols.data();
    if (tensor.data) view.data = tensor.data->data().data();
  }

  void read(const graph::SeqExpr& body) {
    for (const Ref<graph::BindingBlock>& block : body.blocks)
      for (const Ref<graph::Binding>& binding : block->bindings) {
        if (binding->match) throw unsupported(binding->origin, "it has a match_cast");
        if (const auto* inner = binding->value.as<graph::FunctionValue>()) {
          functions_[binding->var.get()] = inner->function;
          continue;
        }
        const auto* call = binding->value.as<graph::Call>();
        known_[binding->var.get()] = call ? add_operator(*binding, *call) : leaf(binding->value);
      }
  }

  Source add_operator(const graph::Binding& binding, const graph::Call& call) {
    TenonMatch::Operator op;
    op.attrs = call.attrs;
    if (call.op) {
      op.name = "relax." + call.op->name;
    } else {
      const Ref<graph::Function> callee = callee_of(call);
      if (!callee) throw unsupported(call.origin, "it calls what is no function of the module");
      constexpr int kMostDepth = 4;
      if (context_.depth == kMostDepth) throw unsupported(call.origin, "its parts nest too deep");
      op.part = read_match(match_->module, callee,
                           {"", context_.options, context_.abi, context_.depth + 1});
      op.name = op.part->pattern;
      op.attrs = callee->attrs.without(kBindings).without(graph::kConstantOrder);
    }
    if (call.is("call_tir")) {
      // A kernel: its inputs. What the pattern captured is attributes of the match.
      for (const TenonOperand& item : leaf(call.args.at(1)).items) add(op, item);
      if (call.args.size() > 2) throw unsupported(call.origin, "its kernel takes scalars");
    } else {
      for (const Value& arg : call.args) add_operand(op, arg);
    }
    if (op.part && op.operands.size() > op.part->inputs.size())
      throw unsupported(call.origin, "a part of it is called with too many arguments");
    if (op.part)  // its constants, which are inputs of the whole too
      for (size_t i = op.operands.size(); i < op.part->inputs.size(); ++i)
        add(op, constant(op.part->inputs[i]->data, op.part->inputs[i]->tensor,
                         op.part->function->origin));
    const graph::Type type = binding.var->type;
    Source source;
    source.is_tuple = type.as<graph::TupleType>() != nullptr;
    std::vector<graph::Type> types = {type};
    if (const auto* tuple = type.as<graph::TupleType>()) types = tuple->types;
    for (size_t i = 0; i < types.size(); ++i) {
      op.results.push_back(tensor_of(binding.var->name, types[i], call.origin));
      TenonOperand operand = {};
      operand.kind = TENON_OPERAND_OPERATOR;
      operand.index = static_cast<int32_t>(match_->operators.size());
      operand.field = static_cast<int32_t>(i);
      source.items.push_back(operand);
    }
    match_->operators.push_back(std::move(op));
    return source;
  }

  Ref<graph::Function> callee_of(const graph::Call& call) const {
    if (const auto* ref = call.callee.as<graph::FuncRef>())
      return match_->module.find<graph::Function>(ref->name);
    const auto found = functions_.find(call.callee.get());
    return found == functions_.end() ? Ref<graph::Function>() : found->second;
  }

  static void add(TenonMatch::Operator& op, const TenonOperand& view) {
    op.operands.push_back(std::make_unique<Operand>());
    op.operands.back()->view = view;
  }

  void add_operand(TenonMatch::Operator& op, const Value& arg) {
    if (!arg) return add(op, {});
    Operand operand;
    if (const auto* shape = arg.as<graph::ShapeExpr>()) {
      operand.view.kind = TENON_OPERAND_INTS;
      for (const Expr& value : shape->values)
        operand.ints.push_back(as_int(value).value_or(TENON_UNKNOWN));
    } else if (const auto* scalar = arg.as<graph::PrimValue>()) {
      if (const auto number = as_int(scalar->value)) {
        operand.view.kind = TENON_OPERAND_NUMBER;
        operand.view.number = static_cast<double>(*number);
      } else if (const auto* real = scalar->value.as<FloatImm>()) {
        operand.view.kind = TENON_OPERAND_NUMBER;
        operand.view.number = real->value;
      } else {
        operand.view.kind = TENON_OPERAND_TEXT;
        operand.text = str(scalar->value);
      }
    } else if (const auto* text = arg.as<graph::StringValue>()) {
      operand.view.kind = TENON_OPERAND_TEXT;
      operand.text = text->value;
    } else {
      for (const TenonOperand& item : leaf(arg).items) add(op, item);
      return;
    }
    operand.view.count = static_cast<int32_t>(operand.ints.size());
    op.operands.push_back(std::make_unique<Operand>(std::move(operand)));
    Operand& kept = *op.operands.back();
    if (!kept.ints.empty()) kept.view.ints = kept.ints.data();
    if (kept.view.kind == TENON_OPERAND_TEXT) kept.view.text = kept.text.c_str();
  }

  TenonOperand constant(const Ref<TensorData>& data, const Ref<graph::TensorType>& type,
                        const Origin& origin) {
    const auto [known, is_new] = constants_.emplace(data.get(), TenonOperand{});
    if (is_new)
      known->second =
          add_input("const_" + std::to_string(constants_.size() - 1), type, data, origin);
    return known->second;
  }

  Source leaf(const Value& value) {
    if (const auto* data = value.as<graph::Constant>())
      return {{constant(data->data, data->type, data->origin)}, false};
    if (const auto* tuple = value.as<graph::Tuple>()) {
      Source source;
      source.is_tuple = true;
      for (const Value& item : tuple->values)
        for (const TenonOperand& operand : leaf(item).items) source.items.push_back(operand);
      return source;
    }
    if (const auto* item = value.as<graph::TupleGetItem>()) {
      const Source tuple = leaf(item->tuple);
      if (item->index < 0 || static_cast<size_t>(item->index) >= tuple.items.size())
        throw unsupported(value->origin, "it takes an item that a tuple does not have");
      return {{tuple.items[static_cast<size_t>(item->index)]}, false};
    }
    const auto found = known_.find(value.get());
    if (found == known_.end())
      throw unsupported(value->origin, "it has a value of type " + str(graph::type_of(value)));
    return found->second;
  }

  void add_outputs(const Value& result) {
    const Source source = leaf(result);
    for (size_t i = 0; i < source.items.size(); ++i) {
      const TenonOperand& from = source.items[i];
      match_->output_sources.push_back(std::make_unique<Operand>());
      match_->output_sources.back()->view = from;
      const auto& tensor = from.kind == TENON_OPERAND_INPUT
                               ? *match_->inputs[static_cast<size_t>(from.index)]
                               : *match_->operators[static_cast<size_t>(from.index)]
                                      .results[static_cast<size_t>(from.field)];
      const std::string name = source.items.size() == 1 ? "output" : "output_" + std::to_string(i);
      match_->outputs.push_back(tensor_of(name, tensor.tensor, result->origin));
    }
  }

  MatchContext context_;
  std::unique_ptr<TenonMatch> match_;
  std::unordered_map<const Node*, Source> known_;
  std::unordered_map<const Node*, Ref<graph::Function>> functions_;
  std::unordered_map<const Node*, TenonOperand> constants_;
  std::vector<std::pair<Expr, Ref<tenon::Var>>> expressions_;  // dimensions, by their symbols
};

}  // namespace

void annotate(TenonMatch& match, const AttrValue::Map& bindings) {
  for (const auto& [name, value] : bindings) {
    const auto* place = value.as<AttrList>();
    const auto* kind = place && place->size() == 2 ? (*place)[0].as<int64_t>() : nullptr;
    const auto* index = kind ? (*place)[1].as<int64_t>() : nullptr;
    if (!index || *index < 0) continue;
    const size_t count = *kind == TENON_OPERAND_INPUT      ? match.inputs.size()
                         : *kind == TENON_OPERAND_OPERATOR ? match.operators.size()
                                                           : 0;
    if (static_cast<size_t>(*index) >= count) continue;
    auto operand = std::make_unique<TenonMatch::Operand>();
    operand->view.kind = static_cast<int32_t>(*kind);
    operand->view.index = static_cast<int32_t>(*index);
    match.annotations[name] = std::move(operand);
  }
}

std::unique_ptr<TenonMatch> read_match(const IRModule& module, const Ref<graph::Function>& function,
                                       const MatchContext& context) {
  return MatchReader(module, function, context).run();
}

}  // namespace tenon::plugin
