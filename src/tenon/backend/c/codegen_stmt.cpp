// SPDX-License-Identifier: Apache-2.0
// Generates C for statements (loops, branches, calls, checks) and for whole functions.
#include <algorithm>

#include "tenon/backend/c/codegen.h"

namespace tenon::c_backend {

using tir::Buffer;

FunctionCodegen::FunctionCodegen(ModuleCodegen& module, const FunctionInfo& info)
    : m_(module), info_(info) {
  for (const char* name : {"error", "code", "i", "constants", "inputs", "outputs", "dims", "late"})
    names_.reserve(name);
  if (!info.function->result.is_void()) names_.reserve("result");
}

std::string FunctionCodegen::where(const Origin& origin) const {
  if (origin) return origin.name();
  if (info_.function->origin) return info_.function->origin.name();
  return info_.name;
}

std::string FunctionCodegen::inside(const std::function<void()>& f) {
  std::string text;
  std::string* const saved = out_;
  const auto divisors = divisors_;  // what is checked inside is not checked behind it
  out_ = &text;
  ++indent_;
  f();
  --indent_;
  out_ = saved;
  divisors_ = divisors;
  return text;
}

// How often each expression stands in a statement; loops and branches count their own.
static void count_uses(const Expr& root, std::unordered_map<const Node*, int>& count) {
  if (count[root.get()]++ > 0) return;
  each_member(root, [&](const NodePtr& member, FieldRole) {
    if (const auto expr = cast<ExprNode>(member)) count_uses(expr, count);
  });
}

void FunctionCodegen::begin_statement(const tir::Stmt& stmt) {
  memo_.clear();
  count_.clear();
  if (const auto* node = stmt.as<tir::BufferStore>()) {
    count_uses(node->value, count_);
    for (const Expr& index : node->indices) count_uses(index, count_);
  }
  if (const auto* node = stmt.as<tir::Evaluate>()) count_uses(node->value, count_);
  if (const auto* node = stmt.as<tir::Bind>()) count_uses(node->value, count_);
  if (const auto* node = stmt.as<tir::IfThenElse>()) count_uses(node->condition, count_);
  if (const auto* node = stmt.as<tir::Assert>()) count_uses(node->condition, count_);
}

void FunctionCodegen::generate(const tir::Stmt& stmt) {
  if (!stmt) return;
  if (const auto* node = stmt.as<tir::Seq>()) {
    for (const tir::Stmt& inner : node->stmts) generate(inner);
    return;
  }
  begin_statement(stmt);
  switch (kind_of(stmt)) {
    case tir::StmtKind::kBufferStore: return store(stmt.to<tir::BufferStore>());
    case tir::StmtKind::kEvaluate: {
      const auto& node = stmt.to<tir::Evaluate>();
      if (as_int(node.value)) return;
      if (const auto* call = node.value.as<Call>(); call && is_foreign(*call))
        return evaluate_foreign(*call);
      const Text text = value(node.value);
      const auto* call = node.value.as<Call>();
      if (!text.s.empty() && call && (!call->op || call->op->effect == Effect::kOpaque))
        line("{};", text.s);
      return;
    }
    case tir::StmtKind::kBind: {
      const auto& node = stmt.to<tir::Bind>();
      const Text bound = value(node.value);
      const std::string name = names_.take(node.var->name);
      if (is_used(name)) line("const {} = {};", declare(node.var->dtype, name), bound.s);
      vars_[node.var.get()] = {name, Text::kAtom};
      if (node.value->dtype.is_integer() && signs_.is_nonnegative(node.value))
        signs_.add_nonnegative(node.var.get());
      return;
    }
    case tir::StmtKind::kAllocBuffer: return allocate(stmt.to<tir::AllocBuffer>());
    case tir::StmtKind::kAllocConst: {
      const auto& node = stmt.to<tir::AllocConst>();
      const Buffer& buffer = *node.buffer;
      Place at;
      at.element = buffer.dtype;
      at.is_const = true;
      if (m_.has_constants_pointer()) {
        at.own_name = names_.take(buffer.name);
        if (is_used(at.own_name)) {
          use("constants");
          line("const {0}* const {1} = (const {0}*)({2}); /* {3} */", c_type(buffer.dtype),
               at.own_name, m_.constant(node), comment_text(str(buffer.shape)));
        }
        at.pointer = at.own_name;
      } else {
        at.pointer = m_.constant(node);
      }
      places_[&buffer] = at;
      data_[buffer.data.get()] = at;
      return;
    }
    case tir::StmtKind::kDeclBuffer: return view(stmt.to<tir::DeclBuffer>());
    case tir::StmtKind::kFor: {
      const auto& node = stmt.to<tir::For>();
      if (node.kind == tir::ForKind::kThreadBinding)
        throw CompileError(kUnsupported, node.origin, "a loop bound to `{}` has no C code",
                           node.thread_tag);
      return generate_for(node);
    }
    case tir::StmtKind::kWhile: return generate_while(stmt.to<tir::While>());
    case tir::StmtKind::kIfThenElse: return generate_if(stmt.to<tir::IfThenElse>());
    case tir::StmtKind::kAssert: return generate_assert(stmt.to<tir::Assert>());
    case tir::StmtKind::kAttrStmt: return generate(stmt.to<tir::AttrStmt>().body);
    case tir::StmtKind::kCallTir: return generate_call_tir(stmt.to<tir::CallTir>());
    case tir::StmtKind::kSeq:  // above
    case tir::StmtKind::kBlock:
    case tir::StmtKind::kBlockRealize: break;
  }
  throw CompileError(kWrongForm, stmt->origin,
                     "`{}` in PrimFunc `{}` has no C code; the module is not lowered",
                     stmt->type().name, info_.name);
}

void FunctionCodegen::generate_for(const tir::For& loop) {
  const auto count = as_int(loop.extent);
  if (count && *count <= 0) return;
  const Text min = index(loop.min);
  if (signs_.is_nonnegative(loop.min)) signs_.add_nonnegative(loop.loop_var.get());
  const std::string name = names_.take(loop.loop_var->name);
  const std::string type = c_type(loop.loop_var->dtype);
  const std::string converted =
      loop.loop_var->dtype.bits == 64 ? min.s : fmt::format("({}){}", type, min.at(Text::kUnary));
  if (count == 1) {
    if (as_int(loop.min)) {
      vars_[loop.loop_var.get()] = min;
    } else {
      if (is_used(name)) line("const {} {} = {};", type, name, converted);
      vars_[loop.loop_var.get()] = {name, Text::kAtom};
    }
    return generate(loop.body);
  }
  const Text end = index(tenon::cast(kInt64, loop.min) + tenon::cast(kInt64, loop.extent));
  vars_[loop.loop_var.get()] = {name, Text::kAtom};
  line("for ({0} {1} = {2}; {1} < {3}; ++{1}) {{", type, name, converted, end.at(Text::kSum));
  *out_ += inside([&] { generate(loop.body); });
  line("}}");
}

void FunctionCodegen::generate_while(const tir::While& loop) {
  line("for (;;) {{");
  *out_ += inside([&] {
    memo_.clear();
    count_.clear();
    count_uses(loop.condition, count_);
    const Text holds = value(loop.condition);
    line("if (!{}) break;", holds.at(Text::kAtom));
    generate(loop.body);
  });
  line("}}");
}

void FunctionCodegen::generate_if(const tir::IfThenElse& branch) {
  if (const auto known = as_int(branch.condition))
    return generate(*known ? branch.then_case : branch.else_case);
  line("if ({}) {{", value(branch.condition).s);
  *out_ += inside([&] { generate(branch.then_case); });
  if (branch.else_case) {
    line("}} else {{");
    *out_ += inside([&] { generate(branch.else_case); });
  }
  line("}}");
}

void FunctionCodegen::fail_unless(const Text& condition, int code, const std::string& where,
                                  const std::string& message, const std::string& value,
                                  const std::string& bound) {
  use("error");
  line("if (!({}))", condition.s);
  line("  return fail(error, {}, {}, {}, {}, {});", code, c_string(where), c_string(message), value,
       bound);
}

// An index check `low <= value and value < bound` reports the value and the bound.
void FunctionCodegen::generate_assert(const tir::Assert& assertion) {
  static constexpr int kErrorIndex = 2, kErrorValue = 4;  // as in runtime/abi.h
  if (const auto known = as_int(assertion.condition); known && *known) return;
  const Text holds = value(assertion.condition);
  const auto* both = assertion.condition.as<Binary>();
  const Binary* upper = nullptr;
  if (both && both->op == BinaryOp::kAnd) {
    for (const Expr& side : {both->lhs, both->rhs})
      if (const auto* less = side.as<Binary>();
          less && less->op == BinaryOp::kLT && less->lhs->dtype.is_integer())
        upper = less;
  }
  std::string found = "0", bound = "0";
  int code = kErrorValue;
  if (upper && assertion.message.find("{value}") != std::string::npos) {
    code = kErrorIndex;
    found = index(upper->lhs).s;
    bound = index(upper->rhs).s;
  }
  fail_unless(holds, code, where(assertion.origin), assertion.message, found, bound);
}

void FunctionCodegen::comment_origin(const Origin& origin) {
  if (!origin) return;
  std::string text = comment_text(origin.name());
  if (text.size() > 160) text = text.substr(0, 157) + "...";
  line("/* {} */", text);
}

// ---- functions ----------------------------------------------------------------------------------

std::string FunctionCodegen::parameters() {
  const tir::PrimFunc& function = *info_.function;
  std::vector<std::string> list;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Ref<Buffer>& buffer = function.buffers[i];
    if (!buffer) continue;
    Place at;
    at.element = buffer->dtype;
    at.is_const = !info_.writes[i];
    at.pointer = at.own_name = names_.take(buffer->name);
    list.push_back(fmt::format("{}{}* restrict {}", at.is_const ? "const " : "",
                               c_type(buffer->dtype), at.pointer));
    places_[buffer.get()] = at;
    if (buffer->elem_offset && !is_int(buffer->elem_offset, 0))
      throw CompileError(kUnsupported, buffer->origin,
                         "parameter `{}` with an offset of its own has no C code", buffer->name);
    data_[buffer->data.get()] = at;
  }
  for (const Ref<Var>& symbol : info_.symbols) {
    signs_.add_nonnegative(symbol.get());  // a dimension or a stride
    const std::string name = names_.take(symbol->name);
    vars_[symbol.get()] = {name, Text::kAtom};
    list.push_back(declare(symbol->dtype, name));
  }
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (function.buffers[i]) continue;
    const std::string name = names_.take(function.params[i]->name);
    vars_[function.params[i].get()] = {name, Text::kAtom};
    list.push_back(declare(function.params[i]->dtype, name));
  }
  if (info_.uses_constants && m_.has_constants_pointer())
    list.push_back("const uint8_t* restrict constants");
  if (!function.result.is_void())
    list.push_back(m_.prelude().type(function.result) + "* restrict result");
  if (info_.can_fail) list.push_back(m_.name() + "_error* error");
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : ", ") + one;
  return text.empty() ? "void" : text;
}

// What the entry's parameters and the members of its structs are called inside.
// Library functions rely on the alignment of memory that the caller hands over.
void FunctionCodegen::check_addresses() {
  const backend::Entry& entry = m_.entry();
  if (!entry.checks_addresses()) return;
  static constexpr int kErrorArgument = 1;  // as in runtime/abi.h
  const auto check_address = [&](const std::string& address, const std::string& name,
                                 int64_t alignment) {
    if (alignment <= 1) return;
    fail_unless({fmt::format("(uintptr_t){} % {} == 0", address, alignment), Text::kAny},
                kErrorArgument, name, "its address {value} is no multiple of {bound}",
                fmt::format("(int64_t)(uintptr_t){}", address), std::to_string(alignment));
  };
  for (const PoolParameter& pool : m_.pools())
    check_address(pool.name + "_", pool.name, pool.alignment);
  if (m_.has_constants_pointer())
    check_address(m_.options().constants_pool + "_", m_.options().constants_pool,
                  m_.constants_alignment());
  for (size_t i = 0; i < entry.inputs; ++i)
    if (entry.alignments[i] > 1)
      check_address(use("inputs") + "->" + m_.inputs()[i], m_.inputs()[i], entry.alignments[i]);
  for (size_t i = 0; i < entry.outputs; ++i)
    if (entry.alignments[entry.inputs + i] > 1)
      check_address(use("outputs") + "->" + m_.outputs()[i], m_.outputs()[i],
                    entry.alignments[entry.inputs + i]);
}

std::string FunctionCodegen::unpack() {
  const backend::Entry& entry = m_.entry();
  const tir::PrimFunc& function = *entry.function;
  std::string text;
  const auto member = [&](const Ref<Buffer>& buffer, const char* of, const std::string& name,
                          bool is_const) {
    Place at;
    at.element = buffer->dtype;
    at.is_const = is_const;
    at.pointer = at.own_name = names_.take(buffer->name);
    const char* qualifier = is_const ? "const " : "";
    if (is_used(at.own_name))
      text += fmt::format("  {0}{1}* const {2} = {3}->{4};\n", qualifier, c_type(buffer->dtype),
                          at.pointer, of, name);
    if (is_used(at.own_name)) use(of);
    places_[buffer.get()] = at;
    data_[buffer->data.get()] = at;
  };
  // Pools come as pointers to void.
  for (const PoolParameter& pool : m_.pools()) {
    names_.reserve(pool.name);
    if (is_used(pool.name))
      text += fmt::format("  uint8_t* const {0} = (uint8_t*){0}_;\n", pool.name);
    else
      text += fmt::format("  (void){}_;\n", pool.name);
  }
  if (m_.has_constants_pointer()) {
    const std::string& parameter = m_.options().constants_pool;
    if (is_used("constants"))
      text += fmt::format("  const uint8_t* const constants = (const uint8_t*){}_;\n", parameter);
    else
      text += fmt::format("  (void){}_;\n", parameter);
  }
  for (size_t i = 0; i < entry.inputs; ++i)
    member(function.buffers[i], "inputs", m_.inputs()[i], true);
  size_t next = entry.inputs;
  for (size_t i = 0; i < entry.outputs; ++i)
    if (!entry.is_late(i)) member(function.buffers[next++], "outputs", m_.outputs()[i], false);
  if (entry.has_workspace) {
    const Ref<Buffer>& workspace = function.buffers.back();
    Place at;
    at.element = workspace->dtype;
    at.pointer = at.own_name = m_.pools()[0].name;
    at.is_workspace = m_.pools().size() > 1 || m_.options().separate_arrays;
    places_[workspace.get()] = at;
    data_[workspace->data.get()] = at;
  }
  for (size_t s = 0; s < entry.symbols.size(); ++s) {
    const Ref<Var>& symbol = entry.symbols[s].var;
    signs_.add_nonnegative(symbol.get());
    const std::string name = names_.take(symbol->name);
    vars_[symbol.get()] = {name, Text::kAtom};
    if (is_used(name)) {
      use("dims");
      text += fmt::format("  const {} = {}dims->{};\n", declare(symbol->dtype, name),
                          symbol->dtype.bits == 64 ? "" : "(" + c_type(symbol->dtype) + ")",
                          m_.dims()[s]);
    }
  }
  return text;
}

std::string FunctionCodegen::define(const std::unordered_set<std::string>* used_before) {
  used_before_ = used_before;
  is_entry_ = info_.name == m_.entry().name;
  const std::string opening = is_entry_ ? unpack() : parameters();
  find_slices(info_.function->body);
  if (is_entry_) check_addresses();
  generate(info_.function->body);
  std::string text;
  if (is_entry_) {
    text = m_.entry_prototype() + " {\n" + opening;
  } else {
    if (info_.function->origin)
      text = fmt::format("/* {} */\n", comment_text(info_.function->origin.name()));
    text += fmt::format("static NOINLINE {} {}({}) {{\n", info_.can_fail ? "int32_t" : "void",
                        info_.c_name, opening);
  }
  if (used_.count("code")) text += "  int32_t code;\n";
  const auto ignore = [&](const std::string& name) {
    if (!used_.count(name)) text += fmt::format("  (void){};\n", name);
  };
  if (is_entry_) {
    if (!m_.entry().symbols.empty()) ignore("dims");
    ignore("inputs");
    ignore("outputs");
    if (m_.entry().has_host_memory) ignore("late");
  } else {
    for (const Ref<Buffer>& buffer : info_.function->buffers)
      if (buffer) ignore(places_.at(buffer.get()).own_name);
    for (const Ref<Var>& symbol : info_.symbols) ignore(vars_.at(symbol.get()).s);
    for (size_t i = 0; i < info_.function->params.size(); ++i)
      if (!info_.function->buffers[i]) ignore(vars_.at(info_.function->params[i].get()).s);
  }
  if (m_.has_constants_pointer() && info_.uses_constants && !is_entry_) ignore("constants");
  if (info_.can_fail) ignore("error");
  if (!is_entry_ && !info_.function->result.is_void()) ignore("result");
  text += text_;
  if (info_.can_fail || is_entry_) text += "  return 0;\n";
  return text + "}\n";
}

}  // namespace tenon::c_backend
