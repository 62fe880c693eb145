# SPDX-License-Identifier: Apache-2.0
"""Quantises test networks statically with ONNX Runtime, and records what it computes with them.

    quantize_models.py --models build/models --out build/quantised [--only NAME,...]

Of each network of make_models.py that is listed here there are two forms: NAME_qdq (float operators between QuantizeLinear and
DequantizeLinear) and NAME_qop (QLinearConv, QLinearMatMul, ...). Weights are int8, each output channel with a scale of its own;
activations are uint8 (`_s8`: int8). Scales come from the ranges of a few seeded inputs. A folder has the layout of make_models.py;
the outputs are those of ONNX Runtime's integer kernels, which are exact on CPUs with VNNI (elsewhere sums of pairs saturate).

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


def outputs_of(path, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def generate(name, form, models, out):
    source, folder = models / name, out / f"{name}_{form}"
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    files = sorted((source / "test_data_set_0").glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    inputs = dict(map(read_tensor, files))
    quantise(source / "model.onnx", folder / "model.onnx", form, inputs)
    for file in files:
        (data / file.name).write_bytes(file.read_bytes())
    for i, (output, value) in enumerate(outputs_of(folder / "model.onnx", inputs).items()):
        (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(value, output).SerializeToString())
    ops = [node.op_type for node in onnx.load(folder / "model.onnx").graph.node]
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
