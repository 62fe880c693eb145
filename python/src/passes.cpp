// SPDX-License-Identifier: Apache-2.0
#include "passes.h"

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
  pass.options = attrs_of(options);
  return pass;
}

static IRModule run(const IRModule& module, const nb::object& passes, bool verify, bool validate) {
  const Pipeline pipeline = pipeline_of(passes);
  PipelineOptions options;
  options.verify = verify;
  options.validate = validate;
  options.progress = [](const std::string&) { check_signals(); };
  return unlocked([&] { return run_pipeline(module, pipeline, options).module; });
}

void bind_passes(nb::module_& m) {
  nb::class_<Pass>(m, "Pass", "A pass with its options. Called with a module, it gives another.")
      .def(
          "__init__",
          [](Pass* self, const std::string& name, const nb::dict& options) {
            new (self) Pass(pass_named(name, options));
          },
          nb::arg("name"), nb::arg("options") = nb::dict())
      .def_ro("name", &Pass::name)
      .def_ro("summary", &Pass::summary)
      .def_prop_ro("needs", [](const Pass& pass) { return std::string(name_of(pass.needs)); })
      .def_prop_ro("precision",
                   [](const Pass& pass) { return std::string(name_of(pass.precision)); })
      .def_prop_ro("options", [](const Pass& pass) { return to_python(pass.options); })
      .def(
          "__call__",
          [](const nb::object& self, const IRModule& module) {
            return run(module, self, true, false);
          },
          nb::arg("module"))
      .def("__str__", &pass_text)
      .def("__repr__", [](const Pass& pass) { return "<tenon.Pass " + pass_text(pass) + ">"; });
  m.def("_passes", [] {
    const auto passes = all_passes();
    return std::vector<Pass>(passes.begin(), passes.end());
  });
  m.def("_parse_pipeline", &pipeline_of, nb::arg("passes"));
  m.def("_standard_pipeline", &standard_pipeline);
  m.def("_run", &run, nb::arg("module"), nb::arg("passes"), nb::arg("verify") = true,
        nb::arg("validate") = false);
}

}  // namespace tenon::python
