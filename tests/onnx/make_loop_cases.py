#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the recorded cases of loops: models with the outputs that ONNX Runtime computes.

    tests/onnx/make_loop_cases.py tests/onnx
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def value(name, dtype=F, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def const(name, array):
    return node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(array)))


def graph(nodes, inputs, outputs, name="body"):
    return helper.make_graph(nodes, name, inputs, outputs)


def counted(inputs):
    """The first inputs of a Loop's body, and its states."""
    return [value("i", I, []), value("go", B, [])] + inputs


def write(root, name, nodes, inputs, outputs, feeds, opset=17):
    model = helper.make_model(graph(nodes, inputs, outputs, name), opset_imports=[helper.make_opsetid("", opset)],
                              ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = session.run(None, feeds)
    data = root / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, root / name / "model.onnx")
    for i, info in enumerate(inputs):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(feeds[info.name], info.name).SerializeToString())
    for i, info in enumerate(outputs):
        (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(results[i], info.name).SerializeToString())


def numbers(*shape):
    return np.random.rand(*shape).astype(np.float32) - np.float32(0.5)


def loops(root):
    x, w = numbers(4), numbers(4, 4)
    keep = node("Identity", ["go"], ["go_on"])

    body = graph([keep, node("MatMul", ["s", "w"], ["t"]), node("Tanh", ["t"], ["next"]),
                  node("Add", ["next", "x"], ["y"])],
                 counted([value("s", F, [4])]), [value("go_on", B, []), value("next", F, [4]), value("y", F, [4])])
    inputs = [value("x", F, [4]), value("w", F, [4, 4])]
    outputs = [value("last", F, [4]), value("all", F, [None, 4])]
    write(root, "loop_of_five", [const("n", np.int64(5)), node("Loop", ["n", "", "x"], ["last", "all"], body=body)],
          inputs, outputs, {"x": x, "w": w})
    for name, count in (("loop_given_count", 3), ("loop_no_iteration", 0), ("loop_negative_count", -2)):
        write(root, name, [node("Loop", ["n", "", "x"], ["last", "all"], body=body)],
              [value("n", I, [])] + inputs, outputs, {"n": np.array(count), "x": x, "w": w})

    body = graph([node("Mul", ["s", "two"], ["next"]), node("ReduceSum", ["next"], ["sum"], keepdims=0),
                  node("Less", ["sum", "most"], ["go_on"]), node("Identity", ["next"], ["y"])],
                 counted([value("s", F, [4])]), [value("go_on", B, []), value("next", F, [4]), value("y", F, [4])])
    nodes = [const("two", np.float32(2)), const("most", np.float32(100))]
    positive = np.abs(x) + np.float32(0.1)
    write(root, "loop_while", nodes + [node("Loop", ["", "", "x"], ["last", "all"], body=body)], [inputs[0]], outputs,
          {"x": positive})
    write(root, "loop_while_and_count", nodes + [const("n", np.int64(3)), const("yes", np.array(True)),
                                                 node("Loop", ["n", "yes", "x"], ["last", "all"], body=body)],
          [inputs[0]], outputs, {"x": positive})
    for name, go in (("loop_given_condition", True), ("loop_not_begun", False)):
        write(root, name, nodes + [node("Loop", ["", "c", "x"], ["last", "all"], body=body)],
              [value("c", B, []), inputs[0]], outputs, {"c": np.array(go), "x": positive})

    body = graph([keep, node("Add", ["a", "b"], ["sum"]), node("Identity", ["b"], ["first"])],
                 counted([value("a", F, [4]), value("b", F, [4])]),
                 [value("go_on", B, []), value("first", F, [4]), value("sum", F, [4]), value("a", F, [4])])
    write(root, "loop_changes_places", [const("n", np.int64(6)),
                                        node("Loop", ["n", "", "x", "x"], ["p", "q", "all"], body=body)],
          [inputs[0]], [value("p", F, [4]), value("q", F, [4]), outputs[1]], {"x": x})
    sizes(root, keep, x)
    within(root, keep, x)


def sizes(root, keep, x):
    inputs = [value("x", F, ["n"])]
    body = graph([keep, node("Concat", ["s", "x"], ["next"], axis=0), node("ReduceSum", ["next"], ["y"], keepdims=0)],
                 counted([value("s", F, None)]),
                 [value("go_on", B, []), value("next", F, None), value("y", F, [])])
    write(root, "loop_grows", [const("n", np.int64(4)), node("Loop", ["n", "", "x"], ["last", "all"], body=body)],
          inputs, [value("last", F, [None]), value("all", F, [None])], {"x": x})

    body = graph([const("one", np.array([1])), const("end", np.array([1000])), const("zero", np.array([0])),
                  node("Slice", ["s", "one", "end", "zero"], ["next"]), node("Shape", ["next"], ["length"]),
                  node("Greater", ["length", "one"], ["more"]), const("none", np.zeros(0, np.int64)),
                  node("Reshape", ["more", "none"], ["go_on"]),
                  node("ReduceMax", ["s"], ["y"], keepdims=0)],
                 counted([value("s", F, None)]), [value("go_on", B, []), value("next", F, None), value("y", F, [])])
    write(root, "loop_shrinks", [node("Loop", ["", "", "x"], ["last", "all"], body=body)], inputs,
          [value("last", F, [None]), value("all", F, [None])], {"x": numbers(7)})

    body = graph([keep, node("Concat", ["s", "x"], ["p"], axis=0), node("Concat", ["x", "t"], ["q"], axis=0),
                  node("Add", ["s", "t"], ["sum"]), node("ReduceSum", ["sum"], ["y"], keepdims=0)],
                 counted([value("s", F, None), value("t", F, None)]),
                 [value("go_on", B, []), value("p", F, None), value("q", F, None), value("y", F, [])])
    write(root, "loop_two_grow", [const("n", np.int64(3)), node("Loop", ["n", "", "x", "x"], ["a", "b", "all"], body=body)],
          inputs, [value("a", F, [None]), value("b", F, [None]), value("all", F, [None])], {"x": x})

    body = graph([keep, const("zero", np.int64(0)), const("one", np.int64(1)), node("Add", ["i", "one"], ["end"]),
                  node("Range", ["zero", "end", "one"], ["r"]), node("Cast", ["r"], ["f"], to=F),
                  node("ReduceSum", ["f"], ["sum"], keepdims=0), node("Add", ["s", "sum"], ["next"])],
                 counted([value("s", F, ["n"])]), [value("go_on", B, []), value("next", F, ["n"]), value("sum", F, [])])
    write(root, "loop_sizes_of_the_iteration",
          [const("n", np.int64(5)), node("Loop", ["n", "", "x"], ["last", "all"], body=body)], inputs,
          [value("last", F, [None]), value("all", F, [None])], {"x": x})

    body = graph([keep, node("Add", ["s", "x"], ["next"])],
                 counted([value("s", F, ["n"])]), [value("go_on", B, []), value("next", F, ["n"])])
    write(root, "loop_of_computed_count",
          [node("ReduceSum", ["x"], ["total"], keepdims=0), node("Cast", ["total"], ["n"], to=I),
           node("Loop", ["n", "", "x"], ["last"], body=body)], inputs, [value("last", F, [None])],
          {"x": np.array([1, 0, 2, 1], np.float32)})


def within(root, keep, x):
    inputs = [value("x", F, [4])]
    inner = graph([node("Identity", ["go1"], ["on1"]), node("Add", ["t", "s"], ["u"])],
                  [value("j", I, []), value("go1", B, []), value("t", F, [4])],
                  [value("on1", B, []), value("u", F, [4]), value("t", F, [4])], "inner")
    body = graph([keep, node("Loop", ["i", "", "s"], ["next", "rows"], body=inner),
                  node("ReduceSum", ["rows"], ["y"], keepdims=0)],
                 counted([value("s", F, [4])]), [value("go_on", B, []), value("next", F, [4]), value("y", F, [])])
    write(root, "loop_in_a_loop", [const("n", np.int64(4)), node("Loop", ["n", "", "x"], ["last", "all"], body=body)],
          inputs, [value("last", F, [4]), value("all", F, [None])], {"x": x})

    yes = graph([node("Add", ["s", "x"], ["yes"])], [], [value("yes", F, [4])], "yes")
    no = graph([node("Mul", ["s", "x"], ["no"])], [], [value("no", F, [4])], "no")
    body = graph([keep, const("two", np.int64(2)), node("Mod", ["i", "two"], ["odd"]), node("Cast", ["odd"], ["c"], to=B),
                  node("If", ["c"], ["next"], then_branch=yes, else_branch=no),
                  node("Identity", ["next"], ["y"])],
                 counted([value("s", F, [4])]), [value("go_on", B, []), value("next", F, [4]), value("y", F, [4])])
    write(root, "loop_with_branches", [const("n", np.int64(5)), node("Loop", ["n", "", "x"], ["last", "all"], body=body)],
          inputs, [value("last", F, [4]), value("all", F, [None, 4])], {"x": x})

    inner = graph([node("Identity", ["go1"], ["on1"]), node("Concat", ["t", "x"], ["u"], axis=0)],
                  [value("j", I, []), value("go1", B, []), value("t", F, None)],
                  [value("on1", B, []), value("u", F, None)], "inner")
    body = graph([keep, const("two", np.int64(2)), node("Loop", ["two", "", "s"], ["next"], body=inner)],
                 counted([value("s", F, None)]), [value("go_on", B, []), value("next", F, None)])
    write(root, "loop_grows_in_a_loop", [const("n", np.int64(3)), node("Loop", ["n", "", "x"], ["last"], body=body)],
          inputs, [value("last", F, [None])], {"x": x})


def scans(root):
    cell = graph([node("MatMul", ["x_t", "w"], ["p"]), node("MatMul", ["h", "r"], ["q"]), node("Add", ["p", "q"], ["s"]),
                  node("Tanh", ["s"], ["next"]), node("Identity", ["next"], ["z"]), node("ReduceSum", ["next"], ["y"], keepdims=0)],
                 [value("h", F, [2, 6]), value("x_t", F, [2, 5])],
                 [value("next", F, [2, 6]), value("z", F, [2, 6]), value("y", F, [])])
    feeds = {"h0": numbers(2, 6), "x": numbers(7, 2, 5), "w": numbers(5, 6), "r": numbers(6, 6)}
    inputs = [value("h0", F, [2, 6]), value("x", F, ["t", 2, 5]), value("w", F, [5, 6]), value("r", F, [6, 6])]
    outputs = [value("h", F, [2, 6]), value("all", F, [None, 2, 6]), value("sums", F, [None])]
    write(root, "scan_cell", [node("Scan", ["h0", "x"], ["h", "all", "sums"], body=cell, num_scan_inputs=1)], inputs,
          outputs, feeds)
    write(root, "scan_cell_reversed", [node("Scan", ["h0", "x"], ["h", "all", "sums"], body=cell, num_scan_inputs=1,
                                            scan_input_directions=[1], scan_output_directions=[1, 0])],
          inputs, outputs, feeds)
    body = graph([node("Mul", ["a", "b"], ["p"]), node("Add", ["s", "p"], ["next"]), node("Sub", ["a", "b"], ["d"]), node("Identity", ["next"], ["z"])],
                 [value("s", F, [3]), value("a", F, [3]), value("b", F, [3])],
                 [value("next", F, [3]), value("z", F, [3]), value("d", F, [3])])
    write(root, "scan_axes", [node("Scan", ["s", "x", "y"], ["last", "all", "d"], body=body, num_scan_inputs=2,
                                   scan_input_axes=[1, -2], scan_input_directions=[0, 1], scan_output_axes=[-1, 0],
                                   scan_output_directions=[0, 1])],
          [value("s", F, [3]), value("x", F, [3, 5]), value("y", F, [5, 3])],
          [value("last", F, [3]), value("all", F, [3, 5]), value("d", F, [5, 3])],
          {"s": numbers(3), "x": numbers(3, 5), "y": numbers(5, 3)})
    body = graph([node("Mul", ["a", "b"], ["p"])], [value("a", F, [3]), value("b", F, [3])], [value("p", F, [3])])
    write(root, "scan_without_states", [node("Scan", ["x", "y"], ["all"], body=body, num_scan_inputs=2)],
          [value("x", F, [5, 3]), value("y", F, [5, 3])], [value("all", F, [5, 3])],
          {"x": numbers(5, 3), "y": numbers(5, 3)})
    body = graph([node("Add", ["s", "a"], ["next"]), node("Identity", ["next"], ["copy"])],
                 [value("s", F, [3]), value("a", F, [3])], [value("next", F, [3]), value("copy", F, [3])])
    for name, lengths in (("scan_of_a_batch", None), ("scan_of_lengths", np.array([4, 4]))):
        given = [] if lengths is None else [value("lengths", I, [2])]
        feeds = {"s": numbers(2, 3), "x": numbers(2, 4, 3)} | ({} if lengths is None else {"lengths": lengths})
        write(root, name, [node("Scan", ["" if lengths is None else "lengths", "s", "x"], ["last", "all"], body=body,
                                num_scan_inputs=1)],
              given + [value("s", F, [2, 3]), value("x", F, [2, 4, 3])],
              [value("last", F, [2, 3]), value("all", F, [2, 4, 3])], feeds, opset=8)


def branches(root):
    """Branches of rank 0 and 1, and of rank 1 and 2, whose uses broadcast them."""
    small = graph([const("a", np.float32(3)), const("v", np.array([1, 2, 4], np.float32))],
                  [], [value("a", F, []), value("v", F, [3])], "small")
    large = graph([const("b", np.array([5], np.float32)), node("Unsqueeze", ["row", "axis"], ["m"])],
                  [], [value("b", F, [1]), value("m", F, [1, 3])], "large")
    nodes = [const("axis", np.array([0])), node("If", ["c"], ["s", "v"], then_branch=small, else_branch=large),
             node("Neg", ["s"], ["t"]), node("CastLike", ["i", "s"], ["k"]), node("Mul", ["k", "t"], ["p"]),
             node("Add", ["p", "row"], ["q"]), node("Mul", ["x", "v"], ["w"]), node("Add", ["q", "w"], ["y"])]
    inputs = [value("c", B, []), value("row", F, [3]), value("i", I, [3]), value("x", F, ["n", 3])]
    for taken in (True, False):
        feeds = {"c": np.array(taken), "row": numbers(3), "i": np.arange(3), "x": numbers(2, 3)}
        write(root, f"if_open_rank_{'then' if taken else 'else'}", nodes, inputs, [value("y", F, ["n", 3])], feeds)


def ranks(root):
    """Branches of rank 2 and 3 that are turned, counted and normalised before they have one rank again."""
    two = graph([node("Identity", ["x"], ["a"])], [], [value("a", F, None)], "two")
    three = graph([node("Unsqueeze", ["x", "first"], ["b"]), node("Concat", ["b", "b"], ["bb"], axis=0)], [],
                  [value("bb", F, None)], "three")
    start = [const("first", np.array([0])), const("flat", np.array([-1])), const("two", np.int64(2))]
    x = [value("x", F, ["n", 3])]
    turned = [node("If", ["c"], ["s"], then_branch=two, else_branch=three), node("Transpose", ["s"], ["t"]),
              node("Softmax", ["t"], ["u"], axis=1), node("Shape", ["u"], ["dims"]), node("ReduceProd", ["dims"], ["count"], keepdims=0),
              node("Cast", ["count"], ["k"], to=F), node("Reshape", ["u", "flat"], ["v"]), node("Mul", ["v", "k"], ["y"])]
    # The second If stands behind nodes that need the first one, and a value of it is asked for by itself.
    joined = [node("If", ["c"], ["s"], then_branch=two, else_branch=three), node("Neg", ["s"], ["m"]), node("Exp", ["x"], ["e"]),
              node("If", ["d"], ["p"], then_branch=two, else_branch=three), node("Transpose", ["p"], ["q"]),
              node("Transpose", ["m"], ["t"]), node("Flatten", ["t"], ["f"], axis=1), node("Flatten", ["q"], ["g"], axis=1),
              node("Concat", ["f", "g"], ["h"], axis=1), node("Shape", ["p"], ["dims"]), node("Size", ["dims"], ["z"]),
              node("ReduceSum", ["e"], ["r"], keepdims=0), node("Mul", ["h", "r"], ["y"])]
    body = graph([node("Identity", ["go"], ["go_on"]), node("Mod", ["i", "two"], ["odd"]), node("Cast", ["odd"], ["c"], to=B),
                  node("If", ["c"], ["s"], then_branch=two, else_branch=three), node("LpNormalization", ["s"], ["t"], axis=0),
                  node("ReduceSum", ["t"], ["r"], keepdims=0), node("Add", ["acc", "r"], ["next"])],
                 counted([value("acc", F, [])]), [value("go_on", B, []), value("next", F, [])])
    looped = [const("zero", np.float32(0)), node("Loop", ["two", "", "zero"], ["y"], body=body)]
    one_row = graph([node("Squeeze", ["x", "first"], ["a"])], [], [value("a", F, None)], "one_row")
    many = graph([node("Identity", ["x"], ["b"])], [], [value("b", F, None)], "many")
    by_size = [node("Shape", ["x"], ["dims"]), node("Gather", ["dims", "first"], ["rows"]), const("one", np.array([1])),
               node("Equal", ["rows", "one"], ["c"]), node("If", ["c"], ["s"], then_branch=one_row, else_branch=many),
               node("CumSum", ["s", "first"], ["t"]), node("Expand", ["t", "dims"], ["y"])]
    for i, c in enumerate((True, False)):
        c = np.array(c)
        write(root, f"if_ranks_turned_{i}", start + turned, [value("c", B, [])] + x, [value("y", F, [None])],
              {"c": c, "x": numbers(2, 3)})
        write(root, f"if_ranks_by_size_{i}", start + by_size, x, [value("y", F, [None, None])], {"x": numbers(4 * i + 1, 3)})
        for j, d in enumerate((True, False)):
            write(root, f"if_ranks_joined_{i}{j}", start + joined, [value("c", B, []), value("d", B, [])] + x,
                  [value("y", F, [None, None]), value("z", I, [])], {"c": c, "d": np.array(d), "x": numbers(2, 3)})
    write(root, "if_ranks_in_a_loop", start + looped, x, [value("y", F, [])], {"x": numbers(2, 3)})


def joins(root):
    """Sequences whose length the run decides, joined along other axes than the first."""
    x = numbers(2, 5, 3)
    sequence = [helper.make_tensor_sequence_value_info("s", F, None)]
    grown = [helper.make_tensor_sequence_value_info("t", F, None)]
    keep = node("Identity", ["go"], ["go_on"])
    wider = [keep, node("Unsqueeze", ["i", "zero"], ["j"]), node("Add", ["j", "one"], ["end"]),
             node("Slice", ["x", "zero", "end", "one"], ["part"]), node("SequenceInsert", ["s", "part"], ["t"])]
    other = [keep, node("Cast", ["i"], ["k"], to=F), node("Add", ["x", "k"], ["part"]), node("SequenceInsert", ["s", "part"], ["t"])]
    for name, nodes, axis in (("columns", wider, 1), ("stacked_last", other, -1)):
        body = graph(nodes, [value("i", I, []), value("go", B, [])] + sequence, [value("go_on", B, [])] + grown)
        write(root, f"sequences_join_{name}",
              [const("zero", np.array([0])), const("one", np.array([1])), node("SequenceEmpty", [], ["none"], dtype=F),
               node("Loop", ["n", "", "none"], ["all"], body=body),
               node("ConcatFromSequence", ["all"], ["y"], axis=axis, new_axis=int(axis < 0))],
              [value("x", F, [2, 5, 3]), value("n", I, [])], [value("y", F, [None] * (3 if axis > 0 else 4))], {"x": x, "n": np.array(4)})
    write(root, "sequences_join_rows", [node("SplitToSequence", ["x"], ["rows"], axis=0, keepdims=0),
                                        node("ConcatFromSequence", ["rows"], ["y"], axis=1)],
          [value("x", F, ["n", 5, 3])], [value("y", F, [5, None])], {"x": x})


def maps(root):
    """A body for each tensor of a sequence whose length the run decides, with two results and a tensor beside it."""
    value_of = helper.make_tensor_value_info
    body = graph([node("Mul", ["t", "w"], ["scaled"]), node("ReduceSum", ["scaled"], ["sum"], keepdims=0), node("Add", ["u", "b"], ["shifted"])],
                 [value_of("t", F, None), value_of("u", F, None), value_of("w", F, [])],
                 [value_of("scaled", F, None), value_of("sum", F, []), value_of("shifted", F, None)])
    parts = [node("SplitToSequence", ["x", "k"], ["s"], axis=0), node("SplitToSequence", ["y", "k"], ["z"], axis=0),
             node("SequenceMap", ["s", "z", "w"], ["p", "q", "r"], body=body),
             node("ConcatFromSequence", ["p"], ["a"], axis=0), node("ConcatFromSequence", ["q"], ["sums"], axis=0, new_axis=1),
             node("ConcatFromSequence", ["r"], ["c"], axis=0)]
    inputs = [value("x", F, ["n", 3]), value("y", F, ["n"]), value("k", I, []), value("w", F, []), value("b", F, [1])]
    feeds = {"x": numbers(5, 3), "y": numbers(5), "w": np.array(2, np.float32), "b": numbers(1)}
    for k in (1, 2):
        write(root, f"sequences_map_of_the_run_{k}", parts, inputs, [value("a", F, [None, None]), value("sums", F, [None]), value("c", F, [None])],
              feeds | {"k": np.array(k)})


def open_axes(root):
    """Axes in a list whose length the run decides: given, and computed."""
    inputs = [value("x", F, [2, "n", 4]), value("axes", I, ["k"])]
    given = [node("ReduceSum", ["x", "axes"], ["y"]), node("ReduceMax", ["x", "axes"], ["z"], noop_with_empty_axes=1),
             node("ReduceLogSumExp", ["x", "axes"], ["w"])]
    outputs = [value(name, F, [None] * 3) for name in "yzw"]
    for axes in ([1], [-1, 0], [], [2, 0, 1]):
        write(root, f"axes_given_{len(axes)}", given, inputs, outputs, {"x": numbers(2, 3, 4), "axes": np.array(axes, np.int64)}, 18)
    computed = [const("flat", np.array([-1])), node("NonZero", ["mask"], ["places"]), node("Reshape", ["places", "flat"], ["axes"]),
                node("ReduceMean", ["x", "axes"], ["y"]), node("ReduceL2", ["x", "axes"], ["z"], noop_with_empty_axes=1)]
    for i, mask in enumerate(([1, 0, 1], [0, 0, 0])):
        write(root, f"axes_computed_{i}", computed, [inputs[0], value("mask", I, [3])], outputs[:2],
              {"x": numbers(2, 3, 4), "mask": np.array(mask, np.int64)}, 18)


def scan_from_the_end(root):
    """Rows of a batch from the last of each on, beside others from the first on."""
    body = graph([node("Mul", ["s", "a"], ["m"]), node("Add", ["m", "b"], ["next"]), node("Sub", ["a", "b"], ["d"])],
                 [value("s", F, [3]), value("a", F, [3]), value("b", F, [3])], [value("next", F, [3]), value("d", F, [3])])
    write(root, "scan_of_lengths_from_the_end", [node("Scan", ["lengths", "s", "x", "y"], ["last", "all"], body=body,
                                                      num_scan_inputs=2, directions=[1, 0])],
          [value("lengths", I, [3]), value("s", F, [3, 3]), value("x", F, [3, "t", 3]), value("y", F, [3, "t", 3])],
          [value("last", F, [3, 3]), value("all", F, [3, None, 3])],
          {"lengths": np.array([2, 4, 1]), "s": numbers(3, 3), "x": numbers(3, 4, 3), "y": numbers(3, 4, 3)}, opset=8)


def stacked_sizes(root):
    """What is stacked has a size that data decides, the same in all iterations; beside it a result of one size."""
    body = graph([node("Identity", ["go"], ["go_on"]), node("Cast", ["i"], ["k"], to=F), node("Add", ["s", "k"], ["next"]),
                  node("Compress", ["next", "mask"], ["kept"], axis=0), node("ReduceSum", ["next"], ["sum"], keepdims=0),
                  node("NonZero", ["mask"], ["places"])],
                 counted([value("s", F, [4])]),
                 [value("go_on", B, []), value("next", F, [4]), value("kept", F, None), value("sum", F, []), value("places", I, None)])
    write(root, "loop_stacks_sizes_of_data", [node("Loop", ["n", "", "x"], ["last", "rows", "sums", "places"], body=body)],
          [value("n", I, []), value("x", F, [4]), value("mask", B, [4])],
          [value("last", F, [4]), value("rows", F, [None, None]), value("sums", F, [None]), value("places", I, [None] * 3)],
          {"n": np.array(3), "x": numbers(4), "mask": np.array([True, False, True, True])})


if __name__ == "__main__":
    np.random.seed(7)
    loops(pathlib.Path(sys.argv[1]))
    scans(pathlib.Path(sys.argv[1]))
    branches(pathlib.Path(sys.argv[1]))
    joins(pathlib.Path(sys.argv[1]))
    ranks(pathlib.Path(sys.argv[1]))
    maps(pathlib.Path(sys.argv[1]))
    open_axes(pathlib.Path(sys.argv[1]))
    scan_from_the_end(pathlib.Path(sys.argv[1]))
    stacked_sizes(pathlib.Path(sys.argv[1]))
