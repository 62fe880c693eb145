# SPDX-License-Identifier: Apache-2.0
"""Operators of one's own with a type rule in Python.

A call of one becomes a call of a function that declares it, as a file of kernels would (docs/own-kernels.md): the rule says its
types, the meaning its body.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenon import _core
from tenon._core import Expr, Function

_Meaning = Callable[..., Any]


@dataclass(frozen=True)
class TensorInfo:
    """The type of a tensor: what type rules are given, and may answer with."""

    shape: tuple[int | str, ...] | None
    """Numbers, and names of symbolic dimensions; None: the rank is not known."""
    dtype: str | None

    def __str__(self) -> str:
        if self.shape is None:
            return "R.Tensor" if self.dtype is None else f'R.Tensor(dtype="{self.dtype}")'
        dims = ", ".join(str(dim) if isinstance(dim, int) else json.dumps(dim) for dim in self.shape)
        comma = "," if len(self.shape) == 1 else ""
        dtype = "" if self.dtype is None else f', "{self.dtype}"'
        return f"R.Tensor(({dims}{comma}){dtype})"


def _results(answer: Any) -> tuple[list[TensorInfo], bool]:
    if isinstance(answer, TensorInfo):
        return [answer], False
    if isinstance(answer, (tuple, list)):
        return [_results(item)[0][0] for item in answer], True
    return [_stated(answer) or TensorInfo(*_core._parts_of_type(answer))], False


def _stated(answer: Any) -> TensorInfo | None:
    """Of `R.Tensor(shape, dtype)` with names and expressions of dimensions, which mean something in the declaration alone."""
    said = getattr(answer, "__tenon_script__", None)
    kind, word, *rest = said() if callable(said) else (None, None)
    if kind != "call" or word != "R.Tensor":
        return None
    given = dict(zip(("shape", "dtype"), rest[0], strict=False)) | rest[1]
    shape, dtype = given.get("shape"), given.get("dtype")
    if set(given) != {"shape", "dtype"} or not isinstance(dtype, str) or not isinstance(shape, (tuple, list)):
        return None
    return TensorInfo(tuple(shape), dtype) if all(isinstance(dim, (int, str)) for dim in shape) else None


_KINDS: dict[Any, str] = {float: 'R.Prim("float32")', int: 'R.Prim("int64")', bool: 'R.Prim("int64")', str: "R.Object"}
_NAMES = {"float": float, "int": int, "bool": bool, "str": str}


def _kind(parameter: inspect.Parameter, value: Any = None) -> str:
    """The type of an attribute's parameter: by its value, its default or its annotation."""
    has_default = parameter.default is not parameter.empty
    annotation = _NAMES.get(parameter.annotation, parameter.annotation)
    example = value if value is not None else parameter.default
    if annotation in _KINDS:
        return _KINDS[annotation]
    for kind, text in _KINDS.items():
        if type(parameter.default if has_default else example) is kind:
            return text
    if isinstance(example, (tuple, list)):
        return f"R.Shape(ndim={len(example)})" if value is not None else "R.Shape"
    if str(annotation).split("[")[0] in ("tuple", "list", "<class 'tuple'>", "<class 'list'>"):
        return "R.Shape"
    raise TypeError(
        f"attribute `{parameter.name}` has no kind; expected a default or an annotation: float, int, bool, str, or a list of integers"
    )


class Operator:
    """An operator of one's own: `tenon.operator` makes them. In scripts it is called on values; on expressions (`tenon.Expr`) as well."""

    def __init__(self, name: str, rule: Callable[..., Any]) -> None:
        self.name = name
        """In full: "com.example::SoftClip"."""
        self.__doc__ = rule.__doc__
        self.__name__ = re.sub(r"\W", "_", name.split("::")[-1])
        self._type_rule = rule
        self._meaning: _Meaning | Function | None = None
        self._forms: dict[Any, Function] = {}
        parameters = inspect.signature(rule).parameters.values()
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"the type rule of operator `{name}` has parameter `*{parameter.name}`; expected names")
        self._inputs = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
        self._attributes = {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}
        for parameter in self._inputs:
            if parameter.default not in (parameter.empty, None):
                raise TypeError(f"input `{parameter.name}` of operator `{name}` has default {parameter.default!r}; expected None, or none")
        self._declaration = self._schema()

    @property
    def _rule(self) -> _core._OperatorRule:
        """For the registry, which alone keeps it: it holds the operator, and a ring through the extension would never end."""
        return _core._make_rule(self.name, self._declaration, self._form)

    @property
    def inputs(self) -> list[str]:
        """The names of its tensors, in order."""
        return [parameter.name for parameter in self._inputs]

    @property
    def attributes(self) -> list[str]:
        """The names of its attributes."""
        return list(self._attributes)

    def meaning(self, meaning: _Meaning | Function) -> _Meaning | Function:
        """Says what the operator computes: for the interpreter, for `check_kernels`, and where no kernel takes a call.

        Args:
            meaning: a function of Python from arrays, and attributes by name, to arrays; or a PrimFunc of the inputs, then the
                results, for operators without attributes.
        """
        if isinstance(meaning, Function):
            if meaning.kind != "prim_func":
                raise TypeError(f"the meaning of operator `{self.name}` is a {meaning.kind} function; expected a PrimFunc")
        elif callable(meaning):
            _core._register_packed(self._packed_name, self._call_meaning, True, False)
        else:
            raise TypeError(f"the meaning of operator `{self.name}` is {meaning!r}; expected a function")
        self._meaning = meaning
        self._forms.clear()
        return meaning

    def __call__(self, *args: Any, **attributes: Any) -> Expr:
        """The operator on expressions of a graph, as rewriters make them."""
        return self._rule(*args, **attributes)

    def __repr__(self) -> str:
        return f"<tenon.Operator `{self.name}`>"

    @property
    def _packed_name(self) -> str:
        return f"tenon.operator.{self.name}"

    def _call_meaning(self, attributes: str, *arrays: Any) -> Any:
        given = json.loads(attributes)
        present = given.pop("")  # names of the inputs that are there
        named = dict(zip(present, arrays, strict=True))
        assert callable(self._meaning)
        return self._meaning(*[named.get(name) for name in self.inputs], **given)

    def _defaults(self) -> dict[str, Any]:
        given = {p.name: p.default for p in self._attributes.values() if p.default is not p.empty}
        return {**given, **{p.name: None for p in self._inputs if p.default is None}}

    def _schema(self) -> Function:
        params = [f"{p.name}: R.Tensor" for p in self._inputs]
        params += [f"{p.name}: {_kind(p)}" for p in self._attributes.values()]
        attrs: dict[str, Any] = {"op": self.name}
        if self._defaults():
            attrs["op_attrs"] = {key: list(v) if isinstance(v, tuple) else v for key, v in self._defaults().items()}
        return self._function(params, "R.Tensor", attrs, ["..."], {})

    def _form(self, types: list[Any], attributes: dict[str, Any]) -> Function:
        """The function of a call: of inputs of these types, (shape, dtype) or None, and these attributes."""
        key = json.dumps([types, attributes])
        if key not in self._forms:
            self._forms[key] = self._make_form(types, attributes)
        return self._forms[key]

    def _make_form(self, types: list[Any], attributes: dict[str, Any]) -> Function:
        inputs = [None if given is None else TensorInfo(*given) for given in self._named_dimensions(types)]
        results, is_tuple = _results(self._type_rule(*inputs, **attributes))
        there = {p.name: info for p, info in zip(self._inputs, inputs, strict=True) if info is not None}
        params = [f"{name}: {info}" for name, info in there.items()]
        params += [f"{name}: {_kind(p, attributes[name])}" for name, p in self._attributes.items()]
        types_text = ", ".join(map(str, results))
        result = f"R.Tuple({types_text})" if is_tuple else types_text
        attrs: dict[str, Any] = {"op": self.name, "op_left_out": [name for name in self.inputs if name not in there]}
        optional = [p.name for p in self._inputs if p.default is None]
        if optional:
            attrs["op_optional"] = optional
        names: dict[str, Any] = {}
        if self._meaning is None:
            body = ["..."]
        elif isinstance(self._meaning, Function):
            if attributes:
                raise TypeError(
                    f"the meaning of operator `{self.name}` is a PrimFunc, which takes no attributes; expected a function of Python"
                )
            names["kernel_of_operator"] = self._meaning
            args = f"({', '.join(there)}{',' if len(there) == 1 else ''})"
            outputs = f"[{types_text}]" if is_tuple else types_text
            body = [f"result_of_operator = R.call_tir(kernel_of_operator, {args}, out_sinfo={outputs})", "return result_of_operator"]
        else:
            text = json.dumps(json.dumps({"": list(there), **attributes}))
            args = "".join(f", {name}" for name in there)
            body = [
                f"result_of_operator = R.call_pure_packed({json.dumps(self._packed_name)}, R.str({text}){args}, sinfo_args=({result},))",
                "return result_of_operator",
            ]
        return self._function(params, result, attrs, body, names)

    @staticmethod
    def _named_dimensions(types: list[Any]) -> list[Any]:
        """With a name for each dimension that is an expression."""
        known: dict[str, str] = {}

        def named(dim: int | str) -> int | str:
            if isinstance(dim, int) or dim.isidentifier():
                return dim
            return known.setdefault(dim, f"dim_{len(known)}")

        return [
            None if given is None else (None if given[0] is None else tuple(named(dim) for dim in given[0]), given[1]) for given in types
        ]

    def _function(self, params: list[str], result: str, attrs: dict[str, Any], body: list[str], names: dict[str, Any]) -> Function:
        lines = [
            "@R.function(private=True)",
            f"def {self.__name__}({', '.join(params)}) -> {result}:",
            f"    R.func_attr({attrs!r})",
            *(f"    {line}" for line in body),
            "",
        ]
        source = _core._Source(f"<operator {self.name}>", "\n".join(lines))
        found = {name: (value,) for name, value in names.items()}
        return _core._parse_function(source, 1, len(lines), found.get).module[self.__name__]


_operators: dict[str, Operator] = {}


def _full_name(name: str) -> str:
    domain, separator, last = name.rpartition("::" if "::" in name else ".")
    if not separator or not domain or not last:
        raise ValueError(f"operator `{name}` is of no domain; expected `com.example::Name`, or `com.example.Name`")
    return f"{domain}::{last}"


def operator(name: str, *, meaning: _Meaning | Function | None = None, override: bool = False) -> Callable[[Callable[..., Any]], Operator]:
    """Declares an operator by its type rule.

        @tenon.operator("com.example::SoftClip")
        def soft_clip(x, *, limit=1.0):
            return R.Tensor(x.shape, x.dtype)

        @soft_clip.meaning
        def _(x, *, limit):
            return np.tanh(x / limit) * limit

    Parameters are the inputs, tensors that are given to the rule as a `TensorInfo` (`shape`, `dtype`); None as default makes one
    optional. Those behind `*` are attributes: of floats, integers, strings and lists of integers, by default or annotation. The
    rule answers with `R.Tensor(shape, dtype)`, or a tuple of these. From then on nodes of the operator in ONNX networks, calls of
    it in scripts, and kernels with `{"op": "com.example::SoftClip"}` mean it, as those of a file of kernels that declares it.

    Args:
        name: domain and name, as ONNX has them: "com.example::SoftClip", or with a dot.
        meaning: what it computes, as `Operator.meaning` takes it. Without one only kernels compute it.
        override: takes the place of one of this name.

    Raises:
        ValueError: there is one of this name, and `override` is False; a name without a domain.
        TypeError: an attribute whose kind nothing says.
        CallbackError: of whoever uses it, where the rule raises.
    """

    def decorate(rule: Callable[..., Any]) -> Operator:
        full = _full_name(name)
        if full in _operators and not override:
            raise ValueError(f"operator `{full}` is declared already; `override=True` replaces it")
        made = Operator(full, rule)
        _core._register_operator(made._rule, override)
        if meaning is not None:
            made.meaning(meaning)
        _operators[full] = made
        return made

    return decorate


def remove_operator(name: str) -> None:
    """Takes back the declaration of an operator. Modules that call it keep its functions, not its meaning in Python.

    Raises:
        ValueError: there is none of this name.
    """
    full = _full_name(name)
    if full not in _operators:
        raise ValueError(f"there is no operator `{full}` of Python")
    _core._unregister_operator(full)
    _core._remove_packed(_operators.pop(full)._packed_name)
