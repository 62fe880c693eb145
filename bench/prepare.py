# SPDX-License-Identifier: Apache-2.0
"""Makes what peers need of a network: its inputs with ONNX Runtime's outputs, and the network in a peer's own format.

    prepare.py data MODEL.onnx FOLDER [--dim NAME=N]... [--inputs DATA_SET]
    prepare.py FORMAT MODEL.onnx FOLDER                                       (mnn, ncnn, litert: after `data`)

`data` writes FOLDER/data.npz with input_0, ..., output_0, ... in the order of the model, and their names, and the network with its
constant parts computed. Inputs are those of the data set, input_0.pb and so on, or seeded: strings are some short words; integers are 0 or 1, which every index and mask of the test networks allows. A dimension
without a number is what --dim says, else 1 where it is named `batch`, and 32 elsewhere. None of the converters uses the network.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx

FOLDED = "folded.onnx"  # the network with its constant parts computed, which converters expect
ONNX2TF_SAMPLES = "calibration_image_sample_data_20x128x128x3_float32.npy"


def random_input(shape, dtype, rng, dims):
    sizes = [d if isinstance(d, int) and d > 0 else dims.get(d, 1 if d == "batch" else 32) for d in shape]
    if dtype == np.object_:
        return np.array([f"text{i}" for i in rng.integers(0, 16, np.prod(sizes))], object).reshape(sizes)
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(sizes).astype(dtype)
    return rng.integers(0, 2, sizes).astype(dtype)


def make_data(path, folder, dims, data_set):
    import onnxruntime as ort

    graph = onnx.load(path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    rng = np.random.default_rng(0)
    feed = {}
    for given in graph.input:
        if given.name in constants:
            continue
        if data_set:
            feed[given.name] = onnx.numpy_helper.to_array(onnx.load_tensor(f"{data_set}/input_{len(feed)}.pb"))
        else:
            kind = given.type.tensor_type
            dtype = np.object_ if kind.elem_type == onnx.TensorProto.STRING else onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            feed[given.name] = random_input([d.dim_param or d.dim_value for d in kind.shape.dim], dtype, rng, dims)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC  # ONNX's own operators only
    options.optimized_model_filepath = str(folder / FOLDED)
    outputs = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feed)
    np.savez(folder / "data.npz", **{f"input_{i}": a for i, a in enumerate(feed.values())},
             **{f"output_{i}": a for i, a in enumerate(outputs)},
             names_of_inputs=list(feed), names_of_outputs=[output.name for output in graph.output])


def to_mnn(network, folder, shapes):
    import _tools  # of the wheel of MNN: its `mnnconvert` wraps this with installing packages and calling out

    if not _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", network, "--MNNModel", str(folder / "model.mnn"), "--bizCode", "bench"]):
        raise RuntimeError("mnnconvert failed")


def to_ncnn(network, folder, shapes):
    found = importlib.util.find_spec("pnnx")
    if not found:
        raise ModuleNotFoundError("No module named 'pnnx'")
    program = pathlib.Path(found.origin).parent / "pnnx"  # importing the module needs torch, the program does not
    files = {"pnnxparam": "p", "pnnxbin": "b", "pnnxpy": "py", "pnnxonnx": "o", "ncnnparam": "param", "ncnnbin": "bin", "ncnnpy": "ncnn.py"}
    command = [program, network, "inputshape=" + ",".join(f"[{','.join(map(str, s))}]{t}" for s, t in shapes), "fp16=0"]
    done = subprocess.run(command + [f"{option}=model.{name}" for option, name in files.items()], cwd=folder, capture_output=True, text=True)
    for name in ("p", "b", "py", "o"):
        (folder / f"model.{name}").unlink(missing_ok=True)
    if not (folder / "model.param").is_file():
        said = [line for line in (done.stdout + done.stderr).splitlines() if "ailed" in line or "rror" in line or "not supported" in line]
        raise RuntimeError(f"pnnx: status {done.returncode}: {said[-1].strip() if said else ''}")


def to_litert(network, folder, shapes):
    np.save(folder / ONNX2TF_SAMPLES, np.random.default_rng(0).random((20, 128, 128, 3), np.float32))  # or it is fetched
    os.chdir(folder)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import onnx2tf

    names = [i.name for i in onnx.load(network, load_external_data=False).graph.input]
    onnx2tf.convert(input_onnx_file_path=network, output_folder_path="tf", not_use_onnxsim=True, non_verbose=True, verbosity="error",
                    overwrite_input_shape=[f"{n}:{','.join(map(str, s))}" for n, (s, _) in zip(names, shapes)],
                    copy_onnx_input_output_names_to_tflite=True, replace_to_pseudo_operators=["erf"])  # LiteRT has no Erf
    os.rename("tf/folded_float32.tflite", "model.tflite")


CONVERTERS = {"mnn": to_mnn, "ncnn": to_ncnn, "litert": to_litert}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["data", *CONVERTERS])
    parser.add_argument("model")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a symbolic dimension of the inputs")
    parser.add_argument("--inputs", help="folder of a data set")
    args = parser.parse_args()
    if args.what == "data":
        make_data(args.model, args.folder, {name: int(size) for name, size in (d.split("=") for d in args.dim)}, args.inputs)
        return
    letters = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "int8": "i8", "uint8": "u8", "bool": "i8"}
    with np.load(args.folder / "data.npz", allow_pickle=True) as data:
        inputs = [data[name] for name in data.files if name.startswith("input_")]
    shapes = [(array.shape, letters.get(str(array.dtype), "f32")) for array in inputs]
    try:
        CONVERTERS[args.what](str(args.folder.absolute() / FOLDED), args.folder.absolute(), shapes)
    except ModuleNotFoundError as missing:
        sys.exit(f"error: not installed: {missing}")
    except Exception as problem:
        sys.exit(f"error: cannot convert: {type(problem).__name__}: {' '.join(str(problem).split())[:160]}")


if __name__ == "__main__":
    main()
