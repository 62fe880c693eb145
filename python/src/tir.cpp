// SPDX-License-Identifier: Apache-2.0
// TensorIR made from values: expressions, statements and PrimFuncs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "function.h"
#include "operators.h"
#include "script_values.h"
#include "tenon/arith/analyzer.h"
#include "tenon/script/expressions.h"
#include "tenon/script/printer.h"
#include "tenon/tir/stmt.h"
#include "values.h"

namespace tenon::python {

namespace {

DType dtype_of(nb::handle value) {
  const script::Object object = Capture().object_of(value);
  if (const auto* dtype = object.as<DType>()) return *dtype;
  const auto* text = object.as<std::string>();
  const auto parsed = text ? DType::parse(*text) : std::nullopt;
  if (!parsed)
    throw nb::value_error((nb::cast<std::string>(nb::repr(value)) + " is no dtype").c_str());
  return *parsed;
}

// A number of Python takes the dtype that its place has.
Expr expr_of(nb::handle value, DType expected = kInt32) {
  if (nb::isinstance<PrimExpr>(value)) return nb::cast<const PrimExpr&>(value).node;
  if (PyBool_Check(value.ptr())) return make<IntImm>(kBool, nb::cast<bool>(value));
  if (PyLong_Check(value.ptr())) {
    const auto number = nb::cast<int64_t>(value);
    if (expected.is_float()) return make<FloatImm>(expected, static_cast<double>(number));
    const bool fits = number == static_cast<int32_t>(number);
    return make<IntImm>(expected == kInt32 && !fits ? kInt64 : expected, number);
  }
  if (PyFloat_Check(value.ptr()))
    return make<FloatImm>(expected.is_float() ? expected : kFloat32, nb::cast<double>(value));
  throw nb::type_error(
      (nb::cast<std::string>(nb::repr(value)) + " is no scalar expression").c_str());
}

std::vector<Expr> exprs_of(nb::handle list) {
  std::vector<Expr> out;
  if (!nb::isinstance<nb::tuple>(list) && !nb::isinstance<nb::list>(list)) return {expr_of(list)};
  for (const nb::handle item : nb::iter(list)) out.push_back(expr_of(item));
  return out;
}

Ref<Var> var_of(nb::handle value) {
  auto var = cast<Var>(expr_of(value));
  if (!var) throw nb::type_error("a variable is expected");
  return var;
}

PrimExpr combined(const char* op, nb::handle a, nb::handle b) {
  Capture capture;
  const script::Object out = script::operate(op, capture.object_of(a), capture.object_of(b));
  const auto* expr = out.as<Expr>();
  if (!expr) throw nb::type_error("the operands are no scalars");
  return {*expr};
}

// Whether a condition holds for all sizes. Of what is no condition Python asks whether it is there.
bool holds(const PrimExpr& condition) {
  if (!condition.node->dtype.is_bool()) return true;
  arith::Analyzer analyzer;
  if (analyzer.proves(condition.node)) return true;
  if (analyzer.proves(logical_not(condition.node))) return false;
  const std::string message =
      fmt::format("`{}` is not known to hold", script::print(NodePtr(condition.node)));
  PyErr_SetString(nb::object(imported("tenon._errors").attr("NotKnown")).ptr(), message.c_str());
  throw nb::python_error();
}

// A parameter that is a buffer stands in the body as a pointer to its elements.
Function make_prim_func(nb::handle params, const Stmt& body, nb::handle ret_type,
                        nb::handle buffer_map, nb::handle attrs, std::string name) {
  std::vector<Ref<Var>> vars;
  std::vector<Ref<tir::Buffer>> buffers;
  Substitution pointers;
  for (const nb::handle param : nb::iter(params)) {
    if (nb::isinstance<Buffer>(param)) {
      buffers.push_back(nb::cast<const Buffer&>(param).node);
      vars.push_back(make<Var>(buffers.back()->name, kHandle));
      continue;
    }
    const Ref<Var> var = var_of(param);
    nb::object buffer = nb::none();
    if (!buffer_map.is_none()) buffer = buffer_map.attr("get")(param);
    if (buffer.is_none()) {
      vars.push_back(var);
      buffers.emplace_back();
      continue;
    }
    buffers.push_back(nb::cast<const Buffer&>(buffer).node);
    vars.push_back(make<Var>(var->name, kHandle));
    pointers[var.get()] = buffers.back()->data;
  }
  const tir::Stmt inner = substitute(body.node, pointers);
  Attrs given = attrs.is_none() ? Attrs() : attrs_of(attrs);
  if (const auto symbol = given.get<std::string>("global_symbol")) {
    name = *symbol;
    given.erase("global_symbol");  // implied
  }
  auto function = make<tir::PrimFunc>(std::move(vars), std::move(buffers), inner, std::move(given));
  if (!ret_type.is_none()) {
    const DType result = dtype_of(ret_type);
    const_cast<tir::PrimFunc*>(function.get())->result = result;  // not shared yet
  }
  return {std::move(name), function};
}

void bind_expressions(nb::module_& m) {
  auto expr = nb::class_<PrimExpr>(
      m, "PrimExpr", "A scalar expression of TensorIR. Equal to itself alone; `tir.EQ` compares.");
  expr.def_prop_ro("dtype", [](const PrimExpr& e) { return e.node->dtype.str(); })
      .def_prop_ro(
          "name",
          [](const PrimExpr& e) -> std::optional<std::string> {
            const auto* var = e.node.as<Var>();
            return var ? std::optional(var->name) : std::nullopt;
          },
          "Of a variable.")
      .def("astype", [](const PrimExpr& e, nb::handle dtype) {
        return PrimExpr{cast(dtype_of(dtype), e.node)};
      });
  expr.def("__bool__", &holds);
  bind_identity(expr);
  bind_text(expr, "tir.PrimExpr");
  bind_operators(expr, combined);
  auto buffer =
      nb::class_<Buffer>(m, "Buffer", "A tensor in memory. `buffer[i, j]` loads an element.");
  buffer.def_prop_ro("name", [](const Buffer& b) { return b.node->name; })
      .def_prop_ro("dtype", [](const Buffer& b) { return b.node->dtype.str(); })
      .def_prop_ro("shape",
                   [](const Buffer& b) {
                     nb::list out;
                     for (const Expr& dim : b.node->shape) {
                       const auto known = as_int(dim);
                       out.append(known ? nb::object(nb::int_(*known)) : nb::cast(PrimExpr{dim}));
                     }
                     return nb::tuple(out);
                   })
      .def_prop_ro(
          "data", [](const Buffer& b) { return PrimExpr{b.node->data}; },
          "The pointer to its elements.")
      .def("__getitem__",
           [](const Buffer& b, nb::handle indices) {
             return PrimExpr{make<tir::BufferLoad>(b.node, exprs_of(indices))};
           })
      .def("__repr__", [](const Buffer& b) { return "<tenon.tir.Buffer `" + b.node->name + "`>"; });
  bind_identity(buffer);
  m.def(
      "Var",
      [](const std::string& name, nb::handle dtype) {
        return PrimExpr{make<Var>(name, dtype_of(dtype))};
      },
      nb::arg("name"), nb::arg("dtype") = "int32");
  m.def(
      "IntImm",
      [](nb::handle dtype, int64_t value) {
        return PrimExpr{make<IntImm>(dtype_of(dtype), value)};
      },
      nb::arg("dtype"), nb::arg("value"));
  m.def(
      "FloatImm",
      [](nb::handle dtype, double value) {
        return PrimExpr{make<FloatImm>(dtype_of(dtype), value)};
      },
      nb::arg("dtype"), nb::arg("value"));
  m.def(
      "decl_buffer",
      [](nb::handle shape, nb::handle dtype, const std::string& name, const std::string& scope) {
        tir::Buffer::Options options;
        options.scope = scope;
        return Buffer{make<tir::Buffer>(name, dtype_of(dtype), exprs_of(shape), options)};
      },
      nb::arg("shape"), nb::arg("dtype") = "float32", nb::arg("name") = "buffer",
      nb::arg("scope") = "global", "A buffer, for a parameter or tir.AllocBuffer.");
}

void bind_statements(nb::module_& m) {
  nb::class_<Stmt>(m, "Stmt", "A statement of TensorIR.")
      .def("__str__", [](const Stmt& s) { return script::print(NodePtr(s.node)); })
      .def("__repr__", [](const Stmt& s) { return script::print(NodePtr(s.node)); });
  m.def(
      "Evaluate", [](nb::handle value) { return Stmt{make<tir::Evaluate>(expr_of(value))}; },
      nb::arg("value"), "Evaluates an expression for its effect.");
  m.def(
      "BufferStore",
      [](const Buffer& buffer, nb::handle value, nb::handle indices) {
        return Stmt{make<tir::BufferStore>(buffer.node, expr_of(value, buffer.node->dtype),
                                           exprs_of(indices))};
      },
      nb::arg("buffer"), nb::arg("value"), nb::arg("indices"));
  m.def(
      "AllocBuffer", [](const Buffer& buffer) { return Stmt{make<tir::AllocBuffer>(buffer.node)}; },
      nb::arg("buffer"), "Memory for the statements that follow in the sequence.");
  m.def(
      "SeqStmt",
      [](nb::handle stmts) {
        std::vector<tir::Stmt> out;
        for (const nb::handle stmt : nb::iter(stmts))
          out.push_back(nb::cast<const Stmt&>(stmt).node);
        return Stmt{tir::seq(std::move(out))};
      },
      nb::arg("seq"));
  m.def(
      "For",
      [](nb::handle var, nb::handle min, nb::handle extent, const std::string& kind,
         const Stmt& body) {
        const Ref<Var> loop = var_of(var);
        for (const auto& [name, value] :
             std::initializer_list<std::pair<const char*, tir::ForKind>>{
                 {"serial", tir::ForKind::kSerial},
                 {"parallel", tir::ForKind::kParallel},
                 {"vectorized", tir::ForKind::kVectorized},
                 {"unrolled", tir::ForKind::kUnrolled}})
          if (kind == name)
            return Stmt{make<tir::For>(loop, expr_of(min, loop->dtype),
                                       expr_of(extent, loop->dtype), value, body.node)};
        throw nb::value_error(
            ("a loop is \"serial\", \"parallel\", \"vectorized\" or \"unrolled\", not \"" + kind +
             "\"")
                .c_str());
      },
      nb::arg("loop_var"), nb::arg("min"), nb::arg("extent"), nb::arg("kind"), nb::arg("body"));
  m.def(
      "IfThenElse",
      [](nb::handle condition, const Stmt& then_case, const Stmt* else_case) {
        return Stmt{make<tir::IfThenElse>(expr_of(condition), then_case.node,
                                          else_case ? else_case->node : tir::Stmt())};
      },
      nb::arg("condition"), nb::arg("then_case"), nb::arg("else_case").none() = nb::none());
  m.def(
      "PrimFunc", &make_prim_func, nb::arg("params"), nb::arg("body"),
      nb::arg("ret_type").none() = nb::none(), nb::arg("buffer_map").none() = nb::none(),
      nb::arg("attrs").none() = nb::none(), nb::arg("name") = "main",
      "A function of these parameters: buffers, or variables, which `buffer_map` makes pointers to "
      "buffers. Attribute `global_symbol` is its name.");
}

}  // namespace

void bind_tir(nb::module_& m) {
  bind_expressions(m);
  bind_statements(m);
}

}  // namespace tenon::python
