// SPDX-License-Identifier: Apache-2.0
// Parses definitions of buffers in PrimFuncs: parameters, allocations, views, constants.
#include "tenon/script/tir_builder.h"

namespace tenon::script {

using namespace tir;
using ast::ExprKind;

// Names in a string dimension that are not known yet are dimensions, of the dtype that the body
// declares them with: `n = T.int32()`.
void TirBuilder::define_match(const ast::Expr& dimension) {
  if (dimension.kind == ExprKind::kName && !lookup_own(dimension.text)) {
    const auto declared = declared_dims_.find(dimension.text);
    const Origin at = origin(dimension.place);
    define(dimension.text, declared == declared_dims_.end()
                               ? Expr(Var::size(dimension.text, kInt64, at))
                               : Expr(make<Var>(dimension.text, declared->second, at)));
  }
  if (dimension.kind == ExprKind::kAttribute || dimension.kind == ExprKind::kCall) return;
  for (const auto& item : dimension.items)
    if (item) define_match(*item);
}

std::vector<Expr> TirBuilder::to_shape(const Object& object, const Place& place) {
  if (const auto* text = object.as<std::string>())
    fail(kBadArgument, place, "the shape is \"{0}\"; expected a list, as in (\"{0}\",)", *text);
  std::vector<Object> items = {object};
  if (const auto* list = object.as<List>()) items = *list->items;
  std::vector<Expr> shape;
  for (const Object& item : items) {
    if (const auto* text = item.as<std::string>()) {  // a symbolic dimension by its name
      // The name of a dimension, which the first sight of it defines, or an expression of such.
      const ast::ExprPtr parsed = ast::parse_expression(module_.file, *text, place);
      define_match(*parsed);
      if (is_extern_) define_dimensions(*parsed);
      shape.push_back(scalar(*parsed));
      continue;
    }
    shape.push_back(to_expr(item, place));
  }
  return shape;
}

Ref<Buffer> TirBuilder::buffer(const std::string& name, Arguments& args, const ast::Expr& call,
                               size_t first, const std::vector<Expr>* given_shape,
                               DType otherwise) {
  std::vector<Expr> shape;
  if (const auto* item = args.find(first, {"shape", "extents"})) {
    shape = to_shape(item->value, item->place);
  } else if (given_shape) {
    shape = *given_shape;
  } else {
    need(args, call, first, {"shape"});
  }
  DType dtype = otherwise;
  if (const auto* item = args.find(first + 1, {"dtype"}))
    dtype = to_dtype(item->value, item->place);
  if (dtype.is_void() || dtype.is_handle())
    fail(kDTypeMismatch, call.place, "buffer `{}` of dtype {}; expected numbers", name,
         dtype.str());
  Buffer::Options options;
  if (is_extern_) options.alignment = std::max<int64_t>(1, dtype.bytes());
  if (const auto* item = args.find(first + 2, {"data"}); item && !item->value.is_none()) {
    const Expr data = to_expr(item->value, item->place);
    if (const auto* var = data.as<Var>(); var && var->dtype.is_handle()) {
      options.data = ref_to(var);
    } else {
      fail(kTypeMismatch, item->place, "{}; expected the pointer of a buffer",
           describe(item->value));
    }
  }
  if (const auto* item = args.find(first + 3, {"strides"}); item && !item->value.is_none())
    options.strides = to_shape(item->value, item->place);
  if (const auto* item = args.find(first + 4, {"elem_offset"}); item && !item->value.is_none())
    options.elem_offset = to_expr(item->value, item->place);
  if (const auto* item = args.find(first + 5, {"scope"})) {
    options.scope = to_string(item->value, item->place, "the scope");
    if (options.scope.empty()) options.scope = "global";
  }
  if (const auto* item = args.find(first + 6, {"align"})) {
    const int64_t align = to_int(item->value, item->place, "align");
    if (align > 0) options.alignment = align;
  }
  if (const auto* item = args.find(first + 7, {"offset_factor"})) {
    const int64_t factor = to_int(item->value, item->place, "offset_factor");
    if (factor > 0) options.offset_factor = factor;
  }
  if (const auto* item = args.find(first + 8, {"buffer_type"}); item && !item->value.is_none()) {
    const auto* text = item->value.as<std::string>();
    if (!text || (!text->empty() && *text != "default"))
      fail(kUnsupported, item->place,
           "a buffer type other than \"default\"; a dimension that is repeated has stride 0");
  }
  if (const auto* item = args.find(first + 9, {"axis_separators"}); item && !item->value.is_none())
    if (!to_items(item->value, item->place, "axis_separators").empty())
      fail(kUnsupported, item->place, "axis_separators");
  if (const auto* item = args.keyword({"layout"}); item && !item->value.is_none()) {
    const auto* text = item->value.as<std::string>();
    if (!text || *text != "default") fail(kUnsupported, item->place, "a layout of a buffer");
  }
  if (const auto* item = args.keyword({"byte_offset"}); item && !item->value.is_none())
    fail(kUnsupported, item->place, "byte_offset; write elem_offset, in elements");
  if (const auto* item = args.keyword({"allocated_addr"}); item && !item->value.is_none())
    fail(kUnsupported, item->place, "allocated_addr; the planner places buffers");
  return make<Buffer>(name, dtype, std::move(shape), std::move(options), origin(call.place));
}

void TirBuilder::match_buffer(const std::string& name, const ast::Expr& call) {
  Arguments args = arguments(call);
  const auto& source = need(args, call, 0, {"param"});
  if (const auto* expr = source.value.as<Expr>()) {
    for (size_t i = 0; i < params_.size(); ++i) {
      if (!params_[i].same_as(*expr)) continue;
      if (buffers_[i])
        fail(kRedefined, call.place, "parameter `{}` is matched twice", params_[i]->name);
      if (!params_[i]->dtype.is_handle())
        fail(kTypeMismatch, source.place, "parameter `{}` of dtype {} is no T.handle",
             params_[i]->name, params_[i]->dtype.str());
      buffers_[i] = buffer(name, args, call, 1);
      finish(args, call);
      return define(name, buffers_[i]);
    }
  }
  Frame& frame = current_block(call.place, "T.match_buffer of a region");
  const auto region = to_region(source.value, source.place);
  std::vector<Expr> shape;
  for (const tir::Range& range : region->region) shape.push_back(range.extent);
  const auto view = buffer(name, args, call, 1, &shape, region->buffer->dtype);
  finish(args, call);
  frame.parts.match_buffers.push_back({view, region});
  return define(name, view);
}

void TirBuilder::allocate(const std::string& name, const Place& place, const ast::Expr& call,
                          Statements& out) {
  const Origin at = origin(place);
  Arguments args = arguments(call);
  const auto& extents = need(args, call, 0, {"extents"});
  const auto& dtype = need(args, call, 1, {"dtype"});
  const auto* scope = args.find(2, {"scope"});
  const auto* annotations = args.keyword({"annotations"});
  if (const auto* condition = args.find(3, {"condition"}))
    if (const auto* always = condition->value.as<bool>();
        !condition->value.is_none() && !(always && *always))
      fail(kUnsupported, condition->place, "a condition of T.allocate");
  finish(args, call);
  Buffer::Options options;
  if (scope) options.scope = to_string(scope->value, scope->place, "the scope");
  const auto allocated =
      make<Buffer>(name, to_dtype(dtype.value, dtype.place), to_shape(extents.value, extents.place),
                   std::move(options), at);
  out.list.push_back(make<AllocBuffer>(
      allocated, annotations ? to_attrs(annotations->value, annotations->place) : Attrs(), at));
  return define(name, Pointer{allocated});
}

void TirBuilder::allocate_const(const std::string& name, const Place& place, const ast::Expr& call,
                                Statements& out) {
  const Origin at = origin(place);
  Arguments args = arguments(call);
  const auto& data = need(args, call, 0, {"data"});
  const auto& dtype_item = need(args, call, 1, {"dtype"});
  const DType dtype = to_dtype(dtype_item.value, dtype_item.place);
  // Its dtype comes before its shape.
  for (auto& item : args.items)
    if (&item == &dtype_item) item.keyword = "dtype";
  const auto& extents = need(args, call, 2, {"extents", "shape"});
  const std::vector<Expr> shape = to_shape(extents.value, extents.place);
  const auto sizes = as_ints(shape);
  if (!sizes) fail(kBadArgument, extents.place, "the shape of a constant is not constant");
  Arguments rest;
  for (const auto& item : args.items) {
    if (item.keyword.empty()) continue;
    rest.items.push_back(item);
  }
  const auto constant = buffer(name, rest, call, 0, &shape);
  finish(rest, call);
  Ref<TensorData> tensor;
  if (const auto* splat = data.value.as<Splat>()) {
    const auto element = to_tensor(*splat->element, dtype, std::nullopt, data.place);
    const auto bytes = element->data();
    checked_elements(*sizes, std::max<int64_t>(1, dtype.bytes()), origin(extents.place));
    tensor = TensorData::splat(dtype, *sizes, {bytes.begin(), bytes.end()}, at);
  } else {
    tensor = to_tensor(data.value, dtype, *sizes, data.place);
  }
  out.list.push_back(make<AllocConst>(constant, tensor, at));
  return define(name, constant);
}

bool TirBuilder::define_buffer(const std::string& path, const std::string& name, const Place& place,
                               const ast::Expr& call, Statements& out) {
  const Origin at = origin(place);
  if (path == "T.match_buffer") return match_buffer(name, call), true;
  if (path == "T.allocate") return allocate(name, place, call, out), true;
  if (path == "T.allocate_const") return allocate_const(name, place, call, out), true;
  if (path == "T.alloc_buffer") {
    Arguments args = arguments(call);
    const auto allocated = buffer(name, args, call, 0);
    if (const auto* annotations = args.keyword({"annotations"});
        annotations && !to_attrs(annotations->value, annotations->place).empty())
      fail(kUnsupported, annotations->place,
           "annotations of T.alloc_buffer; T.decl_buffer without `data` keeps them");
    finish(args, call);
    (frames_.empty() ? root_ : *frames_.back()).parts.alloc_buffers.push_back(allocated);
    define(name, allocated);
    return true;
  }
  if (path == "T.alloc_local") {
    Arguments args = arguments(call);
    args.items.push_back({std::string("local"), call.place, "scope", false});
    const auto allocated = buffer(name, args, call, 0);
    finish(args, call);
    out.list.push_back(make<AllocBuffer>(allocated, Attrs(), at));
    define(name, allocated);
    return true;
  }
  if (path == "T.local_scalar" || path == "T.alloc_scalar") {
    Arguments args = arguments(call);
    const auto* dtype = args.find(0, {"dtype"});
    if (const auto* scope = args.find(1, {"scope"}); scope && !scope->value.is_none())
      if (const std::string text = to_string(scope->value, scope->place, "the scope");
          text != "local")
        fail(kUnsupported, scope->place, "a scalar in scope `{}`; expected \"local\"", text);
    finish(args, call);
    declare_scalar(name, dtype ? to_dtype(dtype->value, dtype->place) : kFloat32, place, out);
    return true;
  }
  if (path != "T.decl_buffer") return false;
  Arguments args = arguments(call);
  const auto* data = args.find(2, {"data"});
  const auto* annotations = args.keyword({"annotations"});
  const Attrs attrs = annotations ? to_attrs(annotations->value, annotations->place) : Attrs();
  Expr pointer;
  if (data && !data->value.is_none()) {
    pointer = to_expr(data->value, data->place);
    // The view has a pointer of its own.
    for (auto& item : args.items)
      if (&item == data) item.value = Object();
  }
  const auto declared = buffer(name, args, call, 0);
  finish(args, call);
  if (pointer && !attrs.empty())
    fail(kUnsupported, annotations->place, "annotations of a view; its allocation may have some");
  if (pointer) {
    out.list.push_back(make<DeclBuffer>(declared, pointer, at));
  } else {
    out.list.push_back(make<AllocBuffer>(declared, attrs, at));
  }
  define(name, declared);
  return true;
}

}  // namespace tenon::script
