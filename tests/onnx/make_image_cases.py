#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases of tests/onnx/ for images, signals, regions and recurrences, in the layout of the ONNX backend tests:
one operator each, with results of ONNX Runtime, or of the reference implementation in the package `onnx`. Needs both
packages.

    make_image_cases.py [FOLDER]
"""

import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnx.helper as h
import onnxruntime as ort
from onnx import numpy_helper as nh
from onnx.reference import ReferenceEvaluator

FOLDER = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(0)
LONG = np.int64


def f(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def longs(*values):
    return np.array(values, LONG)


def case(name, op, arrays, constants=(), outputs=1, opset=22, by_reference=False, **attributes):
    """`arrays`: the operands, None where one is left out; `constants`: the places of those that are initialisers."""
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(arrays)]
    results = [f"y{i}" for i in range(outputs)]
    given = {n: a for i, (n, a) in enumerate(zip(names, arrays)) if a is not None and i not in constants}
    kept = [nh.from_array(arrays[i], names[i]) for i in constants]
    declared = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()]
    node = h.make_node(op, names, results, **attributes)
    graph = h.make_graph([node], name, declared, [h.make_empty_tensor_value_info(r) for r in results], kept)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=9)
    if by_reference:
        values = ReferenceEvaluator(model).run(None, given)
    else:
        values = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)
    for output, value in zip(model.graph.output, values):
        output.CopyFrom(h.make_tensor_value_info(output.name, h.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    data = FOLDER / name / "test_data_set_0"
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    data.mkdir(parents=True)
    onnx.save(model, FOLDER / name / "model.onnx")
    for kind, items in (("input", given.items()), ("output", zip(results, values))):
        for i, (n, array) in enumerate(items):
            (data / f"{kind}_{i}.pb").write_bytes(nh.from_array(np.asarray(array), n).SerializeToString())


def resize(name, sizes=None, scales=None, roi=None, shape=(1, 2, 7, 9), **attributes):
    arrays = [f(*shape), roi, scales, sizes]
    constants = [i for i in range(1, 4) if arrays[i] is not None]
    case(name, "Resize", arrays, constants, opset=19, by_reference=True, **attributes)


resize("resize_antialias", sizes=longs(1, 2, 3, 4), mode="cubic", antialias=1)
resize("resize_volume", sizes=longs(1, 2, 5, 3, 7), shape=(1, 2, 3, 4, 5), mode="linear")
corners = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
resize("resize_corners", scales=np.array([1, 1, 0.6, 1.7], np.float32), **corners)
crop = np.array([0, 0, 0.2, -0.1, 1, 1, 0.9, 1.2], np.float32)
crop_mode = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 2.0}
resize("resize_crop", sizes=longs(1, 2, 4, 7), roi=crop, mode="linear", **crop_mode)

for mode in ("linear", "nearest"):
    for padding in ("zeros", "border", "reflection"):
        kinds = {"mode": mode, "padding_mode": padding, "align_corners": int(mode == "linear")}
        case(f"grid_{mode}_{padding}", "GridSample", [f(1, 2, 3, 4, 5), f(1, 2, 2, 3, 3) * 1.5], opset=20, **kinds)

boxes = np.array([[0, 0, 7, 7], [1.5, 2.2, 9.9, 6.1], [-5, -4, 20, 30], [8, 8, 2, 2]], np.float32)
images = np.array([0, 1, 1, 0], LONG)
pooled = {"output_height": 3, "output_width": 2, "spatial_scale": 0.9}
case("roi_align", "RoiAlign", [f(2, 3, 10, 11), boxes, images], opset=16, **pooled)
rois = np.concatenate([images[:, None].astype(np.float32), boxes], 1)
case("max_roi_pool", "MaxRoiPool", [f(2, 3, 10, 11), rois], opset=13, pooled_shape=[3, 2], spatial_scale=0.5)

deformed = [f(2, 4, 6, 7), f(6, 2, 3, 2), f(2, 24, 6, 8), f(6), np.abs(f(2, 12, 6, 8))]
case("deform_conv", "DeformConv", deformed, opset=19, group=2, offset_group=2, pads=[1, 1, 1, 1], by_reference=True)
window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "storage_order": 1}
case("max_pool_places", "MaxPool", [f(2, 3, 7, 8)], outputs=2, **window)
case("col2im", "Col2Im", [f(2, 18, 12), longs(6, 8), longs(2, 3)], (1, 2), strides=[2, 2], dilations=[1, 2], pads=[0, 0, 2, 2])
case("dft_of_300", "DFT", [np.abs(f(1, 300, 1)), longs(12).reshape(())], (1,), opset=20, by_reference=True)
case("dft_of_a_spectrum", "DFT", [np.abs(f(2, 7, 2))], opset=20, inverse=1, onesided=1, by_reference=True)
case("det", "Det", [f(3, 5, 5)])
case("einsum_of_three", "Einsum", [f(3, 4), f(2, 4, 5), f(6, 5)], equation="ij,...jk,nk->...in", opset=13)
norm = [f(3, 4, 5, 2), f(4), f(4), f(4), np.abs(f(4))]
case("batch_norm_trained", "BatchNormalization", norm, outputs=3, opset=15, training_mode=1, momentum=0.7, by_reference=True)
case("global_lp_pool", "GlobalLpPool", [f(1, 2, 6, 6)], opset=13, p=3)
case("top_of_many", "TopK", [f(2, 200, 3), longs(5)], (1,), outputs=2, axis=1)
case("dropout_of_nothing", "Dropout", [f(2, 3), np.array(0, np.float32), np.array(True)], outputs=2)


def recurrent(name, op, gates, more=(), **attributes):
    steps, batch, width, hidden = 5, 3, 4, 6
    arrays = [f(steps, batch, width), f(2, gates * hidden, width) / 2, f(2, gates * hidden, hidden) / 2]
    arrays += [f(2, 2 * gates * hidden) / 2, np.array([5, 2, 3], np.int32), f(2, batch, hidden), *more]
    outputs = 3 if op == "LSTM" else 2
    case(name, op, arrays, outputs=outputs, opset=14, hidden_size=hidden, direction="bidirectional", **attributes)


recurrent("lstm_options", "LSTM", 4, [f(2, 3, 6), f(2, 18) / 2], clip=0.8)
recurrent("gru_options", "GRU", 3, clip=0.8, linear_before_reset=1)
recurrent("rnn_options", "RNN", 1, activations=["Affine", "Elu"], activation_alpha=[0.7, 0.5], activation_beta=[0.3])
