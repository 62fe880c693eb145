// SPDX-License-Identifier: Apache-2.0
// Steps over graph functions. They change entry functions, those that no other function calls: of
// the others, callers would have to change too; they are inlined first or dropped whole.
#include <algorithm>
#include <set>

#include "tenon/graph/remove_unused.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/reduce/steps.h"

namespace tenon::reduce {

using graph::Binding;
using graph::BindingBlock;
using graph::Function;
using graph::SeqExpr;
using graph::TensorType;
using graph::Value;
using GraphVar = graph::Var;
using NodeSet = std::set<const Node*>;

namespace {

// ---- functions and their places -----------------------------------------------------------------

std::set<std::string> called_functions(const IRModule& module) {
  std::set<std::string> called;
  for (const auto& [name, function] : module.functions())
    walk(function, [&, &self = name](const NodePtr& node) {
      if (const auto* ref = node.as<graph::FuncRef>(); ref && ref->name != self)
        called.insert(ref->name);
      if (const auto* var = node.as<GlobalVar>(); var && var->name != self)
        called.insert(var->name);
    });
  return called;
}

struct Entry {
  std::string name;
  Ref<Function> function;
};

std::vector<Entry> entries(const IRModule& module) {
  std::vector<Entry> out;
  const std::set<std::string> called = called_functions(module);
  for (const auto& [name, function] : module.functions())
    if (const auto graph = cast<Function>(function); graph && !called.count(name))
      out.push_back({name, graph});
  return out;
}

// A step whose places are counted in one entry function after the other.
using CountIn = size_t (*)(const Function& function);
using ApplyIn = Ref<Function> (*)(IRModule& module, const Ref<Function>& function, size_t begin,
                                  size_t end);

size_t places_in_entries(const IRModule& module, CountIn count) {
  size_t places = 0;
  for (const Entry& entry : entries(module)) places += count(*entry.function);
  return places;
}

// `apply` gives null where the function cannot be made smaller there.
std::optional<IRModule> apply_in_entries(IRModule module, size_t begin, size_t end, CountIn count,
                                         ApplyIn apply) {
  bool changed = false;
  size_t before = 0;
  for (const Entry& entry : entries(module)) {
    const size_t places = count(*entry.function);
    const size_t from = std::max(begin, before), to = std::min(end, before + places);
    if (from < to) {
      const auto smaller = apply(module, entry.function, from - before, to - before);
      if (!smaller) return std::nullopt;
      module.set(entry.name, smaller);
      changed = true;
    }
    before += places;
  }
  if (!changed) return std::nullopt;
  return module;
}

template <CountIn count, ApplyIn apply>
Step entry_step(std::string_view name) {
  return {name, [](const IRModule& module) { return places_in_entries(module, count); },
          [](const IRModule& module, size_t begin, size_t end) {
            return apply_in_entries(module, begin, end, count, apply);
          }};
}

// `function` with other parameters and another body. Attributes that list its parameters or results
// go: they no longer fit.
Ref<Function> remade(IRModule& module, const Function& function, std::vector<Ref<GraphVar>> params,
                     std::vector<Ref<BindingBlock>> blocks, Value result) {
  Attrs attrs = function.attrs;
  for (const char* name : {"num_input", "input_names", "output_names"}) attrs.erase(name);
  return graph::with_inferred_types(
      module,
      with(make<Function>(std::move(params), make<SeqExpr>(std::move(blocks), std::move(result)),
                          graph::Type(), std::move(attrs), function.pure, function.origin),
           [&](Function& made) { made.is_private = function.is_private; }));
}

std::vector<Value> results_of(const Function& function) {
  const Value& result = function.body->body;
  const auto* tuple = result.as<graph::Tuple>();
  if (tuple) return tuple->values;
  // A tuple that is bound to a variable in front of the result.
  if (result.as<GraphVar>())
    for (const Ref<BindingBlock>& block : function.body->blocks)
      for (const Ref<Binding>& binding : block->bindings)
        if (binding->var.same_as(result))
          if (const auto* bound = binding->value.as<graph::Tuple>()) return bound->values;
  return {result};
}

Value as_result(std::vector<Value> values) {
  return values.size() == 1 ? values[0] : Value(make<graph::Tuple>(std::move(values)));
}

NodeSet variables_in(const NodePtr& node) {
  NodeSet vars;
  walk<GraphVar>(node, [&](const GraphVar& var) { vars.insert(&var); });
  return vars;
}

// ---- bindings -----------------------------------------------------------------------------------

size_t count_bindings(const Function& function) {
  size_t count = 0;
  for (const Ref<BindingBlock>& block : function.body->blocks) count += block->bindings.size();
  return count;
}

// Bindings [begin, end) go. What the others use of them becomes a parameter; where a result goes,
// what they used becomes one.
Ref<Function> without_bindings(IRModule& module, const Ref<Function>& function, size_t begin,
                               size_t end) {
  std::vector<Ref<BindingBlock>> blocks;
  NodeSet gone, used_by_gone, used_by_kept;
  std::vector<Ref<GraphVar>> gone_vars, kept_vars;
  size_t index = 0;
  for (const Ref<BindingBlock>& block : function->body->blocks) {
    std::vector<Ref<Binding>> kept;
    for (const Ref<Binding>& binding : block->bindings) {
      const bool goes = index >= begin && index < end;
      ++index;
      if (!goes) kept.push_back(binding);
      (goes ? gone_vars : kept_vars).push_back(binding->var);
      if (goes) gone.insert(binding->var.get());
      (goes ? used_by_gone : used_by_kept).merge(variables_in(binding->value));
    }
    if (!kept.empty()) blocks.push_back(make<BindingBlock>(std::move(kept), block->is_dataflow));
  }
  std::vector<Value> results;
  bool lost = false;
  for (const Value& value : results_of(*function)) {
    const bool goes = gone.count(value.get()) != 0;
    lost |= goes;
    if (!goes) results.push_back(value);
  }
  if (lost)
    for (const Ref<GraphVar>& var : kept_vars)
      if (used_by_gone.count(var.get()) && var->type.as<TensorType>()) results.push_back(var);
  if (results.empty()) return {};
  std::vector<Ref<GraphVar>> params = function->params;
  Substitution values;
  for (const Ref<GraphVar>& var : gone_vars) {
    if (!used_by_kept.count(var.get())) continue;
    if (!var->type.as<TensorType>()) return {};
    params.push_back(make<GraphVar>(var->name, var->type, false, var->origin));
    values.emplace(var.get(), params.back());
  }
  for (Ref<BindingBlock>& block : blocks) block = substitute(block, values);
  return remade(module, *function, std::move(params), std::move(blocks),
                as_result(std::move(results)));
}

// ---- results and parameters ---------------------------------------------------------------------

size_t count_results(const Function& function) {
  const size_t results = results_of(function).size();
  return results > 1 ? results : 0;
}

Ref<Function> without_results(IRModule& module, const Ref<Function>& function, size_t begin,
                              size_t end) {
  std::vector<Value> results = results_of(*function);
  results.erase(results.begin() + static_cast<std::ptrdiff_t>(begin),
                results.begin() + static_cast<std::ptrdiff_t>(end));
  if (results.empty()) return {};
  return graph::remove_unused(remade(module, *function, function->params, function->body->blocks,
                                     as_result(std::move(results))));
}

size_t count_params(const Function& function) { return function.params.size(); }

Ref<Function> without_params(IRModule& module, const Ref<Function>& function, size_t begin,
                             size_t end) {
  const NodeSet used = variables_in(function->body);
  std::vector<Ref<GraphVar>> params;
  for (size_t i = 0; i < function->params.size(); ++i)
    if (i < begin || i >= end || used.count(function->params[i].get()))
      params.push_back(function->params[i]);
  if (params.size() == function->params.size()) return {};
  return remade(module, *function, std::move(params), function->body->blocks, function->body->body);
}

// ---- branches -----------------------------------------------------------------------------------

// Two places for each If: its branches.
size_t count_branches(const Function& function) {
  size_t count = 0;
  for (const Ref<BindingBlock>& block : function.body->blocks)
    for (const Ref<Binding>& binding : block->bindings)
      count += binding->value.as<graph::If>() ? 2 : 0;
  return count;
}

Ref<Function> with_branch(IRModule& module, const Ref<Function>& function, size_t begin,
                          size_t end) {
  if (end - begin != 1) return {};
  std::vector<Ref<BindingBlock>> blocks;
  Substitution values;
  size_t index = 0;
  for (const Ref<BindingBlock>& block : function->body->blocks) {
    std::vector<Ref<Binding>> open;
    const auto close = [&] {
      if (!open.empty()) blocks.push_back(make<BindingBlock>(std::move(open), block->is_dataflow));
      open.clear();
    };
    for (const Ref<Binding>& binding : block->bindings) {
      const auto* branches = binding->value.as<graph::If>();
      index += branches ? 2 : 0;
      if (!branches || begin < index - 2 || begin >= index) {
        open.push_back(binding);
        continue;
      }
      close();
      const SeqExpr& taken = begin == index - 2 ? *branches->then_branch : *branches->else_branch;
      blocks.insert(blocks.end(), taken.blocks.begin(), taken.blocks.end());
      values.emplace(binding->var.get(), taken.body);
    }
    close();
  }
  for (Ref<BindingBlock>& block : blocks) block = substitute(block, values);
  return remade(module, *function, function->params, std::move(blocks),
                substitute(function->body->body, values));
}

// ---- detours ------------------------------------------------------------------------------------

// The first argument of a call that has the type of its result: what can stand for it.
Value argument_like_result(const Binding& binding) {
  const auto* call = binding.value.as<graph::Call>();
  if (!call || binding.match) return {};
  for (const Value& arg : call->args) {
    const auto* tuple = arg.as<graph::Tuple>();
    for (const Value& value : tuple ? tuple->values : std::vector<Value>{arg})
      if (const auto* var = value.as<GraphVar>();
          var && structural_equal(var->type, binding.var->type, {.map_free = false}))
        return value;
  }
  return {};
}

Ref<Function> around_bindings(IRModule& module, const Ref<Function>& function, size_t begin,
                              size_t end) {
  std::vector<Ref<BindingBlock>> blocks;
  Substitution values;
  size_t index = 0;
  for (const Ref<BindingBlock>& block : function->body->blocks) {
    std::vector<Ref<Binding>> kept;
    for (const Ref<Binding>& old : block->bindings) {
      const Ref<Binding> binding =
          make<Binding>(old->var, substitute(old->value, values), old->match, old->origin);
      const bool goes = index >= begin && index < end;
      ++index;
      const Value value = goes ? argument_like_result(*binding) : Value();
      if (value)
        values.emplace(binding->var.get(), value);
      else
        kept.push_back(binding);
    }
    if (!kept.empty()) blocks.push_back(make<BindingBlock>(std::move(kept), block->is_dataflow));
  }
  if (values.empty()) return {};
  return remade(module, *function, function->params, std::move(blocks),
                substitute(function->body->body, values));
}

// ---- constants ----------------------------------------------------------------------------------

std::vector<Ref<graph::Constant>> constants_of(const NodePtr& root, bool splats_too) {
  std::vector<Ref<graph::Constant>> constants;
  walk<graph::Constant>(root, [&](const graph::Constant& constant) {
    if (constant.data->elements() > 1 && (splats_too || !constant.data->is_splat()))
      constants.push_back(ref_to(&constant));
  });
  return constants;
}

size_t count_dense_constants(const Function& function) {
  return constants_of(ref_to(&function), false).size();
}
size_t count_constants(const Function& function) {
  return constants_of(ref_to(&function), true).size();
}

Ref<Function> replace_constants(const Ref<Function>& function,
                                const std::vector<Ref<graph::Constant>>& constants,
                                const std::function<Value(const graph::Constant&)>& value) {
  std::map<const Node*, Value> values;
  for (const Ref<graph::Constant>& constant : constants)
    values.emplace(constant.get(), value(*constant));
  return rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
    const auto found = values.find(node.get());
    return found == values.end() ? std::nullopt : std::optional<NodePtr>(found->second);
  });
}

template <typename T>
std::vector<T> slice(const std::vector<T>& all, size_t begin, size_t end) {
  return {all.begin() + static_cast<std::ptrdiff_t>(begin),
          all.begin() + static_cast<std::ptrdiff_t>(end)};
}

Ref<Function> with_splats(IRModule&, const Ref<Function>& function, size_t begin, size_t end) {
  return replace_constants(
      function, slice(constants_of(function, false), begin, end), [](const graph::Constant& old) {
        const auto first = old.data->data().first(static_cast<size_t>(old.data->dtype.bytes()));
        return make<graph::Constant>(
            TensorData::splat(old.data->dtype, old.data->shape, {first.begin(), first.end()}),
            old.origin);
      });
}

Ref<Function> with_constants_as_params(IRModule& module, const Ref<Function>& function,
                                       size_t begin, size_t end) {
  std::vector<Ref<GraphVar>> params = function->params;
  const Ref<Function> body = replace_constants(
      function, slice(constants_of(function, true), begin, end), [&](const graph::Constant& old) {
        params.push_back(
            make<GraphVar>(fmt::format("c{}", params.size()), old.type, false, old.origin));
        return params.back();
      });
  return remade(module, *function, std::move(params), body->body->blocks, body->body->body);
}

// ---- dimensions ---------------------------------------------------------------------------------

struct Resize {
  int64_t from, to;
};

// Each size of a parameter or constant, with the smaller sizes to try for it.
std::vector<Resize> resizes(const IRModule& module) {
  std::set<int64_t> sizes;
  for (const Entry& entry : entries(module)) {
    for (const Ref<GraphVar>& param : entry.function->params)
      walk<IntImm>(param->type, [&](const IntImm& size) { sizes.insert(size.value); });
    for (const Ref<graph::Constant>& constant : constants_of(entry.function, true))
      sizes.insert(constant->data->shape.begin(), constant->data->shape.end());
  }
  std::vector<Resize> out;
  for (const int64_t size : sizes) {
    std::set<int64_t> smaller;
    for (const int64_t to : {int64_t{1}, int64_t{2}, size / 4, size / 2, size - size / 4, size - 1})
      if (to > 0 && to < size) smaller.insert(to);
    // What is tried first stands last.
    for (auto it = smaller.rbegin(); it != smaller.rend(); ++it) out.push_back({size, *it});
  }
  return out;
}

// The elements whose indices stay below the new size in each axis of the old one.
Ref<TensorData> cropped(const TensorData& data, const Resize& resize) {
  std::vector<int64_t> shape = data.shape;
  std::replace(shape.begin(), shape.end(), resize.from, resize.to);
  if (data.is_splat())
    return TensorData::splat(data.dtype, shape,
                             {data.splat_element().begin(), data.splat_element().end()});
  const auto width = static_cast<size_t>(data.dtype.bytes());
  const auto old = data.data();
  std::vector<std::byte> bytes;
  std::vector<int64_t> index(shape.size(), 0);
  const int64_t elements = checked_elements(shape);
  for (int64_t n = 0; n < elements; ++n) {
    int64_t from = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) from = from * data.shape[axis] + index[axis];
    const auto element = old.subspan(static_cast<size_t>(from) * width, width);
    bytes.insert(bytes.end(), element.begin(), element.end());
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return TensorData::owned(data.dtype, shape, std::move(bytes));
}

std::optional<IRModule> resized(IRModule module, size_t begin, size_t end) {
  if (end - begin != 1) return std::nullopt;
  const Resize resize = resizes(module).at(begin);
  const std::vector<IRModule::Entry> functions = module.functions();
  std::vector<std::string> graphs;
  for (const auto& [name, function] : functions) {
    BaseFunc changed = rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
      if (const auto* size = node.as<IntImm>(); size && size->value == resize.from)
        return make<IntImm>(size->dtype, resize.to, size->origin);
      const auto* constant = node.as<graph::Constant>();
      if (!constant) return std::nullopt;
      const auto& shape = constant->data->shape;
      if (std::find(shape.begin(), shape.end(), resize.from) == shape.end()) return std::nullopt;
      return make<graph::Constant>(cropped(*constant->data, resize), constant->origin);
    });
    module.set(name, changed);
  }
  // Callees come first in a module that the passes made; another order is found out by the
  // verifier.
  for (const auto& [name, function] : functions)
    if (const auto graph = module.find<Function>(name)) {
      module.set(name, with_inferred_types(module, with(*graph, [&](Function& copy) {
                                             copy.result = graph::Type();
                                           })));
    }
  return module;
}

std::vector<std::pair<std::string, int64_t>> symbol_values(const IRModule& module) {
  std::set<std::string> names;
  for (const Entry& entry : entries(module))
    for (const Ref<GraphVar>& param : entry.function->params)
      walk<tenon::Var>(param->type, [&](const tenon::Var& var) { names.insert(var.name); });
  std::vector<std::pair<std::string, int64_t>> out;
  for (const std::string& name : names)
    for (const int64_t value : {5, 4, 2, 1}) out.emplace_back(name, value);
  return out;
}

std::optional<IRModule> with_symbol_bound(IRModule module, size_t begin, size_t end) {
  if (end - begin != 1) return std::nullopt;
  const auto [name, value] = symbol_values(module).at(begin);
  return graph::bind_symbolic_vars(std::move(module), {{name, value}});
}

// ---- whole modules ------------------------------------------------------------------------------

std::optional<IRModule> without_functions(IRModule module, size_t begin, size_t end) {
  const std::vector<IRModule::Entry> functions = module.functions();
  for (size_t i = begin; i < end; ++i)
    if (functions[i].first != "main") module.erase(functions[i].first);
  if (module.size() == functions.size() || module.size() == 0) return std::nullopt;
  return module;
}

std::optional<IRModule> inlined(IRModule module, size_t, size_t) {
  return graph::inline_functions(std::move(module));
}

// Attributes of the module, then of each function.
size_t count_attrs(const IRModule& module) {
  size_t count = module.attrs.size();
  for (const auto& [name, function] : module.functions()) count += function->attrs.size();
  return count;
}

std::optional<IRModule> without_attrs(IRModule module, size_t begin, size_t end) {
  size_t index = 0;
  const auto thinned = [&](const Attrs& attrs) {
    Attrs out = attrs;
    for (const auto& [name, value] : attrs) {
      if (index >= begin && index < end) out.erase(name);
      ++index;
    }
    return out;
  };
  module.attrs = thinned(module.attrs);
  const std::vector<IRModule::Entry> functions = module.functions();
  for (const auto& [name, function] : functions) {
    Attrs attrs = thinned(function->attrs);
    if (attrs == function->attrs) continue;
    module.set(name, with(function, [&](FunctionNode& copy) { copy.attrs = std::move(attrs); }));
  }
  return module;
}

}  // namespace

std::vector<Step> graph_steps() {
  return {
      {"functions", [](const IRModule& module) { return module.size(); },
       [](const IRModule& module, size_t begin, size_t end) {
         return without_functions(module, begin, end);
       }},
      entry_step<count_bindings, without_bindings>("bindings"),
      entry_step<count_results, without_results>("results"),
      entry_step<count_params, without_params>("parameters"),
      entry_step<count_branches, with_branch>("branches"),
      {"calls of functions",
       [](const IRModule& module) -> size_t { return entries(module).empty() ? 0 : 1; },
       [](const IRModule& module, size_t begin, size_t end) {
         return inlined(module, begin, end);
       }},
      entry_step<count_bindings, around_bindings>("detours"),
      entry_step<count_dense_constants, with_splats>("elements of constants"),
      entry_step<count_constants, with_constants_as_params>("constants"),
      {"symbolic dimensions", [](const IRModule& module) { return symbol_values(module).size(); },
       [](const IRModule& module, size_t begin, size_t end) {
         return with_symbol_bound(module, begin, end);
       }},
      {"sizes", [](const IRModule& module) { return resizes(module).size(); },
       [](const IRModule& module, size_t begin, size_t end) {
         return resized(module, begin, end);
       }},
      {"attributes", count_attrs,
       [](const IRModule& module, size_t begin, size_t end) {
         return without_attrs(module, begin, end);
       }},
  };
}

}  // namespace tenon::reduce
