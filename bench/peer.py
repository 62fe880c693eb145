# SPDX-License-Identifier: Apache-2.0
"""Times one network under a peer and prints one JSON object, as `tenon bench --json` has them.

    peer.py ENGINE MODEL.onnx --threads N --repeat N [--dim NAME=N]... [--inputs FOLDER]

Inputs are those of FOLDER, input_0.pb and so on (onnxruntime alone), or seeded: strings are some short words; integers are 0 or 1, which every index and mask of the test networks allows.
A dimension without a number is what --dim says, else 1 where it is named `batch`, and 32 elsewhere.
"""

import argparse
import json
import resource
import statistics
import sys
import time

import numpy as np

DTYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}


def random_input(shape, dtype, rng, dims):
    sizes = [d if isinstance(d, int) and d > 0 else dims.get(d, 1 if d == "batch" else 32) for d in shape]
    if dtype == np.object_:
        return np.array([f"text{i}" for i in rng.integers(0, 16, np.prod(sizes))], object).reshape(sizes)
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(sizes).astype(dtype)
    return rng.integers(0, 2, sizes).astype(dtype)


def load_onnxruntime(path, threads, dims, folder=None):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    if folder:
        import onnx

        feed = {given.name: onnx.numpy_helper.to_array(onnx.load_tensor(f"{folder}/input_{i}.pb"))
                for i, given in enumerate(session.get_inputs())}
    else:
        feed = {i.name: random_input(i.shape, DTYPES[i.type], rng, dims) for i in session.get_inputs()}
    return lambda: session.run(None, feed)


def load_openvino(path, threads, dims):
    import openvino as ov

    model = ov.Core().read_model(path)
    rng = np.random.default_rng(0)
    feed = []
    for port in model.inputs:
        shape = [d.get_length() if d.is_static else None for d in port.partial_shape]
        if None in shape:  # OpenVINO drops the dimensions' names: the first is the batch, the other the only one besides
            others = [name for name in dims if name != "batch"]
            shape = [s if s is not None else "batch" if axis == 0 else (others + ["other"])[0]
                     for axis, s in enumerate(shape)]
        feed.append(random_input(shape, port.element_type.to_dtype(), rng, dims))
    compiled = ov.Core().compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # else some hosts compute in bfloat16
    })
    request = compiled.create_infer_request()
    return lambda: request.infer(feed, share_inputs=True, share_outputs=True)


ENGINES = {"onnxruntime": load_onnxruntime, "openvino": load_openvino}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engine", choices=sorted(ENGINES))
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a symbolic dimension of the inputs")
    parser.add_argument("--inputs", help="folder of a data set, of onnxruntime")
    args = parser.parse_args()
    dims = {name: int(size) for name, size in (d.split("=") for d in args.dim)}

    start = time.perf_counter()
    given = [args.inputs] if args.inputs else []
    run = ENGINES[args.engine](args.model, args.threads, dims, *given)
    loaded = time.perf_counter()
    for _ in range(2):  # first runs allocate
        run()
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
    }], sys.stdout)


if __name__ == "__main__":
    main()
