#include "tenon/driver/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tenon/driver/console.h"
#include "tenon/driver/load.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/transforms/partition.h"
#include "tenon/support/usage_codes.h"
#include "tenon/tir/extern_function.h"

namespace tenon {

void ModelOptions::add_to(CLI::App& app) {
  app.add_option("--params", params,
                 "of a .relay model: values of its parameters, as relay.save_param_dict writes "
                 "them; may be repeated");
  app.add_option("--link", link,
                 "a library that the program calls: lib.so, lib.a, file.o or file.c; may be "
                 "repeated");
  app.add_flag("--allow-code", allow_code,
               "link what the model brings as code, and call what it names of the system: it is as "
               "if you ran a program of its author's (docs/trust.md)");
  app.add_option("--call-by-name", call_by_name,
                 "BACKEND: composite functions `BACKEND.f` become calls of the C function `f`");
  app.add_option("--signatures", signatures,
                 "TVMScript file of extern functions, which replace derived signatures");
  app.add_option("--composite", composite,
                 "TVMScript file of patterns; what matches one becomes a composite of its name");
  plugins.add_to(app);
  app.add_option(
         "--kernels", kernels.files,
         "TVMScript file of kernels of your own: PrimFuncs with attribute `op`, the operator "
         "that each computes (docs/own-kernels.md); may be repeated")
      ->allow_extra_args(false);
  app.add_option("--kernel", kernels.choices,
                 "OPERATOR=FILE:FUNCTION, or NODE=FILE:FUNCTION for one node of the network: the "
                 "PrimFunc that computes it; may be repeated")
      ->allow_extra_args(false);
  chosen.add_to(app);
  placement.add_to(app);
}

// A graph function that nobody calls and that is neither a composite nor a pattern.
static std::string only_entry(const IRModule& module) {
  std::set<std::string> called;
  for (const auto& [name, function] : module.functions())
    walk<graph::FuncRef>(function, [&](const graph::FuncRef& ref) { called.insert(ref.name); });
  std::string found;
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<graph::Function>() || called.count(name)) continue;
    if (function->attrs.contains("Composite") || function->attrs.contains("Pattern")) continue;
    if (graph::declares_operator(*function)) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

// The entry is `main`; it is compiled as a whole, whatever a partition said of it.
static IRModule with_main(IRModule module) {
  std::string entry = "main";
  if (!module.contains(entry)) {
    entry = only_entry(module);
    if (entry.empty()) return module;  // reported where `main` is needed
  }
  const auto function = module.find<graph::Function>(entry);
  if (!function) return module;
  Attrs attrs = function->attrs;
  for (const char* name : {"Primitive", "Inline", "Compiler", "global_symbol"}) attrs.erase(name);
  if (entry == "main" && attrs == function->attrs) return module;
  auto* copy = new graph::Function(*function);
  copy->attrs = std::move(attrs);
  copy->is_private = false;
  if (entry != "main") module.erase(entry);
  module.set("main", Ref<graph::Function>(copy));
  return module;
}

// Combinators; nothing where the file is a module, whose functions are its patterns.
std::optional<script::PatternFile> ModelOptions::pattern_text(const std::string& file) const {
  const auto source = std::make_shared<const SourceFile>(SourceFile{file, read_file(file)});
  script::PatternFile read;
  try {
    read = script::read_pattern_file(source, {.backend = only_library()});
  } catch (const CompileError&) {
    // Whoever wrote a module is told what is wrong with the module.
    if (source->text.find("is_op(") == std::string::npos) return std::nullopt;
    throw;
  }
  if (read.named.empty()) return std::nullopt;
  return read;
}

std::string ModelOptions::only_library() const {
  return call_by_name.size() == 1 ? call_by_name[0] : "";
}

std::string ModelOptions::full_name(const std::string& file, const std::string& name,
                                    const Origin& origin) const {
  if (name.find('.') != std::string::npos) return name;
  // A Python name has no dot: it is a function of the back end that is called by name.
  if (only_library().empty())
    throw CompileError(kBadPattern, origin,
                       "--composite {}: pattern `{}` belongs to no back end; give it the "
                       "attribute {{\"Composite\": \"BACKEND.{}\"}}, or one --call-by-name",
                       file, name, name);
  return only_library() + "." + name;
}

void ModelOptions::add_pattern(IRModule& module, const std::string& name,
                               const BaseFunc& function) const {
  const auto add = [&](auto* copy) {
    copy->is_private = true;
    copy->attrs.erase("Composite");
    copy->attrs.set("Pattern", name);
    module.add_unique(graph::identifier(name), BaseFunc(copy));
  };
  if (const auto* graph = function.as<graph::Function>()) return add(new graph::Function(*graph));
  add(new tir::PrimFunc(*function.as<tir::PrimFunc>()));
  // It is found after the pass of --call-by-name.
  AttrList libraries;
  for (const std::string& library : call_by_name) libraries.emplace_back(library);
  if (!libraries.empty()) module.attrs.set("call_by_name", std::move(libraries));
}

IRModule ModelOptions::prepare(IRModule module) const {
  module = placement.annotate(plugins.annotate(with_main(std::move(module))));
  for (const std::string& file : signatures) {
    const IRModule declared = load_module(file);
    for (const auto& [name, function] : declared.functions()) {
      const auto external = cast<tir::ExternFunction>(function);
      if (!external)
        throw CompileError(kBadArgument, function->origin,
                           "--signatures {}: `{}` is no extern function; expected definitions "
                           "under @T.extern_func",
                           file, name);
      module.add_unique(name, external);
    }
  }
  for (const std::string& file : composite) {
    if (const auto text = pattern_text(file)) {
      for (const graph::FusionPattern& pattern : text->patterns) {
        const std::string name = full_name(file, pattern.name, pattern.origin);
        if (pattern.tir) add_pattern(module, name, pattern.tir);
      }
      continue;
    }
    const IRModule patterns = load_module(file);
    for (const auto& [name, function] : patterns.functions()) {
      if (!function.as<graph::Function>() && !function.as<tir::PrimFunc>())
        throw CompileError(kBadPattern, function->origin,
                           "--composite {}: `{}` is an extern function; expected patterns under "
                           "@R.function or @T.prim_func",
                           file, name);
      const auto given = function->attrs.get<std::string>("Composite");
      add_pattern(module, given ? *given : full_name(file, name, function->origin), function);
    }
  }
  return kernels.add_to(std::move(module));
}

Pipeline ModelOptions::passes() const {
  plugins.load();
  Pipeline pipeline;
  const auto add = [&](const char* name, Attrs options) {
    const Pass* pass = find_pass(name);
    check(pass != nullptr, "a pass that is not in the table");
    pipeline.push_back(*pass);
    pipeline.back().options = std::move(options);
  };
  bool has_functions = false;
  for (const std::string& file : composite) {
    if (pattern_text(file))
      add("FuseOpsByPattern", {{"file", file}, {"backend", only_library()}});
    else
      has_functions = true;
  }
  if (has_functions) add("FuseOpsByPattern", {});
  for (const std::string& backend : call_by_name) add("CallByName", {{"backend", backend}});
  for (Pass& pass : chosen.first()) pipeline.push_back(std::move(pass));
  return pipeline;
}

Pipeline ModelOptions::pipeline() const {
  Pipeline pipeline = passes();
  const std::optional<Pipeline> whole = chosen.whole();
  for (const Pass& pass : whole ? *whole : standard_pipeline()) pipeline.push_back(pass);
  return pipeline;
}

void ModelOptions::warn_of_unused(const IRModule& prepared, const PipelineResult& lowered,
                                  const backend::Libraries* opened) const {
  kernels.warn_of_unused(prepared, lowered.remarks);
  if (signatures.empty() && link.empty()) return;
  const backend::ProgramFunctions functions(lowered.module, "main");
  std::set<std::string> called;
  for (const backend::LibraryFunction& library : functions.libraries())
    called.insert(library.symbol);
  for (const std::string& file : signatures) {
    const IRModule declared = load_module(file);
    const auto is_called = [&](const auto& entry) {
      const auto* external = entry.second.template as<tir::ExternFunction>();
      return external && called.count(external->symbol) > 0;
    };
    if (std::none_of(declared.functions().begin(), declared.functions().end(), is_called))
      warn(kNotUsed, {}, "--signatures {}: the program calls none of its functions", file);
  }
  for (const backend::PackedFunction& packed : functions.packed())
    called.insert(backend::packed_symbol(packed.name));
  if (!opened) return;
  for (const std::string& file : opened->without(called))
    if (std::find(link.begin(), link.end(), file) != link.end())
      warn(kNotUsed, {}, "--link {}: the program calls no function of it", file);
}

std::shared_ptr<const backend::Libraries> ModelOptions::libraries() const {
  return std::make_shared<const backend::Libraries>(
      link, nullptr, allow_code ? backend::Trust::kAnything : backend::Trust::kNamed);
}

std::function<std::shared_ptr<const backend::Libraries>(const IRModule&)>
ModelOptions::libraries_of() const {
  const auto opened = std::make_shared<std::shared_ptr<const backend::Libraries>>();
  return [opened, options = *this](const IRModule& module) {
    if (!*opened) *opened = options.libraries();
    return with_external_modules(module, *opened, options.link);
  };
}

}  // namespace tenon
