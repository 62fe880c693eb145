# SPDX-License-Identifier: Apache-2.0
"""Tenon: compiles networks, kernels and libraries, joined in one module, to one fast program.

    import tenon

    module = tenon.load("model.onnx")
    program = tenon.compile(module)
    scores = program(image)

Nothing is loaded before it is used: this module imports the compiler with the first name that needs it.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenon import backends as backends, dpl as dpl, schedule as schedule, script as script, tir as tir, transform as transform
    from tenon._api import assert_equal, compile, from_torch, interpret, load, options, passes, plan, validate
    from tenon._core import Expr, Function, IRModule, PackedFunc, Pass, Port, Program, Remark, Story, Target
    from tenon._errors import CallbackError, CompileError, Diagnostic, Error, InternalError, Note, Place, RunError, TenonWarning, UsageError
    from tenon._kernels import CheckedKernel, KernelReport, check_kernels, kernel
    from tenon._memory import MemoryPlan
    from tenon._operator import Operator, TensorInfo, operator, remove_operator
    from tenon._packed import get_global_func, list_global_func_names, register_func, remove_global_func
    from tenon.backends import backend, graph_to_tir, register_backend, tir_to_runtime, unregister_backend
    from tenon.expr_functor import ExprMutator, ExprVisitor
    from tenon.schedule import Schedule
    from tenon.transform import Sequential, module_pass

    __version__: str

# Where each name is.
_NAMES = {
    name: module
    for module, names in {
        "_api": "assert_equal compile from_torch interpret load options passes plan validate",
        "_core": "Expr Function IRModule PackedFunc Pass Port Program Remark Story Target __version__",
        "_errors": "CallbackError CompileError Diagnostic Error InternalError Note Place RunError TenonWarning UsageError",
        "_kernels": "CheckedKernel KernelReport check_kernels kernel",
        "_memory": "MemoryPlan",
        "_operator": "Operator TensorInfo operator remove_operator",
        "_packed": "get_global_func list_global_func_names register_func remove_global_func",
        "backends": "backend graph_to_tir register_backend tir_to_runtime unregister_backend",
        "expr_functor": "ExprMutator ExprVisitor",
        "schedule": "Schedule",
        "transform": "Sequential module_pass",
    }.items()
    for name in names.split()
}
_MODULES = {"backends", "dpl", "schedule", "script", "tir", "transform"}

__all__ = sorted([name for name in _NAMES if not name.startswith("_")] + list(_MODULES))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"tenon.{name}")
        if name not in _NAMES:
            raise AttributeError(f"module 'tenon' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"tenon.{_NAMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})


def _torch_backend(graph: Any, inputs: Any, **options: Any) -> Any:
    return importlib.import_module("tenon._dynamo").backend(graph, inputs, **options)


# torch.compile finds "tenon" in the metadata of what is installed, at its first use. Where that was before this package was on the path:
_registry = sys.modules.get("torch._dynamo.backends.registry")
if _registry is not None and "tenon" not in _registry._BACKENDS:
    _registry.register_backend(_torch_backend, "tenon")
