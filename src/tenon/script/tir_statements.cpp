// Assignments, loops, branches and blocks of PrimFuncs.
#include "tenon/script/tir_builder.h"
#include "tenon/tir/analysis/region.h"

namespace tenon::script {

using namespace tir;
using ast::ExprKind;
using ast::Integer;

// ---- assignments
// ---------------------------------------------------------------------------------

void TirBuilder::store(const ast::Expr& target, const Object& value, const Place& value_place,
                       const Place& place, Statements& out) {
  const Object place_of_store = eval(target);
  Expr element = to_expr(place_of_store, target.place);
  const auto* load = element.as<BufferLoad>();
  if (!load) fail(kTypeMismatch, target.place, "{} is assigned to", describe(place_of_store));
  if (value.as<double>() && !load->buffer->dtype.is_float())
    fail(kDTypeMismatch, value_place, "the number {} is stored into buffer `{}` of dtype {}",
         *value.as<double>(), load->buffer->name, load->buffer->dtype.str());
  Expr stored = to_expr(value, value_place, load->buffer->dtype);
  if (value.as<bool>() && load->buffer->dtype.is_integer())
    stored = imm(load->buffer->dtype, int64_t{*value.as<bool>()});
  if (stored->dtype.is_scalar()) stored = broadcast_to_lanes(stored, load->dtype.lanes);
  out.list.push_back(make<BufferStore>(load->buffer, stored, load->indices, origin(place)));
}

void TirBuilder::bind(const std::string& name, const Place& place, const Object& value,
                      DType expected, bool is_annotated, const Place& value_place,
                      Statements& out) {
  const bool is_value = value.as<Expr>() || value.is_literal() || value.as<Region>();
  if (!is_value) return define(name, value);  // a name for something that is no value
  const Expr bound = to_expr(value, value_place, expected);
  // `y = x` is another name of x, as `vi = T.axis...` would be.
  if (bound.as<Var>() && !is_annotated) return define(name, bound);
  Ref<Var> var;
  if (const auto* known = lookup(name); known && is_annotated && known->as<Pointer>())
    fail(kRedefined, place, "`{}` is a pointer already", name);
  var = make<Var>(name, bound->dtype, origin(place));
  out.list.push_back(make<Bind>(var, bound, origin(place)));
  define(name, Expr(var));
}

void TirBuilder::assign(const ast::Stmt& stmt, Statements& out) {
  if (!stmt.more_targets.empty()) fail(kUnsupported, stmt.place, "an assignment with several `=`");
  const ast::Expr& target = *stmt.target;
  const std::string path = callee_path(*stmt.value);
  if (path.starts_with("T.axis.") && assign_axis(path, target, *stmt.value)) return;
  if (target.kind == ExprKind::kSubscript) {
    const Object value = eval(*stmt.value);
    return store(target, value, stmt.value->place, target.place, out);
  }
  if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList) {
    const Object value = eval(*stmt.value);
    const auto& items = to_items(value, stmt.value->place, "what is unpacked");
    if (items.size() != target.items.size())
      fail(kBadArgument, stmt.place, "{} values for {} names", items.size(), target.items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      if (target.items[i]->kind == ExprKind::kSubscript) {
        store(*target.items[i], items[i], stmt.value->place, target.items[i]->place, out);
      } else if (target.items[i]->kind == ExprKind::kName) {
        bind(target.items[i]->text, target.items[i]->place, items[i], kVoid, false,
             stmt.value->place, out);
      } else {
        fail(kSyntax, target.items[i]->place, "something that is neither a name nor an element");
      }
    }
    return;
  }
  if (target.kind != ExprKind::kName) fail(kSyntax, target.place, "this cannot be assigned to");
  if (stmt.value->kind == ExprKind::kCall && path.starts_with("T."))
    return assign_call(target.text, target.place, stmt, out);
  if (!stmt.annotation)
    return bind(target.text, target.place, eval(*stmt.value), kVoid, false, stmt.value->place, out);
  assign_call(target.text, target.place, stmt, out);
}

void TirBuilder::assign_call(const std::string& name, const Place& place, const ast::Stmt& stmt,
                             Statements& out) {
  const ast::Expr& call = *stmt.value;
  const std::string path = callee_path(call);
  const Origin at = origin(place);
  if (path == "T.alloc_buffer") {
    Arguments args = arguments(call);
    const auto allocated = buffer(name, args, call, 0);
    finish(args, call);
    (frames_.empty() ? root_ : *frames_.back()).parts.alloc_buffers.push_back(allocated);
    return define(name, allocated);
  }
  if (path == "T.match_buffer") {
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
    const auto view = buffer(name, args, call, 1, &shape);
    finish(args, call);
    frame.parts.match_buffers.push_back({view, region});
    return define(name, view);
  }
  if (path == "T.decl_buffer") {
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
    if (pointer) {
      out.list.push_back(make<DeclBuffer>(declared, pointer, at));
    } else {
      out.list.push_back(make<AllocBuffer>(declared, attrs, at));
    }
    return define(name, declared);
  }
  if (path == "T.allocate") {
    Arguments args = arguments(call);
    const auto& extents = need(args, call, 0, {"extents"});
    const auto& dtype = need(args, call, 1, {"dtype"});
    const auto* scope = args.find(2, {"scope"});
    const auto* annotations = args.keyword({"annotations"});
    if (const auto* condition = args.find(3, {"condition"}))
      if (!condition->value.is_none() && !condition->value.as<bool>())
        fail(kUnsupported, condition->place, "a condition of T.allocate");
    finish(args, call);
    Buffer::Options options;
    if (scope) options.scope = to_string(scope->value, scope->place, "the scope");
    const auto allocated =
        make<Buffer>(name, to_dtype(dtype.value, dtype.place),
                     to_shape(extents.value, extents.place), std::move(options), at);
    out.list.push_back(make<AllocBuffer>(
        allocated, annotations ? to_attrs(annotations->value, annotations->place) : Attrs(), at));
    return define(name, Pointer{allocated});
  }
  if (path == "T.allocate_const") {
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
  if (path == "T.let") {
    Arguments args = arguments(call);
    const auto& value = need(args, call, 0, {"value"});
    args.keyword({"type_annotation", "var"});
    finish(args, call);
    return bind(name, place, value.value, kVoid, true, value.place, out);
  }
  // A dtype called without a value declares a variable.
  if (path.starts_with("T.") && !stmt.annotation) {
    const auto dtype = DType::parse(path.substr(2));
    if (dtype && (call.items.size() == 1 || dtype->is_handle())) {
      if (const Object* known = lookup(name)) {
        const auto* var = known->as<Expr>();
        if (var && var->as<Var>() && (*var)->dtype == *dtype) return;  // declared before
      }
      Arguments args = arguments(call);
      const auto var = new_var(name, *dtype, args, place);
      finish(args, call);
      return define(name, Expr(var));
    }
    if (path == "T.var" || path == "T.SizeVar" || path == "T.Var") {
      const Expr unnamed = to_expr(eval(call), call.place);
      return define(name, path == "T.SizeVar" ? Expr(Var::size(name, unnamed->dtype, at))
                                              : Expr(make<Var>(name, unnamed->dtype, at)));
    }
    if (path == "T.meta_var") return define(name, eval(call));
    if (path == "T.env_thread" || path == "T.launch_thread")
      fail(kUnsupported, call.place, "`{}`: threads of a GPU", path);
  }
  if (!stmt.annotation) return bind(name, place, eval(call), kVoid, false, call.place, out);
  // Annotated: a new variable of that type, always.
  const Object declaration = declared(*stmt.annotation, name);
  const auto* typed = declaration.as<Expr>();
  if (!typed) fail(kSyntax, stmt.annotation->place, "{} is no dtype", describe(declaration));
  const auto var = downcast<Var>(*typed);
  const Object value = eval(call);
  out.list.push_back(make<Bind>(var, to_expr(value, call.place, var->dtype), at));
  define(name, *typed);
}

void TirBuilder::augmented(const ast::Stmt& stmt, Statements& out) {
  ast::Expr sum(ExprKind::kBinary, stmt.place);
  sum.text = stmt.text;
  // The target is read, then assigned: the tree lends both sides to one expression.
  auto& target = const_cast<ast::Stmt&>(stmt).target;
  auto& value = const_cast<ast::Stmt&>(stmt).value;
  sum.items.push_back(std::move(target));
  sum.items.push_back(std::move(value));
  const auto give_back = [&] {
    target = std::move(sum.items[0]);
    value = std::move(sum.items[1]);
    sum.items.clear();
  };
  Object result;
  try {
    result = eval(sum);
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
  if (target->kind == ExprKind::kSubscript)
    return store(*target, result, value->place, target->place, out);
  if (target->kind != ExprKind::kName) fail(kSyntax, target->place, "this cannot be assigned to");
  bind(target->text, target->place, result, kVoid, true, value->place, out);
}

// ---- axes
// ----------------------------------------------------------------------------------------

void TirBuilder::axis(const std::string& name, tir::Range domain, IterKind kind, Expr value,
                      const Place& place) {
  Frame& frame = current_block(place, "T.axis");
  const auto var = make<Var>(name, domain.extent->dtype, origin(place));
  frame.parts.iter_vars.push_back({var, std::move(domain), kind});
  frame.iter_values.push_back(std::move(value));
  define(name, Expr(var));
}

bool TirBuilder::assign_axis(const std::string& path, const ast::Expr& target,
                             const ast::Expr& call) {
  Arguments args = arguments(call);
  if (path == "T.axis.remap") {
    const auto& kinds_item = need(args, call, 0, {"kinds"});
    const auto& bindings = need(args, call, 1, {"bindings"});
    args.find(2, {"dtype"});
    finish(args, call);
    const std::string kinds = to_string(kinds_item.value, kinds_item.place, "the kinds of axes");
    const auto& values = to_items(bindings.value, bindings.place, "the bindings");
    std::vector<const ast::Expr*> names;
    if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList) {
      for (const auto& item : target.items) names.push_back(item.get());
    } else {
      names.push_back(&target);
    }
    if (kinds.size() != values.size() || names.size() != values.size())
      fail(kBadArgument, call.place, "`T.axis.remap` has {} names, {} kinds and {} bindings",
           names.size(), kinds.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (names[i]->kind != ExprKind::kName)
        fail(kSyntax, names[i]->place, "the name of an axis is expected");
      if (kinds[i] != 'S' && kinds[i] != 'R')
        fail(kBadArgument, kinds_item.place, "kind `{}` of an axis; expected S or R", kinds[i]);
      const Expr value = to_expr(values[i], bindings.place);
      const auto loop = loop_domains_.find(value.get());
      if (loop == loop_domains_.end())
        fail(kBadArgument, bindings.place, "binding {} of `T.axis.remap` is no loop variable", i);
      axis(names[i]->text, loop->second, kinds[i] == 'S' ? IterKind::kSpatial : IterKind::kReduce,
           value, names[i]->place);
    }
    return true;
  }
  static const std::map<std::string, IterKind> kKinds = {{"T.axis.spatial", IterKind::kSpatial},
                                                         {"T.axis.reduce", IterKind::kReduce},
                                                         {"T.axis.scan", IterKind::kScan},
                                                         {"T.axis.opaque", IterKind::kOpaque}};
  const auto kind = kKinds.find(path);
  if (kind == kKinds.end()) fail(kUndefined, call.place, "`{}` is not known", path);
  if (target.kind != ExprKind::kName)
    fail(kSyntax, target.place, "the name of an axis is expected");
  const auto& domain_item = need(args, call, 0, {"dom"});
  const auto& value_item = need(args, call, 1, {"binding"});
  args.find(2, {"dtype"});
  finish(args, call);
  Expr value;
  DType expected = kVoid;
  if (!value_item.value.is_none() && !value_item.value.is_literal()) {
    value = to_expr(value_item.value, value_item.place);
    expected = value->dtype;
  }
  tir::Range domain;
  if (const auto* list = domain_item.value.as<List>()) {
    if (list->items->size() != 2)
      fail(kBadArgument, domain_item.place, "a domain of {} bounds; expected 2",
           list->items->size());
    domain = bounds(&(*list->items)[0], (*list->items)[1], domain_item.place, expected);
  } else {
    domain = bounds(nullptr, domain_item.value, domain_item.place, expected);
  }
  if (!value && !value_item.value.is_none())
    value = to_expr(value_item.value, value_item.place, domain.extent->dtype);
  axis(target.text, std::move(domain), kind->second, std::move(value), target.place);
  return true;
}

// ---- control flow
// --------------------------------------------------------------------------------

void TirBuilder::for_loop(const ast::Stmt& stmt, Statements& out) {
  const std::string path = callee_path(*stmt.value);
  std::vector<const ast::Expr*> names;
  if (stmt.target->kind == ExprKind::kTuple) {
    for (const auto& item : stmt.target->items) names.push_back(item.get());
  } else {
    names.push_back(stmt.target.get());
  }
  for (const ast::Expr* name : names)
    if (name->kind != ExprKind::kName)
      fail(kSyntax, name->place, "the name of a loop variable is expected");
  if (path == "T.grid") {
    Arguments args = arguments(*stmt.value);
    if (args.items.empty() || names.size() != args.items.size())
      fail(kBadArgument, stmt.value->place, "a grid of {} extents for {} variables",
           args.items.size(), names.size());
    const Scope scope(*this);
    std::vector<Ref<Var>> vars;
    std::vector<tir::Range> ranges;
    for (size_t i = 0; i < names.size(); ++i) {
      auto& item = args.items[i];
      item.used = item.keyword.empty();
      ranges.push_back(bounds(nullptr, item.value, item.place, kVoid));
      vars.push_back(make<Var>(names[i]->text, ranges[i].extent->dtype, origin(names[i]->place)));
      loop_domains_[vars[i].get()] = ranges[i];
      define(names[i]->text, Expr(vars[i]));
    }
    finish(args, *stmt.value);
    Stmt inner = body(stmt.body);
    for (size_t i = names.size(); i-- > 0;)
      inner = make<For>(vars[i], ranges[i].min, ranges[i].extent, ForKind::kSerial,
                        std::move(inner), Attrs(), origin(stmt.place));
    out.list.push_back(std::move(inner));
    return;
  }
  static const std::map<std::string, ForKind> kKinds = {
      {"range", ForKind::kSerial},        {"T.serial", ForKind::kSerial},
      {"T.parallel", ForKind::kParallel}, {"T.vectorized", ForKind::kVectorized},
      {"T.unroll", ForKind::kUnrolled},   {"T.thread_binding", ForKind::kThreadBinding}};
  const auto kind = kKinds.find(path);
  if (kind == kKinds.end())
    fail(kSyntax, stmt.value->place,
         "a loop over something else; expected range(...), T.grid(...), T.serial(...) or the like");
  if (names.size() != 1)
    fail(kBadArgument, stmt.target->place, "{} variables for one loop", names.size());
  Arguments args = arguments(*stmt.value);
  const auto* annotations = args.keyword({"annotations"});
  const auto* thread = args.find(2, {"thread"});
  if (const auto* step = args.keyword({"step"}); step && !step->value.is_none())
    if (to_int(step->value, step->place, "the step") != 1)
      fail(kUnsupported, step->place, "a loop with a step");
  const auto* first = args.find(0, {"start", "stop"});
  if (!first) fail(kBadArgument, stmt.value->place, "`{}` without an extent", path);
  const auto* second = args.find(1, {"stop"});
  if (second == first) second = nullptr;
  finish(args, *stmt.value);
  const tir::Range range = second ? bounds(&first->value, second->value, stmt.value->place, kVoid)
                                  : bounds(nullptr, first->value, first->place, kVoid);
  const auto var = make<Var>(names[0]->text, range.extent->dtype, origin(names[0]->place));
  const Scope scope(*this);
  loop_domains_[var.get()] = range;
  define(names[0]->text, Expr(var));
  Stmt inner = body(stmt.body);
  auto loop = make<For>(var, range.min, range.extent, kind->second, std::move(inner),
                        annotations ? to_attrs(annotations->value, annotations->place) : Attrs(),
                        origin(stmt.place));
  if (thread)
    const_cast<For*>(loop.get())->thread_tag =
        to_string(thread->value, thread->place, "the thread");
  out.list.push_back(std::move(loop));
}

void TirBuilder::if_else(const ast::Stmt& stmt, Statements& out) {
  const Object condition = eval(*stmt.value);
  if (condition.is_literal()) {  // decided while reading, as Python does
    const bool holds = as_int(to_expr(condition, stmt.value->place)).value_or(0) != 0;
    const Scope scope(*this);
    return statements(holds ? stmt.body : stmt.orelse, 0, out);
  }
  const Expr test = to_expr(condition, stmt.value->place, kBool);
  Stmt then_case = body(stmt.body);
  Stmt else_case;
  if (!stmt.orelse.empty()) else_case = body(stmt.orelse);
  out.list.push_back(
      make<IfThenElse>(test, std::move(then_case), std::move(else_case), origin(stmt.place)));
}

void TirBuilder::with(const ast::Stmt& stmt, size_t item, Statements& out) {
  if (item == stmt.items.size()) return statements(stmt.body, 0, out);
  const ast::Expr& context = *stmt.items[item].context;
  const ast::Expr* target = stmt.items[item].target.get();
  const std::string path = callee_path(context);
  const auto inner = [&] {
    const Scope scope(*this);
    Statements list;
    with(stmt, item + 1, list);
    return finish_body(std::move(list));
  };
  if (path == "T.block") {
    if (stmt.items.size() != 1) fail(kSyntax, context.place, "a block beside other frames");
    return block(stmt, context, out);
  }
  if (path == "T.init") {
    Frame& frame = current_block(context.place, path);
    if (frame.parts.init) fail(kRedefined, context.place, "a second `T.init` in one block");
    frame.parts.init = inner();
    return;
  }
  if (path == "T.attr") {
    Stmt enclosed = inner();
    out.list.push_back(attribute(context, std::move(enclosed)));
    return;
  }
  if (path == "T.Assert") {
    Arguments args = arguments(context);
    const auto& condition = need(args, context, 0, {"condition"});
    const auto& message = need(args, context, 1, {"message"});
    finish(args, context);
    out.list.push_back(make<Assert>(to_expr(condition.value, condition.place, kBool),
                                    to_string(message.value, message.place, "the message"),
                                    origin(context.place)));
    const Scope scope(*this);
    return with(stmt, item + 1, out);
  }
  if (path == "T.decl_buffer" || path == "T.allocate" || path == "T.allocate_const" ||
      path == "T.let") {
    // What the frame defines holds for the rest of its sequence; in one of its own, no further.
    if (!target || target->kind != ExprKind::kName)
      fail(kSyntax, context.place, "`with {}(...)` needs `as` and a name", path);
    ast::Stmt definition(ast::StmtKind::kAssign, context.place);
    auto& lent = const_cast<ast::WithItem&>(stmt.items[item]).context;
    definition.value = std::move(lent);
    const Scope scope(*this);
    try {
      assign_call(target->text, target->place, definition, out);
    } catch (...) {
      lent = std::move(definition.value);
      throw;
    }
    lent = std::move(definition.value);
    return with(stmt, item + 1, out);
  }
  fail(kUnsupported, context.place, "`with {}`", path.empty() ? "..." : path);
}

void TirBuilder::block(const ast::Stmt& stmt, const ast::Expr& call, Statements& out) {
  Arguments args = arguments(call);
  const auto* name = args.find(0, {"name"});
  const auto* bare = args.find(1, {"no_realize"});
  args.keyword({"exec_scope"});
  finish(args, call);
  Frame frame;
  if (name) frame.parts.name = to_string(name->value, name->place, "the name of a block");
  frames_.push_back(&frame);
  struct Leave {
    std::vector<Frame*>& frames;
    ~Leave() { frames.pop_back(); }
  } leave{frames_};
  frame.parts.body = body(stmt.body);
  auto made = make<Block>(frame.parts, origin(call.place));
  if (!frame.has_reads || !frame.has_writes) {
    const auto computed = with_accesses(made);
    Block::Parts parts = made->parts();
    if (!frame.has_reads) parts.reads = computed->reads;
    if (!frame.has_writes) parts.writes = computed->writes;
    made = make<Block>(std::move(parts), origin(call.place));
  }
  if (bare && bare->value.as<bool>() && *bare->value.as<bool>()) {
    out.list.push_back(made);
    return;
  }
  for (const Expr& value : frame.iter_values)
    if (!value) fail(kBadBlock, call.place, "an axis of block `{}` has no value", frame.parts.name);
  const Expr predicate =
      frame.predicate ? frame.predicate : Expr(make<IntImm>(kBool, 1, origin(call.place)));
  out.list.push_back(make<BlockRealize>(frame.iter_values, predicate, made, origin(call.place)));
}

}  // namespace tenon::script
