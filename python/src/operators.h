// SPDX-License-Identifier: Apache-2.0
// What classes of expressions have in common in Python.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "common.h"
#include "tenon/script/printer.h"

namespace tenon::python {

/// Handles of nodes (structs with a member `node`) are equal where it is the same node.
template <typename T>
void bind_identity(nb::class_<T>& to) {
  to.def("__eq__", [](const T& a, nb::handle b) {
      return nb::isinstance<T>(b) && a.node.same_as(nb::cast<const T&>(b).node);
    }).def("__hash__", [](const T& of) { return std::hash<const void*>()(of.node.get()); });
}

/// `str` is the node's text, `repr` that with the name of the class.
template <typename T>
void bind_text(nb::class_<T>& to, std::string class_name) {
  to.def("__str__", [](const T& of) {
      return script::print(NodePtr(of.node));
    }).def("__repr__", [class_name = std::move(class_name)](const T& of) {
    return fmt::format("<tenon.{} {}>", class_name, script::print(NodePtr(of.node)));
  });
}

/// Python's operators of two operands, of which one is a `T`.
/// \param combine  gives `a OP b` of (OP as a script has it, a, b).
template <typename T, typename Combine>
void bind_operators(nb::class_<T>& to, Combine combine) {
  struct Operator {
    const char *name, *reflected, *text;
  };
  for (const Operator& op : {Operator{"__add__", "__radd__", "+"},
                             {"__sub__", "__rsub__", "-"},
                             {"__mul__", "__rmul__", "*"},
                             {"__truediv__", "__rtruediv__", "/"},
                             {"__floordiv__", "__rfloordiv__", "//"},
                             {"__mod__", "__rmod__", "%"},
                             {"__pow__", "__rpow__", "**"},
                             {"__lt__", nullptr, "<"},
                             {"__le__", nullptr, "<="},
                             {"__gt__", nullptr, ">"},
                             {"__ge__", nullptr, ">="}}) {
    const char* text = op.text;
    to.def(op.name, [text, combine](const nb::object& a, const nb::object& b) {
      return combine(text, a, b);
    });
    if (op.reflected)
      to.def(op.reflected, [text, combine](const nb::object& a, const nb::object& b) {
        return combine(text, b, a);
      });
  }
}

}  // namespace tenon::python
