# SPDX-License-Identifier: Apache-2.0
"""The backend "tenon" of torch.compile.

Dynamo gives it graphs whose inputs are tensors, sizes and weights; a program of Tenon takes the tensors. What cannot be compiled is run by
torch as it is, with a warning.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx

from tenon import _api, _torch
from tenon._errors import CompileError, TenonWarning

_WEIGHTS = ("constants", "inputs")


class _Refused(Exception):
    """Why torch runs a graph itself."""


def backend(
    graph: fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """Compiles a graph of Dynamo's: what torch.compile(model, backend="tenon") calls.

    Args:
        graph: of torch's operators.
        inputs: what it is first called with: tensors, and sizes that are symbols.
        options: those of `tenon.compile`, and
            weights: "constants" (default) are packed by the compilation, which is done again once they change; "inputs" are torch's own,
                read by each call.
            fallback: False: raises where torch would run the graph itself.

    Raises:
        ValueError: a mode, or an option that is not there.
        CompileError: with `fallback=False`, what cannot be compiled.
    """
    chosen = dict(options or {})
    weights = chosen.pop("weights", "constants")
    fallback = chosen.pop("fallback", True)
    if mode not in (None, "default"):
        raise ValueError(f"mode={mode!r}; expected none: options={{...}} takes the options of tenon.compile")
    if weights not in _WEIGHTS:
        raise ValueError(f"weights={weights!r}; expected {' or '.join(map(repr, _WEIGHTS))}")
    try:
        _check_tensors([value for value in inputs if isinstance(value, torch.Tensor)])
        _check_autocast(graph)
        _check_aliases(graph)
        return _Compiled(graph, weights == "constants", inputs, chosen)
    except (_Refused, CompileError) as error:
        if not fallback:
            raise error if isinstance(error, CompileError) else CompileError(str(error)) from error
        calls = sum(node.op.startswith("call") for node in graph.graph.nodes)
        warnings.warn(TenonWarning(f"torch runs a graph of {calls} operations itself: {error}"), stacklevel=2)
    forward: Callable[..., Any] = graph.forward
    return forward


def _check_tensors(tensors: Sequence[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise _Refused(f"a tensor is on device {tensor.device}; expected cpu")
        if tensor.layout != torch.strided:
            raise _Refused(f"a tensor has layout {tensor.layout}; expected torch.strided")
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise _Refused("its tensors require gradients, which Tenon does not compute; expected a call under torch.no_grad()")


def _check_autocast(graph: fx.GraphModule) -> None:
    """Which types operators compute in would be decided by what is around the call."""
    inside = any(node.target is torch.amp.autocast_mode._enter_autocast for node in graph.graph.nodes)
    if inside or torch.is_autocast_enabled("cpu"):
        raise _Refused("autocast is on; expected tensors of the type to compute in")


def _check_aliases(graph: fx.GraphModule) -> None:
    """A program returns tensors of their own: whoever writes to a view would not see it in the other tensor."""
    seen = {_storage(node) for node in graph.graph.nodes if node.op == "placeholder"} - {None}
    returned = [node for node in dict.fromkeys(_returned(graph)) if isinstance(node, fx.Node) and node.op != "placeholder"]
    for node in returned:
        storage = _storage(node)
        if storage in seen:
            raise _Refused(f"`{node.name}`, which it returns, is a view of an input or of another result")
        seen |= {storage} - {None}


def _returned(graph: fx.GraphModule) -> Sequence[Any]:
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    results: Sequence[Any] = output.args[0]
    return results


def _value(node: fx.Node) -> Any:
    """A fake tensor, or a number, which may be a symbol."""
    return node.meta.get("example_value", node.meta.get("val"))


def _storage(node: fx.Node) -> int | None:
    value = _value(node)
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def _is_weight(node: fx.Node, value: Any) -> bool:
    """A parameter or buffer: one tensor in all calls, whose version says when it is written to."""
    known = (node.meta.get("tensor_dict") or {}).get("_dynamo_static_input_type") is not None
    return isinstance(value, torch.Tensor) and (known or isinstance(value, torch.nn.Parameter)) and not value.is_inference()


def _is_setting(node: fx.Node) -> bool:
    """A number that is an attribute of a module: `eps`. Floats come as tensors of float64."""
    argument = node.meta.get("grapharg")
    is_number = not isinstance(_value(node), torch.Tensor) or getattr(argument, "pass_arg_as_tensor", False)
    return is_number and "NN_MODULE" in str(getattr(getattr(argument, "source", None), "guard_source", ""))


def _number(value: Any) -> int | float:
    return value.item() if isinstance(value, torch.Tensor) else int(value)


@dataclass
class _Plan:
    """A graph of Dynamo's as a program takes it."""

    module: fx.GraphModule
    taken: list[int]  # the inputs that the program takes
    weights: dict[int, str]  # the inputs that are constants, with their names in `module`
    settings: dict[int, int | float]  # the inputs that are numbers in `module`
    shapes: tuple[Any, ...]  # of `taken`, as torch.export has them
    results: list[Callable[[Sequence[Any], Sequence[Any]], Any]]  # of all inputs, and the outputs of the program

    @staticmethod
    def of(graph: fx.GraphModule, inputs: Sequence[Any], are_constants: bool) -> _Plan:
        nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
        weights = {i: f"weight_{i}" for i, node in enumerate(nodes) if are_constants and _is_weight(node, inputs[i])}
        sizes = _sizes_of(nodes, weights)
        settings = {i: _number(inputs[i]) for i, node in enumerate(nodes) if i not in sizes and _is_setting(node)}
        taken = [i for i in range(len(nodes)) if i not in weights and i not in sizes and i not in settings]

        new = fx.Graph()
        root: dict[str, Any] = {name: inputs[i] for i, name in weights.items()}
        made: dict[fx.Node, Any] = {nodes[i]: new.placeholder(nodes[i].name) for i in taken}
        made |= {nodes[i]: new.get_attr(name) for i, name in weights.items()}
        made |= {nodes[i]: number for i, number in settings.items()}
        for i, (tensor, dim) in sizes.items():
            made[nodes[i]] = new.call_function(torch.ops.aten.sym_size.int, (made[nodes[tensor]], dim))
        for node in graph.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            if node.op == "call_method" and node.target == "item" and not isinstance(made[node.args[0]], fx.Node):
                made[node] = made[node.args[0]]
                continue
            made[node] = new.node_copy(node, made.__getitem__)
            if node.op in ("get_attr", "call_module"):
                root[node.target] = operator.attrgetter(node.target)(graph)
        returned = _returned(graph)
        outputs = [node for node in dict.fromkeys(returned) if isinstance(node, fx.Node) and node not in nodes]
        new.output(tuple(made[node] for node in outputs))
        results = [_result(value, nodes, outputs) for value in returned]
        return _Plan(fx.GraphModule(root, new), taken, weights, settings, tuple(_dynamic_dims(nodes[i]) for i in taken), results)

    def program(self, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
        args = tuple(_example(inputs[i]) for i in self.taken)
        try:
            program = _torch.exported(self.module, args, {}, self.shapes)
        except Exception as error:
            raise _Refused(f"torch.export: {_torch.first_line(error)}") from error
        if random := _random_operators(program):
            raise _Refused(f"it draws random numbers: {', '.join(random)}")
        return _api.compile(_torch.module_of(program, "<torch.compile>", {}), name="torch_compile", **options)


def _sizes_of(nodes: Sequence[fx.Node], weights: Mapping[int, str]) -> dict[int, tuple[int, int]]:
    """Of each input that is the size of a tensor: of which, and of which dimension."""
    places: dict[Any, tuple[int, int]] = {}
    for i, node in enumerate(nodes):
        if isinstance(_value(node), torch.Tensor) and i not in weights:
            for dim, size in enumerate(_value(node).shape):
                if isinstance(size, torch.SymInt):
                    places.setdefault(size.node.expr, (i, dim))
    symbols = {i: _value(node).node.expr for i, node in enumerate(nodes) if isinstance(_value(node), torch.SymInt)}
    return {i: places[symbol] for i, symbol in symbols.items() if symbol in places}


def _dynamic_dims(node: fx.Node) -> Any:
    """Of sizes that Dynamo began with as symbols, some are known by now."""
    value = _value(node)
    if not isinstance(value, torch.Tensor):
        return torch.export.Dim.DYNAMIC
    return {
        d: torch.export.Dim.DYNAMIC for d, size in enumerate(value.shape) if isinstance(size, torch.SymInt) and not size.node.expr.is_number
    }


def _example(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else int(value)


def _result(value: Any, nodes: Sequence[fx.Node], outputs: Sequence[fx.Node]) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
    """What makes a result of the graph, of all its inputs and the outputs of the program."""
    if not isinstance(value, fx.Node):
        return lambda inputs, arrays: value
    if value in nodes:
        i = nodes.index(value)
        return lambda inputs, arrays: inputs[i]
    i = outputs.index(value)
    if isinstance(_value(value), torch.Tensor):
        return lambda inputs, arrays: _tensor(arrays[i])
    kind = type(_value(value))
    to_number: Callable[[Any], Any] = float if kind in (float, torch.SymFloat) else bool if kind in (bool, torch.SymBool) else int
    return lambda inputs, arrays: to_number(arrays[i])


def _random_operators(program: torch.export.ExportedProgram) -> list[str]:
    """Operators that draw from torch's generator, which a program does not have."""
    return sorted({str(node.target) for node in program.graph.nodes if _is_random(node)})


def _is_random(node: fx.Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    # Dropout that is off has the operator all the same.
    arguments = node.target._schema.arguments
    given = {argument.name: argument.default_value for argument in arguments}
    given |= dict(zip(given, node.args)) | node.kwargs
    return given.get("train", given.get("training", True)) is not False and given.get("dropout_p", 1.0) != 0.0


def _argument(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return np.int64(value)
    return value.detach() if value.requires_grad else value


def _tensor(array: np.ndarray) -> torch.Tensor:
    """The same memory."""
    if array.dtype.kind != "V" and array.dtype.name in _PLAIN:
        return torch.from_numpy(array)
    bits = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    return torch.from_numpy(bits).view(getattr(torch, array.dtype.name))


_PLAIN = {"bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), "float16", "float32", "float64"}


class _Compiled:
    """A program that takes and gives torch's tensors. It is compiled anew where what it holds as a constant has changed."""

    def __init__(self, graph: fx.GraphModule, are_constants: bool, inputs: Sequence[Any], options: Mapping[str, Any]) -> None:
        self._graph, self._are_constants, self._options = graph, are_constants, options
        self._compile(inputs)

    def _compile(self, inputs: Sequence[Any]) -> None:
        self._plan = _Plan.of(self._graph, inputs, self._are_constants)
        self._weights = [(i, inputs[i], inputs[i]._version, inputs[i].data_ptr()) for i in self._plan.weights]
        self.program = self._plan.program(inputs, self._options)
        self._is_tuple = len(self.program.outputs) != 1

    def _is_current(self, inputs: Sequence[Any]) -> bool:
        return all(
            inputs[i] is tensor and tensor._version == version and tensor.data_ptr() == address
            for i, tensor, version, address in self._weights
        ) and all(_number(inputs[i]) == number for i, number in self._plan.settings.items())

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        if not self._is_current(inputs):
            self._compile(inputs)
        given = self.program(*[_argument(inputs[i]) for i in self._plan.taken])
        arrays = given if self._is_tuple else (given,)
        return tuple([result(inputs, arrays) for result in self._plan.results])
