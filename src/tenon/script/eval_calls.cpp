// SPDX-License-Identifier: Apache-2.0
// Evaluates calls that mean the same at both levels: dtypes, scalar operations, intrinsics,
// Python's functions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/script/evaluator.h"
#include "tenon/support/strings.h"

namespace tenon::script {

using ast::Integer;

const Arguments::Item* Arguments::find(size_t position,
                                       std::initializer_list<std::string_view> names) {
  if (position < positional) {
    items[position].used = true;
    return &items[position];
  }
  for (Item& item : items) {
    if (item.keyword.empty()) continue;
    for (const std::string_view name : names) {
      if (item.keyword != name) continue;
      item.used = true;
      return &item;
    }
  }
  return nullptr;
}

Arguments Evaluator::arguments(const ast::Expr& call) {
  Arguments out;
  for (size_t i = 1; i < call.items.size(); ++i) {
    const ast::Expr& item = *call.items[i];
    if (item.kind == ast::ExprKind::kStarred) {
      const Object inner = eval(*item.items[0]);
      for (const Object& each : to_items(inner, item.place, "what `*` unpacks"))
        out.items.push_back({each, item.place, "", false});
      continue;
    }
    out.items.push_back({eval(item), item.place, "", false});
  }
  out.positional = out.items.size();
  for (const ast::Keyword& keyword : call.keywords) {
    for (const Arguments::Item& other : out.items)
      if (other.keyword == keyword.name)
        fail(kBadArgument, keyword.place, "argument `{}` is given twice", keyword.name);
    out.items.push_back({eval(*keyword.value), keyword.value->place, keyword.name, false});
  }
  return out;
}

static std::string callee_text(const ast::Expr& call) {
  std::string text;
  const ast::Expr* at = call.items[0].get();
  while (at->kind == ast::ExprKind::kAttribute) {
    text = "." + at->text + text;
    at = at->items[0].get();
  }
  return (at->kind == ast::ExprKind::kName ? at->text : "...") + text;
}

const Arguments::Item& Evaluator::need(Arguments& args, const ast::Expr& call, size_t position,
                                       std::initializer_list<std::string_view> names) {
  if (const Arguments::Item* found = args.find(position, names)) return *found;
  fail(kBadArgument, call.place, "`{}` lacks its argument `{}`", callee_text(call), *names.begin());
}

void Evaluator::finish(const Arguments& args, const ast::Expr& call) const {
  for (const Arguments::Item& item : args.items) {
    if (item.used) continue;
    if (item.keyword.empty())
      fail(kBadArgument, item.place, "`{}` has more arguments than it takes", callee_text(call));
    fail(kBadArgument, item.place, "`{}` has no argument `{}`", callee_text(call), item.keyword);
  }
}

// ---- dtypes and variables -----------------------------------------------------------------------

Ref<Var> Evaluator::new_var(const std::string& name, DType dtype, Arguments& args,
                            const Place& place) {
  const Arguments::Item* is_size = args.keyword({"is_size_var"});
  args.keyword({"expr"});  // None: call_dtype
  if (dtype.is_handle() && dtype.is_scalar()) {
    const Arguments::Item* pointee = args.find(0, {"dtype"});
    const Arguments::Item* scope = args.find(1, {"storage_scope"});
    if (!pointee && !scope) return make<Var>(name, kHandle, origin(place));
    return Var::pointer(name, pointee ? to_dtype(pointee->value, pointee->place) : kVoid,
                        scope ? to_string(scope->value, scope->place, "the scope") : "global",
                        origin(place));
  }
  if (is_size && is_size->value.as<bool>() && *is_size->value.as<bool>())
    return Var::size(name, dtype, origin(place));
  return make<Var>(name, dtype, origin(place));
}

Object Evaluator::call_dtype(DType dtype, const ast::Expr& call) {
  Arguments args = arguments(call);
  const Arguments::Item* named = args.positional == 0 ? args.keyword({"expr"}) : nullptr;
  const bool has_value = args.positional > 0 || (named && !named->value.is_none());
  if (!has_value || dtype.is_handle()) {
    auto var = new_var("v", dtype, args, call.place);
    finish(args, call);
    return Expr(var);
  }
  const Arguments::Item& item = need(args, call, 0, {"expr"});
  if (const auto* is_size = args.keyword({"is_size_var"});
      is_size && is_size->value.as<bool>() && *is_size->value.as<bool>())
    fail(kBadArgument, is_size->place, "a value is given; is_size_var is of a variable");
  finish(args, call);
  const DType element = dtype.element();
  const auto splat = [&](const Expr& scalar) { return broadcast_to_lanes(scalar, dtype.lanes); };
  if (const auto* text = item.value.as<std::string>()) {
    const double infinity = std::numeric_limits<double>::infinity();
    double value = 0;
    if (*text == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (*text == "inf" || *text == "-inf") {
      value = *text == "inf" ? infinity : -infinity;
    } else {
      fail(kBadLiteral, item.place, "`{}`; expected \"nan\", \"inf\" or \"-inf\"", *text);
    }
    return splat(make<FloatImm>(element, value, origin(call.place)));
  }
  if (item.value.is_literal()) {
    if (element.is_bool())
      return splat(make<IntImm>(kBool, as_int(to_expr(item.value, item.place)).value_or(0) != 0,
                                origin(call.place)));
    if (const auto* number = item.value.as<double>(); number && !element.is_float())
      fail(kBadLiteral, item.place, "{} is no {}", *number, element.str());
    Object value = item.value;
    if (const auto* flag = value.as<bool>()) value = Integer(*flag);
    return splat(to_expr(value, call.place, element));
  }
  Expr value = to_expr(item.value, item.place);
  if (value->dtype.lanes == 1) value = tenon::cast(element, value);
  return value->dtype.lanes == 1 ? splat(value) : tenon::cast(dtype, value);
}

// ---- scalar operations --------------------------------------------------------------------------

std::optional<Object> Evaluator::call_scalar(const std::string& name, const ast::Expr& call) {
  struct Row {
    BinaryOp op;
    bool folds;
  };
  static const std::unordered_map<std::string, Row> kBinary = [] {
    std::unordered_map<std::string, Row> rows;
    for (int i = 0; i < kBinaryOpCount; ++i) {
      const auto op = static_cast<BinaryOp>(i);
      rows.emplace(tenon::name_of(op), Row{op, false});
    }
    for (const auto& [text, op] :
         std::initializer_list<std::pair<const char*, BinaryOp>>{{"min", BinaryOp::kMin},
                                                                 {"max", BinaryOp::kMax},
                                                                 {"floordiv", BinaryOp::kFloorDiv},
                                                                 {"floormod", BinaryOp::kFloorMod},
                                                                 {"truncdiv", BinaryOp::kDiv},
                                                                 {"truncmod", BinaryOp::kMod},
                                                                 {"add", BinaryOp::kAdd},
                                                                 {"subtract", BinaryOp::kSub},
                                                                 {"multiply", BinaryOp::kMul},
                                                                 {"div", BinaryOp::kDiv}})
      rows.emplace(text, Row{op, true});
    return rows;
  }();
  if (const auto row = kBinary.find(name); row != kBinary.end()) {
    Arguments args = arguments(call);
    const auto& a = need(args, call, 0, {"a", "x"});
    const auto& b = need(args, call, 1, {"b", "y"});
    finish(args, call);
    return Object(binary(row->second.op, a.value, b.value, call.place, row->second.folds));
  }
  if (name == "ceildiv" || name == "Not" || name == "Cast" || name == "cast" || name == "Select" ||
      name == "Ramp" || name == "Broadcast" || name == "Shuffle" || name == "Let")
    return call_construct(name, call);
  return std::nullopt;
}

std::optional<Object> Evaluator::call_construct(const std::string& name, const ast::Expr& call) {
  Arguments args = arguments(call);
  const Origin at = origin(call.place);
  const auto take = [&](size_t i, std::initializer_list<std::string_view> names) -> const auto& {
    return need(args, call, i, names);
  };
  Object out;
  if (name == "ceildiv") {
    Expr x, y;
    const auto& a = take(0, {"lhs", "a"});
    const auto& b = take(1, {"rhs", "b"});
    unify(a.value, b.value, call.place, x, y);
    out = tenon::ceildiv(x, y);
  } else if (name == "Not") {
    const auto& a = take(0, {"a"});
    out = Expr(make<Not>(to_expr(a.value, a.place), at));
  } else if (name == "Cast") {
    const auto& dtype = take(0, {"dtype"});
    const auto& value = take(1, {"value"});
    out =
        Expr(make<Cast>(to_dtype(dtype.value, dtype.place), to_expr(value.value, value.place), at));
  } else if (name == "cast") {
    const auto& value = take(0, {"value"});
    const auto& dtype = take(1, {"dtype"});
    const DType to = to_dtype(dtype.value, dtype.place);
    Expr x = to_expr(value.value, value.place);
    out = tenon::cast(to.with_lanes(x->dtype.lanes), x);
  } else if (name == "Select") {
    const auto& condition = take(0, {"condition"});
    const auto& a = take(1, {"true_value"});
    const auto& b = take(2, {"false_value"});
    Expr x, y;
    unify(a.value, b.value, call.place, x, y);
    out = Expr(make<Select>(to_expr(condition.value, condition.place), x, y, at));
  } else if (name == "Ramp") {
    const auto& base = take(0, {"base"});
    const auto& stride = take(1, {"stride"});
    const auto& lanes = take(2, {"lanes"});
    Expr x, y;
    unify(base.value, stride.value, call.place, x, y);
    out = Expr(make<Ramp>(x, y, to_int(lanes.value, lanes.place, "the number of lanes"), at));
  } else if (name == "Broadcast") {
    const auto& value = take(0, {"value"});
    const auto& lanes = take(1, {"lanes"});
    out = Expr(make<Broadcast>(to_expr(value.value, value.place),
                               to_int(lanes.value, lanes.place, "the number of lanes"), at));
  } else if (name == "Shuffle") {
    const auto& vectors = take(0, {"vectors"});
    const auto& lanes = take(1, {"indices"});
    std::vector<int64_t> picked;
    for (const Object& lane : to_items(lanes.value, lanes.place, "the lanes"))
      picked.push_back(to_int(lane, lanes.place, "a lane"));
    out = Expr(make<Shuffle>(to_exprs(vectors.value, vectors.place), std::move(picked), at));
  } else {  // Let
    const auto& body = take(0, {"expr"});
    const auto& where = take(1, {"where"});
    const auto* bindings = where.value.as<Dict>();
    if (!bindings || bindings->items->empty())
      fail(kBadArgument, where.place, "{}; expected a dict of variables",
           script::describe(where.value));
    Expr result = to_expr(body.value, body.place);
    for (auto it = bindings->items->rbegin(); it != bindings->items->rend(); ++it) {
      const auto* expr = it->first.as<Expr>();
      const Var* var = expr ? expr->as<Var>() : nullptr;
      if (!var) fail(kBadArgument, where.place, "{} is no variable", script::describe(it->first));
      result = make<Let>(ref_to(var), to_expr(it->second, where.place, var->dtype), result, at);
    }
    out = result;
  }
  finish(args, call);
  return out;
}

// ---- intrinsics ---------------------------------------------------------------------------------

std::optional<Object> Evaluator::call_intrinsic(const std::string& name, const ast::Expr& call) {
  static const std::unordered_map<std::string_view, std::string_view> kSpellings = {
      {"tvm_call_packed", "call_packed"}, {"tvm_call_cpacked", "call_cpacked"}};
  const auto spelling = kSpellings.find(name);
  const Intrinsic* op = find_intrinsic(spelling == kSpellings.end() ? name : spelling->second);
  if (!op) return std::nullopt;
  Arguments args = arguments(call);
  size_t first = 0;
  DType result = kVoid;
  const Arguments::Item* stated = nullptr;  // where it follows from the operands
  const bool packed = op->id == IntrinsicId::kCallPacked || op->id == IntrinsicId::kCallCpacked;
  if (op->result == Intrinsic::Result::kGiven) {
    if (const Arguments::Item* given = args.keyword({"dtype"})) {
      result = to_dtype(given->value, given->place);
    } else if (packed) {
      result = kInt32;
    } else {
      const auto& item = need(args, call, 0, {"dtype"});
      result = to_dtype(item.value, item.place);
      first = 1;
    }
  } else {
    stated = args.keyword({"dtype"});
    args.keyword({"span"});  // where it stands in another text
  }
  std::vector<NodePtr> values;
  if (op->id == IntrinsicId::kIfThenElse && args.positional == 3) {
    Expr x, y;
    unify(args.items[1].value, args.items[2].value, call.place, x, y);
    const Expr condition = to_expr(args.items[0].value, args.items[0].place, kBool);
    if (!condition->dtype.is_bool())
      fail(kDTypeMismatch, args.items[0].place,
           "a condition of dtype {}; expected bool, as `!= 0` gives", condition->dtype.str());
    values = {condition, x, y};
    for (auto& item : args.items) item.used = true;
  } else {
    // Operands of one dtype: literals take that of the first that is none.
    DType expected = kVoid;
    if (op->arguments > 1 && op->effect == Effect::kPure &&
        op->result == Intrinsic::Result::kSame) {
      for (size_t i = first; i < args.positional && expected.is_void(); ++i)
        if (const auto* expr = args.items[i].value.as<Expr>()) expected = (*expr)->dtype;
    }
    const bool is_float_function = op->arguments == 1 && op->result == Intrinsic::Result::kSame &&
                                   op->id != IntrinsicId::kAbs &&
                                   op->id != IntrinsicId::kBitwiseNot &&
                                   op->id != IntrinsicId::kPopcount &&
                                   op->id != IntrinsicId::kClz && op->id != IntrinsicId::kLikely;
    for (size_t i = first; i < args.positional; ++i) {
      auto& item = args.items[i];
      item.used = true;
      if (item.value.is_literal()) {
        values.push_back(
            to_expr(item.value, item.place,
                    is_float_function && !item.value.as<double>() ? kFloat32 : expected));
      } else {
        const auto* region = item.value.as<Region>();
        if (region && packed) {
          const auto& drop = region->region->drop;
          const bool drops = std::find(drop.begin(), drop.end(), true) != drop.end();
          values.push_back(make<tir::BufferRegion>(region->region->buffer, region->region->region,
                                                   drops ? drop : std::vector<bool>{},
                                                   origin(item.place)));
        } else {
          values.push_back(to_argument(item.value, item.place));
        }
      }
    }
  }
  finish(args, call);
  Expr made = make<Call>(op, std::move(values), result, origin(call.place));
  if (stated && to_dtype(stated->value, stated->place) != made->dtype)
    fail(kDTypeMismatch, stated->place, "`{}` of dtype {} here", callee_text(call),
         made->dtype.str());
  return Object(std::move(made));
}

// ---- constants ----------------------------------------------------------------------------------

// As numpy casts: to a floating-point dtype, or to an integer one that holds every element.
Ref<TensorData> Evaluator::converted(const TensorData& data, DType dtype, const Place& place) {
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(data.elements() * std::max<int64_t>(1, dtype.bytes())));
  for (int64_t i = 0; i < data.elements(); ++i) {
    const bool fits = data.dtype.is_float() ? append_element(dtype, data.at_float(i), bytes)
                                            : append_element(dtype, data.at_int(i), bytes);
    if (!fits)
      fail(kDTypeMismatch, place, "element {} of a constant of dtype {} does not fit {}", i,
           data.dtype.str(), dtype.str());
  }
  return TensorData::owned(dtype, data.shape, std::move(bytes), origin(place));
}

Ref<TensorData> Evaluator::to_tensor(const Object& object, std::optional<DType> dtype,
                                     const std::optional<std::vector<int64_t>>& shape,
                                     const Place& place) {
  if (const auto* data = object.as<Ref<TensorData>>())
    return dtype && *dtype != (*data)->dtype ? converted(**data, *dtype, place) : *data;
  std::vector<int64_t> found;
  std::vector<const Object*> leaves;
  // Breadth first, so that every level has one length.
  std::vector<const Object*> level = {&object};
  while (level[0]->as<List>()) {
    const size_t length = level[0]->as<List>()->items->size();
    std::vector<const Object*> below;
    for (const Object* item : level) {
      const auto* list = item->as<List>();
      if (!list || list->items->size() != length)
        fail(kBadTensor, place, "the lists of a constant have different lengths");
      for (const Object& inner : *list->items) below.push_back(&inner);
    }
    found.push_back(static_cast<int64_t>(length));
    level = std::move(below);
    if (level.empty()) break;
  }
  for (const Object* leaf : level)
    if (leaf->as<List>()) fail(kBadTensor, place, "the lists of a constant have different depths");
  if (!dtype) {
    bool has_float = false, has_bool = false;
    for (const Object* leaf : level) {
      has_float |= leaf->as<double>() != nullptr;
      has_bool |= leaf->as<bool>() != nullptr;
    }
    dtype = has_float ? kFloat32 : has_bool ? kBool : kInt32;
  }
  std::vector<std::byte> bytes;
  bytes.reserve(level.size() * static_cast<size_t>(std::max<int64_t>(1, dtype->bytes())));
  for (const Object* leaf : level) {
    bool fits = false;
    if (const auto* flag = leaf->as<bool>()) {
      fits = append_element(*dtype, int64_t{*flag}, bytes);
    } else if (const auto* number = leaf->as<double>()) {
      fits = append_element(*dtype, *number, bytes);
    } else if (const auto* integer = leaf->as<Integer>()) {
      const bool wide =
          *dtype == kUInt64 && *integer >= 0 && *integer <= std::numeric_limits<uint64_t>::max();
      fits = (wide || (*integer <= std::numeric_limits<int64_t>::max() &&
                       *integer >= std::numeric_limits<int64_t>::min() &&
                       !(*dtype == kUInt64 && *integer < 0))) &&
             append_element(*dtype, static_cast<int64_t>(*integer), bytes);
    } else if (const auto* text = leaf->as<std::string>(); text && dtype->is_string()) {
      const int64_t id = intern_text(*text);
      const auto added = std::as_bytes(std::span(&id, 1));
      bytes.insert(bytes.end(), added.begin(), added.end());
      fits = true;
    } else if (const auto* expr = leaf->as<Expr>()) {
      if (const auto value = as_int(*expr)) fits = append_element(*dtype, *value, bytes);
      if (const auto value = as_float(*expr)) fits = append_element(*dtype, *value, bytes);
    }
    if (!fits)
      fail(kBadLiteral, place, "{} is no element of type {}", script::describe(*leaf),
           dtype->str());
  }
  if (shape && checked_elements(*shape, 1, origin(place)) == static_cast<int64_t>(level.size()))
    found = *shape;
  return TensorData::owned(*dtype, std::move(found), std::move(bytes), origin(place));
}

// ---- calls --------------------------------------------------------------------------------------

Object Evaluator::call_method(const Method& method, const ast::Expr& call) {
  Arguments args = arguments(call);
  const Origin at = origin(call.place);
  if (method.name == "astype") {
    const auto& dtype = need(args, call, 0, {"dtype"});
    finish(args, call);
    const Expr value = to_expr(*method.self, call.place);
    return Expr(
        make<Cast>(to_dtype(dtype.value, dtype.place).with_lanes(value->dtype.lanes), value, at));
  }
  const auto* buffer_object = method.self->as<Ref<tir::Buffer>>();
  if (const auto* pointer = method.self->as<Pointer>()) buffer_object = &pointer->buffer;
  check(buffer_object != nullptr, "a method of something else");
  const Ref<tir::Buffer>& buffer = *buffer_object;
  if (method.name == "scope") {
    finish(args, call);
    return buffer->scope;
  }
  if (method.name == "vload") {
    const auto& begin = need(args, call, 0, {"begin"});
    const auto* dtype = args.find(1, {"dtype"});
    finish(args, call);
    return Expr(make<tir::BufferLoad>(
        buffer,
        vector_indices(buffer, begin, dtype ? to_dtype(dtype->value, dtype->place) : buffer->dtype),
        at));
  }
  if (method.name == "offset_of") {
    const auto& indices_item = need(args, call, 0, {"indices"});
    finish(args, call);
    return make_list({element_offset(buffer, indices_item)}, false);
  }
  // access_ptr(mask, ptr_type, content_lanes, offset, extent)
  const auto& mask_item = need(args, call, 0, {"access_mask"});
  if (const auto* type = args.find(1, {"ptr_type"}); type && !type->value.is_none())
    if (!to_dtype(type->value, type->place).is_handle())
      fail(kUnsupported, type->place, "the type of a pointer; expected \"handle\"");
  const auto* lanes = args.find(2, {"content_lanes"});
  const auto* offset_item = args.find(3, {"offset"});
  const auto* extent_item = args.find(4, {"extent"});
  finish(args, call);
  if (lanes && to_int(lanes->value, lanes->place, "content_lanes") != 1)
    fail(kUnsupported, lanes->place, "an access pointer to vectors");
  int64_t mask = 0;
  if (const auto* text = mask_item.value.as<std::string>()) {
    for (const char c : *text) {
      if (c != 'r' && c != 'w')
        fail(kBadArgument, mask_item.place, "access `{}`; expected \"r\", \"w\" or \"rw\"", *text);
      mask |= c == 'r' ? 1 : 2;
    }
  } else {
    mask = to_int(mask_item.value, mask_item.place, "the access mask");
  }
  const Expr offset =
      offset_item ? to_expr(offset_item->value, offset_item->place) : imm(default_int_, int64_t{0});
  const Expr extent = extent_item && !extent_item->value.is_none()
                          ? to_expr(extent_item->value, extent_item->place)
                          : tir::element_count(buffer->shape);
  return Expr(
      make<Call>(IntrinsicId::kTvmAccessPtr,
                 std::vector<NodePtr>{make<StringImm>(buffer->dtype.str()), buffer->data,
                                      buffer->elem_offset ? buffer->elem_offset + offset : offset,
                                      extent, imm(kInt32, mask)},
                 kVoid, at));
}

std::vector<Expr> Evaluator::vector_indices(const Ref<tir::Buffer>& buffer,
                                            const Arguments::Item& begin, DType dtype) {
  std::vector<Expr> indices = begin.value.as<List>()
                                  ? to_exprs(begin.value, begin.place)
                                  : std::vector<Expr>{to_expr(begin.value, begin.place)};
  if (dtype.element() != buffer->dtype.element())
    fail(kDTypeMismatch, begin.place, "an access of dtype {} to buffer `{}` of dtype {}",
         dtype.str(), buffer->name, buffer->dtype.str());
  if (dtype.lanes != buffer->dtype.lanes && !indices.empty()) {
    Expr& last = indices.back();
    last = make<Ramp>(last, imm(last->dtype, int64_t{1}), dtype.lanes / buffer->dtype.lanes,
                      origin(begin.place));
  }
  return indices;
}

Expr Evaluator::element_offset(const Ref<tir::Buffer>& buffer, const Arguments::Item& item) {
  const std::vector<Expr> indices = item.value.as<List>()
                                        ? to_exprs(item.value, item.place)
                                        : std::vector<Expr>{to_expr(item.value, item.place)};
  if (indices.size() != buffer->ndim())
    fail(kIndexRank, item.place, "buffer `{}` is indexed with {} indices; it has {} dimensions",
         buffer->name, indices.size(), buffer->ndim());
  const auto strides = buffer->is_compact() ? tir::compact_strides(buffer->shape) : buffer->strides;
  Expr sum = buffer->elem_offset;
  for (size_t i = 0; i < indices.size(); ++i)
    sum = sum ? sum + indices[i] * strides[i] : indices[i] * strides[i];
  return sum ? sum : imm(default_int_, int64_t{0});
}

Ref<TensorData> Evaluator::stored_constant(const Arguments::Item& hash) {
  const std::string text = to_string(hash.value, hash.place, "the hash");
  const ConstantStore* store = module_.options->constants;
  Ref<TensorData> data = store ? store->find(text) : nullptr;
  if (!data) fail(kUndefined, hash.place, "constant `{}` is not in the file of constants", text);
  return data;
}

// `T.call_intrin("float32", "tir.exp", x)`
Object Evaluator::call_by_name(Arguments& args, const ast::Expr& expr) {
  const auto* dtype = args.keyword({"dtype"});
  const size_t first = dtype ? 0 : 1;
  if (!dtype) dtype = &need(args, expr, 0, {"dtype"});
  const auto& called = need(args, expr, first, {"func_name"});
  std::string text = to_string(called.value, called.place, "the intrinsic");
  for (const std::string_view prefix : {"tirx.", "tir."})
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  const Intrinsic* op = find_intrinsic(text);
  if (!op) fail(kUndefined, called.place, "`{}` is no intrinsic of T", text);
  std::vector<NodePtr> values;
  for (size_t i = first + 1; i < args.positional; ++i) {
    args.items[i].used = true;
    values.push_back(to_argument(args.items[i].value, args.items[i].place));
  }
  finish(args, expr);
  const DType result = to_dtype(dtype->value, dtype->place);
  return Expr(make<Call>(op, std::move(values),
                         op->result == Intrinsic::Result::kGiven ? result : kVoid,
                         origin(expr.place)));
}

// Calls with one argument.
std::optional<Object> Evaluator::call_unary(const std::string& name, const ast::Expr& expr) {
  using Item = Arguments::Item;
  struct Row {
    std::string_view name, argument;
    Object (*value)(Evaluator&, const Item&, const Origin&);
  };
  static constexpr Row kRows[] = {
      {"region", "region",
       [](Evaluator& e, const Item& item, const Origin&) -> Object {
         return e.to_region(item.value, item.place);
       }},
      {"llvm_lookup_intrinsic_id", "name",  // intrinsics of LLVM are named here
       [](Evaluator& e, const Item& item, const Origin& at) -> Object {
         return Expr(make<StringImm>(e.to_string(item.value, item.place, "the intrinsic"), at));
       }},
      {"type_annotation", "dtype",
       [](Evaluator& e, const Item& item, const Origin& at) -> Object {
         return Expr(make<StringImm>(e.to_dtype(item.value, item.place).str(), at));
       }},
      {"dtype", "dtype",
       [](Evaluator& e, const Item& item, const Origin&) -> Object {
         return e.to_dtype(item.value, item.place);
       }},
      {"StringImm", "value",
       [](Evaluator& e, const Item& item, const Origin& at) -> Object {
         return Expr(make<StringImm>(e.to_string(item.value, item.place, "the text"), at));
       }},
      {"const_splat", "value",
       [](Evaluator&, const Item& item, const Origin&) -> Object {
         return Splat{std::make_shared<const Object>(item.value)};
       }},
      {"const_ref", "hash",
       [](Evaluator& e, const Item& item, const Origin&) -> Object {
         return e.stored_constant(item);
       }},
  };
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    Arguments args = arguments(expr);
    const Item& item = need(args, expr, 0, {row.argument});
    finish(args, expr);
    return row.value(*this, item, origin(expr.place));
  }
  return std::nullopt;
}

// What is no operation on scalars: names of dtypes, constants, values of Python.
std::optional<Object> Evaluator::call_value(const std::string& name, const ast::Expr& expr) {
  if (auto out = call_unary(name, expr)) return out;
  Arguments args;
  if (name == "Range") {
    args = arguments(expr);
    const auto& begin = need(args, expr, 0, {"begin"});
    const auto* end = args.find(1, {"end"});
    finish(args, expr);
    return make_list({end ? begin.value : Object(Integer(0)), end ? end->value : begin.value},
                     true);
  }
  if (name == "call_intrin") {
    args = arguments(expr);
    return call_by_name(args, expr);
  }
  if (name == "meta_var" || name == "target" || name == "constexpr") {
    args = arguments(expr);
    const auto& value = need(args, expr, 0, {"value", "target"});
    finish(args, expr);
    check_size(value.value, expr.place);
    return value.value;
  }
  if (name == "var" || name == "Var" || name == "SizeVar") {
    args = arguments(expr);
    const bool named = name != "var";
    const auto* hint = named ? args.find(0, {"name"}) : nullptr;
    const auto& dtype = need(args, expr, named ? 1 : 0, {"dtype"});
    finish(args, expr);
    const std::string text = hint ? to_string(hint->value, hint->place, "the name") : "v";
    const DType type = to_dtype(dtype.value, dtype.place);
    return Expr(name == "SizeVar" ? Var::size(text, type, origin(expr.place))
                                  : make<Var>(text, type, origin(expr.place)));
  }
  if (name == "const") {
    args = arguments(expr);
    const auto& value = need(args, expr, 0, {"value"});
    const auto* dtype = args.find(1, {"dtype"});
    finish(args, expr);
    return to_expr(value.value, value.place, dtype ? to_dtype(dtype->value, dtype->place) : kVoid);
  }
  return std::nullopt;
}

Object Evaluator::eval_call(const ast::Expr& expr) {
  const Object callee = eval(*expr.items[0]);
  if (const auto* method = callee.as<Method>()) return call_method(*method, expr);
  if (const auto* helper = callee.as<Helper>(); helper && !helper->is_macro)
    return call_helper(*helper, arguments(expr), expr);
  if (const auto* host = callee.as<Host>()) return call_host(*host->value, expr);
  const auto* path = callee.as<Path>();
  if (path && path->text.starts_with("T.")) {
    const std::string name = path->text.substr(2);
    if (const auto dtype = DType::parse(name)) return call_dtype(*dtype, expr);
    if (auto out = call_scalar(name, expr)) return *out;
    if (auto out = call_value(name, expr)) return *out;
    if (auto out = call_intrinsic(name, expr)) return *out;
  }
  if (path &&
      (path->text.starts_with("py.") || path->text.starts_with("math.") || path->text == "range"))
    return call_python(path->text, expr);
  return call_other(expr, callee);
}

}  // namespace tenon::script
