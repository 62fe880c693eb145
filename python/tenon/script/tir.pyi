# SPDX-License-Identifier: Apache-2.0
# Written by `python -m tenon.script._stubs` from the compiler's table of words.
import builtins as _builtins
from collections.abc import Callable as _Callable
from typing import Any as _Any, overload as _overload

from tenon._core import Function as _Function, IRModule as _IRModule

class _Value:
    """What a word gives: in scripts it has every operator."""

    def __init__(self, *args: _Any, **kwargs: _Any) -> None: ...
    def __getattr__(self, name: _builtins.str) -> _Any: ...
    def __getitem__(self, index: _Any) -> _Any: ...
    def __setitem__(self, index: _Any, value: _Any) -> None: ...
    def __call__(self, *args: _Any, **kwargs: _Any) -> _Any: ...
    def __iter__(self) -> _Any: ...
    def __add__(self, other: _Any) -> _Any: ...
    def __radd__(self, other: _Any) -> _Any: ...
    def __sub__(self, other: _Any) -> _Any: ...
    def __rsub__(self, other: _Any) -> _Any: ...
    def __mul__(self, other: _Any) -> _Any: ...
    def __rmul__(self, other: _Any) -> _Any: ...
    def __truediv__(self, other: _Any) -> _Any: ...
    def __rtruediv__(self, other: _Any) -> _Any: ...
    def __floordiv__(self, other: _Any) -> _Any: ...
    def __rfloordiv__(self, other: _Any) -> _Any: ...
    def __mod__(self, other: _Any) -> _Any: ...
    def __rmod__(self, other: _Any) -> _Any: ...
    def __pow__(self, other: _Any) -> _Any: ...
    def __rpow__(self, other: _Any) -> _Any: ...
    def __and__(self, other: _Any) -> _Any: ...
    def __rand__(self, other: _Any) -> _Any: ...
    def __or__(self, other: _Any) -> _Any: ...
    def __ror__(self, other: _Any) -> _Any: ...
    def __xor__(self, other: _Any) -> _Any: ...
    def __rxor__(self, other: _Any) -> _Any: ...
    def __lshift__(self, other: _Any) -> _Any: ...
    def __rlshift__(self, other: _Any) -> _Any: ...
    def __rshift__(self, other: _Any) -> _Any: ...
    def __rrshift__(self, other: _Any) -> _Any: ...
    def __neg__(self) -> _Any: ...
    def __invert__(self) -> _Any: ...
    def __lt__(self, other: _Any) -> _Any: ...
    def __le__(self, other: _Any) -> _Any: ...
    def __gt__(self, other: _Any) -> _Any: ...
    def __ge__(self, other: _Any) -> _Any: ...

def Add(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def And(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def Array(length: _Any, dtype: _Any) -> _Any:
    """Of an extern function: scalars that C takes as one array."""
def Assert(condition: _Any, message: _Any) -> _Any:
    """Stops the program where the condition does not hold."""
def Bind(value: _Any, var: _Any = None) -> _Any:
    """A variable for the statements that follow."""
def Broadcast(value: _Any, lanes: _Any) -> _Any:
    """A vector of one value."""
class Buffer(_Value):
    """A parameter that is a buffer."""

    def __init__(self, shape: _Any, dtype: _Any = "float32", data: _Any = None, strides: _Any = None, elem_offset: _Any = None, scope: _Any = "global", align: _Any = 0, offset_factor: _Any = 0, buffer_type: _Any = "", axis_separators: _Any = None) -> None: ...
def Cast(dtype: _Any, value: _Any) -> _Any:
    """The value converted to a dtype."""
def Div(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def EQ(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def FloorDiv(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def FloorMod(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def GE(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def GT(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def LE(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def LT(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def Let(expr: _Any, where: _Any) -> _Any:
    """An expression with variables of its own."""
def LetStmt(value: _Any, var: _Any = None) -> _Any:
    """A variable for the statements that follow."""
def Let_(expr: _Any, where: _Any) -> _Any:
    """An expression with variables of its own."""
def Max(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def Min(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def Mod(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def Mul(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def NE(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def Not(a: _Any) -> _Any:
    """The negation of a condition."""
def Or(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
class Ptr(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, dtype: _Any = None, storage_scope: _Any = "global") -> None: ...
def Ramp(base: _Any, stride: _Any, lanes: _Any) -> _Any:
    """The vector base, base + stride, ..."""
def Range(begin: _Any, end: _Any = None) -> _Any:
    """The range from `begin`, or 0, to before `end`."""
def Return(*args: _Any, dtype: _Any = None) -> _Any:
    """ends the function, with its value if it has one"""
def Select(condition: _Any, true_value: _Any, false_value: _Any) -> _Any:
    """One of two values, both computed."""
def Shuffle(vectors: _Any, indices: _Any) -> _Any:
    """Lanes of vectors."""
def SizeVar(name: _Any, dtype: _Any) -> _Any:
    """A variable that is not negative."""
def StringImm(value: _Any) -> _Any:
    """A text."""
def Struct(name: _Any, **fields: _Any) -> _Any:
    """Of an extern function: scalars that C takes as one struct."""
def Sub(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars of one dtype."""
def Var(name: _Any, dtype: _Any) -> _Any:
    """A variable."""
def abs(x: _Any) -> _Any:
    """absolute value"""
def acos(x: _Any) -> _Any:
    """inverse cosine"""
def acosh(x: _Any) -> _Any:
    """inverse hyperbolic cosine"""
def add(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def address_of(x: _Any) -> _Any:
    """pointer to the element that a BufferLoad names"""
def alloc_buffer(shape: _Any, dtype: _Any = "float32", data: _Any = None, strides: _Any = None, elem_offset: _Any = None, scope: _Any = "global", align: _Any = -1, offset_factor: _Any = 0, buffer_type: _Any = "", axis_separators: _Any = None) -> _Any:
    """A buffer of the block or function."""
def alloc_local(shape: _Any, dtype: _Any = "float32", **options: _Any) -> _Any:
    """A buffer of scope "local"."""
def alloc_scalar(dtype: _Any = "int32", scope: _Any = "local") -> _Any:
    """A buffer of one element."""
def allocate(extents: _Any, dtype: _Any, scope: _Any = "global", condition: _Any = None, annotations: _Any = None) -> _Any:
    """Memory for the statements that follow."""
def allocate_const(data: _Any, dtype: _Any, extents: _Any, annotations: _Any = None) -> _Any:
    """A constant for the statements that follow."""
def asin(x: _Any) -> _Any:
    """inverse sine"""
def asinh(x: _Any) -> _Any:
    """inverse hyperbolic sine"""
def assume(x: _Any) -> _Any:
    """a condition known to hold"""
def atan(x: _Any) -> _Any:
    """inverse tangent"""
def atan2(x: _Any, y: _Any) -> _Any:
    """angle of (y, x)"""
def atanh(x: _Any) -> _Any:
    """inverse hyperbolic tangent"""
def attr(node: _Any, attr_key: _Any, value: _Any) -> _Any:
    """An attribute of the statements that follow."""
class bf16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class bfloat16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class bfloat16x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class bfloat16x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class bfloat16x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class bfloat16x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class bfloat16x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
def bind(value: _Any, var: _Any = None) -> _Any:
    """A variable for the statements that follow."""
def bitwise_and(x: _Any, y: _Any) -> _Any:
    """x & y"""
def bitwise_not(x: _Any) -> _Any:
    """~x"""
def bitwise_or(x: _Any, y: _Any) -> _Any:
    """x | y"""
def bitwise_xor(x: _Any, y: _Any) -> _Any:
    """x ^ y"""
def block(name_hint: _Any = "", no_realize: _Any = False) -> _Any:
    """A block of computation."""
def block_attr(attrs: _Any) -> _Any:
    """Annotations of the block."""
class bool(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class boolean(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
def broadcast(value: _Any, lanes: _Any) -> _Any:
    """A vector of one value."""
def buffer_decl(shape: _Any, dtype: _Any = "float32", data: _Any = None, strides: _Any = None, elem_offset: _Any = None, scope: _Any = "global", align: _Any = 0, offset_factor: _Any = 0, buffer_type: _Any = "", axis_separators: _Any = None) -> _Any:
    """A buffer over memory that is there."""
def call_cpacked(*args: _Any, dtype: _Any = None) -> _Any:
    """packed C function by name"""
def call_extern(*args: _Any, dtype: _Any = None) -> _Any:
    """C function by name: T.call_extern(dtype, name, args...)"""
def call_intrin(dtype: _Any, func_name: _Any, *args: _Any) -> _Any:
    """A call of an intrinsic by its name."""
def call_llvm_intrin(*args: _Any, dtype: _Any = None) -> _Any:
    """LLVM intrinsic by name"""
def call_llvm_pure_intrin(*args: _Any, dtype: _Any = None) -> _Any:
    """LLVM intrinsic by name, without effects"""
def call_packed(*args: _Any, dtype: _Any = None) -> _Any:
    """registered function by name"""
def call_pure_extern(*args: _Any, dtype: _Any = None) -> _Any:
    """the same without effects"""
def call_tir(function: _Any, *args: _Any) -> _Any:
    """Calls a function of the module."""
def cast(value: _Any, dtype: _Any) -> _Any:
    """The value converted to a dtype."""
def ceil(x: _Any) -> _Any:
    """least integer not below x"""
def ceildiv(lhs: _Any, rhs: _Any) -> _Any:
    """The quotient of integers, rounded up."""
def check_index(x: _Any, y: _Any, z: _Any) -> _Any:
    """an index of at least 0 and below an extent; any other stops the program with the message"""
def clz(x: _Any) -> _Any:
    """leading zero bits"""
def const(value: _Any, dtype: _Any = None) -> _Any:
    """A constant of a dtype."""
def const_ref(hash: _Any) -> _Any:
    """A constant of the file of constants, by its content."""
def const_splat(value: _Any) -> _Any:
    """A constant with one value everywhere."""
def constexpr(value: _Any) -> _Any:
    """A value of Python."""
def copysign(x: _Any, y: _Any) -> _Any:
    """magnitude of x, sign of y"""
def cos(x: _Any) -> _Any:
    """cosine"""
def cosh(x: _Any) -> _Any:
    """hyperbolic cosine"""
def decl_buffer(shape: _Any, dtype: _Any = "float32", data: _Any = None, strides: _Any = None, elem_offset: _Any = None, scope: _Any = "global", align: _Any = 0, offset_factor: _Any = 0, buffer_type: _Any = "", axis_separators: _Any = None) -> _Any:
    """A buffer over memory that is there."""
def div(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def dot4(x: _Any, y: _Any) -> _Any:
    """sum of the products of four numbers of 8 bits, signed in an int32 and unsigned in a uint32"""
def dtype(dtype: _Any) -> _Any:
    """A dtype as a value."""
def erf(x: _Any) -> _Any:
    """error function"""
def evaluate(value: _Any) -> _Any:
    """Evaluates an expression for its effect."""
def exp(x: _Any) -> _Any:
    """e to the power x"""
def exp10(x: _Any) -> _Any:
    """10 to the power x"""
def exp2(x: _Any) -> _Any:
    """2 to the power x"""

@_overload
def extern_func(function: _Callable[..., _Any], /) -> _Function: ...
@_overload
def extern_func(**options: _Any) -> _Callable[[_Callable[..., _Any]], _Function]: ...
class f16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class f32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class f64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
def fabs(x: _Any) -> _Any:
    """absolute value"""
class float16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float16x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float16x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float16x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float16x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float16x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float32x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float32x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float32x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float32x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float32x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float64x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float64x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float64x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float64x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float64x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e4m3fn(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e4m3fnx16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e4m3fnx32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e4m3fnx4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e4m3fnx64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e4m3fnx8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e5m2(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e5m2x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e5m2x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e5m2x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e5m2x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class float8_e5m2x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
def floor(x: _Any) -> _Any:
    """greatest integer not above x"""
def floordiv(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def floormod(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def fma(x: _Any, y: _Any, z: _Any) -> _Any:
    """a * b + c, rounded once"""
def fmod(x: _Any, y: _Any) -> _Any:
    """remainder with the dividend's sign"""
def func_attr(attrs: _Any) -> _Any:
    """Attributes of the function."""
def grid(*extents: _Any) -> _Any:
    """Nested serial loops."""
class handle(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, dtype: _Any = None, storage_scope: _Any = "global") -> None: ...
def hypot(x: _Any, y: _Any) -> _Any:
    """sqrt(x * x + y * y)"""
class i16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class i32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class i64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class i8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
def if_then_else(x: _Any, y: _Any, z: _Any) -> _Any:
    """one of two values; only that one is evaluated"""
def infinity(dtype: _Any) -> _Any:
    """positive infinity"""
def init() -> _Any:
    """What the block does before its first reduction step."""
class int16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int16x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int16x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int16x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int16x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int16x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int32x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int32x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int32x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int32x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int32x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int64x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int64x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int64x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int64x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int64x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int8x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int8x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int8x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int8x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class int8x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
def isfinite(x: _Any) -> _Any:
    """whether x is neither"""
def isinf(x: _Any) -> _Any:
    """whether x is infinite"""
def isnan(x: _Any) -> _Any:
    """whether x is NaN"""
def isnullptr(x: _Any) -> _Any:
    """whether a pointer is null"""
def ldexp(x: _Any, y: _Any) -> _Any:
    """x * 2 ** n, n an integer"""
def let(value: _Any, var: _Any = None) -> _Any:
    """A variable for the statements that follow."""
def likely(x: _Any) -> _Any:
    """a condition expected to hold"""
def llvm_lookup_intrinsic_id(name: _Any) -> _Any:
    """An intrinsic of LLVM by its name."""
def local_scalar(dtype: _Any = "int32") -> _Any:
    """A buffer of one element, of scope "local"."""
def log(x: _Any) -> _Any:
    """natural logarithm"""
def log10(x: _Any) -> _Any:
    """logarithm to base 10"""
def log1p(x: _Any) -> _Any:
    """log(1 + x)"""
def log2(x: _Any) -> _Any:
    """logarithm to base 2"""

@_overload
def macro(function: _Callable[..., _Any], /) -> _Callable[..., _Any]: ...
@_overload
def macro(*, hygienic: _builtins.bool = True) -> _Callable[[_Callable[..., _Any]], _Callable[..., _Any]]: ...
inline = macro
def masked_load(x: _Any, y: _Any, z: _Any) -> _Any:
    """a BufferLoad of a Ramp under a mask; where it is false, the third argument"""
def masked_store(x: _Any, y: _Any, z: _Any) -> _Any:
    """stores the third argument where a BufferLoad of a Ramp names, under a mask"""
def match_buffer(param: _Any, shape: _Any = None, dtype: _Any = "float32", data: _Any = None, strides: _Any = None, elem_offset: _Any = None, scope: _Any = "global", align: _Any = -1, offset_factor: _Any = 0, buffer_type: _Any = "default", axis_separators: _Any = None) -> _Any:
    """The buffer of a parameter, or a view of a region."""
def max(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def max_value(dtype: _Any) -> _Any:
    """greatest finite value"""
def meta_var(value: _Any) -> _Any:
    """A value of Python."""
def min(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def min_value(dtype: _Any) -> _Any:
    """least finite value"""
def multiply(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def nearbyint(x: _Any) -> _Any:
    """nearest integer, ties to even"""
def nextafter(x: _Any, y: _Any) -> _Any:
    """the next float after x towards y"""
def num_threads(dtype: _Any) -> _Any:
    """threads of the run: for libraries with their own"""
def parallel(start: _Any, stop: _Any = None, *, annotations: _Any = None) -> _Any:
    """A loop whose steps run at once."""
def popcount(x: _Any) -> _Any:
    """number of set bits"""
def pow(x: _Any, y: _Any) -> _Any:
    """x to the power y"""
def power(x: _Any, y: _Any) -> _Any:
    """x to the power y"""
def prefetch(x: _Any, y: _Any, z: _Any) -> _Any:
    """hint: element that a BufferLoad names, write (0 or 1), locality (0 to 3)"""

@_overload
def prim_func(function: _Callable[..., _Any], /) -> _Function: ...
@_overload
def prim_func(**options: _Any) -> _Callable[[_Callable[..., _Any]], _Function]: ...
class ptr(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, dtype: _Any = None, storage_scope: _Any = "global") -> None: ...
def q_multiply_shift(x0: _Any, x1: _Any, x2: _Any, x3: _Any) -> _Any:
    """fixed-point product: x * y / 2 ** (q + 1 - s), rounded"""
def ramp(base: _Any, stride: _Any, lanes: _Any) -> _Any:
    """The vector base, base + stride, ..."""
def reads(*regions: _Any) -> _Any:
    """What the block reads."""
def region(region: _Any) -> _Any:
    """A region of a buffer."""
def reinterpret(dtype: _Any, x: _Any) -> _Any:
    """the same bits as another dtype"""
def ret(*args: _Any, dtype: _Any = None) -> _Any:
    """ends the function, with its value if it has one"""
def round(x: _Any) -> _Any:
    """nearest integer, ties to even"""
def rsqrt(x: _Any) -> _Any:
    """1 / sqrt(x)"""
def sblock(name_hint: _Any = "", no_realize: _Any = False) -> _Any:
    """A block of computation."""
def sblock_alloc_buffer(shape: _Any, dtype: _Any = "float32", data: _Any = None, strides: _Any = None, elem_offset: _Any = None, scope: _Any = "global", align: _Any = -1, offset_factor: _Any = 0, buffer_type: _Any = "", axis_separators: _Any = None) -> _Any:
    """A buffer of the block or function."""
def sblock_attr(attrs: _Any) -> _Any:
    """Annotations of the block."""
def serial(start: _Any, stop: _Any = None, *, annotations: _Any = None) -> _Any:
    """A loop."""
def shift_left(x: _Any, y: _Any) -> _Any:
    """x << n"""
def shift_right(x: _Any, y: _Any) -> _Any:
    """x >> n; arithmetic for signed x"""
def sigmoid(x: _Any) -> _Any:
    """1 / (1 + exp(-x))"""
def sin(x: _Any) -> _Any:
    """sine"""
def sinh(x: _Any) -> _Any:
    """hyperbolic sine"""
def sqrt(x: _Any) -> _Any:
    """square root"""
def subtract(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def tan(x: _Any) -> _Any:
    """tangent"""
def tanh(x: _Any) -> _Any:
    """hyperbolic tangent"""
def target(target: _Any) -> _Any:
    """A target by its name or attributes."""
def thread_binding(start: _Any, stop: _Any = None, *, thread: _Any, annotations: _Any = None) -> _Any:
    """A loop over threads of a GPU, which is serial here."""
def trunc(x: _Any) -> _Any:
    """x towards zero"""
def truncdiv(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def truncmod(a: _Any, b: _Any) -> _Any:
    """The operation of two scalars."""
def tvm_access_ptr(*args: _Any, dtype: _Any = None) -> _Any:
    """pointer into a buffer: type, data, offset, extent, mode"""
def tvm_tuple(*args: _Any, dtype: _Any = None) -> _Any:
    """arguments held together"""
def type_annotation(dtype: _Any) -> _Any:
    """A dtype as an argument."""
class u16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class u32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class u64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class u8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint16x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint16x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint16x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint16x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint16x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint32x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint32x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint32x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint32x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint32x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint64x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint64x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint64x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint64x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint64x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint8x16(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint8x32(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint8x4(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint8x64(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
class uint8x8(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
def undef(dtype: _Any) -> _Any:
    """any value"""
def unroll(start: _Any, stop: _Any = None, *, annotations: _Any = None) -> _Any:
    """A loop that is written out."""
def unrolled(start: _Any, stop: _Any = None, *, annotations: _Any = None) -> _Any:
    """A loop that is written out."""
def var(dtype: _Any) -> _Any:
    """A variable."""
def vectorcombine(dtype: _Any, x: _Any, y: _Any) -> _Any:
    """two halves joined"""
def vectorhigh(dtype: _Any, x: _Any) -> _Any:
    """upper half of a vector"""
def vectorize(start: _Any, stop: _Any = None, *, annotations: _Any = None) -> _Any:
    """A loop whose steps are lanes."""
def vectorized(start: _Any, stop: _Any = None, *, annotations: _Any = None) -> _Any:
    """A loop whose steps are lanes."""
def vectorlow(dtype: _Any, x: _Any) -> _Any:
    """lower half of a vector"""
class void(_Value):
    """A value of this dtype; without one, a variable."""

    def __init__(self, expr: _Any = None, is_size_var: _Any = False) -> None: ...
def where(predicate: _Any) -> _Any:
    """The condition under which the block runs."""
def writes(*regions: _Any) -> _Any:
    """What the block writes."""
class axis:
    @staticmethod
    def R(dom: _Any, binding: _Any, dtype: _Any = "int32") -> _Any:
        """An axis over which the block reduces."""
    @staticmethod
    def S(dom: _Any, binding: _Any, dtype: _Any = "int32") -> _Any:
        """An axis that runs in any order."""
    @staticmethod
    def opaque(dom: _Any, binding: _Any, dtype: _Any = "int32") -> _Any:
        """An axis of a block, of no known kind."""
    @staticmethod
    def reduce(dom: _Any, binding: _Any, dtype: _Any = "int32") -> _Any:
        """An axis over which the block reduces."""
    @staticmethod
    def remap(kinds: _Any, bindings: _Any, dtype: _Any = "int32") -> _Any:
        """Axes that are the loops given, by kind: "SSR"."""
    @staticmethod
    def scan(dom: _Any, binding: _Any, dtype: _Any = "int32") -> _Any:
        """An axis in whose order the block runs."""
    @staticmethod
    def spatial(dom: _Any, binding: _Any, dtype: _Any = "int32") -> _Any:
        """An axis that runs in any order."""
