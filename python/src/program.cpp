// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "arrays.h"
#include "looks.h"
#include "tenon/backend/llvm/shared_library.h"
#include "tenon/driver/external_files.h"
#include "tenon/driver/memory_use.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/usage.h"
#include "tenon/graph/external_modules.h"
#include "tenon/runtime/arguments.h"
#include "tenon/support/nearest.h"
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
  if (!built)
    throw CompileError(kUnsupported, {},
                       "`{}` was loaded from a library; expected a program that was compiled here",
                       program.name());
  for (const graph::ExternalModule& artefact :
       graph::external_modules(built->lowered.pipeline.module))
    if (artefact.kind == graph::ExternalModule::Kind::kHost)
      throw CompileError(kUnsupported, {},
                         "`{}` calls `{}` of Python, which back end `{}` made; it runs in this "
                         "process alone",
                         program.name(), artefact.symbols.at(0), artefact.origin);
  unlocked([&] {
    if (built->c) {
      if (file.ends_with(".so")) throw UsageError("{}: C is written to a folder", file);
      // With constants as arrays, which no compiler had to read here.
      LoweredModule lowered = built->lowered;
      write_c_program(generate_c(lowered, built->request, program.options()->c),
                      lowered.pipeline.module, built->request.target, file);
      return 0;
    }
    llvm_backend::write_shared_library(*built->code, file, built->libraries.get());
    return 0;
  });
}

// Values of the symbols in the order of the declaration.
std::vector<int64_t> symbols_of(const Program& program, const nb::kwargs& given) {
  const TenonProgram& declaration = program.program().declaration();
  std::vector<std::string> names;
  for (int32_t i = 0; i < declaration.symbol_count; ++i)
    names.emplace_back(declaration.symbols[i].name);
  std::vector<std::optional<int64_t>> values(names.size());
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw nb::type_error(
          fmt::format("`{}` has no symbol `{}`{}", program.name(), name, did_you_mean(name, names))
              .c_str());
    values[static_cast<size_t>(found - names.begin())] = nb::cast<int64_t>(value);
  }
  std::vector<int64_t> out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i])
      throw nb::type_error(
          fmt::format("`{}` needs a value of symbol `{}`", program.name(), names[i]).c_str());
    out.push_back(*values[i]);
  }
  return out;
}

int64_t workspace_bytes(const Program& program, const nb::kwargs& symbols) {
  const std::vector<int64_t> values = symbols_of(program, symbols);
  return program.program().shapes_of(values).workspace_bytes;
}

nb::list output_shapes(const Program& program, const nb::kwargs& symbols) {
  const std::vector<int64_t> values = symbols_of(program, symbols);
  const runtime::Program::Shapes shapes = program.program().shapes_of(values);
  nb::list out;
  size_t at = 0;
  for (const TenonTensorInfo& info : program.program().outputs()) {
    nb::list dims;
    for (int32_t i = 0; i < info.ndim; ++i, ++at) {
      const int64_t dim = shapes.output_dims[at];
      dims.append(dim < 0 ? nb::object(nb::none()) : nb::object(nb::int_(dim)));
    }
    out.append(nb::tuple(dims));
  }
  return out;
}

// Name, least and greatest value (None: unlimited).
nb::list symbols(const Program& program) {
  const TenonProgram& declaration = program.program().declaration();
  nb::list out;
  for (int32_t i = 0; i < declaration.symbol_count; ++i) {
    const TenonSymbol& symbol = declaration.symbols[i];
    out.append(nb::make_tuple(
        symbol.name, symbol.lower,
        symbol.upper == INT64_MAX ? nb::object(nb::none()) : nb::object(nb::int_(symbol.upper))));
  }
  return out;
}

// The account of the manifest, with each buffer where the program was compiled here.
nb::object memory_plan(const Program& program) {
  nb::object use = nb::none();
  if (!program.manifest().empty())
    use = imported("json").attr("loads")(program.manifest()).attr("get")("memory");
  nb::list buffers;
  if (program.built())
    for (const Remark& remark : program.built()->lowered.pipeline.remarks) {
      if (remark.pass != "PlanMemory" || remark.verdict != "placed") continue;
      nb::dict numbers;
      for (const auto& [name, number] : remark.numbers)
        numbers[name.c_str()] = static_cast<int64_t>(number);
      buffers.append(nb::make_tuple(remark.subject, numbers, remark.detail));
    }
  nb::object constants = nb::none();
  if (program.is_here()) constants = nb::int_(program.program().declaration().constant_bytes);
  nb::object picture = nb::none();
  if (program.built())
    picture = nb::cpp_function([program](const nb::kwargs& dims) {
      std::map<std::string, int64_t> sizes;
      for (const auto& [name, size] : dims)
        sizes[nb::cast<std::string>(name)] = nb::cast<int64_t>(size);
      return memory_svg(program, sizes);
    });
  return imported("tenon._memory").attr("of_program")(use, buffers, constants, picture);
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
      .def_prop_ro("symbols", &symbols,
                   "Of its dimensions: (name, least value, greatest value or None).")
      .def("workspace_bytes", &workspace_bytes, nb::arg("symbols"),
           "What a call takes beside inputs, outputs and constants, for these values of the "
           "symbols: "
           "`program.workspace_bytes(batch=8)`.")
      .def(
          "output_shapes", &output_shapes, nb::arg("symbols"),
          "Shapes of the outputs for these values of the symbols; None for what only a call knows.")
      .def_prop_ro(
          "remarks",
          [](const Program& program) {
            nb::list out;
            if (program.built())
              for (const Remark& remark : program.built()->lowered.pipeline.remarks)
                out.append(remark);
            return out;
          },
          "What the passes decided; empty where it was loaded.")
      .def_prop_ro(
          "constant_bytes",
          [](const Program& program) { return program.program().declaration().constant_bytes; },
          "Of weights and other constants.")
      .def("explain", &explain, nb::arg("node"),
           "The story of a node of the model, from the file to machine code: a `Story`.")
      .def("time_per_kernel", &time_per_kernel, nb::arg("args"), nb::arg("repeat") = 20,
           nb::arg("dims") = nb::none(), nb::arg("kwargs"),
           "Milliseconds of each kernel in a run: (kernel, node or None, calls, milliseconds), the "
           "slowest first. Inputs are as in a call; without any they are random, of sizes `dims`. "
           "Compiles the program anew.")
      .def("report", &report, nb::arg("repeat") = 10, nb::arg("dims") = nb::none(),
           "The page of `tenon report` as HTML: graph, memory over time, kernels, decisions. "
           "Compiles "
           "and runs the program anew; `repeat=0` does not run it.")
      .def(
          "set_threads",
          [](const Program& program, int threads) { program.program().set_threads(threads); },
          nb::arg("threads"),
          "Of the calls that begin from now on; 0: as many as the process may use. Results do not "
          "depend on it.")
      .def("save", &save, nb::arg("path"),
           "Writes a shared library, which `tenon.load`, `tenon run` and the C API load; of target "
           "c a folder of C: the program, its header, one that calls it, and a Makefile.")
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
