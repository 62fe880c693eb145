# SPDX-License-Identifier: Apache-2.0
"""Times one network under a peer and prints one JSON object, as `tenon bench --json` has them.

    peer.py ENGINE MODEL.onnx FOLDER --threads N --repeat N

FOLDER is what prepare.py wrote for the network: its inputs with ONNX Runtime's outputs, and the network as this peer reads it.
`error` is the largest difference from those outputs, divided by 1 + the largest of them.
"""

import argparse
import functools
import json
import pathlib
import re
import resource
import statistics
import sys
import time

import numpy as np



class Data:
    """What prepare.py wrote."""

    def __init__(self, folder):
        with np.load(folder / "data.npz", allow_pickle=True) as data:
            self.inputs = [data[name] for name in data.files if name.startswith("input_")]
            self.outputs = [data[name] for name in data.files if name.startswith("output_")]
            self.input_names = data["names_of_inputs"].tolist()
            self.output_names = data["names_of_outputs"].tolist()


# A function each: (path, folder, data, threads) -> (run, outputs): run() computes once, outputs(its result) are the arrays.


def load_onnxruntime(path, folder, data, threads):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = dict(zip(data.input_names, data.inputs))
    return lambda: session.run(None, feed), list


def load_openvino(path, folder, data, threads):
    import openvino as ov

    compiled = ov.Core().compile_model(ov.Core().read_model(path), "CPU", {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # else some hosts compute in bfloat16
    })
    request = compiled.create_infer_request()
    return lambda: request.infer(data.inputs, share_inputs=True, share_outputs=True), lambda result: list(result.values())


def narrowed(array):
    """MNN and ncnn have no integers of 64 bits."""
    return np.ascontiguousarray(array.astype(np.int32) if array.dtype in (np.int64, np.bool_) else array)


def load_mnn(path, folder, data, threads):
    import MNN.expr
    import MNN.nn

    runtime = MNN.nn.create_runtime_manager(({"backend": 0, "numThread": threads, "precision": 1},))  # the CPU, high precision
    net = MNN.nn.load_module_from_file(str(folder / "model.mnn"), data.input_names, data.output_names, runtime_manager=runtime)
    variables = []
    for array in map(narrowed, data.inputs):
        types = {"float32": MNN.expr.float, "int32": MNN.expr.int, "uint8": MNN.expr.uint8, "int8": MNN.expr.int8}
        if str(array.dtype) not in types:
            raise TypeError(f"inputs of {array.dtype}")
        variables.append(MNN.expr.placeholder(list(array.shape), MNN.expr.NCHW, types[str(array.dtype)]))
        variables[-1].write(array)

    def run():
        outputs = net.forward(variables)
        for output in outputs:
            output.read()  # MNN computes lazily: this waits
        return outputs

    return run, lambda outputs: [np.array(MNN.expr.convert(o, MNN.expr.NCHW).read()) for o in outputs]


def load_ncnn(path, folder, data, threads):
    import ncnn

    net = ncnn.Net()
    net.opt.num_threads = threads
    if net.load_param(str(folder / "model.param")) or net.load_model(str(folder / "model.bin")):
        raise RuntimeError("ncnn does not load what pnnx wrote")
    # The converter says in the script beside the network which axis, a batch of one, ncnn leaves out of each tensor (233: none).
    script = (folder / "model.ncnn.py").read_text()
    axes = {name: int(axis) for name, axis in re.findall(r"\b(in\d+|out\d+)\.numpy\(\)?[^)]*batch_index=(\d+)\)", script)}
    given = [(f"in{i}", ncnn.Mat(narrowed(a), batch_index=axes.get(f"in{i}", 233)).clone()) for i, a in enumerate(data.inputs)]
    names = [f"out{i}" for i in range(len(data.outputs))]

    def run():
        with net.create_extractor() as extractor:
            for name, mat in given:
                extractor.input(name, mat)
            results = [extractor.extract(name) for name in names]
        if any(status for status, _ in results):
            raise RuntimeError("ncnn does not run what pnnx wrote")
        return [mat for _, mat in results]

    return run, lambda mats: [m.numpy(batch_index=axes.get(n, 233)) for n, m in zip(names, mats)]


def load_litert(path, folder, data, threads):
    from ai_edge_litert.interpreter import Interpreter

    net = Interpreter(model_path=str(folder / "model.tflite"), num_threads=threads)
    net.allocate_tensors()
    by_name = {detail["name"].removeprefix("serving_default_").split(":")[0]: detail for detail in net.get_input_details()}
    given = []
    for i, (name, array) in enumerate(zip(data.input_names, data.inputs)):
        detail = by_name.get(name) or net.get_input_details()[i]
        if array.ndim >= 3 and tuple(detail["shape"]) != array.shape:
            array = np.moveaxis(array, 1, -1)  # the converter moves channels to the end
        given.append((detail["index"], np.ascontiguousarray(array.astype(detail["dtype"]))))
    details = net.get_output_details()

    def run():
        for index, array in given:
            net.set_tensor(index, array)
        net.invoke()
        return [net.get_tensor(detail["index"]) for detail in details]

    return run, list


def reshape(tensor, shape):
    """ONNX's: 0 keeps a size."""
    return tensor.reshape([tensor.shape[i] if size == 0 else size for i, size in enumerate(shape)])


def load_inductor(path, folder, data, threads):
    import onnx2torch
    import torch

    torch.set_num_threads(threads)
    net = onnx2torch.convert(str(folder / "folded.onnx")).eval()
    for node in net.graph.nodes:  # shapes are tensors to onnx2torch, which inductor cannot take apart
        if node.op == "call_module" and type(net.get_submodule(node.target)).__name__ == "OnnxReshape" and node.args[1].op == "get_attr":
            shape = functools.reduce(getattr, node.args[1].target.split("."), net).tolist()
            node.op, node.target, node.args = "call_function", reshape, (node.args[0], shape)
    net.recompile()
    net = torch.compile(net, dynamic=False)
    given = [torch.from_numpy(array) for array in data.inputs]

    def run():
        with torch.inference_mode():
            outputs = net(*given)
        return outputs if isinstance(outputs, (list, tuple)) else [outputs]

    return run, lambda outputs: [tensor.numpy() for tensor in outputs]


ENGINES = {"onnxruntime": load_onnxruntime, "openvino": load_openvino, "mnn": load_mnn, "litert": load_litert, "ncnn": load_ncnn,
           "inductor": load_inductor}


def distance(got, expected):
    """The largest difference over 1 + the largest expected value; infinite where shapes do not fit. Orders of outputs may differ."""
    left, worst = list(got), 0.0
    for want in expected:
        if not np.issubdtype(want.dtype, np.number):
            continue
        distances = []
        for array in map(np.asarray, left):
            if array.shape != want.shape and array.ndim == want.ndim >= 3 and np.moveaxis(array, -1, 1).shape == want.shape:
                array = np.moveaxis(array, -1, 1)
            if array.size == want.size:
                difference = np.abs(array.reshape(want.shape).astype(np.float64) - want).max(initial=0)
                distances.append(difference / (1 + np.abs(want).max(initial=0)))
            else:
                distances.append(np.inf)
        if not distances:
            return np.inf
        worst = max(worst, min(distances))
        left.pop(int(np.argmin(distances)))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engine", choices=sorted(ENGINES))
    parser.add_argument("model")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    data = Data(args.folder)

    try:
        start = time.perf_counter()
        run, outputs = ENGINES[args.engine](args.model, args.folder, data, args.threads)
        loaded = time.perf_counter()
        run()  # first runs allocate
        error = distance(outputs(run()), data.outputs)
    except ModuleNotFoundError as missing:
        sys.exit(f"error: not installed: {missing}")
    except Exception as problem:
        sys.exit(f"error: {type(problem).__name__}: {' '.join(str(problem).split())[:160]}")
    times = []
    for _ in range(args.repeat):
        before = time.perf_counter()
        run()
        times.append((time.perf_counter() - before) * 1e3)
    json.dump([{
        "model": args.model,
        "threads": args.threads,
        "min_ms": min(times),
        "median_ms": statistics.median(times),
        "compile_ms": (loaded - start) * 1e3,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "error": float(error) if np.isfinite(error) else None,
    }], sys.stdout)


if __name__ == "__main__":
    main()
