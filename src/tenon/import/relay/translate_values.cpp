// SPDX-License-Identifier: Apache-2.0
// Translates expressions of a Relay text to values of a graph function.
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/shape.h"
#include "tenon/import/relay/parser.h"
#include "tenon/import/relay/translator.h"
#include "tenon/script/constants.h"
#include "tenon/tir/stmt.h"

namespace tenon::relay {

using graph::FuncRef;
using graph::TensorType;
using graph::Type;
using Kind = Tree::Kind;

Origin Translator::origin(const Place& place) const {
  return Origin::script(file_, place.line, place.column, place.length);
}

// The node of the model that the text names, with its place in the text.
Origin Translator::origin(const Tree& tree) const {
  std::string span = span_in(tree.comment);
  if (span.empty()) return origin(tree.place);
  return Origin::model(fmt::format("{}:{}:{}", file_->name, tree.place.line, tree.place.column),
                       std::move(span), tree.kind == Kind::kOperator ? tree.text : "call");
}

// ---- types

Type Translator::type(const TypeTree& tree, Names& names) const {
  switch (tree.kind) {
    case TypeTree::Kind::kTensor: {
      std::vector<Expr> shape;
      for (const Dimension& dim : tree.dims) {
        if (dim.value) {
          shape.push_back(int64(*dim.value));
          continue;
        }
        // Each `?` is a dimension of its own.
        const std::string key = dim.name.empty() ? fmt::format("?{}", names.size()) : dim.name;
        Expr& known = names[key];
        if (!known)
          known = Var::size(dim.name.empty() ? fmt::format("dim{}", names.size() - 1) : dim.name);
        shape.push_back(known);
      }
      return make<TensorType>(std::move(shape), *DType::parse(tree.dtype), origin(tree.place));
    }
    case TypeTree::Kind::kTuple: {
      std::vector<Type> items;
      for (const TypeTree& item : tree.items) items.push_back(type(item, names));
      return make<graph::TupleType>(std::move(items), origin(tree.place));
    }
    case TypeTree::Kind::kFunction:
      fail(kUnsupported, tree.place, "a parameter that is a function");
    case TypeTree::Kind::kOther: break;
  }
  fail(kUnsupported, tree.place, "type `{}`; expected Tensor[...], a tuple or an element type",
       tree.text);
}

// Whether a value may have the type that was written; `?` is any extent.
static bool fits(const TypeTree& declared, const Type& type) {
  if (declared.kind == TypeTree::Kind::kTuple) {
    const auto* tuple = type.as<graph::TupleType>();
    if (!tuple || tuple->types.size() != declared.items.size()) return false;
    for (size_t i = 0; i < declared.items.size(); ++i)
      if (!fits(declared.items[i], tuple->types[i])) return false;
    return true;
  }
  if (declared.kind != TypeTree::Kind::kTensor) return true;
  const auto* tensor = type.as<TensorType>();
  if (!tensor) return type.as<graph::ObjectType>() != nullptr;
  if (tensor->dtype != *DType::parse(declared.dtype)) return false;
  if (tensor->ndim >= 0 && tensor->ndim != static_cast<int64_t>(declared.dims.size())) return false;
  for (size_t d = 0; tensor->shape && d < declared.dims.size(); ++d) {
    const auto known = as_int((*tensor->shape)[d]);
    if (known && declared.dims[d].value && *known != *declared.dims[d].value) return false;
  }
  return true;
}

static std::string text_of(const TypeTree& type) {
  if (type.kind == TypeTree::Kind::kTuple) {
    std::string out = "(";
    for (const TypeTree& item : type.items) out += (out.size() > 1 ? ", " : "") + text_of(item);
    return out + ")";
  }
  if (type.kind != TypeTree::Kind::kTensor) return type.text;
  std::string dims;
  for (const Dimension& dim : type.dims)
    dims += (dims.empty() ? "" : ", ") + (dim.value          ? std::to_string(*dim.value)
                                          : dim.name.empty() ? "?"
                                                             : dim.name);
  return fmt::format("Tensor[({}), {}]", dims, type.dtype);
}

void Translator::check_type(const TypeTree& declared, const Value& value,
                            std::string_view what) const {
  const Type found = graph::type_of(value, module_);
  if (!fits(declared, found))
    fail(kTypeMismatch, declared.place, "{} {}; it is declared as {}", what, graph::str(found),
         text_of(declared));
}

// ---- names

const Item* Translator::find(const std::string& name) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto it = scopes_[i].find(name);
    if (it != scopes_[i].end()) return &it->second;
  }
  return nullptr;
}

const Item* Translator::resolve(const std::string& text, std::vector<int64_t>& projections,
                                std::string& base) const {
  base = text;
  while (true) {
    if (const Item* item = find(base)) {
      std::reverse(projections.begin(), projections.end());
      return item;
    }
    const size_t dot = base.rfind('.');
    if (dot == std::string::npos) return nullptr;
    const std::string index = base.substr(dot + 1);
    constexpr size_t kMostDigits = 9;
    if (index.empty() || index.size() > kMostDigits ||
        index.find_first_not_of("0123456789") != std::string::npos)
      return nullptr;
    projections.push_back(std::stoll(index));
    base.resize(dot);
  }
}

void Translator::define(const Binding& binding, Item item) {
  if (binding.type && !item.poisoned && !item.value.as<FuncRef>())
    check_type(*binding.type, item.value, fmt::format("`%{}` is", binding.name));
  scopes_.back()[binding.name] = std::move(item);
}

// ---- values

Item Translator::block(const Block& block) {
  scopes_.emplace_back();
  for (const Binding& binding : block.bindings) {
    const bool numbered = binding.name.find_first_not_of("0123456789.") == std::string::npos;
    define(binding, value(*binding.value, numbered ? "lv" : binding.name));
  }
  Item result = value(*block.result);
  scopes_.pop_back();
  return result;
}

Item Translator::value(const Tree& tree, const std::string& hint) {
  switch (tree.kind) {
    case Kind::kLocal: return local(tree);
    case Kind::kGlobal: return global(tree);
    case Kind::kConstant: return constant(tree);
    case Kind::kMeta: return metadata(tree);
    case Kind::kTuple: return tuple(tree);
    case Kind::kProjection: {
      const Item inner = value(*tree.items[0]);
      return projected(inner, tree.index, tree.place);
    }
    case Kind::kOperator: return operation(tree, hint);
    case Kind::kCall: return call(tree, hint);
    case Kind::kFunction: return lift(tree, hint);
    case Kind::kIf: return if_else(tree, hint);
    case Kind::kBlock: return block(tree.blocks[0]);
  }
  unreachable("a kind of tree");
}

Item Translator::local(const Tree& tree) {
  std::vector<int64_t> projections;
  std::string base;
  const Item* found = resolve(tree.text, projections, base);
  if (!found) fail(kUndefined, tree.place, "`%{}` is used where it is not defined", tree.text);
  Item item = *found;
  for (const int64_t index : projections) item = projected(item, index, tree.place);
  return item;
}

Item Translator::global(const Tree& tree) {
  const auto definition = definitions_.find(tree.text);
  if (definition == definitions_.end() && !module_.contains(tree.text))
    fail(kUnknownCallee, tree.place, "`@{}` is no function of the module", tree.text);
  if (definition != definitions_.end() && definition->second->generic)
    fail(kUnsupported, tree.place, "`@{}` has type parameters; such functions are not read",
         tree.text);
  if (poisoned_functions_.count(tree.text)) return {nullptr, {}, true};
  return {make<FuncRef>(tree.text, origin(tree.place))};
}

Item Translator::constant(const Tree& tree) {
  const DType dtype = *DType::parse(tree.dtype);
  std::vector<std::byte> element;
  const bool fits = dtype.is_float() ? script::append_element(dtype, tree.number, element)
                                     : script::append_element(dtype, tree.integer, element);
  if (!fits) fail(kBadLiteral, tree.place, "{} is no value of {}", tree.integer, tree.dtype);
  return {
      make<graph::Constant>(TensorData::owned(dtype, {}, std::move(element)), origin(tree.place))};
}

Item Translator::metadata(const Tree& tree) {
  if (tree.text != "relay.Constant")
    fail(kUnsupported, tree.place, "`meta[{}]`; only constants are read", tree.text);
  if (constants_.empty())
    fail(kBadModel, tree.place,
         "`meta[relay.Constant][{}]`, and the text has no metadata; print the module with "
         "show_meta_data=True, or give the constants as parameters",
         tree.index);
  if (tree.index >= static_cast<int64_t>(constants_.size()))
    fail(kBadModel, tree.place, "`meta[relay.Constant][{}]`; the metadata has {} constants",
         tree.index, constants_.size());
  const Ref<TensorData>& data = constants_[static_cast<size_t>(tree.index)];
  if (!data)
    fail(kBadModel, tree.place, "node {} of `relay.Constant` in the metadata is no constant",
         tree.index);
  return {make<graph::Constant>(data, origin(tree.place))};
}

std::optional<std::vector<Value>> Translator::values(const std::vector<TreePtr>& trees,
                                                     size_t first) {
  std::vector<Value> out;
  bool poisoned = false;
  for (size_t i = first; i < trees.size(); ++i) {
    const Item item = value(*trees[i]);
    poisoned = poisoned || item.poisoned;
    if (!item.poisoned && (item.value.as<FuncRef>() || !item.captured.empty()))
      fail(kUnsupported, trees[i]->place, "a function as a value; functions can be called only");
    out.push_back(item.value);
  }
  if (poisoned) return std::nullopt;
  return out;
}

// Tensors in a tuple of tuples, at most `most`: shared parts count each time.
static int64_t count_leaves(const Value& value, int64_t most) {
  const auto* tuple = value.as<graph::Tuple>();
  if (!tuple) return 1;
  int64_t count = 1;  // itself, so that empty ones end too
  for (const Value& item : tuple->values) {
    if (count >= most) return most;
    count += count_leaves(item, most - count);
  }
  return count;
}

Item Translator::tuple(const Tree& tree) {
  auto items = values(tree.items, 0);
  if (!items) return {nullptr, {}, true};
  constexpr int64_t kMostItems = 16384;
  int64_t count = 0;
  for (const Value& item : *items) count += count_leaves(item, kMostItems);
  if (count >= kMostItems)
    fail(kLimitExceeded, tree.place, "a tuple of more than {} values", kMostItems);
  return {builder_.emit(make<graph::Tuple>(std::move(*items), origin(tree.place)))};
}

Item Translator::projected(const Item& tuple, int64_t index, const Place& place) {
  if (tuple.poisoned) return tuple;
  const Type type = graph::type_of(tuple.value);
  const auto* items = type.as<graph::TupleType>();
  if (!items)
    fail(kTypeMismatch, place, "item {} of a value of type {}; expected a tuple", index,
         graph::str(type));
  if (index >= static_cast<int64_t>(items->types.size()))
    fail(kBadArgument, place, "item {} of a tuple of {}", index, items->types.size());
  return {builder_.emit(make<graph::TupleGetItem>(tuple.value, index, origin(place)))};
}

// ---- calls

Item Translator::operation(const Tree& tree, const std::string& hint) {
  if (tree.text == "call_lowered") return call_lowered(tree, hint);
  auto args = values(tree.items, 0);
  const OperatorRow* row = find_operator(tree.text);
  if (!row) {
    refusals_.add(origin(tree.place), tree.text, kNoOperator);
    return {nullptr, {}, true};
  }
  if (!args) return {nullptr, {}, true};
  if (const std::string wanted = expected_count(args->size(), row->least_args, row->most_args);
      !wanted.empty())
    fail(kBadArgument, tree.place, "`{}` has {} arguments; expected {}", tree.text, args->size(),
         wanted);
  builder_.set_origin(origin(tree));
  Value result;
  if (!refusals_.attempt(origin(tree.place), tree.text, [&]() {
        OpCall call(tree, std::move(*args), builder_, hint);
        result = row->convert(call);
        if (const std::string unread = call.unread(); !unread.empty())
          unsupported("attribute `{}`", unread);
      }))
    return {nullptr, {}, true};
  return {std::move(result)};
}

Item Translator::call(const Tree& tree, const std::string& hint) {
  const Item callee = value(*tree.items[0], hint);
  auto args = values(tree.items, 1);
  if (callee.poisoned || !args) return {nullptr, {}, true};
  const auto* ref = callee.value.as<FuncRef>();
  if (!ref)
    fail(kTypeMismatch, tree.place, "a call of a value of type {}; expected a function",
         graph::str(graph::type_of(callee.value)));
  if (module_.find<tir::PrimFunc>(ref->name))
    return call_prim_func(tree, ref->name, std::move(*args), hint);
  return call_function(tree, ref->name, callee, std::move(*args), hint);
}

Item Translator::call_function(const Tree& tree, const std::string& name, const Item& callee,
                               std::vector<Value> args, const std::string& hint) {
  const auto function = module_.find<graph::Function>(name);
  check(static_cast<bool>(function), "a function is called before it is read");
  const size_t own = function->params.size() - callee.captured.size();
  if (args.size() != own)
    fail(kBadArgument, tree.place, "`{}` is called with {} arguments; it has {} parameters", name,
         args.size(), own);
  Substitution bound;
  for (size_t i = 0; i < args.size(); ++i)
    graph::unify(function->params[i]->type, graph::type_of(args[i]), bound);
  for (size_t i = 0; i < args.size(); ++i) {
    const Type given = graph::type_of(args[i]);
    const Type wanted = substitute(function->params[i]->type, bound);
    if (!graph::is_subtype(given, wanted))
      throw CompileError(kTypeMismatch, origin(tree.items[i + 1]->place),
                         "argument {} of `{}` is {}; parameter `%{}` is {}", i + 1, name,
                         graph::str(given), function->params[i]->name, graph::str(wanted))
          .note(function->params[i]->origin, "the parameter");
  }
  args.insert(args.end(), callee.captured.begin(), callee.captured.end());
  builder_.set_origin(origin(tree));
  return {builder_.emit(make<graph::Call>(Value(make<FuncRef>(name)), std::move(args), Attrs(),
                                          std::vector<Type>{}, builder_.origin()),
                        hint)};
}

// The inputs, then the outputs, whose types the function's buffers tell.
Item Translator::call_prim_func(const Tree& tree, const std::string& name, std::vector<Value> args,
                                const std::string& hint) {
  const auto function = module_.find<tir::PrimFunc>(name);
  if (args.size() == 1 && args[0].as<graph::Tuple>()) args = args[0].as<graph::Tuple>()->values;
  if (args.size() >= function->params.size())
    fail(kBadArgument, tree.place,
         "PrimFunc `@{}` is called with {} inputs; it has {} parameters, the outputs among them",
         name, args.size(), function->params.size());
  Substitution bound;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto given = graph::tensor_type(args[i]);
    const Ref<tir::Buffer>& buffer = function->buffers[i];
    if (!buffer || !given->shape || given->shape->size() != buffer->shape.size()) continue;
    for (size_t d = 0; d < buffer->shape.size(); ++d)
      if (buffer->shape[d].as<Var>()) bound.emplace(buffer->shape[d].get(), (*given->shape)[d]);
  }
  std::vector<Type> outs;
  for (size_t i = args.size(); i < function->params.size(); ++i) {
    const Ref<tir::Buffer>& buffer = function->buffers[i];
    if (!buffer)
      fail(kBadArgument, tree.place, "parameter `{}` of PrimFunc `@{}` is no buffer",
           function->params[i]->name, name);
    std::vector<Expr> shape;
    for (const Expr& dim : buffer->shape)
      shape.push_back(graph::simplify_dim(tenon::cast(kInt64, substitute(dim, bound))));
    outs.push_back(make<TensorType>(std::move(shape), buffer->dtype));
  }
  builder_.set_origin(origin(tree));
  std::vector<Value> operands = {make<FuncRef>(name), make<graph::Tuple>(std::move(args))};
  return {builder_.emit(make<graph::Call>(graph::find_op("call_tir"), std::move(operands), Attrs(),
                                          std::move(outs), builder_.origin()),
                        hint)};
}

// call_lowered(@f, (%x, %y), metadata={...})
Item Translator::call_lowered(const Tree& tree, const std::string& hint) {
  if (tree.items.size() != 2 || tree.items[0]->kind != Kind::kGlobal)
    fail(kBadArgument, tree.place,
         "`call_lowered` takes a function of the module, `@f`, and a tuple of inputs");
  const Item callee = global(*tree.items[0]);
  const Item inputs = value(*tree.items[1]);
  if (callee.poisoned || inputs.poisoned) return {nullptr, {}, true};
  std::vector<Value> args;
  const Type type = graph::type_of(inputs.value);
  if (const auto* items = type.as<graph::TupleType>()) {
    for (size_t i = 0; i < items->types.size(); ++i)
      args.push_back(projected(inputs, static_cast<int64_t>(i), tree.place).value);
  } else {
    args.push_back(inputs.value);
  }
  const std::string& name = tree.items[0]->text;
  if (module_.find<tir::PrimFunc>(name)) return call_prim_func(tree, name, std::move(args), hint);
  fail(kUnknownCallee, tree.items[0]->place,
       "`call_lowered` of `@{}`, which is no PrimFunc of the module", name);
}

// ---- branches

Item Translator::if_else(const Tree& tree, const std::string& hint) {
  auto conditions = values(tree.items, 0);
  if (conditions) {
    const auto type = graph::tensor_type((*conditions)[0]);
    if (type->dtype != kBool || type->ndim != 0)
      fail(kTypeMismatch, tree.items[0]->place, "a condition of type {}; expected one bool",
           graph::str(Type(type)));
  }
  std::vector<Ref<graph::SeqExpr>> branches;
  bool poisoned = !conditions;
  for (const Block& side : tree.blocks) {
    builder_.begin_branch();
    const Item result = block(side);
    if (!result.poisoned && (result.value.as<FuncRef>() || !result.captured.empty()))
      fail(kUnsupported, side.result->place, "a function as the result of a branch");
    poisoned = poisoned || result.poisoned;
    branches.push_back(builder_.end_branch(result.poisoned ? Value(make<graph::PrimValue>(int64(0)))
                                                           : result.value));
  }
  if (poisoned) return {nullptr, {}, true};
  const Type a = graph::type_of(branches[0]->body), b = graph::type_of(branches[1]->body);
  if (!structural_equal(a, b))
    fail(kTypeMismatch, tree.place, "the branches give {} and {}; expected one type", graph::str(a),
         graph::str(b));
  const Origin at = origin(tree);
  builder_.set_origin(at);
  return {builder_.emit(make<graph::If>((*conditions)[0], branches[0], branches[1], at), hint)};
}

}  // namespace tenon::relay
