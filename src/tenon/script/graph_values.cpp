// SPDX-License-Identifier: Apache-2.0
// Evaluates types, operators and other values of graph functions.
#include <algorithm>
#include <map>

#include "tenon/script/graph_builder.h"

namespace tenon::script {

using ast::ExprKind;
using ast::Integer;
using graph::Type;
using graph::Value;

// ---- types --------------------------------------------------------------------------------------

Expr GraphBuilder::dimension(const Object& object, const Place& place) {
  Expr dim;
  if (const auto* text = object.as<std::string>()) {
    const ast::ExprPtr parsed = ast::parse_expression(module_.file, *text, place);
    if (parsed->kind == ExprKind::kName && !lookup_own(parsed->text))
      define(parsed->text, Expr(Var::size(parsed->text, kInt64, origin(place))));
    dim = scalar(*parsed);
  } else {
    dim = to_expr(object, place);
  }
  if (!dim->dtype.is_integer() || dim->dtype.is_vector())
    fail(kDTypeMismatch, place, "a dimension has dtype {}; expected an integer", dim->dtype.str());
  return dim;
}

std::vector<Expr> GraphBuilder::to_shape(const Object& object, const Place& place) {
  if (const auto* value = object.as<Value>())
    if (const auto* shape = value->as<graph::ShapeExpr>()) return shape->values;
  std::vector<Expr> out;
  for (const Object& item : to_items(object, place, "a shape"))
    out.push_back(dimension(item, place));
  return out;
}

Type GraphBuilder::to_type(const Object& object, const Place& place) {
  if (const auto* type = object.as<Type>()) return *type;
  if (object.is_none()) return graph::void_type();
  if (const auto* path = object.as<Path>()) {
    const Origin at = origin(place);
    if (path->text == "R.Tensor") return make<graph::TensorType>(kVoid, int64_t{-1}, at);
    if (path->text == "R.Shape") return make<graph::ShapeType>(int64_t{-1}, at);
    if (path->text == "R.Tuple") return make<graph::TupleType>(std::vector<Type>{}, at);
    if (path->text == "R.Object") return make<graph::ObjectType>(at);
    if (path->text == "R.Callable")
      return make<graph::FuncType>(std::nullopt, make<graph::ObjectType>(), false, at);
  }
  fail(kTypeMismatch, place, "{}; expected a type such as R.Tensor((2, 3), \"float32\")",
       describe(object));
}

std::vector<Type> GraphBuilder::to_types(const Object& object, const Place& place) {
  std::vector<Type> out;
  if (const auto* list = object.as<List>()) {
    for (const Object& item : *list->items) out.push_back(to_type(item, place));
  } else {
    out.push_back(to_type(object, place));
  }
  return out;
}

Type GraphBuilder::type_of_call(const std::string& name, const ast::Expr& call) {
  Arguments args = arguments(call);
  const Origin at = origin(call.place);
  Type out;
  if (name == "Tensor") {
    const auto* shape = args.find(0, {"shape"});
    const auto* dtype = args.find(1, {"dtype"});
    const auto* ndim = args.keyword({"ndim"});
    if (const auto* device = args.keyword({"vdevice"}); device && !device->value.is_none())
      fail(kUnsupported, device->place, "virtual devices");
    // R.Tensor("float32", ndim=2): the dtype stands first.
    if (shape && shape->value.as<std::string>() && !dtype) std::swap(shape, dtype);
    const DType element = dtype ? to_dtype(dtype->value, dtype->place) : kVoid;
    if (shape && !shape->value.is_none()) {
      std::vector<Expr> dims = to_shape(shape->value, shape->place);
      if (ndim && to_int(ndim->value, ndim->place, "ndim") != static_cast<int64_t>(dims.size()))
        fail(kRankMismatch, ndim->place, "ndim differs from the {} dimensions given", dims.size());
      out = make<graph::TensorType>(std::move(dims), element, at);
    } else {
      const int64_t rank = ndim ? to_int(ndim->value, ndim->place, "ndim") : -1;
      if (rank < -1) fail(kBadArgument, ndim->place, "ndim is {}", rank);
      out = make<graph::TensorType>(element, rank, at);
    }
  } else if (name == "Shape") {
    const auto* values = args.find(0, {"values"});
    const auto* ndim = args.keyword({"ndim"});
    if (values && !values->value.is_none()) {
      auto dims = to_shape(values->value, values->place);
      if (ndim && to_int(ndim->value, ndim->place, "ndim") != static_cast<int64_t>(dims.size()))
        fail(kRankMismatch, ndim->place, "ndim differs from the {} dimensions given", dims.size());
      out = make<graph::ShapeType>(std::move(dims), at);
    } else {
      out = make<graph::ShapeType>(ndim ? to_int(ndim->value, ndim->place, "ndim") : -1, at);
    }
  } else if (name == "Prim") {
    const auto* dtype = args.find(0, {"dtype"});
    const auto* value = args.keyword({"value"});
    if (value) {
      Expr known;
      if (value->value.as<std::string>()) {
        known = dimension(value->value, value->place);
      } else {
        known = to_expr(value->value, value->place);
      }
      if (dtype && !dtype->value.is_none() && to_dtype(dtype->value, dtype->place) != known->dtype)
        fail(kDTypeMismatch, dtype->place, "the value has dtype {}", known->dtype.str());
      out = make<graph::PrimType>(known->dtype, known, at);
    } else {
      const auto& given = need(args, call, 0, {"dtype"});
      out = make<graph::PrimType>(to_dtype(given.value, given.place), Expr(), at);
    }
  } else if (name == "Tuple") {
    std::vector<Type> types;
    for (auto& item : args.items) {
      item.used = item.keyword.empty();
      for (Type& type : to_types(item.value, item.place)) types.push_back(std::move(type));
    }
    out = make<graph::TupleType>(std::move(types), at);
  } else if (name == "Callable") {
    const auto* params = args.find(0, {"params"});
    const auto* result = args.find(1, {"ret"});
    const auto* purity = args.find(2, {"purity"});
    if (const auto* derived = args.keyword({"derive_func"}); derived && !derived->value.is_none())
      fail(kUnsupported, derived->place, "a derive_func, which only Python runs; state `ret`");
    std::optional<std::vector<Type>> types;
    if (params && !params->value.is_none()) types = to_types(params->value, params->place);
    const Type ret =
        result ? to_type(result->value, result->place) : Type(make<graph::ObjectType>());
    bool pure = types.has_value();
    if (purity) pure = to_int(purity->value, purity->place, "purity") != 0;
    out = make<graph::FuncType>(std::move(types), ret, pure, at);
  } else {  // Object
    out = make<graph::ObjectType>(at);
  }
  finish(args, call);
  return out;
}

// ---- values -------------------------------------------------------------------------------------

Value GraphBuilder::constant(const Object& object, std::optional<DType> dtype, const Place& place) {
  return make<graph::Constant>(to_tensor(object, dtype, std::nullopt, place), origin(place));
}

Value GraphBuilder::leaf(Value value, const Place& place) {
  if (!value || graph::is_leaf(value) || form_ == Form::kTrees) return value;
  auto outputs = std::exchange(outputs_, {});
  Value var = emit("lv", std::move(value), nullptr, nullptr, place);
  outputs_ = std::move(outputs);
  return var;
}

Object GraphBuilder::held(const Object& object, const std::string& name, const Place& place) {
  const auto* value = object.as<Value>();
  if (!value || !*value || graph::is_leaf(*value) || form_ == Form::kTrees || sequences_.empty())
    return object;
  auto outputs = std::exchange(outputs_, {});
  const Value var = emit(name, *value, nullptr, nullptr, place);
  outputs_ = std::move(outputs);
  return var;
}

Object GraphBuilder::unpacked(const Object& object, const Place& place) {
  const auto* value = object.as<Value>();
  if (!value || !*value) return object;
  const Value tuple = leaf(*value, place);
  const Type type = infer(tuple);
  const auto* types = type.as<graph::TupleType>();
  if (!types) return object;
  std::vector<Object> items;
  items.reserve(types->types.size());
  for (size_t i = 0; i < types->types.size(); ++i)
    items.emplace_back(
        Value(make<graph::TupleGetItem>(tuple, static_cast<int64_t>(i), origin(place))));
  return make_list(std::move(items), true);
}

bool GraphBuilder::call_statement(const ast::Expr& call) {
  const Object object = eval(call);
  if (!object.is_none()) emit("_", to_value(object, call.place), nullptr, nullptr, call.place);
  return true;
}

Value GraphBuilder::to_value(const Object& object, const Place& place, DType expected) {
  const Origin at = origin(place);
  if (const auto* value = object.as<Value>()) return *value;
  if (object.is_none()) return nullptr;
  if (object.is_literal())
    return constant(object, expected.is_void() ? std::nullopt : std::optional(expected), place);
  if (const auto* function = object.as<FunctionName>()) {
    if (module_.function_named(function->name)) return make<graph::FuncRef>(function->name, at);
  }
  if (const auto* expr = object.as<Expr>()) return make<graph::PrimValue>(*expr, at);
  if (const auto* text = object.as<std::string>()) return make<graph::StringValue>(*text, at);
  if (const auto* data = object.as<Ref<TensorData>>()) return make<graph::Constant>(*data, at);
  if (const auto* list = object.as<List>()) {
    // A tuple of numbers is a shape, a tuple of values a tuple.
    const auto is_dim = [](const Object& item) { return item.as<Integer>() || item.as<Expr>(); };
    if (!list->items->empty() && std::all_of(list->items->begin(), list->items->end(), is_dim))
      return make<graph::ShapeExpr>(to_shape(object, place), at);
    std::vector<Value> values;
    for (const Object& item : *list->items) values.push_back(argument(item, place));
    return make<graph::Tuple>(std::move(values), at);
  }
  fail(kTypeMismatch, place, "{}; expected a value of the graph", describe(object));
}

std::optional<Object> GraphBuilder::operate(const std::string& op, const Object& a, const Object& b,
                                            const Place& place) {
  const auto is_tensor = [](const Object& object) {
    const auto* value = object.as<Value>();
    return value && *value && !value->as<graph::PrimValue>();
  };
  if (!is_tensor(a) && !is_tensor(b)) return std::nullopt;
  static const std::map<std::string, std::string_view> kOperators = {
      {"+", "add"},        {"-", "subtract"},       {"*", "multiply"},
      {"/", "divide"},     {"//", "floor_divide"},  {"%", "mod"},
      {"**", "power"},     {"<", "less"},           {"<=", "less_equal"},
      {">", "greater"},    {">=", "greater_equal"}, {"==", "equal"},
      {"!=", "not_equal"}, {"negative", "negative"}};
  const auto it = kOperators.find(op);
  if (it == kOperators.end()) fail(kUnsupported, place, "operator `{}` of tensors", op);
  // A number takes the dtype of the tensor beside it.
  const auto dtype_beside = [&](const Object& other) -> DType {
    const auto* value = other.as<Value>();
    if (!value) return kVoid;
    const Type type = infer(*value);
    const auto* tensor = type.as<graph::TensorType>();
    return tensor ? tensor->dtype : kVoid;
  };
  std::vector<Value> values = {leaf(to_value(a, place, dtype_beside(b)), place)};
  if (op != "negative") values.push_back(leaf(to_value(b, place, dtype_beside(a)), place));
  return Object(Value(graph::call_op(it->second, std::move(values), {}, origin(place))));
}

std::optional<Object> GraphBuilder::subscript_other(const Object& object, const ast::Expr& expr) {
  const auto* value = object.as<Value>();
  if (!value || !*value) return std::nullopt;
  const ast::Expr& index = *expr.items[1];
  const int64_t i = to_int(eval(index), index.place, "the index of a tuple");
  const Value tuple = leaf(*value, expr.place);
  const Type type = graph::type_of(tuple);
  if (const auto* known = type.as<graph::TupleType>()) {
    if (i < 0 || i >= static_cast<int64_t>(known->types.size()))
      fail(kOutOfBounds, index.place, "item {} of a tuple of {}", i, known->types.size());
  } else if (!type.as<graph::ObjectType>()) {
    fail(kTypeMismatch, expr.place, "a value of type {} is indexed; expected a tuple",
         graph::str(type));
  }
  return Object(Value(make<graph::TupleGetItem>(tuple, i, origin(expr.place))));
}

// ---- calls --------------------------------------------------------------------------------------

std::vector<Type> GraphBuilder::take_type_args(Arguments& args) {
  if (const auto* out = args.keyword({"out_sinfo", "out_ty"})) {
    // Several outputs are one tuple.
    if (out->value.as<List>())
      return {make<graph::TupleType>(to_types(out->value, out->place), origin(out->place))};
    return {to_type(out->value, out->place)};
  }
  if (const auto* given = args.keyword({"sinfo_args", "ty_args"}))
    return to_types(given->value, given->place);
  return {};
}

// The input that Relax calls `keyword`: some of its names are other than ours.
static size_t input_named(const graph::OpDef& op, const std::string& keyword) {
  static const std::map<std::string_view, std::vector<std::string_view>> kOthers = {
      {"x1", {"lhs"}}, {"x2", {"rhs"}},   {"data", {"x"}},
      {"x", {"data"}}, {"end", {"stop"}}, {"expr", {"x", "shape"}}};
  const auto position = [&](std::string_view name) {
    size_t i = 0;
    while (i < op.inputs.size() && op.inputs[i].name != name) ++i;
    return i;
  };
  size_t found = position(keyword);
  const bool is_attribute =
      std::any_of(op.attrs.begin(), op.attrs.end(),
                  [&](const graph::OpAttr& attr) { return attr.name == keyword; });
  const auto others = kOthers.find(keyword);
  if (found < op.inputs.size() || is_attribute || others == kOthers.end()) return found;
  for (const std::string_view name : others->second)
    if (found == op.inputs.size()) found = position(name);
  return found;
}

// Relax's first form of what a call gives: a shape, or a list of them, and `dtype=`. Without that
// it is the one dtype of the arguments. Nothing where the item is a type or a list of types.
std::optional<Type> GraphBuilder::type_of_shape(Arguments& args, const Arguments::Item& item) {
  const auto* list = item.value.as<List>();
  const auto is_dim = [](const Object& object) {
    return object.as<ast::Integer>() || object.as<Expr>();
  };
  const auto is_shape = [&](const Object& object) {
    const auto* dims = object.as<List>();
    return dims && std::all_of(dims->items->begin(), dims->items->end(), is_dim);
  };
  const auto* value = item.value.as<Value>();
  const auto* given = value ? value->as<graph::ShapeExpr>() : nullptr;
  const auto* stated = args.find(3, {"dtype"});
  const bool is_one = given || (list && is_shape(item.value) && (stated || !list->items->empty()));
  const bool are_several = list && !is_one && !list->items->empty() &&
                           std::all_of(list->items->begin(), list->items->end(), is_shape);
  if (!is_one && !are_several) return std::nullopt;
  std::vector<DType> dtypes;
  const size_t count = is_one ? 1 : list->items->size();
  if (stated) {
    const auto* several = stated->value.as<List>();
    if (several)
      for (const Object& one : *several->items) dtypes.push_back(to_dtype(one, stated->place));
    else
      dtypes.assign(count, to_dtype(stated->value, stated->place));
    if (dtypes.size() != count)
      fail(kBadArgument, stated->place, "{} dtypes for {} outputs", dtypes.size(), count);
  } else {
    DType one = kVoid;
    bool differ = false;
    const Type inputs = graph::type_of(argument(args.items[1].value, args.items[1].place));
    const auto note = [&](const Type& type) {
      const auto* tensor = type.as<graph::TensorType>();
      if (!tensor) return;
      differ |= !one.is_void() && one != tensor->dtype;
      one = tensor->dtype;
    };
    if (const auto* tuple = inputs.as<graph::TupleType>())
      for (const Type& type : tuple->types) note(type);
    else
      note(inputs);
    if (differ || one.is_void())
      fail(
          kBadArgument, item.place,
          "a shape without a dtype, and the arguments have no dtype in common; expected "
          "`dtype=\"float32\"` or alike after it, or a type such as R.Tensor((2, 3), \"float32\")");
    dtypes.assign(count, one);
  }
  const auto tensor = [&](const Object& shape, DType dtype) -> Type {
    return make<graph::TensorType>(given ? given->values : to_shape(shape, item.place), dtype,
                                   origin(item.place));
  };
  if (is_one) return tensor(item.value, dtypes[0]);
  std::vector<Type> types;
  for (size_t i = 0; i < count; ++i) types.push_back(tensor((*list->items)[i], dtypes[i]));
  return Type(make<graph::TupleType>(std::move(types), origin(item.place)));
}

Value GraphBuilder::call_operator(const graph::OpDef& op, Arguments& args, const ast::Expr& call) {
  const Origin at = origin(call.place);
  const bool is_call = op.name.starts_with("call_tir") || op.name.starts_with("call_dps");
  std::vector<Type> type_args;
  if (is_call && args.positional > 2) {  // out_sinfo by position
    auto& item = args.items[2];
    item.used = true;
    if (const auto type = type_of_shape(args, item)) {
      type_args = {*type};
    } else
      type_args = item.value.as<List>()
                      ? std::vector<Type>{make<graph::TupleType>(to_types(item.value, item.place))}
                      : std::vector<Type>{to_type(item.value, item.place)};
  } else {
    type_args = take_type_args(args);
  }
  std::vector<Value> values;
  Attrs attrs;
  const auto place_input = [&](size_t i, const Object& object, const Place& place) {
    if (values.size() <= i) values.resize(i + 1);
    const auto* text = object.as<std::string>();
    if (text && op.traits.calls) {
      values[i] = make<graph::ExternRef>(*text, origin(place));
      return;
    }
    if (object.is_literal() && i < op.inputs.size() && op.inputs[i].literal) {
      values[i] = make<graph::PrimValue>(to_expr(object, place), origin(place));
      return;
    }
    Value value = argument(object, place);
    if (is_call && i == 1) {
      // The arguments are a tuple; one tensor stands for itself, `()` is a tuple of none.
      const bool is_shape = value && value.as<graph::ShapeExpr>();
      const bool is_tuple =
          value && (value.as<graph::Tuple>() || graph::type_of(value).as<graph::TupleType>());
      if (!is_tuple && !is_shape) value = make<graph::Tuple>(std::vector<Value>{value}, at);
    }
    values[i] = std::move(value);
  };
  const bool variadic = !op.inputs.empty() && op.inputs.back().variadic;
  const size_t most = is_call ? 2 : op.inputs.size();
  for (size_t i = 0; i < args.positional; ++i) {
    auto& item = args.items[i];
    if (item.used) continue;
    item.used = true;
    if (i < most || variadic) {
      place_input(i, item.value, item.place);
      continue;
    }
    const size_t attr = i - op.inputs.size();
    if (attr >= op.attrs.size())
      fail(kBadArgument, item.place, "`R.{}` has more arguments than it takes", op.name);
    attrs.set(op.attrs[attr].name, to_attr(item.value, item.place));
  }
  for (auto& item : args.items) {
    if (item.used) continue;
    item.used = true;
    const size_t input = input_named(op, item.keyword);
    if (input < op.inputs.size()) {
      place_input(input, item.value, item.place);
    } else {
      attrs.set(item.keyword, to_attr(item.value, item.place));
    }
  }
  // The checks of names, kinds and numbers, which also fill in what is left out.
  const auto checked = graph::call_op(op.name, values, attrs, at);
  if (type_args.empty()) return checked;
  return make<graph::Call>(checked->op, checked->args, checked->attrs, std::move(type_args), at);
}

// `R.const_splat(value, type)` and `R.const_ref(hash, type)`
Value GraphBuilder::printed_constant(const std::string& name, Arguments& args,
                                     const ast::Expr& call) {
  const Origin at = origin(call.place);
  const auto& value = need(args, call, 0, {name == "const_ref" ? "hash" : "value"});
  const auto& type_item = need(args, call, 1, {"type"});
  finish(args, call);
  const Type type = to_type(type_item.value, type_item.place);
  const auto* tensor = type.as<graph::TensorType>();
  const auto shape = tensor ? tensor->static_shape() : std::nullopt;
  if (!shape || tensor->dtype.is_void())
    fail(kTypeMismatch, type_item.place,
         "a constant of type {}; expected a tensor of known shape and dtype", graph::str(type));
  if (name == "const_splat") {
    checked_elements(*shape, std::max<int64_t>(1, tensor->dtype.bytes()), at);
    const auto element = to_tensor(value.value, tensor->dtype, std::nullopt, value.place);
    if (element->elements() != 1)
      fail(kBadArgument, value.place, "{} elements; expected one", element->elements());
    const auto bytes = element->data();
    return make<graph::Constant>(
        TensorData::splat(tensor->dtype, *shape, {bytes.begin(), bytes.end()}, at), at);
  }
  const Ref<TensorData> data = stored_constant(value);
  if (data->shape != *shape || data->dtype != tensor->dtype)
    fail(kTypeMismatch, type_item.place, "constant `{}` has shape {} and type {}",
         to_string(value.value, value.place, "the hash"), str(data->shape), data->dtype.str());
  return make<graph::Constant>(data, at);
}

// Calls with one argument.
std::optional<Object> GraphBuilder::call_unary(const std::string& name, Arguments& args,
                                               const ast::Expr& call) {
  using Item = Arguments::Item;
  struct Row {
    std::string_view name, argument;
    Object (*value)(GraphBuilder&, const Item&, const Origin&);
  };
  static constexpr Row kRows[] = {
      {"shape", "value",
       [](GraphBuilder& b, const Item& item, const Origin& at) -> Object {
         return Value(make<graph::ShapeExpr>(b.to_shape(item.value, item.place), at));
       }},
      {"prim_value", "value",
       [](GraphBuilder& b, const Item& item, const Origin& at) -> Object {
         return Value(make<graph::PrimValue>(b.to_expr(item.value, item.place), at));
       }},
      {"str", "value",
       [](GraphBuilder& b, const Item& item, const Origin& at) -> Object {
         return Value(
             make<graph::StringValue>(b.to_string(item.value, item.place, "the text"), at));
       }},
      {"dtype", "value",
       [](GraphBuilder& b, const Item& item, const Origin&) -> Object {
         return b.to_dtype(item.value, item.place);
       }},
      {"ExternFunc", "global_symbol",
       [](GraphBuilder& b, const Item& item, const Origin& at) -> Object {
         return Value(
             make<graph::ExternRef>(b.to_string(item.value, item.place, "the symbol"), at));
       }},
      {"emit", "value",
       [](GraphBuilder&, const Item& item, const Origin&) -> Object { return item.value; }},
  };
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    const Item& item = need(args, call, 0, {row.argument});
    finish(args, call);
    return row.value(*this, item, origin(call.place));
  }
  return std::nullopt;
}

std::optional<Object> GraphBuilder::call_relax(const std::string& name, const ast::Expr& call) {
  const Origin at = origin(call.place);
  if (name == "Tensor" || name == "Shape" || name == "Prim" || name == "Tuple" ||
      name == "Callable" || name == "Object")
    return Object(type_of_call(name, call));
  Arguments args = arguments(call);
  if (auto out = call_unary(name, args, call)) return out;
  if (name == "const") {
    if (args.positional == 0 && args.keyword({"shape"}))
      fail(kBadArgument, call.place,
           "a constant of a shape without a value; expected R.const(value, \"float32\"), "
           "R.zeros((2, 3), \"float32\"), or a parameter of the function");
    const auto& value = need(args, call, 0, {"value"});
    const auto* dtype = args.find(1, {"dtype"});
    finish(args, call);
    std::optional<DType> type;
    if (dtype) type = to_dtype(dtype->value, dtype->place);
    return Object(constant(value.value, type, call.place));
  }
  if (name == "const_splat" || name == "const_ref")
    return Object(printed_constant(name, args, call));
  if (name == "tuple") {
    std::vector<Value> values;
    for (auto& item : args.items) {
      item.used = item.keyword.empty();
      values.push_back(argument(item.value, item.place));
    }
    finish(args, call);
    return Object(Value(make<graph::Tuple>(std::move(values), at)));
  }
  if (name == "call_packed") {
    const auto& symbol = need(args, call, 0, {"func"});
    std::vector<Type> types = take_type_args(args);
    std::vector<Value> values;
    Attrs attrs;
    for (auto& item : args.items) {
      if (item.used) continue;
      item.used = true;
      if (item.keyword.empty()) {
        values.push_back(argument(item.value, item.place));
      } else {
        attrs.set(item.keyword, to_attr(item.value, item.place));
      }
    }
    const Value callee = make<graph::ExternRef>(to_string(symbol.value, symbol.place, "the symbol"),
                                                origin(symbol.place));
    return Object(Value(
        make<graph::Call>(callee, std::move(values), std::move(attrs), std::move(types), at)));
  }
  const graph::OpDef* op = graph::find_op(name);
  if (!op) return std::nullopt;
  return Object(call_operator(*op, args, call));
}

Object GraphBuilder::call_other(const ast::Expr& call, const Object& callee) {
  if (const auto* path = callee.as<Path>()) {
    if (path->text.starts_with("R."))
      if (auto out = call_relax(path->text.substr(2), call)) return *out;
    if (path->text.starts_with("R."))
      fail(kUnknownOperator, call.items[0]->place, "there is no operator `{}`", path->text);
    fail(kUndefined, call.items[0]->place, "`{}` is not known here", path->text);
  }
  // A macro: its text is evaluated as a function's of Python is.
  if (const auto* macro = callee.as<Helper>()) return call_helper(*macro, arguments(call), call);
  Value function;
  if (const auto* name = callee.as<FunctionName>())
    function = make<graph::FuncRef>(name->name, origin(call.items[0]->place));
  if (const auto* value = callee.as<Value>()) function = leaf(*value, call.place);
  if (!function) fail(kTypeMismatch, call.items[0]->place, "{} cannot be called", describe(callee));
  Arguments args = arguments(call);
  std::vector<Type> types = take_type_args(args);
  std::vector<Value> values;
  for (auto& item : args.items) {
    if (item.used) continue;
    item.used = item.keyword.empty();
    if (item.used) values.push_back(argument(item.value, item.place));
  }
  finish(args, call);
  return Value(make<graph::Call>(function, std::move(values), Attrs(), std::move(types),
                                 origin(call.place)));
}

std::optional<Object> GraphBuilder::call_operator(const HostValue& host, const Arguments& args,
                                                  const ast::Expr& call) {
  std::vector<Value> values;
  std::vector<Type> types;
  HostValue::Keywords attributes;
  for (const Arguments::Item& item : args.items) {
    if (!item.keyword.empty()) {
      attributes.emplace_back(item.keyword, item.value);
      continue;
    }
    Value value = argument(item.value, item.place);
    types.push_back(value ? graph::type_of(value) : Type());
    if (value) values.push_back(std::move(value));
  }
  const auto form = host.form(types, attributes, origin(call.place));
  if (!form) return std::nullopt;
  const FunctionName name = module_.capture(form->function, call.place);
  values.insert(values.end(), form->attributes.begin(), form->attributes.end());
  return Value(make<graph::Call>(make<graph::FuncRef>(name.name, origin(call.place)),
                                 std::move(values), Attrs(), std::vector<Type>{},
                                 origin(call.place)));
}

}  // namespace tenon::script
