// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "arrays.h"
#include "tenon/backend/llvm/shared_library.h"
#include "tenon/driver/memory_use.h"
#include "tenon/driver/signature.h"
#include "tenon/runtime/arguments.h"
#include "values.h"

namespace tenon::python {

Program::Program(std::shared_ptr<runtime::Program> program, std::shared_ptr<const BuiltModel> built,
                 std::shared_ptr<const TargetOptions> options, std::string name)
    : program_(std::move(program)),
      built_(std::move(built)),
      options_(std::move(options)),
      name_(std::move(name)) {
  if (program_) {
    signature_ = signature_of(program_->declaration());
    if (const char* text = program_->declaration().manifest) manifest_ = text;
  } else {
    signature_ = signature_of(built_->lowered.pipeline.module);
    manifest_ = built_->lowered.manifest;
  }
}

runtime::Program& Program::program() const {
  if (!program_)
    throw CompileError(kUnsupported, {}, "`{}` was compiled for `{}`; it runs on such a machine",
                       name_, built_->request.target.str());
  return *program_;
}

void Program::make_ports() {
  const auto make = [&](const std::vector<tenon::Port>& ports, bool outputs) {
    std::vector<Port> out;
    for (size_t i = 0; i < ports.size(); ++i) {
      PyObject* name = PyUnicode_FromStringAndSize(ports[i].name.data(),
                                                   static_cast<Py_ssize_t>(ports[i].name.size()));
      if (!name) throw nb::python_error();
      PyUnicode_InternInPlace(&name);
      out.push_back({nb::steal(name), numpy_dtype(ports[i].dtype),
                     outputs && runtime::is_late(program().outputs()[i])});
    }
    return out;
  };
  input_ports_ = make(signature_.inputs, false);
  output_ports_ = make(signature_.outputs, true);
  has_ports_ = true;
}

const std::vector<Program::Port>& Program::input_ports() {
  if (!has_ports_) make_ports();
  return input_ports_;
}
const std::vector<Program::Port>& Program::output_ports() {
  if (!has_ports_) make_ports();
  return output_ports_;
}

namespace {

nb::tuple shape_of(const Port& port) {
  nb::list dims;
  for (const PortDim& dim : port.dims) {
    if (dim.value >= 0)
      dims.append(dim.value);
    else if (!dim.symbol.empty())
      dims.append(dim.symbol);
    else
      dims.append(nb::none());
  }
  return nb::tuple(dims);
}

void save(const Program& program, const nb::object& path) {
  const auto file = nb::cast<std::string>(nb::str(imported("os").attr("fspath")(path)));
  const BuiltModel* built = program.built();
  if (!built || !built->code)
    throw CompileError(kUnsupported, {},
                       "`{}` {}; expected a program that was compiled to machine code here",
                       program.name(), built ? "is of target c" : "was loaded from a library");
  unlocked([&] {
    llvm_backend::write_shared_library(*built->code, file, built->libraries.get());
    return 0;
  });
}

nb::object memory_plan(const Program& program) {
  const std::string& manifest = program.manifest();
  if (manifest.empty()) return nb::none();
  const nb::object json = imported("json").attr("loads")(manifest);
  return imported("tenon._memory").attr("MemoryPlan")(json.attr("get")("memory"));
}

}  // namespace

void bind_programs(nb::module_& m) {
  nb::class_<Port>(m, "Port", "An input or an output of a program.")
      .def_ro("name", &Port::name)
      .def_prop_ro(
          "dtype", [](const Port& port) { return port.dtype.str(); },
          "\"float32\", \"int8\", \"bool\", ...")
      .def_prop_ro("shape", &shape_of,
                   "Of each dimension its size, its symbol (str), or None where it is known when "
                   "the program runs.")
      .def("__str__", [](const Port& port) { return port.name + ": " + port.str(); })
      .def("__repr__",
           [](const Port& port) { return "<tenon.Port " + port.name + ": " + port.str() + ">"; });

  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call)}, {0, nullptr}};
  nb::class_<Program>(
      m, "Program", nb::type_slots(slots),
      "A compiled program. Called with arrays (numpy, torch, jax, anything with the buffer "
      "protocol "
      "or DLPack in CPU memory), by position or by name, it returns a numpy array for each output: "
      "one, or a tuple. `out=` gives arrays to write to: one, a sequence, or a dictionary by name. "
      "Nothing is copied that is packed and aligned as the program needs it. May be called from "
      "several threads at once.")
      .def_prop_ro("name", [](const Program& program) { return program.name(); })
      .def_prop_ro(
          "inputs", [](const Program& program) { return program.signature().inputs; },
          "What it takes, in order.")
      .def_prop_ro(
          "outputs", [](const Program& program) { return program.signature().outputs; },
          "What it gives, in order.")
      .def_prop_ro(
          "manifest",
          [](const Program& program) -> nb::object {
            if (program.manifest().empty()) return nb::dict();
            return imported("json").attr("loads")(program.manifest());
          },
          "What the program says of itself: module_hash, target, passes, memory, ...")
      .def_prop_ro(
          "target",
          [](const Program& program) -> nb::object {
            if (program.built()) return nb::str(program.built()->request.target.str().c_str());
            if (program.manifest().empty()) return nb::none();
            return imported("json").attr("loads")(program.manifest()).attr("get")("target");
          },
          "The resolved target.")
      .def_prop_ro("memory_plan", &memory_plan,
                   "Peak, lower bound, pools and buffers of the planned memory.")
      .def(
          "set_threads",
          [](const Program& program, int threads) { program.program().set_threads(threads); },
          nb::arg("threads"),
          "Of the calls that begin from now on; 0: as many as the process may use. Results do not "
          "depend on it.")
      .def("save", &save, nb::arg("path"),
           "Writes a shared library, which `tenon.load`, `tenon run` and the C API load.")
      .def("__repr__", [](const Program& program) {
        std::string text = "<tenon.Program `" + program.name() + "`";
        const auto add = [&](const char* title, const std::vector<Port>& ports) {
          text += std::string(title);
          for (size_t i = 0; i < ports.size(); ++i)
            text += (i ? ", " : "") + ports[i].name + ": " + ports[i].str();
        };
        add(" (", program.signature().inputs);
        add(") -> (", program.signature().outputs);
        return text + ")>";
      });
}

}  // namespace tenon::python
