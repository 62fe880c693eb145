// SPDX-License-Identifier: Apache-2.0
// Prints TensorIR statements, blocks and functions as TVMScript.
#include "tenon/script/implicit_root.h"
#include "tenon/script/printer_impl.h"

namespace tenon::script {

using namespace tir;

std::string Printer::var_type(const Var& var) {
  if (!var.dtype.is_handle() || var.dtype.is_vector()) return "T." + var.dtype.str();
  if (var.pointee.is_void() && var.scope.empty()) return "T.handle";
  const std::string pointee = var.pointee.is_void() ? "None" : quoted(var.pointee.str());
  return fmt::format("T.handle({}, {})", pointee, quoted(var.scope));
}

void Printer::define_buffer(const Ref<Buffer>& buffer) {
  if (names_.count(buffer->data.get())) return;
  names_.emplace(buffer->data.get(), name_of(buffer) + ".data");
  kept_.push_back(buffer->data);
  scopes_.back().push_back(buffer->data.get());
}

std::string Printer::buffer_args(const Ref<Buffer>& buffer, bool with_shape) {
  return buffer_args(buffer, with_shape, is_named(buffer->data) ? name_of(buffer->data) : "");
}

std::string Printer::buffer_args(const Ref<Buffer>& buffer, bool with_shape,
                                 const std::string& data) {
  for (const Expr& dim : buffer->shape) declare_variables(dim);
  for (const Expr& stride : buffer->strides) declare_variables(stride);
  if (buffer->elem_offset) declare_variables(buffer->elem_offset);
  std::string text;
  if (with_shape) text = tuple(buffer->shape) + ", ";
  text += quoted(buffer->dtype.str());
  if (!data.empty()) text += ", data=" + data;
  if (!buffer->strides.empty()) text += ", strides=[" + exprs(buffer->strides) + "]";
  if (buffer->elem_offset) text += ", elem_offset=" + expr(buffer->elem_offset);
  if (buffer->scope != "global") text += ", scope=" + quoted(buffer->scope);
  if (buffer->alignment != 64) text += fmt::format(", align={}", buffer->alignment);
  if (buffer->offset_factor != 1) text += fmt::format(", offset_factor={}", buffer->offset_factor);
  define(buffer, buffer->name);
  define_buffer(buffer);
  return text;
}

// A buffer parameter that can stand in the signature: nothing of its handle is used or typed, and
// its shape names nothing that the signature would have to define.
bool Printer::is_plain_param(const Ref<Var>& param, const Ref<Buffer>& buffer,
                             const std::unordered_map<const Node*, int>& uses) const {
  const auto it = uses.find(param.get());
  if (it != uses.end() || !param->pointee.is_void() || !param->scope.empty()) return false;
  if (is_named(buffer->data)) return false;
  return as_ints(buffer->shape) && as_ints(buffer->strides) &&
         (!buffer->elem_offset || as_int(buffer->elem_offset));
}

bool Printer::elides_root(const PrimFunc& function) const {
  const Block* root = root_block(function);
  if (!root || !root->reads.empty() || !root->writes.empty() || !root->match_buffers.empty() ||
      root->init || !root->annotations.empty())
    return false;
  if (!is_int(function.body.as<BlockRealize>()->predicate, 1)) return false;
  return gets_root_block(root->body, !root->alloc_buffers.empty());
}

void Printer::prim_func(const std::string& name, const PrimFunc& function) {
  const bool elided = elides_root(function);
  std::string options;
  const auto option = [&](const std::string& text) {
    options += (options.empty() ? "" : ", ") + text;
  };
  if (function.is_private) option("private=True");
  if (!elided && !function.body.as<BlockRealize>() && contains_block(function.body))
    option("implicit_root=False");
  if (function_name(name) != name) option("name=" + quoted(name));
  line(options.empty() ? "@T.prim_func" : "@T.prim_func(" + options + ")");

  std::unordered_map<const Node*, int> uses;  // of handles, outside the parameter list
  const auto count = [&](const NodePtr& node) {
    if (const auto* var = node.as<Var>(); var && var->dtype.is_handle()) ++uses[var];
  };
  walk(function.body, count);
  for (const auto& [key, value] : function.attrs)
    FieldTraits<AttrValue>::visit(value, [&](const NodePtr& node) { walk(node, count); });

  std::string signature;
  std::vector<std::string> matches;
  std::vector<std::pair<Ref<Var>, Ref<Buffer>>> later;
  // Scalars first: the shapes of buffers in the signature may not name them, those below may.
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Ref<Var>& param = function.params[i];
    const Ref<Buffer>& buffer = function.buffers[i];
    signature += i ? ", " : "";
    if (buffer && is_plain_param(param, buffer, uses)) {
      const std::string args = buffer_args(buffer);
      signature += fmt::format("{}: T.Buffer({})", name_of(buffer), args);
      continue;
    }
    // The handle leaves the buffer its name.
    const bool reserved = buffer && supply_.reserve(buffer->name);
    const std::string handle = define(param, buffer ? "var_" + buffer->name : param->name);
    if (reserved) supply_.release(buffer->name);
    signature += handle + ": " + var_type(*param);
    if (buffer) later.emplace_back(param, buffer);
  }
  std::string head = fmt::format("def {}({})", function_name(name), signature);
  if (!function.result.is_void()) head += " -> T." + function.result.str();
  line(head + ":");
  Scope scope(*this);
  bool attrs_hold_nodes = false;
  for (const auto& [key, value] : function.attrs)
    FieldTraits<AttrValue>::visit(value, [&](const NodePtr&) { attrs_hold_nodes = true; });
  const auto print_attrs = [&] {
    if (!function.attrs.empty()) line("T.func_attr(" + attrs(function.attrs) + ")");
  };
  if (!attrs_hold_nodes) print_attrs();
  for (const auto& [param, buffer] : later) {
    const std::string args = buffer_args(buffer, false);
    line(fmt::format("{} = T.match_buffer({}, {}, {})", name_of(buffer), name_of(param),
                     tuple(buffer->shape), args));
  }
  if (attrs_hold_nodes) print_attrs();
  bool refers = false;
  walk(function.body, [&](const NodePtr& node) { refers |= node.as<GlobalVar>() != nullptr; });
  if (refers) line("cls = " + options_.module_name);
  if (!elided) return body(function.body);
  const Block& root = *root_block(function);
  line(fmt::format("# with T.block({}):", quoted(root.name)));
  for (const Ref<Buffer>& buffer : root.alloc_buffers) {
    const std::string args = buffer_args(buffer);
    line(fmt::format("{} = T.alloc_buffer({})", name_of(buffer), args));
  }
  body(root.body);
}

void Printer::body(const Stmt& statement) {
  if (const auto* sequence = statement.as<Seq>()) {
    for (const Stmt& item : sequence->stmts) stmt(item);
    // A lone `pass` is the empty sequence; after one statement it keeps the sequence around that.
    if (sequence->stmts.size() < 2) line("pass");
    return;
  }
  stmt(statement);
}

static std::string annotations_arg(const std::string& attrs) {
  return attrs == "{}" ? "" : ", annotations=" + attrs;
}

void Printer::stmt(const Stmt& statement) {
  switch (kind_of(statement)) {
    case StmtKind::kFor: return for_loop(statement.to<For>());
    case StmtKind::kBufferStore: {
      const auto& store = statement.to<BufferStore>();
      const std::string stored = expr_as(store.value, store.buffer->dtype);
      return line(element(*store.buffer, store.indices) + " = " + stored);
    }
    case StmtKind::kEvaluate: {
      const auto& evaluate = statement.to<Evaluate>();
      const std::string text = expr(evaluate.value);
      const auto* call = evaluate.value.as<Call>();
      return line(call && call->op ? text : "T.evaluate(" + text + ")");
    }
    case StmtKind::kBind: {
      const auto& bind = statement.to<Bind>();
      const std::string bound = expr(bind.value);
      const std::string name = define(bind.var, bind.var->name);
      return line(fmt::format("{}: {} = {}", name, var_type(*bind.var), bound));
    }
    case StmtKind::kAllocBuffer: {
      const auto& alloc = statement.to<AllocBuffer>();
      const std::string args = buffer_args(alloc.buffer);
      return line(fmt::format("{} = T.decl_buffer({}{})", name_of(alloc.buffer), args,
                              annotations_arg(attrs(alloc.annotations))));
    }
    case StmtKind::kAllocConst: {
      const auto& alloc = statement.to<AllocConst>();
      const std::string data = tensor(alloc.data, 'T');
      const std::string args = buffer_args(alloc.buffer, false);
      const std::string shape = tuple(alloc.buffer->shape);
      const size_t comma = args.find(',');  // dtype first, then the shape, then what is unusual
      return line(fmt::format("{} = T.allocate_const({}, {}, {}{})", name_of(alloc.buffer), data,
                              args.substr(0, comma), shape,
                              comma == std::string::npos ? "" : args.substr(comma)));
    }
    case StmtKind::kDeclBuffer: {
      const auto& decl = statement.to<DeclBuffer>();
      const std::string data = expr(decl.data);
      const std::string args = buffer_args(decl.buffer, true, data);
      return line(fmt::format("{} = T.decl_buffer({})", name_of(decl.buffer), args));
    }
    case StmtKind::kSeq: return body(statement);
    case StmtKind::kWhile: {
      const auto& loop = statement.to<While>();
      line("while " + expr(loop.condition) + ":");
      Scope scope(*this);
      return body(loop.body);
    }
    case StmtKind::kIfThenElse: {
      const auto& branch = statement.to<IfThenElse>();
      line("if " + expr(branch.condition) + ":");
      {
        Scope scope(*this);
        body(branch.then_case);
      }
      if (!branch.else_case) return;
      line("else:");
      Scope scope(*this);
      return body(branch.else_case);
    }
    case StmtKind::kAssert: {
      const auto& assertion = statement.to<Assert>();
      return line("assert " + expr(assertion.condition) + ", " + quoted(assertion.message));
    }
    case StmtKind::kAttrStmt: {
      const auto& attribute = statement.to<AttrStmt>();
      const std::string subject = attribute.subject ? call_arg(attribute.subject) : "None";
      line(fmt::format("with T.attr({}, {}, {}):", subject, quoted(attribute.key),
                       attr(attribute.value)));
      Scope scope(*this);
      return body(attribute.body);
    }
    case StmtKind::kBlockRealize: return realize(statement.to<BlockRealize>());
    case StmtKind::kBlock: return block(statement.to<Block>(), nullptr);
    case StmtKind::kCallTir: {
      const auto& call = statement.to<CallTir>();
      const std::string args = call_args(*call.callee, call.args);
      const bool external = module_ && !module_->find<PrimFunc>(call.callee->name) &&
                            module_->contains(call.callee->name);
      return line(fmt::format("T.{}({}{})", external ? "call_extern" : "call_tir", args,
                              annotations_arg(attrs(call.annotations))));
    }
  }
  unreachable("a statement of no known kind");
}

static bool uses_any(const Expr& expr, const std::vector<const For*>& loops) {
  bool found = false;
  walk(expr, [&](const NodePtr& node) {
    for (const For* loop : loops) found |= loop->loop_var.same_as(node);
  });
  return found;
}

void Printer::for_loop(const For& loop) {
  // A run of plain loops whose extents do not depend on one another is a grid.
  std::vector<const For*> run;
  const For* inner = &loop;
  while (inner && inner->kind == ForKind::kSerial && inner->annotations.empty() &&
         is_int(inner->min, 0) && !uses_any(inner->extent, run)) {
    run.push_back(inner);
    inner = inner->body.as<For>();
  }
  const auto enter = [&](const For& entered) {
    loop_domains_[entered.loop_var.get()] = {entered.min, entered.extent};
    return define(entered.loop_var, entered.loop_var->name);
  };
  if (run.size() > 1) {
    std::string extents, names;
    for (const For* item : run) extents += (extents.empty() ? "" : ", ") + expr(item->extent);
    Scope scope(*this);
    for (const For* item : run) names += (names.empty() ? "" : ", ") + enter(*item);
    --indent_;
    const std::string text = fmt::format("for {} in T.grid({}):", names, extents);
    line(text);
    for (const For* item : run) point_at(item->loop_var, text, name_of(item->loop_var));
    ++indent_;
    return body(run.back()->body);
  }
  std::string args = bounds(loop.min, loop.extent);
  if (loop.kind == ForKind::kThreadBinding) args += ", thread=" + quoted(loop.thread_tag);
  args += annotations_arg(attrs(loop.annotations));
  static constexpr std::string_view kKinds[] = {"T.serial", "T.parallel", "T.vectorized",
                                                "T.unroll", "T.thread_binding"};
  const bool plain = loop.kind == ForKind::kSerial && loop.annotations.empty();
  Scope scope(*this);
  const std::string name = enter(loop);
  --indent_;
  const std::string text = fmt::format(
      "for {} in {}({}):", name, plain ? "range" : kKinds[static_cast<size_t>(loop.kind)], args);
  line(text);
  point_at(loop.loop_var, text, name);
  ++indent_;
  body(loop.body);
}

void Printer::realize(const BlockRealize& realize) { block(*realize.block, &realize); }

std::string Printer::regions(const std::vector<Ref<BufferRegion>>& regions) {
  std::string text;
  for (const auto& region : regions)
    text += (text.empty() ? "" : ", ") + this->region(*region, false);
  return text;
}

void Printer::axes(const Block& block, const BlockRealize* realize) {
  static constexpr std::string_view kKinds[] = {"spatial", "reduce", "scan", "opaque"};
  // Whether axis i is bound to a loop variable and has that loop's domain.
  const auto is_trivial = [&](size_t i) {
    const IterVar& axis = block.iter_vars[i];
    if (!realize || static_cast<int>(axis.kind) > static_cast<int>(IterKind::kReduce)) return false;
    const Expr& bound = realize->iter_values[i];
    const auto it = loop_domains_.find(bound.get());
    return it != loop_domains_.end() && bound->dtype == axis.var->dtype &&
           structural_equal(it->second.first, axis.domain.min) &&
           structural_equal(it->second.second, axis.domain.extent);
  };
  for (size_t i = 0; i < block.iter_vars.size();) {
    size_t end = i;
    while (end < block.iter_vars.size() && is_trivial(end)) ++end;
    if (end - i > 1) {
      std::string names, kinds, values;
      for (; i < end; ++i) {
        const IterVar& axis = block.iter_vars[i];
        names += (names.empty() ? "" : ", ") + define(axis.var, axis.var->name);
        kinds += axis.kind == IterKind::kSpatial ? 'S' : 'R';
        values += (values.empty() ? "" : ", ") + expr(realize->iter_values[i]);
      }
      line(fmt::format("{} = T.axis.remap(\"{}\", [{}])", names, kinds, values));
      continue;
    }
    const IterVar& axis = block.iter_vars[i];
    std::string domain = bounds(axis.domain.min, axis.domain.extent);
    if (!is_int(axis.domain.min, 0) || axis.domain.min->dtype != axis.domain.extent->dtype)
      domain = "(" + domain + ")";
    const std::string bound = realize ? expr(realize->iter_values[i]) : "None";
    line(fmt::format("{} = T.axis.{}({}, {})", define(axis.var, axis.var->name),
                     kKinds[static_cast<size_t>(axis.kind)], domain, bound));
    ++i;
  }
}

void Printer::block(const Block& block, const BlockRealize* realize) {
  const std::string name = quoted(block.name);
  const std::string text =
      fmt::format("with T.block({}{}):", name, realize ? "" : ", no_realize=True");
  line(text);
  point_at(ref_to(&block), text, "T.block(" + name);
  Scope scope(*this);
  axes(block, realize);
  if (realize && !is_int(realize->predicate, 1)) line("T.where(" + expr(realize->predicate) + ")");
  const auto print_allocations = [&] {
    for (const Ref<Buffer>& buffer : block.alloc_buffers) {
      const std::string args = buffer_args(buffer);
      line(fmt::format("{} = T.alloc_buffer({})", name_of(buffer), args));
    }
  };
  // Regions speak of what is outside the block; where they do not, the buffer comes first.
  bool own = false;
  for (const Ref<Buffer>& buffer : block.alloc_buffers) {
    for (const auto& region : block.reads) own |= region->buffer.same_as(buffer);
    for (const auto& region : block.writes) own |= region->buffer.same_as(buffer);
  }
  if (own) print_allocations();
  line("T.reads(" + regions(block.reads) + ")");
  line("T.writes(" + regions(block.writes) + ")");
  if (!block.annotations.empty()) line("T.block_attr(" + attrs(block.annotations) + ")");
  if (!own) print_allocations();
  for (const MatchBuffer& match : block.match_buffers) {
    const std::string source = region(*match.source, true);
    const std::string args = buffer_args(match.buffer, false);
    line(fmt::format("{} = T.match_buffer({}, {}, {})", name_of(match.buffer), source,
                     tuple(match.buffer->shape), args));
  }
  if (block.init) {
    line("with T.init():");
    Scope init_scope(*this);
    body(block.init);
  }
  body(block.body);
}

}  // namespace tenon::script
