# SPDX-License-Identifier: Apache-2.0
"""Walks over graph functions and rewrites them expression by expression, as TVM's ExprVisitor and ExprMutator do.

Patterns (`tenon.dpl`) are shorter where the operators that are looked for are known.
"""

from __future__ import annotations

from typing import Any

from tenon import _core
from tenon._core import Expr, Function, IRModule


class ExprVisitor:
    """Visits the expressions of functions, each once, operands first. What a method returns is kept in `memo_map`.

    Methods to override: `visit_function`, `visit_call`, `visit_var`, `visit_constant`, `visit_tuple`, `visit_tuple_getitem`,
    `visit_leaf` (shapes, scalars, texts, names of functions). A variable that is bound stands for its value: `visit_var` is
    called for parameters.
    """

    def __init__(self) -> None:
        self.memo_map: dict[Any, Any] = {}
        self.module: IRModule | None = None
        self._values: dict[Expr, Expr] = {}

    def visit(self, node: Any) -> Any:
        """Of an `IRModule` every graph function is visited."""
        if isinstance(node, IRModule):
            return self.visit_module(node)
        if isinstance(node, Function):
            return self._visit_in(node)
        if node not in self.memo_map:
            self.memo_map[node] = self._of_binding(node) if node in self._values else self._dispatch(node)
        return self.memo_map[node]

    def visit_module(self, module: IRModule) -> Any:
        self.module = module
        for function in module.functions.values():
            if function.kind == "graph":
                self.visit(function)

    def function_of(self, call: Expr) -> Function | None:
        """The function that is called, of the module or inside of the one that calls; None where it is something else."""
        callee = call.callee
        if callee is None:
            return None
        if callee in self._values:
            return self._values[callee].function
        name = callee.name_hint if callee.kind == "GlobalVar" else None
        return self.module[name] if self.module is not None and name is not None and name in self.module else None

    def _visit_in(self, function: Function) -> Any:
        module, values = self.module, self._values
        self.module = module if module is not None else function.module
        self._values = dict(function.bindings)
        try:
            return self.visit_function(function)
        finally:
            self.module, self._values = module, values

    def _of_binding(self, var: Expr) -> Any:
        return self.visit(self._values[var])

    def _dispatch(self, expr: Expr) -> Any:
        match expr.kind:
            case "Call":
                return self.visit_call(expr)
            case "Var":
                return self.visit_var(expr)
            case "Constant":
                return self.visit_constant(expr)
            case "Tuple":
                return self.visit_tuple(expr)
            case "TupleGetItem":
                return self.visit_tuple_getitem(expr)
        return self.visit_leaf(expr)

    def visit_function(self, function: Function) -> Any:
        for param in function.params:
            self.visit(param)
        for var, _ in function.bindings:
            self.visit(var)
        self.visit(function.body)

    def _visit_operands(self, expr: Expr) -> Any:
        for operand in expr.args:
            self.visit(operand)

    def visit_call(self, call: Expr) -> Any:
        return self._visit_operands(call)

    def visit_tuple(self, expr: Expr) -> Any:
        return self._visit_operands(expr)

    def visit_tuple_getitem(self, expr: Expr) -> Any:
        return self._visit_operands(expr)

    def visit_var(self, var: Expr) -> Any:
        return None

    def visit_constant(self, constant: Expr) -> Any:
        return None

    def visit_leaf(self, expr: Expr) -> Any:
        return None


class ExprMutator(ExprVisitor):
    """Gives functions in which expressions are replaced by what the methods return for them; a method that returns the
    expression itself keeps it. What is not overridden rebuilds an expression from its new operands.

    A method may answer with something else than an expression of graphs, such as one of `tenon.tir`; then `visit_function` is
    overridden too, and says what becomes of the function.
    """

    def visit_module(self, module: IRModule) -> IRModule:
        """The module with the functions that `visit_function` gives; where that is None, the function stays."""
        self.module = module
        out = module.copy()
        for name, function in module.functions.items():
            changed = self.visit(function) if function.kind == "graph" else None
            if changed is not None and changed is not function:
                out[name] = changed
        return out

    def visit_function(self, function: Function) -> Any:
        changed = {}
        for param in function.params:
            self.visit(param)
        for var, value in function.bindings:
            self.visit(var)
            if self.memo_map[value] is not value:
                changed[value] = self.memo_map[value]
        return _core._replace(function, changed) if changed else function

    def _of_binding(self, var: Expr) -> Any:
        # What stands for the value is bound to the variable again.
        value = self.visit(self._values[var])
        return var if isinstance(value, Expr) else value

    def visit_call(self, call: Expr) -> Any:
        args = [self.visit(arg) for arg in call.args]
        return call if all(a is b or a == b for a, b in zip(args, call.args, strict=True)) else _core._with_args(call, args)

    def visit_tuple(self, expr: Expr) -> Any:
        self._visit_operands(expr)
        return expr

    def visit_tuple_getitem(self, expr: Expr) -> Any:
        self._visit_operands(expr)
        return expr

    def visit_var(self, var: Expr) -> Any:
        return var

    def visit_constant(self, constant: Expr) -> Any:
        return constant

    def visit_leaf(self, expr: Expr) -> Any:
        return expr
