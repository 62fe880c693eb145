# SPDX-License-Identifier: Apache-2.0
"""Dataflow patterns and rewriters, in TVM's combinators.

    from tenon.dpl import is_op, rewrite_call, wildcard

    x = wildcard()
    twice = is_op("add")(x, x)
    module = rewrite_call(twice, lambda expr, matches: R.multiply(matches[x], R.const(2, "float32")), module)

`|`, `&` and `~` join patterns; in `with PatternContext() as ctx:` `a ^ b` says that b uses a, `a >> b` that nothing else does.
"""

from tenon._core import (
    DFPattern,
    FusionPattern,
    PatternContext,
    PatternMatch,
    PatternMatchingRewriter,
    PatternSeq,
    extern_func,
    function_pattern,
    fuse_ops_by_pattern,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    merge_composite,
    prim_func,
    rewrite_bindings,
    rewrite_call,
    split_call_tir_by_pattern,
    wildcard,
)

ExternFuncPattern = extern_func
FunctionPattern = function_pattern
GlobalVarPattern = is_gv
TuplePattern = is_tuple


def UnorderedTuplePattern(fields: list[DFPattern]) -> DFPattern:
    """A tuple of these, in any order."""
    return is_tuple(fields, unordered=True)


def reject(pattern: DFPattern) -> DFPattern:
    """What the pattern does not match."""
    return ~pattern


__all__ = sorted(name for name in globals() if not name.startswith("_"))
