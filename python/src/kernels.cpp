// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "function.h"
#include "script_values.h"
#include "tenon/driver/check_kernels.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/usage.h"
#include "tenon/graph/kernels.h"
#include "values.h"

namespace tenon::python {

namespace {

// The kernel, what it calls, and the pattern or the declaration that it is for.
IRModule module_of(const Function& kernel, const Function* subject = nullptr) {
  IRModule out;
  if (kernel.module) add_callees(out, kernel);
  const auto op = kernel.node->attrs.get<std::string>("op");
  if (subject) out.set(subject->name, subject->node);
  if (op && kernel.module && !subject) {
    // In a module of its own these stand beside it.
    if (const auto pattern = kernel.module->find<graph::Function>(*op)) out.set(*op, pattern);
    if (const auto declared = graph::declaration_of(*kernel.module, *op))
      for (const auto& [name, function] : kernel.module->functions())
        if (function.same_as(declared)) out.set(name, function);
  }
  out.set(kernel.name, kernel.node);
  return out;
}

// A symbolic dimension is an expression.
nb::tuple shape_of(const graph::TensorType& type) {
  nb::list dims;
  if (type.shape)
    for (const Expr& dim : *type.shape) {
      const auto known = as_int(dim);
      dims.append(known ? nb::object(nb::int_(*known)) : nb::cast(PrimExpr{dim}));
    }
  return nb::tuple(dims);
}

// Why Python's condition refuses a call; nothing where it does not.
std::optional<std::string> refusal_by(const nb::object& when, const graph::OperatorCall& call,
                                      const std::optional<Target>& target) {
  nb::list shapes, dtypes;
  const auto add = [&](const graph::TensorType& type) {
    shapes.append(shape_of(type));
    dtypes.append(nb::str(type.dtype.str().c_str()));
  };
  for (const auto& input : call.inputs) add(*input.type);
  for (const auto& output : call.outputs) add(*output);
  nb::dict attrs = to_python(call.named.values());
  for (const auto& [name, value] : call.attrs) attrs[name.c_str()] = to_python(value);
  const nb::object answer =
      when(attrs, shapes, dtypes, target ? nb::cast(*target) : nb::object(nb::none()));
  if (nb::isinstance<nb::str>(answer)) return nb::cast<std::string>(answer);
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) throw nb::python_error();
  return truth == 1 ? std::nullopt : std::optional<std::string>("its condition does not hold");
}

graph::KernelCondition condition_of(nb::object when) {
  return [when = kept(std::move(when))](const graph::OperatorKernel& kernel,
                                        const graph::OperatorCall& call,
                                        const std::optional<Target>& target) {
    return callback("condition of kernel `" + kernel.name + "`",
                    [&]() -> std::optional<std::string> {
                      try {
                        return refusal_by(*when, call, target);
                      } catch (nb::python_error& error) {
                        const nb::object unknown = imported("tenon._errors").attr("NotKnown");
                        if (!error.matches(unknown)) throw;
                        return nb::cast<std::string>(nb::str(error.value()));
                      }
                    });
  };
}

// What the annotations of docs/own-kernels.md say, as attributes.
Function kernel_of(const Function& function, const nb::object& op,
                   const std::optional<std::string>& when, const std::optional<std::string>& check,
                   std::optional<int64_t> priority, const nb::object& attrs,
                   const nb::object& target, const std::optional<std::string>& node) {
  const auto prim = cast<tir::PrimFunc>(function.node);
  if (!prim)
    throw nb::type_error(
        ("a kernel is a function under @T.prim_func; `" + function.name + "` is none").c_str());
  if (function.name == "main")
    throw UsageError("a kernel cannot be called `main`, which is the network");
  const bool has_subject = nb::isinstance<Function>(op);
  const Function subject = has_subject ? nb::cast<Function>(op) : Function();
  Attrs own = prim->attrs;
  if (!has_subject) {
    own.set("op", nb::cast<std::string>(op));
  } else {
    const auto graph = cast<graph::Function>(subject.node);
    if (!graph)
      throw nb::type_error(("kernel `" + function.name +
                            "` is for an operator's name, or a function under @R.function; `" +
                            subject.name + "` is none")
                               .c_str());
    own.set("op",
            graph::declares_operator(*graph) ? *graph->attrs.get<std::string>("op") : subject.name);
  }
  if (priority) own.set("op_priority", *priority);
  if (!attrs.is_none()) own.set("op_attrs", attr_of(attrs));
  if (!target.is_none()) own.set("op_target", attr_of(target));
  if (node) own.set("op_node", *node);
  if (when) own.set("op_when", *when);
  if (check) own.set("op_check", *check);
  Function out = function;
  out.node = with(*prim, [&](tir::PrimFunc& copy) { copy.attrs = own; });
  out.module = std::make_shared<const IRModule>(module_of(out, has_subject ? &subject : nullptr));
  const std::string name = *own.get<std::string>("op");
  const bool is_declared_elsewhere =
      name.find("::") != std::string::npos && !has_subject && !name.starts_with("ai.onnx::");
  if (!is_declared_elsewhere)
    unlocked([&] {
      KernelFiles kernels;
      kernels.modules = {*out.module};
      return kernels.add_to({});
    });
  return out;
}

void choose(const nb::dict& by_name, KernelFiles& kernels, nb::dict& rest) {
  nb::dict texts;
  for (const auto& [key, value] : by_name) {
    const auto name = nb::cast<std::string>(key);
    if (nb::isinstance<Function>(value)) {
      const auto& function = nb::cast<const Function&>(value);
      kernels.chosen.push_back({name, module_of(function), function.name});
    } else {
      texts[key] = value;  // FILE:FUNCTION
    }
  }
  if (texts.size() == 0) return;
  if (rest.contains("kernel") && !nb::object(rest["kernel"]).is_none())
    throw UsageError("`kernel` and a dict of `kernels` both name files; expected one of them");
  rest["kernel"] = texts;
}

std::vector<KernelVerdict> verdicts(const CheckKernels& options, const nb::object& progress) {
  std::vector<KernelVerdict> out;
  std::function<void(const std::string&)> begin;
  if (!progress.is_none())
    begin = [progress = kept(progress)](const std::string& kernel) {
      callback("`progress`", [&] { (*progress)(kernel); });
    };
  unlocked([&] {
    check_kernels(options, begin, [&](const KernelVerdict& verdict) { out.push_back(verdict); });
    return 0;
  });
  return out;
}

// The exception that `fault` is in Python.
nb::object exception_of(const CompileError& fault) {
  try {
    throw fault;
  } catch (...) {
    raise_current();
  }
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return nb::steal(value);
}

// (kernel, operator, calls, largest error, why not compiled, text, exception) of each.
nb::list check(const nb::object& kernels, int trials, uint64_t seed, const nb::dict& sizes,
               std::optional<double> tolerance, const std::string& target,
               const nb::object& progress) {
  CheckKernels options;
  nb::dict given;
  given["kernels"] = kernels;
  const nb::dict rest = take_kernels(given, options.kernels);
  if (rest.contains("kernels"))
    for (const nb::handle file : nb::iter(rest["kernels"]))
      options.kernels.files.push_back(*attr_of(file).as<std::string>());
  if (rest.contains("kernel"))
    for (const auto& [name, file] : nb::cast<nb::dict>(rest["kernel"]))
      options.kernels.choices.push_back(nb::cast<std::string>(name) + "=" +
                                        nb::cast<std::string>(nb::str(file)));
  options.trials = trials;
  options.seed = seed;
  for (const auto& [name, size] : sizes)
    options.sizes.push_back(nb::cast<std::string>(name) + "=" +
                            nb::cast<std::string>(nb::str(size)));
  options.tolerance = tolerance;
  options.target = target;
  nb::list out;
  for (const KernelVerdict& verdict : verdicts(options, progress)) {
    const nb::object error = verdict.fault ? exception_of(*verdict.fault) : nb::object(nb::none());
    out.append(nb::make_tuple(verdict.kernel, verdict.op, verdict.calls, verdict.largest_error,
                              verdict.not_compiled,
                              text(verdict.fault ? verdict.fault->what() : verdict.str()), error));
  }
  return out;
}

}  // namespace

nb::dict take_kernels(const nb::dict& options, KernelFiles& kernels) {
  nb::dict rest;
  nb::object given = nb::none();
  for (const auto& [key, value] : options) {
    if (nb::cast<std::string>(key) == "kernels")
      given = nb::borrow(value);
    else
      rest[key] = value;
  }
  nb::list files;
  const auto take = [&](nb::handle item) {
    if (nb::isinstance<IRModule>(item)) {
      kernels.modules.push_back(nb::cast<IRModule>(item));
    } else if (nb::isinstance<Function>(item)) {
      const auto& function = nb::cast<const Function&>(item);
      if (!function.node.as<tir::PrimFunc>() || !function.node->attrs.contains("op"))
        throw UsageError(
            "kernels: `{}` does not say which operator it computes; expected @tenon.kernel, or "
            "{{\"NODE\": kernel}}",
            function.name);
      kernels.modules.push_back(module_of(function));
    } else if (nb::isinstance<nb::dict>(item)) {
      choose(nb::cast<nb::dict>(item), kernels, rest);
    } else {
      files.append(item);
    }
  };
  if (nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given))
    for (const nb::handle item : nb::iter(given)) take(item);
  else if (!given.is_none())
    take(given);
  if (files.size() > 0) rest["kernels"] = files;
  return rest;
}

void bind_kernels(nb::module_& m) {
  nb::class_<Target>(m, "Target", "What code is generated for.")
      .def(
          "__init__",
          [](Target* self, const std::string& text) { new (self) Target(resolve(text)); },
          nb::arg("text") = "native", "\"native\", \"llvm -mcpu=haswell\", \"c\", ...")
      .def_ro("kind", &Target::kind, "\"llvm\" or \"c\".")
      .def_ro("mcpu", &Target::cpu, "LLVM's name of the processor.")
      .def_ro("vector_bits", &Target::vector_bits, "Of the widest profitable vector of floats.")
      .def_ro("has_fma", &Target::has_fma)
      .def_ro("l1_bytes", &Target::l1_bytes)
      .def_ro("l2_bytes", &Target::l2_bytes)
      .def_ro("l3_bytes", &Target::l3_bytes)
      .def("has", &graph::is_described_by, nb::arg("feature"),
           "A word of `op_target`: a kind, a processor, \"avx512\", \"fma\", "
           "\"vector_bits>=512\".")
      .def("__eq__",
           [](const Target& a, nb::handle b) {
             return nb::isinstance<Target>(b) && a == nb::cast<const Target&>(b);
           })
      .def("__hash__", [](const Target& t) { return std::hash<std::string>()(t.str()); })
      .def("__str__", &Target::str)
      .def("__repr__", [](const Target& t) { return "<tenon.Target " + t.str() + ">"; });
  m.def(
      "_register_condition",
      [](const std::string& like, const nb::object& ask) {
        return graph::register_condition(like, condition_of(ask));
      },
      nb::arg("like"), nb::arg("ask"));
  m.def("_kernel", &kernel_of, nb::arg("function"), nb::arg("op"), nb::arg("when").none(),
        nb::arg("check").none(), nb::arg("priority").none(), nb::arg("attrs").none(),
        nb::arg("target").none(), nb::arg("node").none());
  m.def("_check_kernels", &check, nb::arg("kernels"), nb::arg("trials"), nb::arg("seed"),
        nb::arg("sizes"), nb::arg("tolerance").none(), nb::arg("target"),
        nb::arg("progress").none());
}

}  // namespace tenon::python
