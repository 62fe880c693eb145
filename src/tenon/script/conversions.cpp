// SPDX-License-Identifier: Apache-2.0
// Converts the value of a script's expression to the node, number or text that its place wants.
#include <limits>

#include "tenon/arith/analyzer.h"
#include "tenon/script/evaluator.h"

namespace tenon::script {

using ast::ExprKind;
using ast::Integer;

// ---- conversions --------------------------------------------------------------------------------

Expr Evaluator::to_expr(const Object& object, const Place& place, DType expected) {
  if (const auto* expr = object.as<Expr>()) return *expr;
  if (const auto* flag = object.as<bool>()) return make<IntImm>(kBool, *flag, origin(place));
  if (const auto* number = object.as<Integer>()) {
    DType dtype = expected.is_void() ? default_int_ : expected.element();
    if (dtype.is_float()) return make<FloatImm>(dtype, static_cast<double>(*number), origin(place));
    if (dtype.is_handle()) dtype = default_int_;
    const Integer least = std::numeric_limits<int64_t>::min();
    if (expected.is_void() && dtype == kInt32 &&
        (*number > std::numeric_limits<int32_t>::max() ||
         *number < std::numeric_limits<int32_t>::min()))
      dtype = kInt64;
    const Integer most = dtype == kUInt64 ? Integer(std::numeric_limits<uint64_t>::max())
                                          : Integer(std::numeric_limits<int64_t>::max());
    if (*number < (dtype.is_uint() ? Integer(0) : least) || *number > most)
      fail(kBadLiteral, place, "an integer that does not fit {}", dtype.str());
    return make<IntImm>(dtype, static_cast<int64_t>(*number), origin(place));
  }
  if (const auto* number = object.as<double>()) {
    const DType dtype = expected.is_void() ? kFloat32 : expected.element();
    if (!dtype.is_float())
      fail(kDTypeMismatch, place, "the number {} where dtype {} is expected", *number, dtype.str());
    return make<FloatImm>(dtype, *number, origin(place));
  }
  if (const auto* pointer = object.as<Pointer>()) return pointer->buffer->data;
  if (const auto* region = object.as<Region>()) {
    std::vector<Expr> indices;
    for (size_t i = 0; i < region->region->region.size(); ++i) {
      const tir::Range& range = region->region->region[i];
      if (region->region->drops(i)) {
        indices.push_back(range.min);
        continue;
      }
      const auto lanes = as_int(range.extent);
      if (!lanes)
        fail(kBadArgument, place, "a slice of `{}` elements as a value; expected a constant number",
             str(range.extent));
      indices.push_back(
          make<Ramp>(range.min, imm(range.min->dtype, int64_t{1}), *lanes, origin(place)));
    }
    return make<tir::BufferLoad>(region->region->buffer, std::move(indices), origin(place));
  }
  if (const auto* prim = object.as<graph::Value>()) {
    if (const auto* value = prim->as<graph::PrimValue>()) return value->value;
  }
  if (const auto* buffer = object.as<Ref<tir::Buffer>>())
    fail(kTypeMismatch, place, "buffer `{}` as a value; index it, as in `{}[...]`", (*buffer)->name,
         (*buffer)->name);
  fail(kTypeMismatch, place, "{}; expected a scalar expression", describe(object));
}

NodePtr Evaluator::to_argument(const Object& object, const Place& place) {
  if (const auto* text = object.as<std::string>()) return make<StringImm>(*text, origin(place));
  if (const auto* buffer = object.as<Ref<tir::Buffer>>()) return *buffer;
  if (const auto* function = object.as<FunctionName>())
    return make<GlobalVar>(function->name, origin(place));
  if (const auto* region = object.as<Ref<tir::BufferRegion>>()) return *region;
  return to_expr(object, place);
}

int64_t Evaluator::to_int(const Object& object, const Place& place, std::string_view what) {
  if (const auto* number = object.as<Integer>(); number &&
                                                 *number <= std::numeric_limits<int64_t>::max() &&
                                                 *number >= std::numeric_limits<int64_t>::min())
    return static_cast<int64_t>(*number);
  if (const auto* expr = object.as<Expr>())
    if (const auto value = as_int(*expr)) return *value;
  if (const auto* flag = object.as<bool>()) return *flag;
  fail(kBadArgument, place, "{} is {}; expected an integer constant", what, describe(object));
}

std::string Evaluator::to_string(const Object& object, const Place& place, std::string_view what) {
  if (const auto* text = object.as<std::string>()) return *text;
  fail(kBadArgument, place, "{} is {}; expected a string", what, describe(object));
}

DType Evaluator::to_dtype(const Object& object, const Place& place) {
  std::optional<DType> dtype;
  if (const auto* text = object.as<std::string>())
    dtype = text->empty() ? kVoid : DType::parse(*text);
  if (const auto* given = object.as<DType>()) dtype = *given;
  if (const auto* path = object.as<Path>(); path && path->text.starts_with("T."))
    dtype = DType::parse(path->text.substr(2));
  if (object.is_none()) dtype = kVoid;
  if (!dtype) {
    const auto* text = object.as<std::string>();
    fail(kBadLiteral, place, "{} is no dtype", text ? "`" + *text + "`" : describe(object));
  }
  return *dtype;
}

const std::vector<Object>& Evaluator::to_items(const Object& object, const Place& place,
                                               std::string_view what) {
  if (const auto* list = object.as<List>()) return *list->items;
  fail(kBadArgument, place, "{} is {}; expected a list or tuple", what, describe(object));
}

std::vector<Expr> Evaluator::to_exprs(const Object& object, const Place& place, DType expected) {
  std::vector<Expr> out;
  for (const Object& item : to_items(object, place, "this"))
    out.push_back(to_expr(item, place, expected));
  return out;
}

std::vector<Expr> Evaluator::to_shape(const Object& object, const Place& place) {
  if (!object.as<List>()) return {to_expr(object, place)};
  return to_exprs(object, place);
}

AttrValue Evaluator::to_attr(const Object& object, const Place& place) {
  if (object.is_none()) return {};
  if (const auto* flag = object.as<bool>()) return *flag;
  if (const auto* number = object.as<Integer>()) return to_int(*number, place, "an attribute");
  if (const auto* number = object.as<double>()) return *number;
  if (const auto* text = object.as<std::string>()) return *text;
  if (const auto* dtype = object.as<DType>()) return *dtype;
  if (const auto* path = object.as<Path>(); path && path->text.starts_with("T."))
    if (const auto dtype = DType::parse(path->text.substr(2))) return *dtype;
  if (const auto* list = object.as<List>()) {
    AttrList out;
    for (const Object& item : *list->items) out.push_back(to_attr(item, place));
    return out;
  }
  if (const auto* dict = object.as<Dict>()) {
    AttrValue::Map out;
    for (const auto& [key, item] : *dict->items)
      out[to_string(key, place, "a key")] = to_attr(item, place);
    return out;
  }
  if (const auto* expr = object.as<Expr>()) return NodePtr(*expr);
  if (const auto* buffer = object.as<Ref<tir::Buffer>>()) return NodePtr(*buffer);
  if (const auto* region = object.as<Ref<tir::BufferRegion>>()) return NodePtr(*region);
  if (const auto* value = object.as<graph::Value>()) return NodePtr(*value);
  if (const auto* type = object.as<graph::Type>()) return NodePtr(*type);
  fail(kUnsupported, place, "{} as an attribute", describe(object));
}

Attrs Evaluator::to_attrs(const Object& object, const Place& place) {
  const auto* dict = object.as<Dict>();
  if (!dict) fail(kBadArgument, place, "{}; expected a dict of attributes", describe(object));
  Attrs out;
  for (const auto& [key, item] : *dict->items)
    out.set(to_string(key, place, "the name of an attribute"), to_attr(item, place));
  return out;
}

// ---- buffers ------------------------------------------------------------------------------------

Expr Evaluator::extent_between(const Expr& begin, const Expr& end, const Place& place) {
  if (is_int(begin, 0) && begin->dtype == end->dtype) return end;
  const auto a = as_int(begin), b = as_int(end);
  if (a && b) {
    Expr x = begin, y = end;
    unify(x, y);
    return make<IntImm>(x->dtype, *b - *a, origin(place));
  }
  if (const auto* sum = end.as<Binary>(); sum && sum->op == BinaryOp::kAdd) {
    if (structural_equal(sum->lhs, begin)) return sum->rhs;
    if (structural_equal(sum->rhs, begin)) return sum->lhs;
  }
  arith::Analyzer analyzer;
  Expr x = begin, y = end;
  unify(x, y);
  return analyzer.simplify(y - x);
}

tir::Range Evaluator::bounds(const Object* begin, const Object& end, const Place& place,
                             DType expected) {
  if (!begin) {
    const Expr extent = to_expr(end, place, expected);
    return {imm(extent->dtype, int64_t{0}), extent};
  }
  Expr x, y;
  if (begin->is_literal() && end.is_literal()) {
    x = to_expr(*begin, place, expected);
    y = to_expr(end, place, expected);
  } else {
    unify(*begin, end, place, x, y);
  }
  return {x, extent_between(x, y, place)};
}

Object Evaluator::subscript(const Object& object, const ast::Expr& expr) {
  if (const auto* buffer = object.as<Ref<tir::Buffer>>()) return index_buffer(*buffer, expr);
  if (const auto* pointer = object.as<Pointer>()) return index_buffer(pointer->buffer, expr);
  if (auto result = subscript_other(object, expr)) return *result;
  const ast::Expr& index = *expr.items[1];
  if (auto out = item_of_host(object, expr)) return *out;
  if (const auto* list = object.as<List>()) {
    int64_t i = to_int(eval(index), index.place, "the index");
    const auto size = static_cast<int64_t>(list->items->size());
    if (i < 0) i += size;
    if (i < 0 || i >= size) fail(kOutOfBounds, index.place, "item {} of {}", i, describe(object));
    return (*list->items)[static_cast<size_t>(i)];
  }
  if (const auto* dict = object.as<Dict>()) {
    const Object key = eval(index);
    if (const auto* text = key.as<std::string>())
      for (const auto& [name, value] : *dict->items)
        if (const auto* other = name.as<std::string>(); other && *other == *text) return value;
  }
  fail(kBadArgument, expr.place, "{} cannot be indexed so", describe(object));
}

Object Evaluator::index_buffer(const Ref<tir::Buffer>& buffer, const ast::Expr& expr) {
  const ast::Expr& index = *expr.items[1];
  std::vector<const ast::Expr*> indices;
  if (index.kind == ExprKind::kTuple) {
    for (const auto& item : index.items) indices.push_back(item.get());
  } else {
    indices.push_back(&index);
  }
  std::vector<tir::Range> ranges;
  std::vector<bool> drop;
  bool has_slice = false;
  for (size_t i = 0; i < indices.size(); ++i) {
    const ast::Expr& item = *indices[i];
    const bool inside = i < buffer->ndim();
    const DType expected = inside ? buffer->shape[i]->dtype : default_int_;
    if (item.kind != ExprKind::kSlice) {
      const Expr at = scalar(item, expected);
      ranges.push_back({at, at->dtype.is_integer() ? imm(at->dtype.element(), int64_t{1}) : at});
      drop.push_back(true);
      continue;
    }
    if (!inside)
      fail(kIndexRank, expr.place, "buffer `{}` is indexed with {} indices; it has {} dimensions",
           buffer->name, indices.size(), buffer->ndim());
    const Object begin = item.items[0] ? eval(*item.items[0]) : Object(Integer(0));
    const Object end = item.items[1] ? eval(*item.items[1]) : Object(buffer->shape[i]);
    const tir::Range range = bounds(&begin, end, item.place, expected);
    if (!item.items[2]) {
      ranges.push_back(range);
      drop.push_back(false);
      has_slice = true;
      continue;
    }
    // With a step it is a vector, whatever stands around it.
    const Expr step = scalar(*item.items[2], range.min->dtype);
    const auto extent = as_int(range.extent), stride = as_int(step);
    if (!extent || !stride || *stride < 1)
      fail(kBadArgument, item.place, "a slice with a step; expected a constant length and step");
    const Expr vector =
        make<Ramp>(range.min, step, (*extent + *stride - 1) / *stride, origin(item.place));
    ranges.push_back({vector, imm(range.min->dtype, int64_t{1})});
    drop.push_back(true);
  }
  if (has_slice) {
    for (const tir::Range& range : ranges)
      if (range.min->dtype.is_vector())
        fail(kUnsupported, expr.place,
             "a slice with a step beside one without in an index of `{}`; a region has no steps: "
             "name a view, `T.decl_buffer(shape, dtype, data={}.data, strides=[...])`",
             buffer->name, buffer->name);
    return Region{
        make<tir::BufferRegion>(buffer, std::move(ranges), std::move(drop), origin(expr.place))};
  }
  std::vector<Expr> points;
  for (const tir::Range& range : ranges) points.push_back(range.min);
  return Expr(make<tir::BufferLoad>(buffer, std::move(points), origin(expr.place)));
}

Ref<tir::BufferRegion> Evaluator::to_region(const Object& object, const Place& place) {
  if (const auto* buffer = object.as<Ref<tir::Buffer>>()) return tir::BufferRegion::whole(*buffer);
  if (const auto* region = object.as<Region>())
    return make<tir::BufferRegion>(region->region->buffer, region->region->region,
                                   std::vector<bool>{}, region->region->origin);
  if (const auto* expr = object.as<Expr>()) {
    if (const auto* load = expr->as<tir::BufferLoad>()) {
      std::vector<tir::Range> ranges;
      for (const Expr& index : load->indices) {
        const auto* ramp = index.as<Ramp>();
        if (ramp && is_int(ramp->stride, 1)) {
          ranges.push_back({ramp->base, imm(ramp->base->dtype, ramp->lanes)});
        } else {
          ranges.push_back({index, imm(index->dtype.element(), int64_t{1})});
        }
      }
      return make<tir::BufferRegion>(load->buffer, std::move(ranges), std::vector<bool>{},
                                     load->origin);
    }
  }
  fail(kTypeMismatch, place, "{}; expected a region of a buffer", describe(object));
}

}  // namespace tenon::script
