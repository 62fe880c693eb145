// SPDX-License-Identifier: Apache-2.0
// Loading and compiling: Python's values become the options of the driver.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "common.h"
#include "kernels.h"
#include "passes.h"
#include "program.h"
#include "tenon/backend/llvm/host.h"
#include "tenon/driver/library_backends.h"
#include "tenon/driver/linked_program.h"
#include "tenon/driver/load.h"
#include "tenon/driver/named_options.h"
#include "tenon/driver/usage.h"
#include "values.h"

namespace tenon::python {

namespace {

// A value as the command line would have it.
std::string text_of(nb::handle value) {
  if (value.is_none()) return "?";  // of a dimension: what the model says
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value) ? "true" : "false";
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::hasattr(value, "__fspath__"))
    return nb::cast<std::string>(nb::str(value.attr("__fspath__")()));
  if (nb::isinstance<nb::tuple>(value) || nb::isinstance<nb::list>(value)) {
    std::string out;
    for (const nb::handle item : nb::iter(value)) out += (out.empty() ? "" : ",") + text_of(item);
    return out;
  }
  return nb::cast<std::string>(nb::str(value));
}

// {"n": 4} is n=4, for options that are repeated.
std::vector<std::string> texts_of(nb::handle value, bool is_list) {
  std::vector<std::string> out;
  if (nb::isinstance<nb::dict>(value)) {
    for (const auto& [key, item] : nb::cast<nb::dict>(value))
      out.push_back(text_of(key) + "=" + text_of(item));
    return out;
  }
  if (is_list && (nb::isinstance<nb::tuple>(value) || nb::isinstance<nb::list>(value))) {
    for (const nb::handle item : nb::iter(value)) out.push_back(text_of(item));
    return out;
  }
  out.push_back(text_of(value));
  return out;
}

std::vector<NamedOption> named_options(const nb::dict& given) {
  static const std::vector<OptionInfo> kOptions = compile_options();
  std::vector<NamedOption> out;
  for (const auto& [key, value] : given) {
    std::string name = nb::cast<std::string>(key);
    std::replace(name.begin(), name.end(), '_', '-');
    if (value.is_none()) continue;
    const auto info = std::find_if(kOptions.begin(), kOptions.end(),
                                   [&](const OptionInfo& option) { return option.name == name; });
    if (info != kOptions.end() && info->is_flag) {
      if (nb::cast<bool>(value)) out.push_back({std::move(name), {}});
      continue;
    }
    out.push_back({name, texts_of(value, info == kOptions.end() || info->is_list)});
  }
  return out;
}

PipelineOptions pipeline_options(const CompileOptions& options, const nb::object& progress) {
  PipelineOptions pipeline = options.passes.pipeline(options.target.model);
  if (progress.is_none()) return pipeline;
  pipeline.progress = [progress = kept(progress)](const std::string& what) {
    callback("`progress`", [&] { (*progress)(what); });
  };
  return pipeline;
}

CompileOptions options_of(const nb::dict& given, const nb::object& pipeline);

enum class Sharing : bool { kCopy, kShare };

LoadOptions load_options(const CompileOptions& options, const nb::object& params,
                         Sharing sharing = Sharing::kCopy) {
  LoadOptions load = options.target.model.load_options();
  if (!params.is_none())
    for (const auto& [name, value] : nb::cast<nb::dict>(params))
      load.values[nb::cast<std::string>(name)] =
          sharing == Sharing::kShare ? shared_tensor_of(nb::borrow(value)) : tensor_of(value);
  return load;
}

std::shared_ptr<Program> load_library(const std::string& path) {
  return unlocked(
      [&] { return std::make_shared<Program>(load_program(path), nullptr, nullptr, path); });
}

nb::object load_path(const std::string& path, const nb::dict& options, const nb::object& params) {
  if (kind_of(path) == ModelKind::kCompiled) return nb::cast(load_library(path));
  const CompileOptions chosen = options_of(options, nb::none());
  const LoadOptions load = load_options(chosen, params);
  return nb::cast(unlocked([&] { return load_module(path, load); }));
}

nb::object load_contents(const nb::bytes& contents, const std::string& name,
                         const nb::dict& options, const nb::object& params, bool shares_params) {
  // Weights stay in the caller's bytes, which live as long as they do.
  const auto keeper = std::shared_ptr<nb::bytes>(new nb::bytes(contents), [](nb::bytes* kept) {
    const nb::gil_scoped_acquire locked;
    delete kept;
  });
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(contents.data()),
                                         contents.size());
  const CompileOptions chosen = options_of(options, nb::none());
  const LoadOptions load =
      load_options(chosen, params, shares_params ? Sharing::kShare : Sharing::kCopy);
  return nb::cast(
      unlocked([&] { return load_module(kind_of(bytes), {name, bytes, keeper}, load); }));
}

CompileOptions options_of(const nb::dict& given, const nb::object& pipeline) {
  KernelFiles kernels;
  CompileOptions options = compile_options(named_options(take_kernels(given, kernels)));
  options.target.model.kernels.modules = std::move(kernels.modules);
  options.target.model.kernels.chosen = std::move(kernels.chosen);
  if (!pipeline.is_none()) options.target.model.chosen.given = pipeline_of(pipeline);
  return options;
}

std::shared_ptr<Program> compile(const IRModule& module, const std::string& name,
                                 const nb::dict& given, const nb::object& params,
                                 const nb::object& pipeline, const nb::object& progress) {
  CompileOptions chosen = options_of(given, pipeline);
  if (!params.is_none())
    for (const auto& [key, value] : nb::cast<nb::dict>(params))
      chosen.target.model.bound_params[nb::cast<std::string>(key)] = tensor_of(value);
  const PipelineOptions around = pipeline_options(chosen, progress);
  const auto target = std::make_shared<const TargetOptions>(std::move(chosen.target));
  return unlocked([&] {
    auto built = std::make_shared<BuiltModel>(build(module, name, *target, around));
    built->request.pipeline = {};  // what it calls is the caller's
    warn_of_unmatched(built->lowered.pipeline.remarks, name);
    target->model.warn_of_unused(built->prepared, built->lowered.pipeline, built->libraries.get());
    std::shared_ptr<runtime::Program> program;
    if (llvm_backend::missing_here(built->request.target).empty()) {
      if (around.progress) around.progress("link");
      program = link_in_place(*built);
      program->set_threads(target->threads);
    }
    return std::make_shared<Program>(std::move(program), std::move(built), target, name);
  });
}

nb::list option_table() {
  nb::list out;
  for (const OptionInfo& option : compile_options()) {
    std::string name = option.name;
    std::replace(name.begin(), name.end(), '-', '_');
    out.append(
        nb::make_tuple(name, option.text, option.default_text, option.is_flag, option.is_list));
  }
  return out;
}

}  // namespace

void bind_compile(nb::module_& m) {
  register_library_backends();
  m.def("_load_path", &load_path, nb::arg("path"), nb::arg("options"), nb::arg("params").none());
  m.def("_load_contents", &load_contents, nb::arg("contents"), nb::arg("name"), nb::arg("options"),
        nb::arg("params").none(), nb::arg("shares_params") = false);
  m.def("_compile", &compile, nb::arg("module"), nb::arg("name"), nb::arg("options"),
        nb::arg("params").none(), nb::arg("pipeline").none(), nb::arg("progress").none());
  m.def("_option_table", &option_table,
        "The options of compiling: (name, text, default, is a flag, is a list).");
}

}  // namespace tenon::python
