// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/pass.h"

#include <algorithm>
#include <chrono>
#include <new>

namespace tenon {

static FormOf form_of_module = nullptr;

void set_form_of(FormOf form_of) { form_of_module = form_of; }

static std::string_view name_of(Form form) {
  switch (form) {
    case Form::kAny: return "any";
    case Form::kGraph: return "graph";
    case Form::kLegalised: return "legalised";
    case Form::kTensorIR: return "TensorIR with blocks";
    case Form::kLowered: return "lowered";
  }
  return "?";
}

// A legalised module is a graph module too: passes on graphs see its call_tir as calls. Passes on
// blocks leave functions without them as they are.
static bool accepts(Form needs, Form seen) {
  return needs == Form::kAny || needs == seen ||
         (needs == Form::kGraph && seen == Form::kLegalised) ||
         (needs == Form::kTensorIR && seen == Form::kLowered);
}

// A pass that had nothing to do leaves the very functions that it was given.
static bool is_unchanged(const std::vector<IRModule::Entry>& functions, const Attrs& attrs,
                         const IRModule& module) {
  return std::equal(functions.begin(), functions.end(), module.functions().begin(),
                    module.functions().end(),
                    [](const IRModule::Entry& a, const IRModule::Entry& b) {
                      return a.first == b.first && a.second.same_as(b.second);
                    }) &&
         attrs == module.attrs;
}

// An error about an option is one of the text that states it.
static IRModule run_placed(const Pass& pass, IRModule module) {
  try {
    return pass.run(std::move(module), pass.options);
  } catch (const CompileError& error) {
    if (!pass.origin || error.first().origin || error.first().code.id != kBadOption.id) throw;
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    diagnostics.front().origin = pass.origin;
    throw CompileError(std::move(diagnostics));
  } catch (const std::bad_alloc&) {
    throw CompileError(kLimitExceeded, pass.origin, "`{}` ran out of memory", pass.name);
  }
}

IRModule PassRunner::run(IRModule module, const Pipeline& pipeline) {
  bool verified = false;  // what came in may never have been
  for (const Pass& pass : pipeline) {
    if (form_of_module) {
      const Form seen = form_of_module(module);
      if (!accepts(pass.needs, seen))
        throw CompileError(kWrongForm, pass.origin,
                           "`{}` was given a module in {} form; expected {}", pass.name,
                           name_of(seen), name_of(pass.needs));
    }
    if (before) before(pass, module);
    const IRModule input = validate ? module : IRModule();
    std::vector<IRModule::Entry> given = module.functions();
    const Attrs attrs = module.attrs;
    const auto start = std::chrono::steady_clock::now();
    module = run_placed(pass, std::move(module));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    timings.push_back({pass.name, time.count()});
    const bool unchanged = is_unchanged(given, attrs, module);
    given.clear();
    if (verify && !(verified && unchanged)) {
      try {
        verify(module);
      } catch (const CompileError& error) {
        throw InternalError(fmt::format("`{}` gave a module that is not well formed:\n{}",
                                        pass.name, error.what()));
      }
      verified = true;
    }
    if (validate) validate(pass, input, module);
    if (after) after(pass, module);
  }
  return module;
}

void check_options(const std::string& pass, const Attrs& options,
                   std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : options) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const std::string_view option : known)
      list += (list.empty() ? "`" : ", `") + std::string(option) + "`";
    throw CompileError(kBadOption, {}, "`{}` has no option `{}`; it has {}", pass, name,
                       list.empty() ? "none" : list);
  }
}

}  // namespace tenon
