# SPDX-License-Identifier: Apache-2.0
"""Quantises test networks statically with ONNX Runtime, and records what it computes with them.

    quantize_models.py --models build/models --out build/quantised [--only NAME,...]

Of each network of make_models.py that is listed here there are two forms: NAME_qdq (float operators between QuantizeLinear and
DequantizeLinear) and NAME_qop (QLinearConv, QLinearMatMul, ...). Weights are int8, each output channel with a scale of its own;
activations are uint8 (`_s8`: int8). Scales come from the ranges of a few seeded inputs. A folder has the layout of make_models.py;
the outputs are those of ONNX Runtime's integer kernels, which compute exact sums on CPUs with VNNI, and are asked to on others.
A file data.json beside a model says how far an output may be off: one step of what was quantised last.

Deep transformers are compared value by value. One number that is rounded to the other step at a tie changes a few in a hundred of those
of the next product, and after 12 layers every number: ONNX Runtime with and without graph optimisations differ by 12 steps.
So NAME_FORM_values is cut behind each quantised tensor: these are outputs, and what reads them gets the recorded ones. The whole network
is compared with the float one, from which it may be no further away than ONNX Runtime's (and a tenth of that).

Runs under bench/python.sh, which has onnxruntime.
"""

import argparse
import json
import logging
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnxruntime import quantization

NETWORKS = {
    "resnet50": ["qdq", "qop"],
    "mobilenet_v2": ["qdq", "qop"],
    "bert_base": ["qdq", "qop"],
    "bert_tiny": ["qdq", "qop"],
    "mlp": ["qdq", "qop"],
    "tiny_resnet8": ["qdq", "qop", "qdq_s8"],
    "tiny_dscnn": ["qdq", "qop", "qdq_s8"],
    "tiny_mobilenet_v1": ["qdq", "qop", "qdq_s8"],
    "tiny_autoencoder": ["qdq", "qop", "qdq_s8"],
}
DEEP = {"bert_base"}
CALIBRATION_INPUTS = 4


def read_tensor(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor.name, numpy_helper.to_array(tensor)


class Calibration(quantization.CalibrationDataReader):
    """The network's own input, and others of the same kind."""

    def __init__(self, inputs):
        rng = np.random.RandomState(0)
        self.feeds = [inputs]
        for _ in range(CALIBRATION_INPUTS - 1):
            self.feeds.append({
                name: rng.standard_normal(x.shape).astype(x.dtype) if x.dtype == np.float32 else rng.permutation(x.ravel()).reshape(x.shape)
                for name, x in inputs.items()
            })

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


def quantise(source, target, form, inputs):
    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder) / "ready.onnx"
        quantization.shape_inference.quant_pre_process(str(source), str(ready), skip_symbolic_shape=True)
        kind = quantization.QuantType.QInt8 if form.endswith("_s8") else quantization.QuantType.QUInt8
        quantization.quantize_static(
            str(ready), str(target), Calibration(inputs),
            quant_format=quantization.QuantFormat.QOperator if form == "qop" else quantization.QuantFormat.QDQ,
            per_channel=True, activation_type=kind, weight_type=quantization.QuantType.QInt8)


def outputs_of(model, inputs, optimised=True):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Without VNNI the default kernels for 8 bits add pairs of products in 16 bits, which saturate.
    options.add_session_config_entry("session.x64quantprecision", "1")
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def step_of(model):
    """The largest step that an output is quantised in last; 1 where it is of integers."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    producers = {name: node for node in model.graph.node for name in node.output}
    steps = []
    for output in model.graph.output:
        node = producers[output.name]
        while node.op_type != "DequantizeLinear" and node.input[0] in producers:  # what is float behind it
            node = producers[node.input[0]]
        steps.append(float(numpy_helper.to_array(constants[node.input[1]]).max()) if node.op_type == "DequantizeLinear" else 1.0)
    return max(steps)


def record(folder, model, inputs, outputs, atol):
    """Saves a case: the model, its data set, how far outputs may be off, and what the inputs are."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    for kind, values in (("input", inputs), ("output", outputs)):
        for i, (name, value) in enumerate(values.items()):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    (folder / "data.json").write_text(json.dumps({"rtol": 0, "atol": atol}) + "\n")
    kinds = {name: [str(value.dtype), list(value.shape)] for name, value in inputs.items()}
    (folder / "info.json").write_text(json.dumps({"inputs": kinds}) + "\n")


def cut(model, form, inputs):
    """The network cut behind each quantised tensor, its inputs and its outputs."""
    # ONNX Runtime makes integer sums exact by a graph optimisation. QDQ nodes compute on floats: optimisations would fuse them.
    optimised = form == "qop"
    names = [node.output[0] for node in model.graph.node if node.op_type in ("QuantizeLinear", "QGemm") or node.op_type.startswith("QLinear")]
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    values = outputs_of(whole, inputs, optimised)
    parts = onnx.ModelProto()
    parts.CopyFrom(model)
    given = {name: f"{name}_given" for name in names}
    for node in parts.graph.node:
        node.input[:] = [given.get(name, name) for name in node.input]
    del parts.graph.output[:]
    for name in names:
        kind = onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype)
        parts.graph.input.append(onnx.helper.make_tensor_value_info(given[name], kind, values[name].shape))
        parts.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, values[name].shape))
    inputs = {**inputs, **{given[name]: values[name] for name in names}}
    return parts, inputs, outputs_of(parts, inputs, optimised)


def generate(name, form, models, out):
    source, folder = models / name, out / f"{name}_{form}"
    folder.mkdir(parents=True, exist_ok=True)
    files = {kind: sorted((source / "test_data_set_0").glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
             for kind in ("input", "output")}
    inputs = dict(map(read_tensor, files["input"]))
    quantise(source / "model.onnx", folder / "model.onnx", form, inputs)
    model = onnx.load(folder / "model.onnx")
    outputs, atol = outputs_of(folder / "model.onnx", inputs), step_of(model) * 1.001
    if name in DEEP:
        record(out / f"{name}_{form}_values", *cut(model, form, inputs), 1)
        wanted = dict(zip(outputs, (read_tensor(file)[1] for file in files["output"])))
        atol = 1.1 * max(float(np.abs(outputs[key] - wanted[key]).max()) for key in outputs)
        outputs = wanted
    record(folder, model, inputs, outputs, atol)
    ops = [node.op_type for node in model.graph.node]
    info = json.loads((source / "info.json").read_text())
    info.update(name=folder.name, nodes=len(ops), ops={op: ops.count(op) for op in sorted(set(ops))})
    (folder / "info.json").write_text(json.dumps(info, indent=1) + "\n")
    print(f"{folder.name:<24} {len(ops):5} nodes", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=pathlib.Path, required=True, help="folder of make_models.py")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to")
    parser.add_argument("--only", help="networks of make_models.py, separated by commas")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    for name in args.only.split(",") if args.only else NETWORKS:
        for form in NETWORKS[name]:
            if not (args.out / f"{name}_{form}" / "info.json").is_file():
                generate(name, form, args.models, args.out)


if __name__ == "__main__":
    main()
