// SPDX-License-Identifier: Apache-2.0
#include "passes.h"

#include <fmt/ranges.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>

#include "tenon/driver/compiler.h"
#include "tenon/driver/console.h"
#include "tenon/driver/pass_list.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "values.h"

namespace tenon::python {

Pipeline pipeline_of(nb::handle value) {
  if (nb::isinstance<Pass>(value)) return {nb::cast<Pass>(value)};
  if (nb::hasattr(value, "passes")) return pipeline_of(value.attr("passes"));
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    Pipeline out;
    for (const nb::handle item : nb::iter(value))
      for (Pass& pass : pipeline_of(item)) out.push_back(std::move(pass));
    return out;
  }
  const bool is_path = nb::hasattr(value, "__fspath__");
  if (!is_path && !nb::isinstance<nb::str>(value))
    throw nb::type_error(("a pipeline cannot be " + nb::cast<std::string>(nb::repr(value)) +
                          "; expected passes, a text of passes, or a file of them")
                             .c_str());
  const std::string text =
      nb::cast<std::string>(is_path ? nb::str(value.attr("__fspath__")()) : nb::str(value));
  std::error_code error;
  if (is_path || (text.find('\n') == std::string::npos && std::filesystem::exists(text, error)))
    return parse_pass_list(std::make_shared<const SourceFile>(SourceFile{text, read_file(text)}));
  return parse_pass_list(text);
}

static Pass pass_named(const std::string& name, const nb::dict& options) {
  // As its text would name it: the same errors.
  Pass pass = parse_pass_list(name).at(0);
  pass.origin = {};
  pass.options = attrs_of(options);
  return pass;
}

static Form form_named(const std::string& text) {
  std::vector<std::string> names;
  for (const Form form :
       {Form::kAny, Form::kGraph, Form::kLegalised, Form::kTensorIR, Form::kLowered}) {
    if (name_of(form) == text) return form;
    names.emplace_back(name_of(form));
  }
  throw nb::value_error(
      fmt::format("no form is called {:?}; expected {}", text, fmt::join(names, ", ")).c_str());
}

// A pass that is a function of Python: it takes the module, and options by name.
static Pass python_pass(const std::string& name, const std::string& summary,
                        const nb::object& function, const std::string& needs, bool exact,
                        const nb::dict& options) {
  Pass pass;
  pass.name = name;
  pass.summary = summary;
  pass.needs = form_named(needs);
  pass.precision = exact ? Precision::kExact : Precision::kReassociating;
  pass.options = attrs_of(options);
  pass.run = [function = kept(function), name](const IRModule& module, const Attrs& given) {
    return callback("pass `" + name + "`", [&] {
      const nb::object result = (*function)(module, **to_python(given));
      if (!nb::isinstance<IRModule>(result))
        throw CompileError(kBadArgument, {}, "pass `{}` gave {}; expected an IRModule", name,
                           nb::cast<std::string>(nb::repr(result.type())));
      return nb::cast<IRModule>(result);
    });
  };
  return pass;
}

namespace {

// What looks at a run of passes, all in Python.
struct Around {
  bool verify = true, validate = false, check_text = false;
  nb::object before, after;  // (pass, module); None
};

}  // namespace

static nb::tuple run(const IRModule& module, const nb::object& passes, const Around& around,
                     const std::string& target) {
  const Pipeline pipeline = pipeline_of(passes);
  PipelineOptions options;
  options.verify = around.verify;
  options.validate = around.validate;
  options.check_text = around.check_text;
  options.counts = std::make_shared<CheckCounts>();
  const auto hook = [](const nb::object& function, const char* what) {
    std::function<void(const Pass&, const IRModule&)> call;
    if (function.is_none()) return call;
    call = [function = kept(function), what](const Pass& pass, const IRModule& seen) {
      callback(what, [&] { (*function)(pass, seen); });
    };
    return call;
  };
  options.before = hook(around.before, "`before_pass`");
  options.after = hook(around.after, "`after_pass`");
  PipelineResult result = unlocked([&] {
    IRModule given = target.empty() ? module : with_target(module, resolve(target));
    return run_pipeline(std::move(given), pipeline, options);
  });
  nb::list timings, remarks;
  for (const PassTiming& timing : result.timings)
    timings.append(nb::make_tuple(timing.name, timing.seconds));
  for (const Remark& remark : result.remarks) remarks.append(remark);
  return nb::make_tuple(std::move(result.module), timings, remarks, options.counts->validated);
}

static nb::list option_table(const Pass& pass) {
  nb::list out;
  for (const PassOption& option : options_of(pass.name))
    out.append(nb::make_tuple(std::string(option.name), std::string(option.type),
                              std::string(option.value), std::string(option.summary)));
  return out;
}

static nb::dict numbers_of(const Remark& remark) {
  nb::dict out;
  for (const auto& [name, number] : remark.numbers) out[name.c_str()] = number;
  return out;
}

void bind_passes(nb::module_& m) {
  nb::class_<Remark>(m, "Remark", "A decision of a pass.")
      .def_prop_ro("pass_name", [](const Remark& remark) { return remark.pass; })
      .def_prop_ro(
          "subject", [](const Remark& remark) { return remark.subject; },
          "The function, binding or block that it is about.")
      .def_prop_ro(
          "verdict", [](const Remark& remark) { return remark.verdict; },
          "\"fused\", \"kept\", \"scheduled\", ...")
      .def_prop_ro(
          "reason", [](const Remark& remark) { return remark.reason; }, "A code.")
      .def_prop_ro("numbers", &numbers_of)
      .def_prop_ro(
          "detail", [](const Remark& remark) { return remark.detail; }, "Words; may be empty.")
      .def_prop_ro(
          "place", [](const Remark& remark) { return place_of(remark.origin); },
          "Of what it is about.")
      .def("__repr__", [](const Remark& remark) {
        return fmt::format("<tenon.Remark {}: {} {}>", remark.pass, remark.subject, remark.verdict);
      });

  nb::class_<Pass>(m, "Pass", "A pass with its options. Called with a module, it gives another.")
      .def(
          "__init__",
          [](Pass* self, const std::string& name, const nb::dict& options) {
            new (self) Pass(pass_named(name, options));
          },
          nb::arg("name"), nb::arg("options") = nb::dict())
      .def_ro("name", &Pass::name)
      .def_ro("summary", &Pass::summary)
      .def_prop_ro(
          "needs", [](const Pass& pass) { return std::string(name_of(pass.needs)); },
          "The form of module: \"any\", \"graph\", \"legalised\", \"TensorIR with blocks\", "
          "\"lowered\".")
      .def_prop_ro(
          "precision", [](const Pass& pass) { return std::string(name_of(pass.precision)); },
          "\"exact\": programs give the same bits as before; \"re-associating\".")
      .def_prop_ro(
          "options", [](const Pass& pass) { return to_python(pass.options); },
          "Those that are given.")
      .def(
          "__call__",
          [](const nb::object& self, const IRModule& module) {
            return nb::object(
                run(module, self, {.before = nb::none(), .after = nb::none()}, "")[0]);
          },
          nb::arg("module"), nb::sig("def __call__(self, module: IRModule) -> IRModule"))
      .def("__str__", &pass_text)
      .def("__repr__", [](const Pass& pass) { return "<tenon.Pass " + pass_text(pass) + ">"; });
  m.def("_passes", [] {
    const auto passes = all_passes();
    return std::vector<Pass>(passes.begin(), passes.end());
  });
  m.def("_pass_options", &option_table, nb::arg("of"));
  m.def("_python_pass", &python_pass, nb::arg("name"), nb::arg("summary"), nb::arg("function"),
        nb::arg("needs"), nb::arg("exact"), nb::arg("options"));
  m.def("_register_pass", &register_pass, nb::arg("registered"));
  m.def("_parse_pipeline", &pipeline_of, nb::arg("passes"));
  m.def("_standard_pipeline", [] { return standard_pipeline(); });
  m.def(
      "_run",
      [](const IRModule& module, const nb::object& passes, bool verify, bool validate,
         bool check_text, const nb::object& before, const nb::object& after,
         const std::string& target) {
        return run(module, passes, {verify, validate, check_text, before, after}, target);
      },
      nb::arg("module"), nb::arg("passes"), nb::arg("verify"), nb::arg("validate"),
      nb::arg("check_text"), nb::arg("before").none(), nb::arg("after").none(), nb::arg("target"),
      nb::sig("def _run(module: IRModule, passes: object, verify: bool, validate: bool, "
              "check_text: bool, before: object, after: object, target: str) -> "
              "tuple[IRModule, list[tuple[str, float]], list[Remark], int]"));
}

}  // namespace tenon::python
