# SPDX-License-Identifier: Apache-2.0
"""Networks of torch, by torch's own export to ONNX. Their weights stay where torch holds them.

Imports torch, so nothing but `tenon.from_torch` and the backend of torch.compile imports this.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import onnx_ir
import torch
from torch.export.graph_signature import OutputKind

from tenon import _core
from tenon._core import IRModule
from tenon._errors import CompileError
from tenon._torch_fused import DECOMPOSITIONS

# Smaller weights stay in the ONNX model: an input and an array cost more than their copy.
_SHARED_BYTES = 256


def load(
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    name: str | None,
    options: Mapping[str, Any],
) -> IRModule:
    """What `tenon.from_torch` does."""
    if isinstance(model, torch.export.ExportedProgram):
        if args or kwargs or dynamic_shapes is not None:
            raise TypeError("an ExportedProgram has its inputs and shapes; expected no args, kwargs and dynamic_shapes")
        return module_of(model, name or "<torch>", options)
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a model of type {type(model).__name__}; expected torch.nn.Module or torch.export.ExportedProgram")
    training = [path or type(model).__name__ for path, part in model.named_modules() if part.training]
    if training:
        raise ValueError(f"`{training[0]}` is in training mode, as are {len(training) - 1} other modules; expected model.eval()")
    program = exported(model, tuple(args), dict(kwargs or {}), dynamic_shapes)
    return module_of(program, name or type(model).__name__, options)


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    """Recurrences keep their lengths as symbols, as in torch.onnx.export of a module."""
    patches = importlib.import_module("torch.export._patches")
    with contextlib.ExitStack() as stack:
        for kind in ("lstm", "gru"):
            if register := getattr(patches, f"register_{kind}_while_loop_decomposition", None):
                stack.enter_context(register())
        # An export inside of Dynamo would add its guards to Dynamo's.
        stack.enter_context(torch._guards.tracing(None))
        # What the exporter says of itself, and no user can change.
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", FutureWarning)
        warnings.filterwarnings("ignore", message="The tensor attributes? .* assigned during export")
        # Without gradients torch chooses fused forms of some modules.
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        yield


def exported(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> torch.export.ExportedProgram:
    """What torch.export makes of the module."""
    with _tracing():
        return torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)


def written_values(program: torch.export.ExportedProgram) -> list[str]:
    """The inputs and buffers that the program writes to. It is functional: of `run_decompositions`."""
    kept = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
    return [str(spec.target) for spec in program.graph_signature.output_specs if spec.kind not in kept]


def module_of(program: torch.export.ExportedProgram, name: str, options: Mapping[str, Any]) -> IRModule:
    """The program as a module that shares its weights.

    Raises:
        CompileError: operators without a form in ONNX or in Tenon, all of them; a program that writes to its inputs or buffers.
    """
    with _tracing():
        # Functional, so that what it writes to is seen: the exporter drops that.
        functional = program.run_decompositions(DECOMPOSITIONS)
        if written := written_values(functional):
            raise CompileError(f"{name}: the program writes to `{'`, `'.join(written)}`; expected one that only returns values")
        model, weights = _onnx_of(functional, name)
    module: Any = _core._load_contents(model, name, dict(options), weights, True)
    return cast(IRModule, module)


def _onnx_of(program: torch.export.ExportedProgram, name: str) -> tuple[bytes, dict[str, Any]]:
    """The bytes of an ONNX model, and arrays for those of its inputs that are weights."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = torch.onnx.export(program, dynamo=True, verbose=False)
    except torch.onnx.errors.OnnxExporterError as error:
        missing = _missing_operators(program)
        text = f"no form in ONNX has {', '.join(missing)}" if missing else _reason(error)
        raise CompileError(f"{name}: torch.onnx.export: {text}") from error
    assert made is not None
    weights = _taken_weights(made.model.graph)
    return bytes(onnx_ir.to_proto(made.model).SerializeToString()), weights


def _taken_weights(graph: Any) -> dict[str, Any]:
    """Makes inputs of the graph's initialisers, and returns the arrays that they were: of torch's memory, where that is packed."""
    weights: dict[str, Any] = {}
    for name, value in list(graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or not _is_shared(tensor):
            continue
        weights[name] = tensor.numpy()
        del graph.initializers[name]
        value.const_value = None
        graph.inputs.append(value)
    return weights


def _is_shared(tensor: Any) -> bool:
    """Elements that stand in an array as Tenon has them, and enough of them."""
    types = onnx_ir.DataType
    is_plain = tensor.dtype not in (types.STRING, types.COMPLEX64, types.COMPLEX128) and tensor.dtype.bitwidth >= 8
    return is_plain and tensor.nbytes >= _SHARED_BYTES


def _reason(error: BaseException) -> str:
    """What the exporter says, of the first cause, in a line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(error)


def first_line(error: BaseException) -> str:
    """Without colours of a terminal."""
    lines = str(error).strip().splitlines()
    return re.sub(r"\x1b\[[0-9;]*m", "", lines[0]) if lines else type(error).__name__


def _missing_operators(program: torch.export.ExportedProgram) -> list[str]:
    """Operators of torch that the exporter has no form for."""
    from torch.onnx._internal.exporter import _decomp, _registration

    registry = _registration.ONNXRegistry.from_torchlib()
    known = set(_decomp.get_onnx_implemented_overloads(registry))
    table = _decomp.create_onnx_friendly_decomposition_table(known)
    return sorted(set(_operators(program.run_decompositions(table))) - {str(op) for op in known})


def _operators(program: torch.export.ExportedProgram) -> Iterable[str]:
    for node in program.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            yield str(node.target)
