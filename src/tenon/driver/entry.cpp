// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/entry.h"

#include <set>

#include "tenon/graph/expr.h"
#include "tenon/support/names.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/compute.h"

namespace tenon {

// The functions that no other function refers to.
static std::vector<std::string> uncalled(const IRModule& module, bool graph) {
  std::set<std::string> called;
  for (const auto& [name, function] : module.functions())
    walk<GlobalVar>(function, [&, &self = name](const GlobalVar& callee) {
      if (callee.name != self) called.insert(callee.name);
    });
  std::vector<std::string> out;
  for (const auto& [name, function] : module.functions())
    if (called.count(name) == 0 && (graph ? function.as<graph::Function>() != nullptr
                                          : function.as<tir::PrimFunc>() != nullptr))
      out.push_back(name);
  return out;
}

static IRModule renamed(const IRModule& module, const std::string& from, const std::string& to) {
  IRModule out;
  out.attrs = module.attrs;
  for (const auto& [name, function] : module.functions())
    out.set(name == from ? to : name, function);
  return out;
}

// A shape is known before any scalar's value is.
static void check_known(const tir::PrimFunc& kernel, const tir::Buffer& buffer, const Expr& dim,
                        const Substitution& dims) {
  walk<Var>(dim, [&](const Var& var) {
    if (!dims.count(&var))
      throw CompileError(kUnsupported, buffer.origin ? buffer.origin : kernel.origin,
                         "extent `{}` of parameter `{}` depends on scalar `{}`; expected a buffer "
                         "with `{}` alone as an extent",
                         str(dim), buffer.name, var.name, var.name);
  });
}

// A `main` over buffers of its own that calls `name` on them.
static IRModule with_call_of(IRModule module, const std::string& name) {
  const auto kernel = module.find<tir::PrimFunc>(name);
  if (!kernel->result.is_void())
    throw CompileError(kUnsupported, kernel->origin,
                       "PrimFunc `{}` returns a value; the entry of a program writes buffers",
                       name);
  const std::vector<tir::ParamEffect> effects = tir::CallEffects(module).of(name);
  Substitution own;  // symbolic dimensions
  for (const Ref<Var>& dim : tir::symbolic_vars(*kernel))
    own.emplace(dim.get(), Var::size(dim->name, dim->dtype, dim->origin));
  // A scalar parameter that is an extent too.
  for (const Ref<tir::Buffer>& buffer : kernel->buffers)
    for (const Expr& dim : buffer ? buffer->shape : std::vector<Expr>{})
      if (const auto* var = dim.as<Var>())
        own.try_emplace(var, Var::size(var->name, var->dtype, var->origin));
  std::vector<Ref<tir::Buffer>> inputs, outputs;
  std::vector<std::string> input_names, output_names;
  std::vector<NodePtr> args;
  std::vector<tir::Stmt> body;
  for (size_t i = 0; i < kernel->params.size(); ++i) {
    const Ref<tir::Buffer>& declared = kernel->buffers[i];
    const Ref<Var>& param = kernel->params[i];
    if (!declared && param->dtype.is_handle())
      throw CompileError(kUnsupported, param->origin,
                         "parameter `{}` of the entry is a handle; expected a buffer or a scalar",
                         param->name);
    // A scalar that is an extent of a buffer too is what the buffer's shape says.
    if (const auto dim = own.find(param.get()); !declared && dim != own.end()) {
      args.push_back(dim->second);
      continue;
    }
    std::vector<Expr> shape;
    if (declared)
      for (const Expr& dim : declared->shape) {
        check_known(*kernel, *declared, dim, own);
        shape.push_back(substitute(dim, own));
      }
    const std::string& text = declared ? declared->name : param->name;
    const auto buffer = make<tir::Buffer>(text, declared ? declared->dtype : param->dtype, shape,
                                          declared ? declared->origin : param->origin);
    const bool writes = declared && i < effects.size() && effects[i].writes;
    const bool reads = !writes || effects[i].reads;
    if (reads) {
      inputs.push_back(buffer);
      input_names.push_back(text);
    }
    if (!writes) {
      args.push_back(declared ? NodePtr(tir::BufferRegion::whole(buffer))
                              : NodePtr(tir::load(buffer, {})));
      continue;
    }
    Ref<tir::Buffer> written = buffer;
    if (reads) {
      written = make<tir::Buffer>(text + "_out", buffer->dtype, shape, buffer->origin);
      const auto copy = tir::copy_kernel(shape, buffer->dtype);
      body.push_back(make<tir::CallTir>(make<GlobalVar>(module.add_unique("copy", copy)),
                                        std::vector<NodePtr>{tir::BufferRegion::whole(buffer),
                                                             tir::BufferRegion::whole(written)}));
    }
    outputs.push_back(written);
    output_names.push_back(text);
    args.push_back(tir::BufferRegion::whole(written));
  }
  if (outputs.empty())
    throw CompileError(kUnsupported, kernel->origin,
                       "PrimFunc `{}` writes none of its parameters; a program has outputs", name);
  std::string callee = name;
  if (name == "main") {
    callee = fresh_name("main_kernel", [&](const std::string& n) { return module.contains(n); });
    module = renamed(module, "main", callee);
  }
  body.push_back(
      make<tir::CallTir>(make<GlobalVar>(callee), std::move(args), Attrs(), kernel->origin));
  std::vector<Ref<tir::Buffer>> params = inputs;
  params.insert(params.end(), outputs.begin(), outputs.end());
  Attrs attrs;
  attrs.set("tenon.entry", true);
  attrs.set("tenon.num_inputs", static_cast<int64_t>(inputs.size()));
  attrs.set("tir.noalias", true);
  attrs.set("input_names", input_names);
  attrs.set("output_names", output_names);
  module.set("main", tir::PrimFunc::of_buffers(std::move(params), make<tir::Seq>(std::move(body)),
                                               std::move(attrs), kernel->origin));
  return module;
}

IRModule with_entry(IRModule module) {
  if (const BaseFunc main = module.find("main")) {
    const auto* kernel = main.as<tir::PrimFunc>();
    if (const auto* graph = main.as<graph::Function>(); graph && graph->is_private) {
      // What the program begins with is seen outside.
      module.set("main", with(*graph, [](graph::Function& copy) { copy.is_private = false; }));
    }
    const bool is_ready =
        !kernel || kernel->attrs.flag("tenon.entry") || kernel->attrs.contains("tenon.num_inputs");
    return is_ready ? module : with_call_of(std::move(module), "main");
  }
  const std::vector<std::string> graphs = uncalled(module, true);
  if (graphs.size() == 1) return renamed(module, graphs[0], "main");
  const std::vector<std::string> kernels = uncalled(module, false);
  if (graphs.empty() && kernels.size() == 1) return with_call_of(std::move(module), kernels[0]);
  std::string names;
  for (const std::string& name : graphs.empty() ? kernels : graphs)
    names += (names.empty() ? "`" : ", `") + name + "`";
  if (names.empty()) throw CompileError(kUndefined, {}, "the module has no function `main`");
  throw CompileError(kUndefined, {},
                     "the module has no function `main`, and several that nothing calls: {}; "
                     "rename one to `main`",
                     names);
}

IRModule with_entry(IRModule module, const std::string& name) {
  if (name == "main" || !module.contains(name)) {
    if (name != "main") throw CompileError(kUndefined, {}, "the module has no function `{}`", name);
    return with_entry(std::move(module));
  }
  const BaseFunc function = module.find(name);
  if (module.contains("main"))
    module = renamed(module, "main", fresh_name("main_before", [&](const std::string& n) {
                       return module.contains(n);
                     }));
  if (function.as<tir::PrimFunc>()) return with_call_of(std::move(module), name);
  module.set("main", function);
  return with_entry(std::move(module));
}

}  // namespace tenon
