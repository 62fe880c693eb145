// SPDX-License-Identifier: Apache-2.0
// Parses assignments, loops, branches and blocks of PrimFuncs.
#include "tenon/script/tir_builder.h"
#include "tenon/script/unsupported_names.h"
#include "tenon/tir/analysis/region.h"

namespace tenon::script {

using namespace tir;
using ast::ExprKind;
using ast::Integer;

// ---- assignments --------------------------------------------------------------------------------

void TirBuilder::store(const ast::Expr& target, const Object& value, const Place& value_place,
                       const Place& place, Statements& out) {
  const Object place_of_store = eval(target);
  Expr element = to_expr(place_of_store, target.place);
  const auto* load = element.as<BufferLoad>();
  if (!load) fail(kTypeMismatch, target.place, "{} is assigned to", describe(place_of_store));
  store_element(*load, value, value_place, place, out);
}

void TirBuilder::store_element(const BufferLoad& element, const Object& value,
                               const Place& value_place, const Place& place, Statements& out) {
  const Ref<Buffer>& buffer = element.buffer;
  if (value.as<double>() && !buffer->dtype.is_float())
    fail(kDTypeMismatch, value_place, "the number {} is stored into buffer `{}` of dtype {}",
         *value.as<double>(), buffer->name, buffer->dtype.str());
  Expr stored = to_expr(value, value_place, buffer->dtype);
  if (value.as<bool>() && buffer->dtype.is_integer())
    stored = imm(buffer->dtype, int64_t{*value.as<bool>()});
  // Other numbers are converted, as TVM does; that a fraction is lost is said.
  const DType from = stored->dtype.element(), to = buffer->dtype.element();
  const bool is_number = (from.is_float() || from.is_integer() || from.is_bool()) &&
                         (to.is_integer() || to.is_float());
  if (from != to && is_number && !(from.is_float() && to.is_integer()))
    stored = tenon::cast(to.with_lanes(stored->dtype.lanes), stored);
  if (stored->dtype.is_scalar()) stored = broadcast_to_lanes(stored, element.dtype.lanes);
  out.list.push_back(make<BufferStore>(buffer, stored, element.indices, origin(place)));
}

// `out = A[0]` where `out` names a buffer of one element in one dimension: a store into it, as TVM
// reads it, and no new value under that name.
bool TirBuilder::assign_element(const ast::Stmt& stmt, const Object& value, Statements& out) {
  if (stmt.annotation || stmt.target->kind != ExprKind::kName) return false;
  const Object* known = lookup_own(stmt.target->text);
  const auto* buffer = known ? known->as<Ref<Buffer>>() : nullptr;
  if (!buffer || (*buffer)->shape.size() != 1 || !is_int((*buffer)->shape[0], 1)) return false;
  const Expr* expr = value.as<Expr>();
  if (expr ? !(*expr)->dtype.is_scalar() || (*expr)->dtype.is_handle() : !value.is_literal())
    return false;
  const auto element =
      make<BufferLoad>(*buffer, std::vector<Expr>{imm((*buffer)->shape[0]->dtype, int64_t{0})});
  store_element(*element, value, stmt.value->place, stmt.target->place, out);
  return true;
}

void TirBuilder::bind(const std::string& name, const Place& place, const Object& value,
                      DType expected, bool is_annotated, const Place& value_place,
                      Statements& out) {
  const bool is_value = value.as<Expr>() || value.is_literal() || value.as<Region>();
  if (!is_value) return define(name, value);  // a name for something that is no value
  const Expr bound = to_expr(value, value_place, expected);
  // A pointer or a variable that has no name yet gets this one.
  if (bound.as<Var>() && !is_annotated && bound->dtype.is_handle()) return define(name, bound);
  Ref<Var> var;
  if (const auto* known = lookup_own(name); known && is_annotated && known->as<Pointer>())
    fail(kRedefined, place, "`{}` is a pointer already", name);
  var = make<Var>(name, bound->dtype, origin(place));
  out.list.push_back(make<Bind>(var, bound, origin(place)));
  define(name, Expr(var));
}

Scalar TirBuilder::declare_scalar(const std::string& name, DType dtype, const Place& place,
                                  Statements& out) {
  Buffer::Options options;
  options.scope = "local";
  const auto memory = make<Buffer>(name, dtype, std::vector<Expr>{imm(default_int_, int64_t{1})},
                                   std::move(options), origin(place));
  out.list.push_back(make<AllocBuffer>(memory, Attrs(), origin(place)));
  define(name, Scalar{memory});
  return {memory};
}

// `x = ...` where x changes: a store into its memory, which the first assignment makes.
bool TirBuilder::assign_scalar(const ast::Stmt& stmt, const Object& value, Statements& out) {
  if (stmt.target->kind != ExprKind::kName) return false;
  const std::string& name = stmt.target->text;
  const Object* known = lookup_own(name);
  const Scalar* found = known ? known->as<Scalar>() : nullptr;
  const bool is_value = value.as<Expr>() || value.is_literal() || value.as<Region>();
  if (!is_value || (!found && mutable_.count(&stmt) == 0)) return false;
  Scalar scalar;
  if (found) {
    scalar = *found;
  } else {
    DType dtype = kVoid;
    if (stmt.annotation) {
      const Object declaration = declared(*stmt.annotation, name);
      if (const auto* typed = declaration.as<Expr>()) dtype = (*typed)->dtype;
    }
    if (dtype.is_void()) dtype = to_expr(value, stmt.value->place)->dtype;
    if (dtype.is_handle() || dtype.is_vector())
      fail(kUnsupported, stmt.target->place,
           "variable `{}` of dtype {} is assigned again in a loop or branch; use a buffer", name,
           dtype.str());
    scalar = declare_scalar(name, dtype, stmt.target->place, out);
  }
  Expr stored = to_expr(value, stmt.value->place, scalar.buffer->dtype);
  const DType from = stored->dtype, to = scalar.buffer->dtype;
  if (from.is_integer() && (to.is_integer() || to.is_float())) stored = tenon::cast(to, stored);
  if (from.is_float() && to.is_float()) stored = tenon::cast(to, stored);
  if (stored->dtype != scalar.buffer->dtype)
    fail(kDTypeMismatch, stmt.value->place,
         "a value of dtype {} is assigned to `{}`, which is of dtype {} from its first assignment",
         stored->dtype.str(), name, scalar.buffer->dtype.str());
  out.list.push_back(make<BufferStore>(scalar.buffer, stored,
                                       std::vector<Expr>{imm(default_int_, int64_t{0})},
                                       origin(stmt.target->place)));
  return true;
}

void TirBuilder::assign(const ast::Stmt& stmt, Statements& out) {
  if (!stmt.more_targets.empty()) fail(kUnsupported, stmt.place, "an assignment with several `=`");
  const ast::Expr& target = *stmt.target;
  const std::string path = callee_path(*stmt.value);
  if (assign_result(target, *stmt.value, out)) return;
  if (path.starts_with("T.axis.") && assign_axis(path, target, *stmt.value)) return;
  if (target.kind == ExprKind::kSubscript) {
    const Object value = eval(*stmt.value);
    return store(target, value, stmt.value->place, target.place, out);
  }
  if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList) {
    if (declare_variables(target, *stmt.value)) return;
    return assign_items(target, eval(*stmt.value), stmt, out);
  }
  if (target.kind != ExprKind::kName) fail(kSyntax, target.place, "this cannot be assigned to");
  assign_call(target.text, target.place, stmt, out);
}

void TirBuilder::assign_items(const ast::Expr& target, const Object& value, const ast::Stmt& stmt,
                              Statements& out) {
  const auto& items = to_items(value, stmt.value->place, "what is unpacked");
  size_t starred = target.items.size();
  for (size_t i = 0; i < target.items.size(); ++i)
    if (target.items[i]->kind == ExprKind::kStarred) starred = i;
  const bool has_star = starred != target.items.size();
  if (has_star ? items.size() + 1 < target.items.size() : items.size() != target.items.size())
    fail(kBadArgument, stmt.place, "{} values for {} names", items.size(), target.items.size());
  const size_t rest = items.size() + 1 - target.items.size();
  for (size_t i = 0, at = 0; i < target.items.size(); ++i) {
    const ast::Expr& item = *target.items[i];
    if (i == starred) {
      if (item.items[0]->kind != ExprKind::kName)
        fail(kSyntax, item.place, "a name is expected after `*`");
      const auto first = items.begin() + static_cast<std::ptrdiff_t>(at);
      define(
          item.items[0]->text,
          make_list(std::vector<Object>(first, first + static_cast<std::ptrdiff_t>(rest)), false));
      at += rest;
    } else if (item.kind == ExprKind::kSubscript) {
      store(item, items[at++], stmt.value->place, item.place, out);
    } else if (item.kind == ExprKind::kName) {
      const Object* known = lookup_own(item.text);
      if (known && known->as<Scalar>())
        fail(kUnsupported, item.place,
             "`{}` changes in a loop or branch; assign it by a statement of its own", item.text);
      bind(item.text, item.place, items[at++], kVoid, false, stmt.value->place, out);
    } else {
      fail(kSyntax, item.place, "something that is neither a name nor an element");
    }
  }
}

// `x = T.let(value)`, `T.let(x, value)`, `T.let(value, var=x)`.
bool TirBuilder::assign_let(const std::string& name, const ast::Expr& call, Statements& out) {
  Arguments args = arguments(call);
  const auto variable = [&](const Arguments::Item& item) {
    const auto* expr = item.value.as<Expr>();
    const Var* var = expr ? expr->as<Var>() : nullptr;
    if (!var) fail(kTypeMismatch, item.place, "{}; expected a variable", describe(item.value));
    return ref_to(var);
  };
  const Arguments::Item* var = args.keyword({"var"});
  if (!var && args.positional == 2) var = args.find(0, {});
  const Arguments::Item& value = need(args, call, args.positional == 2 ? 1 : 0, {"value"});
  const Arguments::Item* type = args.keyword({"type_annotation", "type"});
  finish(args, call);
  const DType stated = type && !type->value.is_none() ? to_dtype(type->value, type->place) : kVoid;
  if (var && !var->value.is_none()) {
    const Ref<Var> defined = variable(*var);
    if (!stated.is_void() && stated != defined->dtype)
      fail(kDTypeMismatch, type->place, "`T.let` of `{}`, which is {}, says {}", defined->name,
           defined->dtype.str(), stated.str());
    out.list.push_back(
        make<Bind>(defined, to_expr(value.value, value.place, defined->dtype), origin(call.place)));
    if (!name.empty()) define(name, Expr(defined));
    return true;
  }
  if (name.empty()) fail(kBadArgument, call.place, "`T.let` without a variable");
  if (!stated.is_void()) {
    const auto typed = make<Var>(name, stated, origin(call.place));
    out.list.push_back(
        make<Bind>(typed, to_expr(value.value, value.place, stated), origin(call.place)));
    define(name, Expr(typed));
    return true;
  }
  bind(name, call.place, value.value, kVoid, true, value.place, out);
  return true;
}

// A dtype called without a value declares a variable.
bool TirBuilder::declare_variable(const std::string& path, const std::string& name,
                                  const Place& place, const ast::Expr& call) {
  const auto dtype = DType::parse(path.substr(2));
  if (dtype && (call.items.size() == 1 || dtype->is_handle())) {
    if (const Object* known = lookup_own(name)) {
      const auto* var = known->as<Expr>();
      if (var && var->as<Var>() && (*var)->dtype == *dtype) return true;  // declared before
    }
    Arguments args = arguments(call);
    const auto var = new_var(name, *dtype, args, place);
    finish(args, call);
    define(name, Expr(var));
    return true;
  }
  if (path == "T.var" || path == "T.SizeVar" || path == "T.Var") {
    const Expr unnamed = to_expr(eval(call), call.place);
    const Origin at = origin(place);
    define(name, path == "T.SizeVar" ? Expr(Var::size(name, unnamed->dtype, at))
                                     : Expr(make<Var>(name, unnamed->dtype, at)));
    return true;
  }
  if (path == "T.meta_var") {
    define(name, eval(call));
    return true;
  }
  return false;
}

// `n, m = T.int64(), T.int64()`
bool TirBuilder::declare_variables(const ast::Expr& targets, const ast::Expr& values) {
  if (values.kind != ExprKind::kTuple || values.items.size() != targets.items.size()) return false;
  for (size_t i = 0; i < values.items.size(); ++i) {
    const std::string path = callee_path(*values.items[i]);
    if (!path.starts_with("T.") || !DType::parse(path.substr(2)) ||
        values.items[i]->items.size() != 1 || targets.items[i]->kind != ExprKind::kName)
      return false;
  }
  for (size_t i = 0; i < values.items.size(); ++i)
    declare_variable(callee_path(*values.items[i]), targets.items[i]->text, targets.items[i]->place,
                     *values.items[i]);
  return true;
}

void TirBuilder::assign_call(const std::string& name, const Place& place, const ast::Stmt& stmt,
                             Statements& out) {
  const ast::Expr& call = *stmt.value;
  const std::string path = callee_path(call);
  if (path.starts_with("T.")) {
    if (define_buffer(path, name, place, call, out)) return;
    if (path == "T.let" && assign_let(name, call, out)) return;
    if (!stmt.annotation && declare_variable(path, name, place, call)) return;
  }
  // `y = A[0:4]` is the vector that the slice holds; a name of nothing else is a name.
  const Object value = eval(call);
  if (stmt.target && (assign_element(stmt, value, out) || assign_scalar(stmt, value, out))) return;
  if (!stmt.annotation) return bind(name, place, value, kVoid, false, call.place, out);
  if (path_of(*stmt.annotation) == "T.let")
    return bind(name, place, value, kVoid, true, call.place, out);
  // Annotated: a new variable of that type, always.
  const Object declaration = declared(*stmt.annotation, name);
  const auto* typed = declaration.as<Expr>();
  if (!typed || !typed->as<Var>())
    fail(kSyntax, stmt.annotation->place, "{} is no dtype", describe(declaration));
  const auto var = downcast<Var>(*typed);
  out.list.push_back(make<Bind>(var, to_expr(value, call.place, var->dtype), origin(place)));
  define(name, *typed);
}

void TirBuilder::augmented(const ast::Stmt& stmt, Statements& out) {
  const Object result = combine(stmt.text, eval(*stmt.target), eval(*stmt.value), stmt.place);
  if (stmt.target->kind == ExprKind::kSubscript)
    return store(*stmt.target, result, stmt.value->place, stmt.target->place, out);
  if (stmt.target->kind != ExprKind::kName)
    fail(kSyntax, stmt.target->place, "this cannot be assigned to");
  if (assign_scalar(stmt, result, out)) return;
  bind(stmt.target->text, stmt.target->place, result, kVoid, true, stmt.value->place, out);
}

// ---- axes ---------------------------------------------------------------------------------------

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
    const Arguments::Item* dtype = args.find(2, {"dtype"});
    const DType asked =
        dtype && !dtype->value.is_none() ? to_dtype(dtype->value, dtype->place) : kVoid;
    finish(args, call);
    const std::string kinds = to_string(kinds_item.value, kinds_item.place, "the kinds of axes");
    const auto& values = to_items(bindings.value, bindings.place, "the bindings");
    const bool has_names = target.kind == ExprKind::kTuple || target.kind == ExprKind::kList;
    std::vector<const ast::Expr*> names;
    size_t starred = values.size(), rest = 0;
    if (has_names) {
      for (size_t i = 0; i < target.items.size(); ++i) {
        const ast::Expr* item = target.items[i].get();
        if (item->kind != ExprKind::kStarred) {
          names.push_back(item);
          continue;
        }
        starred = i;
        rest = values.size() + 1 - std::min(target.items.size(), values.size() + 1);
        names.insert(names.end(), rest, item->items[0].get());
      }
    } else {
      names.assign(values.size(), &target);
    }
    if (kinds.size() != values.size() || names.size() != values.size())
      fail(kBadArgument, call.place, "`T.axis.remap` has {} names, {} kinds and {} bindings",
           names.size(), kinds.size(), values.size());
    std::vector<Object> axes;
    for (size_t i = 0; i < values.size(); ++i) {
      if (names[i]->kind != ExprKind::kName)
        fail(kSyntax, names[i]->place, "the name of an axis is expected");
      if (kinds[i] != 'S' && kinds[i] != 'R')
        fail(kBadArgument, kinds_item.place, "kind `{}` of an axis; expected S or R", kinds[i]);
      const Expr value = to_expr(values[i], bindings.place);
      const auto loop = loop_domains_.find(value.get());
      if (loop == loop_domains_.end())
        fail(kBadArgument, bindings.place, "binding {} of `T.axis.remap` is no loop variable", i);
      if (!asked.is_void() && value->dtype != asked)
        fail(kDTypeMismatch, dtype->place, "loop {} counts in {}", i, value->dtype.str());
      const bool shared = has_names ? i >= starred && i < starred + rest : values.size() > 1;
      axis(shared ? fmt::format("{}_{}", names[i]->text, has_names ? i - starred : i)
                  : names[i]->text,
           loop->second, kinds[i] == 'S' ? IterKind::kSpatial : IterKind::kReduce, value,
           names[i]->place);
      axes.emplace_back(Expr(current_block(call.place, path).parts.iter_vars.back().var));
    }
    // One name for several axes: a list of them.
    if (!has_names && values.size() > 1) define(target.text, make_list(axes, false));
    if (has_names && starred < target.items.size()) {
      const auto first = axes.begin() + static_cast<std::ptrdiff_t>(starred);
      define(
          target.items[starred]->items[0]->text,
          make_list(std::vector<Object>(first, first + static_cast<std::ptrdiff_t>(rest)), false));
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
  const Arguments::Item* dtype = args.find(2, {"dtype"});
  const DType asked =
      dtype && !dtype->value.is_none() ? to_dtype(dtype->value, dtype->place) : kVoid;
  finish(args, call);
  Expr value;
  DType expected = asked;
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
  if (!asked.is_void() && domain.extent->dtype != asked)
    fail(kDTypeMismatch, dtype->place, "the axis counts in {}", domain.extent->dtype.str());
  axis(target.text, std::move(domain), kind->second, std::move(value), target.place);
  return true;
}

// ---- control flow -------------------------------------------------------------------------------

void TirBuilder::name_loops(const ast::Expr& target, const std::vector<Object>& vars) {
  if (target.kind == ExprKind::kName)
    return define(target.text, vars.size() == 1 ? vars[0] : make_list(vars, true));
  assign_python(target, make_list(vars, true));
}

// The name of loop `i` of `count`, for the variable.
static std::string loop_name(const ast::Expr& target, size_t i, size_t count) {
  if (target.kind == ExprKind::kName)
    return count == 1 ? target.text : fmt::format("{}_{}", target.text, i);
  if (i < target.items.size() && target.items[i]->kind == ExprKind::kName)
    return target.items[i]->text;
  const ast::Expr* last = target.items.empty() ? nullptr : target.items.back().get();
  if (last && last->kind == ExprKind::kStarred && last->items[0]->kind == ExprKind::kName)
    return fmt::format("{}_{}", last->items[0]->text, i + 1 - target.items.size());
  return "i";
}

void TirBuilder::grid(const ast::Stmt& stmt, Statements& out) {
  Arguments args = arguments(*stmt.value);
  const ast::Expr& target = *stmt.target;
  const Arguments::Item* dtype = args.keyword({"dtype"});
  const DType asked =
      dtype && !dtype->value.is_none() ? to_dtype(dtype->value, dtype->place) : kVoid;
  bool has_star = false;
  for (const auto& item : target.items) has_star |= item->kind == ExprKind::kStarred;
  if (args.positional == 0 ||
      (target.kind != ExprKind::kName && !has_star && target.items.size() != args.positional))
    fail(kBadArgument, stmt.value->place, "a grid of {} extents for {} variables", args.positional,
         target.kind == ExprKind::kName ? 1 : target.items.size());
  const Scope scope(*this);
  std::vector<Ref<Var>> vars;
  std::vector<tir::Range> ranges;
  std::vector<Object> named;
  for (size_t i = 0; i < args.positional; ++i) {
    auto& item = args.items[i];
    item.used = true;
    if (const auto* pair = item.value.as<List>()) {  // (begin, end)
      if (pair->items->size() != 2)
        fail(kBadArgument, item.place, "{} as an extent; expected a number or (begin, end)",
             describe(item.value));
      ranges.push_back(bounds(&(*pair->items)[0], (*pair->items)[1], item.place, asked));
    } else {
      ranges.push_back(bounds(nullptr, item.value, item.place, asked));
    }
    if (!asked.is_void() && ranges[i].extent->dtype != asked)
      fail(kDTypeMismatch, item.place, "the loop counts in {}", ranges[i].extent->dtype.str());
    const Place& place =
        i < target.items.size() && !has_star ? target.items[i]->place : target.place;
    vars.push_back(
        make<Var>(loop_name(target, i, args.positional), ranges[i].extent->dtype, origin(place)));
    loop_domains_[vars[i].get()] = ranges[i];
    named.emplace_back(Expr(vars[i]));
  }
  finish(args, *stmt.value);
  name_loops(target, named);
  Stmt inner = body(stmt.body);
  for (size_t i = vars.size(); i-- > 0;)
    inner = make<For>(vars[i], ranges[i].min, ranges[i].extent, ForKind::kSerial, std::move(inner),
                      Attrs(), origin(stmt.place));
  out.list.push_back(std::move(inner));
}

void TirBuilder::for_loop(const ast::Stmt& stmt, Statements& out) {
  const std::string path = callee_path(*stmt.value);
  if (path == "T.grid") return grid(stmt, out);
  static const std::map<std::string, ForKind> kKinds = {
      {"range", ForKind::kSerial},        {"T.serial", ForKind::kSerial},
      {"T.parallel", ForKind::kParallel}, {"T.vectorized", ForKind::kVectorized},
      {"T.unroll", ForKind::kUnrolled},   {"T.thread_binding", ForKind::kThreadBinding}};
  const auto kind = kKinds.find(path);
  if (kind == kKinds.end())
    fail(kSyntax, stmt.value->place,
         "a loop over something else; expected range(...), T.grid(...), T.serial(...) or the like");
  const ast::Expr* target = stmt.target.get();
  if (target->kind == ExprKind::kTuple) {
    if (target->items.size() != 1)
      fail(kBadArgument, target->place, "{} variables for one loop", target->items.size());
    target = target->items[0].get();
  }
  if (target->kind != ExprKind::kName)
    fail(kSyntax, target->place, "the name of a loop variable is expected");
  Arguments args = arguments(*stmt.value);
  const auto* annotations = args.keyword({"annotations"});
  if (annotations && annotations->value.is_none()) annotations = nullptr;
  const Arguments::Item* dtype = args.keyword({"dtype"});
  const DType asked =
      dtype && !dtype->value.is_none() ? to_dtype(dtype->value, dtype->place) : kVoid;
  const Arguments::Item *thread = nullptr, *step = nullptr;
  if (path == "T.thread_binding") {
    thread = args.find(2, {"thread"});
    // thread_binding(extent, "threadIdx.x")
    if (!thread && args.positional == 2 && args.items[1].value.as<std::string>()) {
      thread = args.find(1, {});
      args.positional = 1;
    }
  } else {
    step = path == "range" ? args.find(2, {"step"}) : args.keyword({"step"});
  }
  if (step && step->value.is_none()) step = nullptr;
  const auto* first = args.find(0, {"start", "stop"});
  if (!first) fail(kBadArgument, stmt.value->place, "`{}` without an extent", path);
  const auto* second = args.find(1, {"stop"});
  if (second == first || (second && second->value.is_none())) second = nullptr;
  finish(args, *stmt.value);
  tir::Range range = second ? bounds(&first->value, second->value, stmt.value->place, asked)
                            : bounds(nullptr, first->value, first->place, asked);
  if (!asked.is_void() && range.extent->dtype != asked)
    fail(kDTypeMismatch, dtype->place, "the loop counts in {}", range.extent->dtype.str());
  const int64_t stride = step ? to_int(step->value, step->place, "the step") : 1;
  if (stride < 1) fail(kUnsupported, step->place, "a step of {}; expected one above 0", stride);
  const Expr begin = range.min;
  if (stride != 1)  // counted from 0, and the name is what the count stands for
    range = {imm(begin->dtype, int64_t{0}),
             tenon::ceildiv(range.extent, imm(range.extent->dtype, stride))};
  const auto var = make<Var>(target->text, range.extent->dtype, origin(target->place));
  const Scope scope(*this);
  if (stride == 1) loop_domains_[var.get()] = range;
  define(target->text, stride == 1 ? Expr(var) : begin + var * stride);
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
  // Decided while reading, as Python does; what it defines stays.
  if (const auto holds = decided(condition))
    return statements(*holds ? stmt.body : stmt.orelse, 0, out);
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
                                    assert_message(message.value, message.place),
                                    origin(context.place)));
    const Scope scope(*this);
    return with(stmt, item + 1, out);
  }
  if (path == "T.decl_buffer" || path == "T.allocate" || path == "T.allocate_const" ||
      path == "T.let") {
    // What the frame defines holds for the rest of its sequence; in one of its own, no further.
    if (!target && path == "T.let" && assign_let("", context, out)) {
      const Scope scope(*this);
      return with(stmt, item + 1, out);
    }
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
  const std::string reason = why_unsupported(path);
  if (!reason.empty()) fail(kUnsupported, context.place, "`{}`: {}", path, reason);
  fail(kUnsupported, context.place, "`with {}`", path.empty() ? "..." : path);
}

void TirBuilder::block(const ast::Stmt& stmt, const ast::Expr& call, Statements& out) {
  Arguments args = arguments(call);
  const auto* name = args.find(0, {"name"});
  const auto* bare = args.find(1, {"no_realize"});
  if (const auto* scope = args.keyword({"exec_scope"}); scope && !scope->value.is_none())
    if (!to_string(scope->value, scope->place, "exec_scope").empty())
      fail(kUnsupported, scope->place, "exec_scope; threads of a GPU run such blocks");
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
  const bool is_root =
      frames_.size() == 1 && frame.parts.name == "root" && frame.parts.iter_vars.empty();
  if (!is_root && (!frame.has_reads || !frame.has_writes)) {
    const auto computed = with_accesses(made);
    Block::Parts parts = made->parts();
    if (!frame.has_reads) parts.reads = computed->reads;
    if (!frame.has_writes) parts.writes = computed->writes;
    // What calls in it do is known when every function is: parser.cpp computes these again.
    if (has_calls(made->body))
      parts.annotations.set(kInferred,
                            int64_t{frame.has_reads ? 0 : 1} + (frame.has_writes ? 0 : 2));
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
