# SPDX-License-Identifier: Apache-2.0
# Written by `python -m tenon.script._stubs` from the compiler's table of words.
import builtins as _builtins
from collections.abc import Callable as _Callable
from typing import Any as _Any, overload as _overload

from tenon._core import Function as _Function, IRModule as _IRModule
from tenon.dpl import PatternMatchingRewriter as _PatternMatchingRewriter

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

class Any(_Value):
    """The type of anything."""

    def __init__(self) -> None: ...
class Callable(_Value):
    """The type of a function."""

    def __init__(self, params: _Any = None, ret: _Any = None, purity: _Any = None) -> None: ...
def ExternFunc(global_symbol: _Any, attrs: _Any = None, *, name: _Any = None, private: _Any = False) -> _Any:
    """A function of another library, by its symbol."""
class Object(_Value):
    """The type of anything."""

    def __init__(self) -> None: ...
class Prim(_Value):
    """The type of a scalar."""

    def __init__(self, dtype: _Any = None, *, value: _Any = None) -> None: ...
class Shape(_Value):
    """The type of a shape."""

    def __init__(self, values: _Any = None, *, ndim: _Any = -1) -> None: ...
class Tensor(_Value):
    """The type of a tensor."""

    def __init__(self, shape: _Any = None, dtype: _Any = None, *, ndim: _Any = -1) -> None: ...
class Tuple(_Value):
    """The type of a tuple."""

    def __init__(self, *fields: _Any) -> None: ...
def abs(x: _Any) -> _Any:
    """absolute value"""
def acos(x: _Any) -> _Any:
    """inverse cosine"""
def acosh(x: _Any) -> _Any:
    """inverse hyperbolic cosine"""
def add(lhs: _Any, rhs: _Any) -> _Any:
    """a + b"""
def add_(lhs: _Any, rhs: _Any) -> _Any:
    """a + b"""
def arange(start: _Any, stop: _Any = None, step: _Any = None, dtype: _Any = None) -> _Any:
    """start, start + step, ... below stop."""
def argmax(x: _Any, axis: _Any = None, keepdims: _Any = None, select_last_index: _Any = None) -> _Any:
    """position of the greatest element"""
def argmin(x: _Any, axis: _Any = None, keepdims: _Any = None, select_last_index: _Any = None) -> _Any:
    """position of the least element"""
def argsort(data: _Any, axis: _Any = None, descending: _Any = None, dtype: _Any = None) -> _Any:
    """Positions of the elements in order."""
def asin(x: _Any) -> _Any:
    """inverse sine"""
def asinh(x: _Any) -> _Any:
    """inverse hyperbolic sine"""
def assert_op(condition: _Any, *args: _Any) -> _Any:
    """Stops the program where the condition does not hold."""
def astype(x: _Any, dtype: _Any) -> _Any:
    """Converts to another dtype: floats to integers towards zero, anything to bool by `!= 0`."""
def atan(x: _Any) -> _Any:
    """inverse tangent"""
def atan2(lhs: _Any, rhs: _Any) -> _Any:
    """angle of (b, a)"""
def atanh(x: _Any) -> _Any:
    """inverse hyperbolic tangent"""
def bitcast(x: _Any, dtype: _Any) -> _Any:
    """The bits of every element as those of another dtype of as many bits."""
def bitwise_and(lhs: _Any, rhs: _Any) -> _Any:
    """and of every bit"""
def bitwise_not(x: _Any) -> _Any:
    """complement of every bit"""
def bitwise_or(lhs: _Any, rhs: _Any) -> _Any:
    """or of every bit"""
def bitwise_xor(lhs: _Any, rhs: _Any) -> _Any:
    """exclusive or of every bit"""
def broadcast_to(x: _Any, shape: _Any) -> _Any:
    """Repeats dimensions of 1 to a given shape."""
def call_dps_packed(func: _Any, args: _Any, out_sinfo: _Any = None, **attrs: _Any) -> _Any:
    """Runs a foreign function on the tensors and on outputs that are allocated here."""
def call_inplace_packed(func: _Any, *args: _Any, inplace_indices: _Any = None, out_sinfo: _Any = None, **attrs: _Any) -> _Any:
    """call_pure_packed where outputs are arguments that the function changes."""
def call_packed(func: _Any, *args: _Any, sinfo_args: _Any = None, **attrs: _Any) -> _Any:
    """Calls a registered function that returns its result."""
def call_pure_packed(func: _Any, *args: _Any, out_sinfo: _Any = None, **attrs: _Any) -> _Any:
    """Runs a packed function that has no effect but its result."""
def call_tir(func: _Any, args: _Any, tir_vars: _Any = None, out_sinfo: _Any = None, **attrs: _Any) -> _Any:
    """Runs a PrimFunc of the module on the tensors and on outputs that are allocated here."""
def call_tir_inplace(func: _Any, args: _Any, tir_vars: _Any = None, inplace_indices: _Any = None, out_sinfo: _Any = None, **attrs: _Any) -> _Any:
    """call_tir where an output is the memory of an input, which ends its life."""
def ceil(x: _Any) -> _Any:
    """least integer not below x"""
def center_crop_pad(x: _Any, shape: _Any, axes: _Any) -> _Any:
    """A tensor cut, or padded with zeros, around its centre to other extents."""
def clip(x: _Any, min: _Any, max: _Any) -> _Any:
    """Holds every element between two scalars; where min > max the result is max."""
def concat(tensors: _Any, axis: _Any = None) -> _Any:
    """Joins tensors along an axis."""
def const(value: _Any, dtype: _Any = None) -> _Any:
    """A constant: a number, nested lists, or an array."""
def const_ref(hash: _Any, type: _Any) -> _Any:
    """A constant of the file of constants, by its content."""
def const_splat(value: _Any, type: _Any) -> _Any:
    """A constant with one value everywhere."""
def cos(x: _Any) -> _Any:
    """cosine"""
def cosh(x: _Any) -> _Any:
    """hyperbolic cosine"""
def cumprod(data: _Any, axis: _Any = None, dtype: _Any = None, exclusive: _Any = None, reverse: _Any = None) -> _Any:
    """products of all elements up to each"""
def cumsum(data: _Any, axis: _Any = None, dtype: _Any = None, exclusive: _Any = None, reverse: _Any = None) -> _Any:
    """sums of all elements up to each"""
def dataflow() -> _Any:
    """A region without effects, which ends with R.output."""
def dequantize(data: _Any, scale: _Any, zero_point: _Any, axis: _Any = None, out_dtype: _Any = None, block_size: _Any = None) -> _Any:
    """(data - zero_point) * scale."""
def divide(lhs: _Any, rhs: _Any) -> _Any:
    """a / b; of integers towards zero"""
def dtype(value: _Any) -> _Any:
    """A dtype as a value."""
def dynamic_strided_slice(x: _Any, begin: _Any, end: _Any, strides: _Any) -> _Any:
    """strided_slice of every axis with bounds from int64 vectors."""
def einsum(operands: _Any, subscripts: _Any) -> _Any:
    """Sums of products by subscripts: "bij,bjk->bik"."""
def emit(value: _Any) -> _Any:
    """The value itself."""
def equal(lhs: _Any, rhs: _Any) -> _Any:
    """a == b"""
def erf(x: _Any) -> _Any:
    """error function"""
def exp(x: _Any) -> _Any:
    """e to the power x"""
def expand_dims(x: _Any, axis: _Any) -> _Any:
    """Adds axes of extent 1."""
def extern(global_symbol: _Any, attrs: _Any = None, *, name: _Any = None, private: _Any = False) -> _Any:
    """A function of another library, by its symbol."""
def eye(n: _Any, m: _Any = None, k: _Any = None, dtype: _Any = None) -> _Any:
    """Ones on a diagonal, zeros elsewhere."""
def flatten(x: _Any) -> _Any:
    """The elements in order, in one dimension."""
def flip(x: _Any, axis: _Any) -> _Any:
    """Reverses the order along an axis."""
def floor(x: _Any) -> _Any:
    """greatest integer not above x"""
def floor_divide(lhs: _Any, rhs: _Any) -> _Any:
    """a / b towards minus infinity"""
def floor_mod(lhs: _Any, rhs: _Any) -> _Any:
    """remainder with the divisor's sign"""
def full(shape: _Any, fill_value: _Any, dtype: _Any = None) -> _Any:
    """Every element is one value."""
def full_like(x: _Any, fill_value: _Any, dtype: _Any = None) -> _Any:
    """Every element is one value."""
def func_attr(attrs: _Any) -> _Any:
    """Attributes of the function."""

@_overload
def function(function: _Callable[..., _Any], /) -> _Function: ...
@_overload
def function(**options: _Any) -> _Callable[[_Callable[..., _Any]], _Function]: ...
def gather_elements(data: _Any, indices: _Any, axis: _Any = None) -> _Any:
    """result[i, j, k] = data[indices[i, j, k], j, k] for axis 0, and alike."""
def gather_nd(data: _Any, indices: _Any, batch_dims: _Any = None) -> _Any:
    """The slices of data at the index vectors in the last axis of indices."""
def greater(lhs: _Any, rhs: _Any) -> _Any:
    """a > b"""
def greater_equal(lhs: _Any, rhs: _Any) -> _Any:
    """a >= b"""
def isfinite(x: _Any) -> _Any:
    """neither NaN nor infinite"""
def isinf(x: _Any, detect_negative: _Any = None, detect_positive: _Any = None) -> _Any:
    """infinite"""
def isnan(x: _Any) -> _Any:
    """not a number"""
def layout_transform(x: _Any, src_layout: _Any, dst_layout: _Any, extents: _Any = None) -> _Any:
    """The same elements in another layout: axes reordered, split into blocks that are filled up with zeros, or joined."""
def left_shift(lhs: _Any, rhs: _Any) -> _Any:
    """a << b; 0 where b is none of a's bits"""
def less(lhs: _Any, rhs: _Any) -> _Any:
    """a < b"""
def less_equal(lhs: _Any, rhs: _Any) -> _Any:
    """a <= b"""
def log(x: _Any) -> _Any:
    """natural logarithm"""
def log1p(x: _Any) -> _Any:
    """log(1 + x)"""
def log_add_exp(lhs: _Any, rhs: _Any) -> _Any:
    """log(exp(a) + exp(b))"""
def logical_and(lhs: _Any, rhs: _Any) -> _Any:
    """and"""
def logical_not(x: _Any) -> _Any:
    """not"""
def logical_or(lhs: _Any, rhs: _Any) -> _Any:
    """or"""
def logical_xor(lhs: _Any, rhs: _Any) -> _Any:
    """either, not both"""
def logsumexp(x: _Any, axis: _Any = None, keepdims: _Any = None) -> _Any:
    """log(sum(exp(x))) without overflow"""
def lookup(x: _Any, keys: _Any, values: _Any, otherwise: _Any) -> _Any:
    """The value of the key that equals each element, found by binary search."""
def loop(body: _Any, count: _Any, dims: _Any, states: _Any, slices: _Any, captured: _Any, while_first: _Any = None, reversed_inputs: _Any = None, reversed_outputs: _Any = None) -> _Any:
    """Calls a function of the module again and again."""

@_overload
def macro(function: _Callable[..., _Any], /) -> _Callable[..., _Any]: ...
@_overload
def macro(*, hygienic: _builtins.bool = True) -> _Callable[[_Callable[..., _Any]], _Callable[..., _Any]]: ...
def match_cast(value: _Any, type: _Any) -> _Any:
    """Checks a type when the program runs; names dimensions."""
def matmul(x1: _Any, x2: _Any, out_dtype: _Any = None) -> _Any:
    """Matrix product of the last two axes; batch axes are broadcast, vectors are rows (left) or columns (right)."""
def max(x: _Any, axis: _Any = None, keepdims: _Any = None) -> _Any:
    """greatest element; NaN where one is"""
def maximum(lhs: _Any, rhs: _Any) -> _Any:
    """the greater; NaN where either is"""
def mean(x: _Any, axis: _Any = None, keepdims: _Any = None) -> _Any:
    """mean"""
def min(x: _Any, axis: _Any = None, keepdims: _Any = None) -> _Any:
    """least element; NaN where one is"""
def minimum(lhs: _Any, rhs: _Any) -> _Any:
    """the lesser; NaN where either is"""
def mod(lhs: _Any, rhs: _Any) -> _Any:
    """remainder with the dividend's sign"""
def multiply(lhs: _Any, rhs: _Any) -> _Any:
    """a * b"""
def negative(x: _Any) -> _Any:
    """-x"""
def nonzero(x: _Any, size: _Any = None) -> _Any:
    """The places of the first `size` elements that are not 0, a column each, in order; 0 where there are fewer."""
def not_equal(lhs: _Any, rhs: _Any) -> _Any:
    """a != b"""
def null_value() -> _Any:
    """The None that stands for a missing argument."""
def one_hot(indices: _Any, on_value: _Any, off_value: _Any, depth: _Any, axis: _Any = None) -> _Any:
    """on_value at each index along a new axis, off_value elsewhere; negative indices count from the end, others outside give off_value everywhere."""
def ones(shape: _Any, dtype: _Any = None) -> _Any:
    """Every element is 1."""
def ones_like(x: _Any, dtype: _Any = None) -> _Any:
    """Every element is 1."""
def outer(x1: _Any, x2: _Any) -> _Any:
    """All products of two vectors."""
def output(*values: _Any) -> _Any:
    """What a dataflow region computes for what follows it."""
def pairwise_coupling(r: _Any) -> _Any:
    """The probabilities of classes that fit those of pairs of them best."""
def permute_dims(x: _Any, axes: _Any = None) -> _Any:
    """Reorders the axes of a tensor."""
def power(lhs: _Any, rhs: _Any) -> _Any:
    """a to the power b; of integers modulo 2 to their bits, a negative power towards zero"""
def prim_value(value: _Any) -> _Any:
    """A scalar as a value of the graph."""
def print(*args: _Any) -> _Any:
    """Prints its arguments."""
def prod(x: _Any, axis: _Any = None, keepdims: _Any = None) -> _Any:
    """product"""
def quantize(data: _Any, scale: _Any, zero_point: _Any, axis: _Any = None, out_dtype: _Any = None, block_size: _Any = None, precision: _Any = None, saturate: _Any = None) -> _Any:
    """data / scale rounded to even, plus zero_point, held in the range of out_dtype; of a float8 without zero_point, which is 0."""
def reciprocal(x: _Any) -> _Any:
    """1 / x"""
def repeat(x: _Any, repeats: _Any, axis: _Any = None) -> _Any:
    """Repeats each element along an axis."""
def reshape(x: _Any, shape: _Any) -> _Any:
    """The elements in order, in another shape; one -1 is inferred."""
def reverse_sequence(x: _Any, seq_lengths: _Any, seq_axis: _Any = None, batch_axis: _Any = None) -> _Any:
    """Reverses the first seq_lengths[b] elements along seq_axis for each b of batch_axis."""
func = function
op: _Any

def rewriter(cls: type, /) -> _PatternMatchingRewriter: ...
def right_shift(lhs: _Any, rhs: _Any) -> _Any:
    """a >> b; arithmetic for signed a"""
def round(x: _Any) -> _Any:
    """nearest integer, ties to even"""
def rsqrt(x: _Any) -> _Any:
    """1 / sqrt(x)"""
def scatter_elements(data: _Any, indices: _Any, updates: _Any, axis: _Any = None, reduction: _Any = None) -> _Any:
    """A copy of data where result[indices[i, j, k], j, k] takes updates[i, j, k] for axis 0, and alike."""
def scatter_nd(data: _Any, indices: _Any, updates: _Any, reduction: _Any = None) -> _Any:
    """A copy of data where the slices at the index vectors take the updates."""
def shape(value: _Any) -> _Any:
    """A shape as a value of the graph."""
def shape_of(x: _Any) -> _Any:
    """The shape of a tensor as a value."""
def shape_to_tensor(shape: _Any) -> _Any:
    """The numbers of a shape as an int64 vector."""
def sigmoid(x: _Any) -> _Any:
    """1 / (1 + exp(-x))"""
def sign(x: _Any) -> _Any:
    """-1, 0 or 1"""
def sin(x: _Any) -> _Any:
    """sine"""
def sinh(x: _Any) -> _Any:
    """hyperbolic sine"""
def sort(data: _Any, axis: _Any = None, descending: _Any = None) -> _Any:
    """The elements in order."""
def split(x: _Any, indices_or_sections: _Any, axis: _Any = None) -> _Any:
    """Cuts a tensor along an axis into a tuple."""
def sqrt(x: _Any) -> _Any:
    """square root"""
def square(x: _Any) -> _Any:
    """x * x"""
def squeeze(x: _Any, axis: _Any = None) -> _Any:
    """Drops axes of extent 1."""
def std(x: _Any, axis: _Any = None, keepdims: _Any = None) -> _Any:
    """square root of the variance"""
def str(value: _Any) -> _Any:
    """A text as a value of the graph."""
def strided_slice(x: _Any, axes: _Any, begin: _Any, end: _Any, strides: _Any = None, assume_inbound: _Any = None) -> _Any:
    """x[begin:end:stride] along each of some axes, as Python slices."""
def subtract(lhs: _Any, rhs: _Any) -> _Any:
    """a - b"""
def sum(x: _Any, axis: _Any = None, keepdims: _Any = None) -> _Any:
    """sum"""
def take(x: _Any, indices: _Any, axis: _Any = None, mode: _Any = None) -> _Any:
    """The slices of x at the indices, along one axis."""
def tan(x: _Any) -> _Any:
    """tangent"""
def tanh(x: _Any) -> _Any:
    """hyperbolic tangent"""
def tensor_scatter(data: _Any, updates: _Any, write_indices: _Any = None, axis: _Any = None, mode: _Any = None) -> _Any:
    """A copy of data where updates[b] is written along the axis from write_indices[b] on."""
def tensor_to_shape(x: _Any) -> _Any:
    """The elements of a small integer tensor as a shape."""
def tile(x: _Any, repeats: _Any) -> _Any:
    """Repeats the whole tensor along each axis."""
def topk(data: _Any, k: _Any = None, axis: _Any = None, ret_type: _Any = None, largest: _Any = None, dtype: _Any = None) -> _Any:
    """The k greatest (or least) elements in order, and their positions."""
def tree_ensemble(x: _Any, features: _Any, splits: _Any, children: _Any, roots: _Any, targets: _Any, weights: _Any, offsets: _Any = None, modes: _Any = None, n_targets: _Any = None, mode: _Any = None, aggregate: _Any = None, missing_tracks_true: _Any = None) -> _Any:
    """The weights of the leaf of each decision tree, added up for each row of x."""
def tril(x: _Any, k: _Any = None) -> _Any:
    """Zeros above a diagonal of the last two axes."""
def triu(x: _Any, k: _Any = None) -> _Any:
    """Zeros below a diagonal of the last two axes."""
def trunc(x: _Any) -> _Any:
    """x towards zero"""
def tuple(*fields: _Any) -> _Any:
    """A tuple."""
def undefined() -> _Any:
    """The result of a function that is declared without a body (`...`)."""
def unique_positions(x: _Any, sorted: _Any = None) -> _Any:
    """Of the distinct elements (or rows) of x: where each stands first, which of them each element is, how often each occurs (0 behind the last), and their number. A tuple."""
def variance(x: _Any, axis: _Any = None, keepdims: _Any = None) -> _Any:
    """mean of the squared distances from the mean"""
def where(condition: _Any, x1: _Any, x2: _Any) -> _Any:
    """Elements of x1 where the condition holds, of x2 elsewhere, with broadcasting."""
def words(x: _Any) -> _Any:
    """Four numbers of 8 bits in a row as one of 32 bits, the first in the lowest: the same memory."""
def zeros(shape: _Any, dtype: _Any = None) -> _Any:
    """Every element is 0."""
def zeros_like(x: _Any, dtype: _Any = None) -> _Any:
    """Every element is 0."""
class image:
    @staticmethod
    def affine_grid(data: _Any, size: _Any, align_corners: _Any = None) -> _Any:
        """The grid of places that an affine map gives for images of a size."""
    @staticmethod
    def decode(encoded: _Any, size: _Any, pixel_format: _Any = None) -> _Any:
        """The pixels of a BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP picture: (height, width, channels)."""
    @staticmethod
    def decode_size(encoded: _Any) -> _Any:
        """Height and width of a picture in the bytes of a file; 0 where they are none."""
    @staticmethod
    def grid_sample(data: _Any, grid: _Any, method: _Any = None, layout: _Any = None, padding_mode: _Any = None, align_corners: _Any = None) -> _Any:
        """The data at the places of a grid, from -1 to 1 along each axis."""
    @staticmethod
    def resize(data: _Any, size: _Any, scales_tensor: _Any = None, roi_tensor: _Any = None, axes: _Any = None, scales: _Any = None, roi: _Any = None, method: _Any = None, coordinate_transformation_mode: _Any = None, rounding_method: _Any = None, cubic_alpha: _Any = None, extrapolation_value: _Any = None, exclude_outside: _Any = None, antialias: _Any = None) -> _Any:
        """Tensors of other extents along some axes, in every mode of ONNX."""
    @staticmethod
    def resize2d(data: _Any, size: _Any, scales: _Any = None, layout: _Any = None, method: _Any = None, coordinate_transformation_mode: _Any = None, rounding_method: _Any = None, cubic_alpha: _Any = None, cubic_exclude: _Any = None) -> _Any:
        """Images of another height and width."""
class linalg:
    @staticmethod
    def det(x: _Any) -> _Any:
        """Determinants of the matrices in the last two axes."""
class nn:
    @staticmethod
    def adaptive_avg_pool1d(data: _Any, output_size: _Any = None, layout: _Any = None) -> _Any:
        """Means of as many windows of nearly equal size as the result has elements."""
    @staticmethod
    def adaptive_avg_pool2d(data: _Any, output_size: _Any = None, layout: _Any = None) -> _Any:
        """Means of as many windows of nearly equal size as the result has elements."""
    @staticmethod
    def adaptive_avg_pool3d(data: _Any, output_size: _Any = None, layout: _Any = None) -> _Any:
        """Means of as many windows of nearly equal size as the result has elements."""
    @staticmethod
    def attention(query: _Any, key: _Any, value: _Any, bias: _Any = None, scale: _Any = None, causal_mask: _Any = None, window_size: _Any = None) -> _Any:
        """softmax(query key^T * scale + bias) value for each head."""
    @staticmethod
    def avg_pool1d(data: _Any, pool_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, ceil_mode: _Any = None, count_include_pad: _Any = None, layout: _Any = None, out_layout: _Any = None) -> _Any:
        """Mean of each window."""
    @staticmethod
    def avg_pool2d(data: _Any, pool_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, ceil_mode: _Any = None, count_include_pad: _Any = None, layout: _Any = None, out_layout: _Any = None) -> _Any:
        """Mean of each window."""
    @staticmethod
    def avg_pool3d(data: _Any, pool_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, ceil_mode: _Any = None, count_include_pad: _Any = None, layout: _Any = None, out_layout: _Any = None) -> _Any:
        """Mean of each window."""
    @staticmethod
    def batch_norm(data: _Any, gamma: _Any, beta: _Any, moving_mean: _Any, moving_var: _Any, axis: _Any = None, epsilon: _Any = None, center: _Any = None, scale: _Any = None, momentum: _Any = None, training: _Any = None) -> _Any:
        """(data - mean) / sqrt(var + epsilon) * gamma + beta along `axis`, of the moving mean and variance, or where `training` of those of data. Gives a tuple of the result, moving_mean and moving_var: unchanged, or moved by `momentum`, as Relax does."""
    @staticmethod
    def batch_norm_result(data: _Any, gamma: _Any, beta: _Any, moving_mean: _Any, moving_var: _Any, axis: _Any = None, epsilon: _Any = None, center: _Any = None, scale: _Any = None) -> _Any:
        """The first item of nn.batch_norm."""
    @staticmethod
    def celu(x: _Any, alpha: _Any = None) -> _Any:
        """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))"""
    @staticmethod
    def col2im(data: _Any, image_shape: _Any, block_shape: _Any = None, block_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None) -> _Any:
        """Images from the columns of their blocks; where blocks overlap, the sum."""
    @staticmethod
    def conv1d(data: _Any, weight: _Any, padding_value: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, groups: _Any = None, data_layout: _Any = None, kernel_layout: _Any = None, out_layout: _Any = None, out_dtype: _Any = None) -> _Any:
        """Convolution (correlation) over the spatial axes."""
    @staticmethod
    def conv1d_transpose(data: _Any, weight: _Any, strides: _Any = None, padding: _Any = None, output_padding: _Any = None, dilation: _Any = None, groups: _Any = None, data_layout: _Any = None, kernel_layout: _Any = None, out_layout: _Any = None, out_dtype: _Any = None) -> _Any:
        """The transpose (gradient) of a convolution."""
    @staticmethod
    def conv2d(data: _Any, weight: _Any, padding_value: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, groups: _Any = None, data_layout: _Any = None, kernel_layout: _Any = None, out_layout: _Any = None, out_dtype: _Any = None) -> _Any:
        """Convolution (correlation) over the spatial axes."""
    @staticmethod
    def conv2d_of_words(data: _Any, weight: _Any, padding_value: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, groups: _Any = None, data_layout: _Any = None, kernel_layout: _Any = None, out_layout: _Any = None, out_dtype: _Any = None) -> _Any:
        """A convolution whose elements, of data and weight, are four numbers of 8 bits each (R.words), of which a product is the sum of the products: of four channels at once."""
    @staticmethod
    def conv2d_transpose(data: _Any, weight: _Any, strides: _Any = None, padding: _Any = None, output_padding: _Any = None, dilation: _Any = None, groups: _Any = None, data_layout: _Any = None, kernel_layout: _Any = None, out_layout: _Any = None, out_dtype: _Any = None) -> _Any:
        """The transpose (gradient) of a convolution."""
    @staticmethod
    def conv3d(data: _Any, weight: _Any, padding_value: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, groups: _Any = None, data_layout: _Any = None, kernel_layout: _Any = None, out_layout: _Any = None, out_dtype: _Any = None) -> _Any:
        """Convolution (correlation) over the spatial axes."""
    @staticmethod
    def conv3d_transpose(data: _Any, weight: _Any, strides: _Any = None, padding: _Any = None, output_padding: _Any = None, dilation: _Any = None, groups: _Any = None, data_layout: _Any = None, kernel_layout: _Any = None, out_layout: _Any = None, out_dtype: _Any = None) -> _Any:
        """The transpose (gradient) of a convolution."""
    @staticmethod
    def deformable_columns(data: _Any, offset: _Any, mask: _Any = None, kernel_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, groups: _Any = None) -> _Any:
        """The elements under the taps of windows that are moved by offsets, each tap by itself: what a deformable convolution multiplies with its weights."""
    @staticmethod
    def depth_to_space(data: _Any, block_size: _Any, mode: _Any = None) -> _Any:
        """Moves channels into blocks of space."""
    @staticmethod
    def digits(a: _Any, block: _Any) -> _Any:
        """Blocks of floats as whole multiples of a scale, 127 * 65536 of which are the largest, by three signed digits to the base 256: (words, scale, sum). Word g of a block and digit holds those of numbers g, g + block / 4, ..., lowest byte first, the highest digits first; sum is that of the multiples."""
    @staticmethod
    def dropout(data: _Any, rate: _Any = None) -> _Any:
        """Inference form: a tuple of the data and a mask of ones."""
    @staticmethod
    def elu(x: _Any, alpha: _Any = None) -> _Any:
        """x above 0, alpha * (exp(x) - 1) below"""
    @staticmethod
    def gelu(x: _Any) -> _Any:
        """x * (1 + erf(x / sqrt(2))) / 2"""
    @staticmethod
    def gelu_tanh(x: _Any) -> _Any:
        """gelu through tanh"""
    @staticmethod
    def gemm(x1: _Any, x2: _Any, x3: _Any = None, alpha: _Any = None, beta: _Any = None, transpose_a: _Any = None, transpose_b: _Any = None) -> _Any:
        """alpha * x1 @ x2 + beta * x3 of matrices."""
    @staticmethod
    def group_norm(data: _Any, gamma: _Any, beta: _Any, num_groups: _Any, channel_axis: _Any = None, axes: _Any = None, epsilon: _Any = None, center: _Any = None, scale: _Any = None) -> _Any:
        """layer_norm over groups of channels and all that follows."""
    @staticmethod
    def gru(x: _Any, w: _Any, r: _Any, b: _Any = None, initial_h: _Any = None, sequence_lens: _Any = None, direction: _Any = None, activations: _Any = None, activation_alpha: _Any = None, activation_beta: _Any = None, clip: _Any = None, hidden_size: _Any = None, linear_before_reset: _Any = None) -> _Any:
        """Gated recurrent unit: a tuple of all hidden states and the last one."""
    @staticmethod
    def gru_recurrence(product: _Any, r: _Any, initial_h: _Any, recurrent_bias: _Any = None, sequence_lens: _Any = None, direction: _Any = None, activations: _Any = None, activation_alpha: _Any = None, activation_beta: _Any = None, clip: _Any = None) -> _Any:
        """The steps of nn.gru after the product of its inputs."""
    @staticmethod
    def hardmax(data: _Any, axis: _Any = None) -> _Any:
        """1 at the first greatest element, 0 elsewhere."""
    @staticmethod
    def hardsigmoid(x: _Any, alpha: _Any = None, beta: _Any = None) -> _Any:
        """alpha * x + beta, held in 0 to 1"""
    @staticmethod
    def hardswish(x: _Any) -> _Any:
        """x * hardsigmoid(x) with slope 1 / 6"""
    @staticmethod
    def instance_norm(data: _Any, gamma: _Any, beta: _Any, channel_axis: _Any = None, axes: _Any = None, epsilon: _Any = None, center: _Any = None, scale: _Any = None) -> _Any:
        """layer_norm over the axes after the channels."""
    @staticmethod
    def layer_norm(data: _Any, gamma: _Any = None, beta: _Any = None, axes: _Any = None, epsilon: _Any = None, center: _Any = None, scale: _Any = None) -> _Any:
        """(x - mean) / sqrt(variance + epsilon) * gamma + beta."""
    @staticmethod
    def leakyrelu(x: _Any, alpha: _Any = None) -> _Any:
        """x above 0, alpha * x below"""
    @staticmethod
    def linear_attention(query: _Any, key: _Any, value: _Any, state: _Any, decay: _Any = None, beta: _Any = None, scale: _Any = None) -> _Any:
        """In each step state = exp(decay) * state + key (x) value, then query^T state * scale; with beta the value is beta * (value - (exp(decay) * state)^T key). A tuple of the results and the last state."""
    @staticmethod
    def log_softmax(data: _Any, axis: _Any = None) -> _Any:
        """Logarithm of softmax."""
    @staticmethod
    def lp_pool1d(data: _Any, pool_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, ceil_mode: _Any = None, count_include_pad: _Any = None, layout: _Any = None, out_layout: _Any = None, p: _Any = None) -> _Any:
        """p-norm of each window."""
    @staticmethod
    def lp_pool2d(data: _Any, pool_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, ceil_mode: _Any = None, count_include_pad: _Any = None, layout: _Any = None, out_layout: _Any = None, p: _Any = None) -> _Any:
        """p-norm of each window."""
    @staticmethod
    def lp_pool3d(data: _Any, pool_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, ceil_mode: _Any = None, count_include_pad: _Any = None, layout: _Any = None, out_layout: _Any = None, p: _Any = None) -> _Any:
        """p-norm of each window."""
    @staticmethod
    def lrn(data: _Any, size: _Any, alpha: _Any = None, beta: _Any = None, bias: _Any = None) -> _Any:
        """x / (bias + alpha / size * sum of squares of near channels)^beta."""
    @staticmethod
    def lstm(x: _Any, w: _Any, r: _Any, b: _Any = None, initial_h: _Any = None, initial_c: _Any = None, sequence_lens: _Any = None, p: _Any = None, direction: _Any = None, activations: _Any = None, activation_alpha: _Any = None, activation_beta: _Any = None, clip: _Any = None, hidden_size: _Any = None, input_forget: _Any = None) -> _Any:
        """Long short-term memory: a tuple of all hidden states, the last one, and the last cell state."""
    @staticmethod
    def lstm_recurrence(product: _Any, r: _Any, initial_h: _Any, initial_c: _Any, sequence_lens: _Any = None, peepholes: _Any = None, r_scale: _Any = None, direction: _Any = None, activations: _Any = None, activation_alpha: _Any = None, activation_beta: _Any = None, clip: _Any = None, input_forget: _Any = None) -> _Any:
        """The steps of nn.lstm after the product of its inputs."""
    @staticmethod
    def matmul_nbits(a: _Any, b: _Any, scales: _Any, zero_points: _Any = None, bits: _Any = None, units: _Any = None) -> _Any:
        """Product with weights of few bits, (weight - zero point) * scale, each block of which has a scale; lower bits of a byte first."""
    @staticmethod
    def matmul_nbits_of_digits(a: _Any, a_scale: _Any, a_sum: _Any, b: _Any, scales: _Any, zero_points: _Any = None, bits: _Any = None, units: _Any = None) -> _Any:
        """nn.matmul_nbits of what nn.digits made of the other operand: as exact as sums of float32 but where a weight of 0 meets the largest number of a block, and not finite where that is not."""
    @staticmethod
    def max_pool1d(data: _Any, pool_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, ceil_mode: _Any = None, count_include_pad: _Any = None, layout: _Any = None, out_layout: _Any = None) -> _Any:
        """Greatest element of each window."""
    @staticmethod
    def max_pool2d(data: _Any, pool_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, ceil_mode: _Any = None, count_include_pad: _Any = None, layout: _Any = None, out_layout: _Any = None) -> _Any:
        """Greatest element of each window."""
    @staticmethod
    def max_pool3d(data: _Any, pool_size: _Any = None, strides: _Any = None, padding: _Any = None, dilation: _Any = None, ceil_mode: _Any = None, count_include_pad: _Any = None, layout: _Any = None, out_layout: _Any = None) -> _Any:
        """Greatest element of each window."""
    @staticmethod
    def max_pool_positions(data: _Any, pooled: _Any, pool_size: _Any, strides: _Any = None, padding: _Any = None, dilation: _Any = None, column_major: _Any = None) -> _Any:
        """Where in the whole tensor the greatest elements of a max pool stand."""
    @staticmethod
    def mish(x: _Any) -> _Any:
        """x * tanh(softplus(x))"""
    @staticmethod
    def packed_matmul(a: _Any, b: _Any, units: _Any, out_dtype: _Any = None) -> _Any:
        """Product with a matrix (k, units) packed in panels of w columns: what layout_transform makes of it from "IO" to "OI{w}o"."""
    @staticmethod
    def packed_matmul_of_words(a: _Any, b: _Any, units: _Any, out_dtype: _Any = None) -> _Any:
        """nn.packed_matmul whose elements are four numbers of 8 bits each (R.words), of which a product is the sum of the products."""
    @staticmethod
    def pad(data: _Any, widths: _Any = None, value: _Any = None, pad_width: _Any = None, pad_mode: _Any = None, pad_value: _Any = None) -> _Any:
        """Adds elements before and after each axis, or where a width is negative drops them."""
    @staticmethod
    def prelu(data: _Any, alpha: _Any, axis: _Any = None) -> _Any:
        """x above 0, slope * x below; the slope runs over `axis`, or with axis None is broadcast to x."""
    @staticmethod
    def relu(x: _Any) -> _Any:
        """max(x, 0)"""
    @staticmethod
    def relu6(x: _Any) -> _Any:
        """x held in 0 to 6"""
    @staticmethod
    def rms_norm(data: _Any, weight: _Any, axes: _Any = None, epsilon: _Any = None) -> _Any:
        """x / sqrt(mean of squares + epsilon) * weight."""
    @staticmethod
    def rnn(x: _Any, w: _Any, r: _Any, b: _Any = None, initial_h: _Any = None, sequence_lens: _Any = None, direction: _Any = None, activations: _Any = None, activation_alpha: _Any = None, activation_beta: _Any = None, clip: _Any = None, hidden_size: _Any = None) -> _Any:
        """Plain recurrence: a tuple of all hidden states and the last one."""
    @staticmethod
    def rnn_recurrence(product: _Any, r: _Any, initial_h: _Any, sequence_lens: _Any = None, direction: _Any = None, activations: _Any = None, activation_alpha: _Any = None, activation_beta: _Any = None, clip: _Any = None) -> _Any:
        """The steps of nn.rnn after the product of its inputs."""
    @staticmethod
    def selu(x: _Any, alpha: _Any = None, gamma: _Any = None) -> _Any:
        """gamma * (x above 0, alpha * (exp(x) - 1) below)"""
    @staticmethod
    def shrink(x: _Any, lambd: _Any = None, bias: _Any = None) -> _Any:
        """x + bias below -lambd, x - bias above lambd, 0 between"""
    @staticmethod
    def silu(x: _Any) -> _Any:
        """x * sigmoid(x)"""
    @staticmethod
    def softmax(data: _Any, axis: _Any = None) -> _Any:
        """exp(x - max) / sum of these."""
    @staticmethod
    def softplus(x: _Any) -> _Any:
        """log(1 + exp(x))"""
    @staticmethod
    def softsign(x: _Any) -> _Any:
        """x / (1 + abs(x))"""
    @staticmethod
    def space_to_depth(data: _Any, block_size: _Any) -> _Any:
        """Moves blocks of space into channels: (block row, block column, channel)."""
    @staticmethod
    def swish(x: _Any, alpha: _Any = None) -> _Any:
        """x * sigmoid(alpha * x)"""
    @staticmethod
    def thresholdedrelu(x: _Any, alpha: _Any = None) -> _Any:
        """x above alpha, 0 elsewhere"""
class random:
    @staticmethod
    def normal(shape: _Any, seed: _Any = None, dtype: _Any = None) -> _Any:
        """Standard normal numbers, by a counter from a seed."""
    @staticmethod
    def uniform(shape: _Any, seed: _Any = None, dtype: _Any = None) -> _Any:
        """Numbers in [0, 1), by a counter from a seed."""
class signal:
    @staticmethod
    def dft(data: _Any, axis: _Any = None, length: _Any = None, inverse: _Any = None, onesided: _Any = None) -> _Any:
        """The discrete Fourier transform along an axis."""
    @staticmethod
    def frame(data: _Any, length: _Any, step: _Any) -> _Any:
        """The frames of signals, which may overlap."""
    @staticmethod
    def twiddle(data: _Any, roots: _Any) -> _Any:
        """The step between two of a Fourier transform: products with roots of unity, with the parts moved next to the last axis."""
class string:
    @staticmethod
    def concat(x: _Any, y: _Any) -> _Any:
        """x with y behind it."""
    @staticmethod
    def find(x: _Any, keys: _Any) -> _Any:
        """The place of each string among the keys, the last of equal ones; -1: it is none."""
    @staticmethod
    def lower(x: _Any) -> _Any:
        """Small letters, of Latin, Greek and Cyrillic."""
    @staticmethod
    def parse(x: _Any, dtype: _Any) -> _Any:
        """The numbers that texts are; another text ends the run."""
    @staticmethod
    def rank(x: _Any) -> _Any:
        """How many distinct strings of x are before each, in the order of their bytes."""
    @staticmethod
    def regex_full_match(x: _Any, pattern: _Any) -> _Any:
        """Whether all of a string matches a regular expression."""
    @staticmethod
    def split(x: _Any, parts: _Any, delimiter: _Any = None, max_splits: _Any = None) -> _Any:
        """The first parts of each string along a new last axis, empty strings behind them."""
    @staticmethod
    def split_counts(x: _Any, delimiter: _Any = None, max_splits: _Any = None) -> _Any:
        """How many parts delimiters divide each string into."""
    @staticmethod
    def to_text(x: _Any) -> _Any:
        """Numbers in decimal, with the fewest digits that are read as the same number."""
    @staticmethod
    def upper(x: _Any) -> _Any:
        """Capitals, of Latin, Greek and Cyrillic."""
class vision:
    @staticmethod
    def all_class_non_max_suppression(boxes: _Any, scores: _Any, max_output_boxes_per_class: _Any, iou_threshold: _Any, score_threshold: _Any = None, output_format: _Any = None, center_point_box: _Any = None) -> _Any:
        """Boxes that overlap no other box of a higher score in their class too much: rows of batch, class and box, highest scores of a class first, 0 behind the last; and their number. A tuple."""
    @staticmethod
    def roi_align(data: _Any, rois: _Any, pooled_size: _Any, spatial_scale: _Any = None, sample_ratio: _Any = None, aligned: _Any = None, layout: _Any = None, mode: _Any = None) -> _Any:
        """Bins of regions, each pooled over samples between the elements."""
    @staticmethod
    def roi_pool(data: _Any, rois: _Any, pooled_size: _Any, spatial_scale: _Any = None) -> _Any:
        """The greatest element of each bin of regions, whose bounds are whole elements."""
