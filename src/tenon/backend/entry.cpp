// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/entry.h"

#include <algorithm>
#include <span>

#include "tenon/runtime/abi.h"
#include "tenon/tir/host_memory.h"
#include "tenon/tir/needed_alignment.h"
#include "tenon/tir/scalar_sources.h"

namespace tenon::backend {

static Expr expression_of(const Attrs& attrs, const char* name) {
  const AttrValue* value = attrs.find(name);
  if (!value) return int64(0);
  if (const auto* number = value->as<int64_t>()) return int64(*number);
  if (const auto* node = value->as<NodePtr>())
    if (const auto expr = cast<ExprNode>(*node)) return expr;
  throw CompileError(kBadAttribute, {}, "attribute `{}` is neither a number nor an expression",
                     name);
}

std::optional<int64_t> Entry::number(const char* attribute) const {
  return as_int(expression_of(function->attrs, attribute));
}

uint32_t Entry::output_flags(size_t i) const {
  if (is_late(i)) return TENON_TENSOR_LATE;
  for (const tir::SharedBuffer& pair : shared)
    if (pair.output == i) return TENON_TENSOR_IN_PLACE_OF(pair.input);
  return 0;
}

static void find_function(const IRModule& module, Entry& entry) {
  for (const auto& [name, function] : module.functions()) {
    const auto prim = cast<tir::PrimFunc>(function);
    if (!prim || !prim->attrs.flag("tenon.entry")) continue;
    if (entry.function)
      throw CompileError(kWrongForm, prim->origin, "PrimFuncs `{}` and `{}` are both the entry",
                         entry.name, name);
    entry.name = name;
    entry.function = prim;
  }
  if (!entry.function)
    throw CompileError(kWrongForm, {}, "the module has no entry PrimFunc (tenon.entry)");
}

static std::vector<std::string> names_of(const Entry& entry, const char* attribute,
                                         std::span<const Ref<tir::Buffer>> buffers) {
  std::vector<std::string> names =
      entry.function->attrs.strings(attribute).value_or(std::vector<std::string>{});
  names.resize(std::min(names.size(), buffers.size()));
  while (names.size() < buffers.size()) names.push_back(buffers[names.size()]->name);
  return names;
}

static EntrySymbol source_of(const Entry& entry, const Ref<Var>& symbol) {
  for (size_t i = 0; i < entry.inputs; ++i)
    for (size_t d = 0; d < entry.input(i).ndim(); ++d)
      if (entry.input(i).shape[d].get() == symbol.get())
        return {symbol, i, static_cast<int64_t>(d)};
  throw CompileError(kUnsupported, entry.function->origin,
                     "dimension `{}` of an output follows from no input's shape", symbol->name);
}

// Whether the condition follows from symbols alone.
static bool is_given(const Entry& entry, const Expr& condition) {
  bool given = true;
  walk(condition, [&](const NodePtr& node) {
    if (const auto* call = node.as<Call>()) given &= call->op && call->op->effect == Effect::kPure;
    if (node.as<tir::BufferLoad>()) given = false;
    if (node.as<Var>())
      given &= std::any_of(entry.symbols.begin(), entry.symbols.end(),
                           [&](const EntrySymbol& one) { return one.var.get() == node.get(); });
  });
  return given;
}

static void find_given_checks(Entry& entry) {
  if (std::none_of(entry.symbols.begin(), entry.symbols.end(),
                   [](const EntrySymbol& symbol) { return symbol.is_element; }))
    return;
  for (const tir::Stmt& stmt : tir::stmts_of(entry.function->body))
    if (const auto check = cast<tir::Assert>(stmt); check && is_given(entry, check->condition))
      entry.given_checks.push_back(check);
}

// Who asks for memory, where a size is known only at run time.
static void find_nodes(Entry& entry) {
  bool all_fixed = !entry.has_workspace || as_int(entry.workspace_bytes).has_value();
  for (const Ref<tir::Buffer>& output : entry.output_buffers)
    for (const Expr& dim : output->shape) all_fixed &= as_int(dim).has_value();
  if (all_fixed) return;
  for (const Ref<tir::Buffer>& output : entry.output_buffers)
    entry.asked_by.push_back(output->origin.name());
  entry.asked_by.push_back(
      entry.has_workspace ? tir::asked_by(*entry.function, *entry.function->buffers.back()) : "");
}

Entry entry_of(const IRModule& module) {
  Entry entry;
  find_function(module, entry);
  const tir::PrimFunc& function = *entry.function;
  entry.has_workspace = function.attrs.contains("tenon.workspace_bytes");
  const std::vector<tir::ScalarSource> sources = tir::scalar_sources(function);
  std::vector<Ref<Var>> scalars;
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (function.buffers[i]) continue;
    if (sources.empty())
      throw CompileError(kWrongForm, function.origin,
                         "entry PrimFunc `{}` has scalar parameter `{}`", entry.name,
                         function.params[i]->name);
    scalars.push_back(function.params[i]);
  }
  const size_t buffers = function.params.size() - scalars.size() - (entry.has_workspace ? 1 : 0);
  const auto stated = function.attrs.get<int64_t>("tenon.num_inputs");
  if (!stated || *stated < 0 || static_cast<size_t>(*stated) > buffers)
    throw CompileError(kWrongForm, function.origin,
                       "entry PrimFunc `{}` does not say how many inputs it has", entry.name);
  entry.inputs = static_cast<size_t>(*stated);
  const std::span<const Ref<tir::Buffer>> all(function.buffers);
  for (const tir::ProgramOutput& output :
       tir::program_outputs(function, all.subspan(entry.inputs, buffers - entry.inputs))) {
    entry.output_buffers.push_back(output.buffer);
    entry.is_late_output.push_back(output.is_late);
  }
  entry.outputs = entry.output_buffers.size();
  entry.shared = tir::shared_buffers(function.attrs, entry.inputs, entry.outputs, function.origin);
  walk<tir::AllocBuffer>(function.body, [&](const tir::AllocBuffer& alloc) {
    entry.has_host_memory |= tir::is_host_memory(alloc);
  });
  entry.input_names = names_of(entry, "input_names", all.first(entry.inputs));
  entry.output_names = names_of(entry, "output_names", entry.output_buffers);
  entry.workspace_bytes = expression_of(function.attrs, "tenon.workspace_bytes");
  tir::NeededAlignments needed(module);
  for (size_t i = 0, param = 0; i < entry.inputs + entry.outputs; ++i) {
    const bool is_late = i >= entry.inputs && entry.is_late(i - entry.inputs);
    entry.alignments.push_back(is_late ? 1 : needed.of(entry.name, param++));
  }
  if (entry.has_workspace) {
    const int64_t asked = needed.of(entry.name, function.params.size() - 1);
    entry.checks_workspace = asked > 1;
    entry.workspace_alignment =
        std::max({asked, entry.workspace_alignment, function.buffers.back()->alignment});
  }
  for (const Ref<Var>& symbol : tir::symbolic_vars(function))
    entry.symbols.push_back(source_of(entry, symbol));
  for (size_t i = 0; i < scalars.size(); ++i)
    entry.symbols.push_back({scalars[i], sources[i].input, sources[i].element, true});
  find_given_checks(entry);
  find_nodes(entry);
  for (size_t i = 0; i < entry.inputs; ++i)
    for (const Expr& dim : entry.input(i).shape) {
      bool known = as_int(dim).has_value();
      for (const EntrySymbol& symbol : entry.symbols) known |= dim.get() == symbol.var.get();
      if (!known)
        throw CompileError(kUnsupported, entry.input(i).origin,
                           "input `{}` has dimension `{}`; expected a number or a name",
                           entry.input(i).name, str(dim));
    }
  return entry;
}

}  // namespace tenon::backend
