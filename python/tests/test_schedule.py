# SPDX-License-Identifier: Apache-2.0
"""Schedules in Python: the primitives of the compiler's table."""

import inspect

import numpy as np
import pytest

import tenon
from tenon import tir
from tenon.script import ir as I
from tenon.script import tir as T

RNG = np.random.default_rng(0)


@T.prim_func
def matmul(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 48), "float32"), C: T.Buffer((64, 48), "float32")):
    for i, j, k in T.grid(64, 48, 32):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def chain(A: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    B = T.alloc_buffer((32, 32), "float32")
    for i, j in T.grid(32, 32):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(32, 32):
        with T.block("plus"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


@T.prim_func
def any_size(A: T.Buffer(("n", 4), "float32"), B: T.Buffer(("n", 4), "float32")):
    n = T.int64(is_size_var=True)
    for i, j in T.grid(n, 4):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


@I.ir_module
class Two:
    @T.prim_func
    def first(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("a"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def second(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("b"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * T.float32(2)


def tiled():
    sch = tenon.Schedule(matmul)
    block = sch.get_block("matmul")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, factors=[None, 8])
    j0, j1 = sch.split(j, [3, 16])
    sch.reorder(i0, j0, k, i1, j1)
    return sch, block, (i0, j0, k, i1, j1)


def inputs_of(function):
    return (
        [RNG.standard_normal(port, dtype=np.float32) for port in ((64, 32), (32, 48))]
        if function is matmul
        else [RNG.standard_normal((32, 32), dtype=np.float32)]
    )


def same(sch, function):
    """The scheduled kernel computes what the definition does, in the interpreter and compiled."""
    args = inputs_of(function)
    expected = function(*args)
    np.testing.assert_allclose(sch.func(*args), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tenon.compile(sch.mod)(*args), expected, rtol=1e-5, atol=1e-5)


# ---- the table -------------------------------------------------------------------------------------

TVM_NAMES = """get_block get_loops get_child_blocks get_producers get_consumers sample_categorical sample_perfect_tile split fuse merge
reorder loop_partition add_unit_loop parallel vectorize unroll annotate unannotate blockize tensorize compute_at reverse_compute_at
compute_inline reverse_compute_inline decompose_reduction rfactor decompose_padding pad_einsum cache_read cache_write
reindex_cache_read transform_layout set_scope storage_align""".split()


@pytest.mark.parametrize("name", TVM_NAMES)
def test_names_are_those_of_tvm(name):
    assert name in tenon.schedule.primitives()
    assert inspect.getdoc(getattr(tenon.Schedule, name))


def test_every_primitive_is_a_method_with_a_signature():
    for name in tenon.schedule.primitives():
        method = getattr(tenon.Schedule, name)
        assert method.__name__ == name
        assert list(inspect.signature(method).parameters)[0] == "self"
        assert inspect.signature(method).return_annotation in (
            "None", "LoopRV", "list[LoopRV]", "BlockRV", "list[BlockRV]", "PrimExpr", "list[PrimExpr]",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("split", "(self, /, loop: 'LoopRV', factors: 'Sequence[int | PrimExpr | None]') -> 'list[LoopRV]'"),
        ("fuse", "(self, /, *loops: 'LoopRV') -> 'LoopRV'"),
        ("get_block", "(self, /, name: 'str') -> 'BlockRV'"),
        ("cache_read", "(self, /, block: 'BlockRV | str', read_buffer_index: 'int', storage_scope: 'str') -> 'BlockRV'"),
        ("software_pipeline", "(self, /, loop: 'LoopRV', stages: 'Sequence[int]', versions: 'int' = 2) -> 'None'"),
    ],
)
def test_signatures_and_defaults(name, parameters):
    assert str(inspect.signature(getattr(tenon.Schedule, name))) == parameters


def test_docstrings_come_from_the_table():
    text = inspect.getdoc(tenon.Schedule.split)
    assert text.startswith("Cuts a loop into nested ones")
    assert "Args:\n    factors: extents of the new loops" in text


def test_there_is_no_other_primitive():
    with pytest.raises(AttributeError, match="bind"):
        tenon.Schedule(matmul).bind  # noqa: B018


# ---- loops and blocks ------------------------------------------------------------------------------


def test_random_variables_print():
    sch = tenon.Schedule(matmul)
    block = sch.get_block("matmul")
    assert repr(block) == "<tenon.tir.BlockRV `matmul`>"
    assert repr(sch.get_loops(block)[1]) == "<tenon.tir.LoopRV `j`>"
    assert block == sch.get_block("matmul") and len({block, sch.get_block("matmul")}) == 1
    assert sch.get_loops(block) == sch.get_loops(block)


def test_tiling_a_product():
    sch, _, (_, _, _, _, j1) = tiled()
    sch.vectorize(j1)
    assert "T.vectorized(16)" in sch.func.script()
    same(sch, matmul)


def test_parallel_and_unroll():
    sch, _, (i0, _, _, i1, _) = tiled()
    sch.parallel(i0)
    sch.unroll(i1)
    script = sch.func.script()
    assert "T.parallel(8)" in script and "T.unroll(8)" in script
    same(sch, matmul)


def test_a_block_may_be_given_by_its_name():
    sch = tenon.Schedule(chain)
    sch.compute_inline("double")
    assert sch.blocks == [sch.get_block("plus")]
    same(sch, chain)


def test_compute_at():
    sch = tenon.Schedule(chain)
    sch.compute_at(sch.get_block("double"), sch.get_loops("plus")[0])
    assert sch.func.script().count("for ") == 3
    same(sch, chain)


def test_producers_consumers_and_children():
    sch = tenon.Schedule(chain)
    double, plus = sch.get_block("double"), sch.get_block("plus")
    assert sch.get_producers(plus) == [double] and sch.get_consumers(double) == [plus]
    assert sch.get_producers(double) == []
    assert sch.get_child_blocks(sch.get_loops(plus)[0]) == [plus]
    assert sch.get_child_blocks("root") == [double, plus]


def test_cache_and_storage():
    sch, block, (_, j0, _, _, _) = tiled()
    copy = sch.cache_write(block, 0, "global")
    sch.reverse_compute_at(copy, j0)
    packed = sch.cache_read(block, read_buffer_index=1, storage_scope="global")
    sch.storage_align(packed, 0, axis=0, factor=32, offset=4)
    sch.annotate(packed, "note", {"a": [1, 2.5, None]})
    sch.unannotate(packed, "note")
    same(sch, matmul)


def test_rfactor_and_decomposition():
    sch = tenon.Schedule(matmul)
    _, _, k = sch.get_loops("matmul")
    outer, _ = sch.split(k, [4, None])
    partial = sch.rfactor(outer)
    assert partial in sch.blocks
    sch.decompose_reduction(partial, sch.get_loops(partial)[0])
    same(sch, matmul)


@pytest.mark.parametrize("buffer", [("write", 0), ["write", 0], "B"])
def test_transform_layout(buffer):
    sch = tenon.Schedule(chain)
    sch.transform_layout("double", buffer, lambda i, j: (j // 8, i, j % 8))
    assert 'B[T.Cast("int64", vj) // 8, T.Cast("int64", vi), T.Cast("int64", vj) % 8] = A[vi, vj]' in sch.func.script()
    assert "index_map=lambda i, j: (j // 8, i, j % 8)" in str(sch.trace)
    same(sch, chain)


def test_transform_layout_pads():
    sch = tenon.Schedule(chain)
    sch.transform_layout("double", ("write", 0), lambda i, j: (i, j // 5, j % 5), pad_value=1.5)
    assert "pad_value=1.5" in str(sch.trace)
    same(sch, chain)


def test_blockize_and_tensorize():
    @T.prim_func
    def describes(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32")):
        for i, j in T.grid(8, 32):
            with T.block("body"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)

    @T.prim_func
    def doubles(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32")):
        for i in range(8):
            for j in T.vectorized(32):
                C[i, j] = A[i, j] + A[i, j]

    intrin = tir.TensorIntrin.register("doubles_8x32", describes, doubles)
    assert tir.TensorIntrin.get("doubles_8x32") is intrin
    with pytest.raises(ValueError, match="override=True"):
        tir.TensorIntrin.register("doubles_8x32", describes, doubles)

    sch = tenon.Schedule(chain)
    _, rows = sch.split(sch.get_loops("double")[0], [None, 8])
    sch.tensorize(sch.blockize(rows), "doubles_8x32")
    assert "T.call_tir(cls.doubles_8x32" in sch.mod.script() and "doubles_8x32" in sch.mod
    args = inputs_of(chain)
    np.testing.assert_allclose(tenon.compile(sch.mod["chain"].module)(*args), chain(*args))
    again = tenon.Schedule(chain)
    again.replay(str(sch.trace))
    assert again.func == sch.func
    with pytest.raises(tenon.CompileError, match="no tensor intrinsic has the implementation `other`"):
        tenon.Schedule(chain).tensorize("double", "other")


def test_software_pipeline():
    sch = tenon.Schedule(chain)
    loop = sch.get_loops("plus")[0]
    sch.compute_at("double", loop)
    sch.software_pipeline(loop, stages=[0, 1])
    assert "software_pipeline_stage" in sch.func.script()
    same(sch, chain)


def test_symbolic_sizes():
    sch = tenon.Schedule(any_size)
    i, _ = sch.get_loops("copy")
    sch.split(i, [None, sch.symbols["n"] % 4 + 1])
    sch.split(sch.get_loops("copy")[0], [None, 4])
    assert "factors=[None, n % 4 + 1]" in str(sch.trace)
    again = tenon.Schedule(any_size)
    exec(str(sch.trace), {"sch": again, **again.symbols})
    assert again.func == sch.func
    again = tenon.Schedule(any_size)
    again.replay(str(sch.trace))
    assert again.func == sch.func
    x = RNG.standard_normal((7, 4), dtype=np.float32)
    np.testing.assert_array_equal(tenon.compile(sch.mod)(x), x)


def test_get_gives_the_statement():
    sch, block, (i0, *_) = tiled()
    assert str(sch.get(i0)).startswith("for i_0")
    assert "C[vi, vj]" in str(sch.get(block))
    with pytest.raises(TypeError, match="no block, loop or number"):
        sch.get(3)


# ---- modules ---------------------------------------------------------------------------------------


def test_the_module_holds_what_was_scheduled():
    sch, *_ = tiled()
    assert sch.mod["matmul"].attrs["tir.is_scheduled"] is True
    assert "tir.is_scheduled" not in matmul.attrs
    assert tenon.Schedule(matmul).mod["matmul"] == matmul  # nothing was changed
    assert sch.func == sch.mod["matmul"]


def test_several_functions():
    with pytest.raises(tenon.CompileError, match="several PrimFuncs, first, second; expected function="):
        tenon.Schedule(Two)
    sch = tenon.Schedule(Two, "first")
    sch.split(sch.get_loops("a")[0], [2, 4])
    sch.work_on("second")
    assert sch.func_working_on == "second" and len(sch.trace) == 0
    sch.vectorize(sch.get_loops("b")[0])
    assert "T.grid(2, 4)" in sch.mod["first"].script() and "T.vectorized(8)" in sch.mod["second"].script()
    assert tenon.Schedule(Two["second"]).func_working_on == "second"
    with pytest.raises(tenon.CompileError, match="no PrimFunc `secnd`; did you mean `second`"):
        sch.work_on("secnd")
    assert sch.func_working_on == "second"


def test_what_has_no_blocks_is_refused():
    with pytest.raises(tenon.CompileError, match="no root block"):
        tenon.Schedule(T_loops)
    with pytest.raises(tenon.CompileError, match="no PrimFunc to schedule"):
        tenon.Schedule(tenon.IRModule())


@T.prim_func
def T_loops(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = T.float32(0)


def test_copies_go_on_by_themselves():
    sch, _, (i0, *_) = tiled()
    other = sch.copy()
    other.parallel(i0)
    assert "T.parallel" in other.func.script() and "T.parallel" not in sch.func.script()
    assert len(other.trace) == len(sch.trace) + 1
    assert type(other) is tenon.Schedule


def test_show(capsys):
    sch, *_ = tiled()
    sch.show()
    shown = capsys.readouterr().out
    assert shown.startswith("@T.prim_func\ndef matmul(") and shown.endswith(str(sch.trace))
    assert repr(sch) == "<tenon.Schedule of `matmul`, 5 steps>"
    assert "sch.split" in sch._repr_html_()


# ---- traces ----------------------------------------------------------------------------------------


def test_a_trace_prints_as_python():
    sch, *_ = tiled()
    assert sch.trace.as_python() == [
        'b0 = sch.get_block(name="matmul")',
        "l0, l1, l2 = sch.get_loops(b0)",
        "l3, l4 = sch.split(l0, factors=[None, 8])",
        "l5, l6 = sch.split(l1, factors=[3, 16])",
        "sch.reorder(l3, l5, l2, l4, l6)",
    ]
    assert str(sch.trace) == "\n".join(sch.trace.as_python()) + "\n"


def test_the_text_of_a_trace_runs():
    sch, block, _ = tiled()
    sch.cache_write(block, 0, "local")
    again = tenon.Schedule(matmul)
    exec(str(sch.trace), {"sch": again})
    assert again.func == sch.func and str(again.trace) == str(sch.trace)


def test_a_list_of_one_is_a_list_in_the_text_too():
    sch = tenon.Schedule(Two, "first")
    (loop,) = sch.get_loops("a")
    (part,) = sch.split(loop, [None])
    sch.vectorize(part)
    assert "l1, = sch.split(l0, factors=[None])" in str(sch.trace)
    again = tenon.Schedule(Two, "first")
    exec(str(sch.trace), {"sch": again})
    assert again.func == sch.func


@pytest.mark.parametrize("as_text", [False, True])
def test_a_trace_on_another_kernel(as_text):
    @T.prim_func
    def larger(A: T.Buffer((128, 32), "float32"), B: T.Buffer((32, 96), "float32"), C: T.Buffer((128, 96), "float32")):
        for i, j, k in T.grid(128, 96, 32):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch, block, (_, j0, *_) = tiled()
    with pytest.raises(tenon.CompileError, match=r"factors \(3, 16\) of `j` cover 48 iterations; expected at least 96"):
        tenon.Schedule(larger).replay(sch.trace)
    text = str(sch.trace).replace("[3, 16]", "[None, 16]")
    other = tenon.Schedule(larger)
    if as_text:
        other.replay(text)
    else:
        twin = tenon.Schedule(matmul)
        twin.replay(text)
        twin.trace.apply_to_schedule(other)
    assert "T.grid(16, 6, 32, 8, 16)" in other.func.script()


def test_texts_may_give_arguments_as_python_does():
    sch = tenon.Schedule(chain)
    sch.replay('a = sch.get_block("double")\nl0, l1 = sch.get_loops(block=a)\nb = sch.cache_read("plus", 0, storage_scope="local")\n')
    assert 'sch.cache_read(sch.get_block("plus"), read_buffer_index=0, storage_scope="local")' in str(sch.trace)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("sch.bind(l0)", 1, "`bind` is no primitive of schedules"),
        ("\nsch.split(l0, [4])", 2, "`l0` is no loop or block of the trace so far"),
        ('sch.get_block("double", 3)', 1, "`get_block` is given 2 arguments; expected at most 1"),
        ('sch.get_block("double", name="x")', 1, "`name` of `get_block` is given twice"),
        ("for i in range(3):\n    pass", 1, "this is no application of a primitive"),
    ],
)
def test_wrong_texts_are_marked(text, line, message):
    with pytest.raises(tenon.CompileError, match=message) as caught:
        tenon.Schedule(chain).replay(text)
    assert caught.value.place.line == line and "^" in str(caught.value)


def test_a_replay_that_fails_changes_nothing():
    sch = tenon.Schedule(chain)
    with pytest.raises(tenon.CompileError, match="block `other` is not in the function"):
        sch.replay('sch.compute_inline("double")\nsch.get_block("other")')
    assert sch.func == chain and len(sch.trace) == 0


# ---- numbers drawn at random -----------------------------------------------------------------------


def sampled(seed):
    sch = tenon.Schedule(matmul, seed=seed)
    i, j, _ = sch.get_loops("matmul")
    a, b = sch.sample_perfect_tile(i, n=2, max_innermost_factor=16)
    c = sch.sample_categorical([1, 2, 4], [0.25, 0.25, 0.5])
    sch.split(i, [a, b])
    sch.split(j, [None, c * 4])
    return sch, (a, b, c)


def test_the_seed_decides():
    texts = {str(sampled(seed)[0].trace) for seed in range(16)}
    assert len(texts) > 8
    assert str(sampled(5)[0].trace) == str(sampled(5)[0].trace)
    sch, (a, b, c) = sampled(3)
    assert sch.get(a) * sch.get(b) == 64 and sch.get(b) <= 16 and sch.get(c) in (1, 2, 4)
    assert sch.get(c * 4 + 1) == sch.get(c) * 4 + 1
    same(sch, matmul)


def test_decisions_stand_in_the_trace():
    sch, (a, b, c) = sampled(7)
    text = str(sch.trace)
    assert f"v0, v1 = sch.sample_perfect_tile(l0, n=2, max_innermost_factor=16, decision=[{sch.get(a)}, {sch.get(b)}])" in text
    assert "sch.split(l0, factors=[v0, v1])" in text and "factors=[None, v2 * 4]" in text
    for again in (tenon.Schedule(matmul, seed=1), tenon.Schedule(matmul, seed=2)):
        again.replay(text)
        assert again.func == sch.func and str(again.trace) == text
    run = tenon.Schedule(matmul)
    exec(text, {"sch": run})
    assert run.func == sch.func
    other = tenon.Schedule(matmul)
    other.replay(text.replace(f"decision=[{sch.get(a)}, {sch.get(b)}]", "decision=[4, 16]"))
    assert "T.grid(4, 16" in other.func.script()  # what follows the decision follows


def test_without_a_decision_a_text_is_drawn_anew():
    text = 'l0, l1, l2 = sch.get_loops("matmul")\nv0, v1 = sch.sample_perfect_tile(l0, n=2)\nsch.split(l0, factors=[v0, v1])\n'
    drawn = set()
    for seed in range(8):
        sch = tenon.Schedule(matmul, seed=seed)
        sch.replay(text)
        drawn.add(str(sch.trace))
    assert len(drawn) > 2


def test_tilings_are_drawn_alike():
    sch = tenon.Schedule(any_tile := Two, "first", seed=11)
    assert any_tile is Two
    (loop,) = sch.get_loops("a")  # 8 iterations: (1, 8), (2, 4), (4, 2), (8, 1)
    counts = {}
    for _ in range(400):
        tiling = tuple(map(sch.get, sch.sample_perfect_tile(loop, 2)))
        counts[tiling] = counts.get(tiling, 0) + 1
    assert set(counts) == {(1, 8), (2, 4), (4, 2), (8, 1)}
    assert all(60 < count < 140 for count in counts.values())


@pytest.mark.parametrize(
    ("draw", "pieces"),
    [
        (lambda sch, i: sch.sample_categorical([1, 2], [1.0]), ["2 candidates have 1 ", "probabilities; expected one for each"]),
        (lambda sch, i: sch.sample_categorical([1, 2], [1.0, -1.0]), ["a probability is -1", "; expected 0 or more"]),
        (lambda sch, i: sch.sample_categorical([1], [0.0]), ["all probabilities are 0"]),
        (lambda sch, i: sch.sample_categorical([1, 2], [1, 1], decision=2), ["the decision is ", "; expected one of ", "2 candidates"]),
        (lambda sch, i: sch.sample_perfect_tile(i, 2, decision=[5, 13]), ["the decision [5, 13] is no tiling of 64", " is no tiling of "]),
        (lambda sch, i: sch.sample_perfect_tile(i, 2, decision=[64]), ["the decision [64] is no tiling of 64 by 2 factors"]),
        (lambda sch, i: sch.sample_perfect_tile(i, 0), ["a tiling by ", "0 factors; expected 1 to 16", " factors; expected 1 to "]),
        (lambda sch, i: sch.sample_perfect_tile(i, 1), ["64 has no tiling by 1 factors", " factors, the innermost at most "]),
    ],
)
def test_wrong_draws(draw, pieces):
    sch = tenon.Schedule(matmul)
    with pytest.raises(tenon.CompileError) as caught:
        draw(sch, sch.get_loops("matmul")[0])
    for piece in pieces:
        assert piece in str(caught.value)


def test_a_number_that_is_not_known():
    sch = tenon.Schedule(any_size)
    with pytest.raises(tenon.CompileError, match="`read_buffer_index` of `cache_read` is n; expected a whole number that is known now"):
        sch.cache_read("copy", sch.symbols["n"], "local")
    assert " that is known now" in str(pytest.raises(tenon.CompileError, sch.cache_read, "copy", sch.symbols["n"], "local").value)


def test_a_symbolic_loop_has_no_tilings():
    sch = tenon.Schedule(any_size)
    with pytest.raises(tenon.CompileError, match="loop `i` has extent n") as caught:
        sch.sample_perfect_tile(sch.get_loops("copy")[0], 2)
    assert "; expected a constant of at least 1" in str(caught.value)


def test_seeds_of_a_schedule():
    sch = tenon.Schedule(matmul, seed=4)
    first = sch.fork_seed()
    assert first != sch.fork_seed()
    sch.seed(4)
    assert sch.fork_seed() == first


# ---- errors ----------------------------------------------------------------------------------------


def test_an_illegal_step_shows_the_loops_with_the_place_marked():
    sch = tenon.Schedule(chain)
    i, j = sch.get_loops("double")
    sch.vectorize(j)
    before = sch.func
    with pytest.raises(tenon.CompileError) as caught:
        sch.reverse_compute_at("double", sch.get_loops("plus")[1])
    error = caught.value
    assert error.diagnostics[0].name == "schedule-illegal"
    text = str(error)
    assert "the loops are" in text
    lines = text.split("\n")
    marked = [at for at, line in enumerate(lines) if line.strip().startswith("#") and line.rstrip().endswith("^")]
    pointed = [lines[at - 1][lines[at].index("^") : lines[at].rindex("^") + 1] for at in marked]
    assert pointed == ['T.block("double"', "j"]
    assert sch.func == before


def test_loops_of_another_schedule():
    other = tenon.Schedule(chain).get_loops("plus")[0]
    with pytest.raises(tenon.CompileError, match="loop `i` is not in the function"):
        tenon.Schedule(matmul).split(other, [2, None])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda sch, b, i: sch.split(b, [2, 32]), "`split` is given a block; expected a loop"),
        (lambda sch, b, i: sch.compute_inline(i), "`compute_inline` is given a loop; expected a block"),
        (lambda sch, b, i: sch.split(3, [2, 32]), "`split` is given 3; expected a loop"),
        (lambda sch, b, i: sch.split(i, 4), "`factors` of `split` is 4; expected a list of sizes"),
        (lambda sch, b, i: sch.split(i, ["x"]), "`factors` of `split` is .*; expected a list of sizes"),
        (lambda sch, b, i: sch.cache_read(b, 0, 1), "`storage_scope` of `cache_read` is 1; expected a string"),
        (lambda sch, b, i: sch.transform_layout(b, "D", lambda i, j: (j, i)), "uses no buffer `D`"),
        (lambda sch, b, i: sch.transform_layout(b, ("write", 0), 3), "`index_map` is 3; expected a lambda"),
        (lambda sch, b, i: sch.transform_layout(b, ("write", 0), lambda i, j: "x"), "`index_map` gives 'x'"),
        (lambda sch, b, i: sch.get_block("matmull"), "block `matmull` is not in the function"),
        (lambda sch, b, i: sch.replay(3), "replay is given 3; expected a trace"),
    ],
)
def test_wrong_arguments(call, message):
    sch = tenon.Schedule(matmul)
    block = sch.get_block("matmul")
    with pytest.raises(tenon.CompileError, match=message):
        call(sch, block, sch.get_loops(block)[0])


@pytest.mark.parametrize("call", [lambda sch: sch.split(), lambda sch: sch.get_block("matmul", 3), lambda sch: sch.get_block(nam="x")])
def test_arguments_are_bound_as_python_binds_them(call):
    with pytest.raises(TypeError):
        call(tenon.Schedule(matmul))
