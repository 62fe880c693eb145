# SPDX-License-Identifier: Apache-2.0
"""What the generators of networks share: seeded weights, calibration, torch.onnx.export, reference outputs, counts.

A generator (make_models.py, make_zoo.py) lists its networks and calls main. Each network NAME comes in the layout of the
ONNX backend tests:

    DIR/NAME/model.onnx
    DIR/NAME/test_data_set_K/input_I.pb     TensorProto, in the order of the graph's inputs
    DIR/NAME/test_data_set_K/output_I.pb    TensorProto, in the order of its outputs
    DIR/NAME/info.json                      shapes, operations, parameters, operators

Each tensor is drawn from numpy's RandomState (a frozen stream) seeded with the CRC-32 of "network/module/parameter", so
that a network does not depend on which others are generated. Scales are He-like (convolutions, MLPs) or 1/sqrt(fan_in)
(transformers), and BatchNorm statistics come from a calibration over random inputs: activations stay near unit scale,
and a wrong result shows in the output instead of vanishing.

The reference is torch's result in float64 from the float32 weights and inputs, rounded to float32: closer to the exact
result than any float32 run, so it is compared with a tolerance. How far torch's own float32 is from it stands in
info.json (torch_f32_max_abs_err).

Runs under Debian 12's own Python, with python3-torch, python3-torchvision, python3-onnx and python3-numpy.
"""

import argparse
import dataclasses
import json
import math
import operator
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference
import torch
import torch.nn as nn

warnings.filterwarnings("ignore")


# -- seeded initialisation ---------------------------------------------------------------------------------------------

def rng_for(*key):
    return np.random.RandomState(zlib.crc32("/".join(key).encode()))


def to_param(values, like):
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).reshape(like.shape)


BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
NORMS = BATCH_NORMS + (nn.LayerNorm, nn.GroupNorm)
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d)


def init_weights(model, name, gain):
    """Fills every parameter; gain is sqrt(2) (He) or 1 (transformers)."""
    done = set()
    with torch.no_grad():
        for mod_name, mod in model.named_modules():
            recurrent = isinstance(mod, (nn.LSTM, nn.GRU, nn.RNN))
            for p_name, p in mod.named_parameters(recurse=False):
                if id(p) in done:           # tied weights
                    continue
                done.add(id(p))
                r = rng_for(name, mod_name, p_name)
                n = p.numel()
                if recurrent:
                    k = 1.0 / math.sqrt(mod.hidden_size)
                    v = r.uniform(-2 * k, 2 * k, n)
                elif isinstance(mod, NORMS):
                    v = r.uniform(0.6, 1.4, n) if p_name == "weight" else 0.1 * r.standard_normal(n)
                elif isinstance(mod, nn.Embedding) or "embed" in p_name or "token" in p_name:
                    v = 0.5 * r.standard_normal(n)
                elif "layer_scale" in p_name:
                    v = r.uniform(0.2, 0.6, n)
                elif p.dim() < 2:
                    v = 0.05 * r.standard_normal(n)
                else:
                    if isinstance(mod, nn.ConvTranspose2d):
                        fan_in = p.shape[0] * p.shape[2] * p.shape[3] / (mod.stride[0] * mod.stride[1])
                    elif getattr(mod, "weight_is_transposed", False):
                        fan_in = p.shape[0]
                    else:
                        fan_in = p[0].numel()
                    v = gain / math.sqrt(fan_in) * r.standard_normal(n)
                p.copy_(to_param(v, p))
    return model


def calibrate_batch_norm(model, name, shape, batch, run=None):
    """Sets running statistics from random inputs, in float64: rounded to float32 they do not depend on the order in
    which a machine's kernels add up. `run(model, x)` stands for model(x) where that is no call of one tensor."""
    bns = [m for m in model.modules() if isinstance(m, BATCH_NORMS)]
    if not bns:
        return
    model.eval().double()
    for m in bns:
        m.reset_running_stats()
        m.momentum = None
        m.train()
    with torch.no_grad():
        for i in range(2):
            x = rng_for(name, f"calibration{i}").standard_normal((batch,) + tuple(shape[1:]))
            x = torch.from_numpy(x.astype(np.float32)).double()
            run(model, x) if run else model(x)
    model.eval().float()


HE = math.sqrt(2.0)


@dataclasses.dataclass(frozen=True)
class Network:
    name: str
    build: Callable
    # (name, kind, shape): "normal", ("ids", vocabulary), ("prefix", ones), ("suffix", zeros), or a function of RandomState and shape
    inputs: list
    outputs: list           # names
    note: str
    gain: float = HE
    opset: int = 13
    keep_bn: bool = False   # BatchNormalization nodes are not folded
    calib: int = 4          # batch of the calibration
    calib_shape: tuple = None       # where it is not that of the first input
    calibrate: Callable = None      # of model and input, for calib, where the model is not called with one tensor
    prepare: Callable = None        # of the model and the first inputs, after the calibration
    sizes: tuple = ({},)    # for each data set, of the dimensions that are names in `inputs`; the exporter sees the first


def tv(fn, **kw):
    """A network of torchvision.models, or of a module in it ("detection.maskrcnn_resnet50_fpn")."""
    def build():
        import torchvision
        return operator.attrgetter(fn)(torchvision.models)(weights=None, **kw)
    return build


# -- inputs, export, counting ------------------------------------------------------------------------------------------

def shape_at(shape, sizes):
    return tuple(sizes.get(d, d) for d in shape)


def make_input(network, name, kind, shape, k=0):
    r = rng_for(network.name, "input", name, *([str(k)] if k else []))
    if kind == "normal":
        return r.standard_normal(shape).astype(np.float32)
    if callable(kind):
        return kind(r, shape)
    what, n = kind
    if what == "ids":
        return r.randint(0, n, shape).astype(np.int64)
    a = np.zeros(shape, np.int64)          # masks
    if what == "prefix":
        a[..., :shape[-1] - shape[-1] // 5 if n is None else n] = 1
    else:
        a[..., shape[-1] // 2 if n is None else n:] = 1
    return a


def conv_output_shapes(model, args):
    """Output shape of each convolution, in order of execution."""
    shapes, hooks = [], []
    for m in model.modules():
        if isinstance(m, CONVOLUTIONS):
            hooks.append(m.register_forward_hook(lambda mod, i, o: shapes.append(tuple(o.shape))))
    with torch.no_grad():
        model(*args)
    for h in hooks:
        h.remove()
    return shapes


def count(path, conv_shapes):
    """(parameters, multiply-accumulates, operators) of an ONNX file; no second where a shape is not known. conv_shapes
    stands in where shape inference gives up (Pad with computed pads)."""
    m = shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    g, shapes, params = m.graph, {}, 0
    for t in g.initializer:
        shapes[t.name] = tuple(t.dims)
        if t.data_type == onnx.TensorProto.FLOAT:
            params += int(np.prod(t.dims))
    for v in list(g.input) + list(g.value_info) + list(g.output):
        shapes.setdefault(v.name, tuple(d.dim_value for d in v.type.tensor_type.shape.dim))
    macs, ops, convs = 0, {}, iter(conv_shapes)
    for n in g.node:
        ops[n.op_type] = ops.get(n.op_type, 0) + 1
    if any(d.dim_param for i in g.input for d in i.type.tensor_type.shape.dim):
        return params, None, ops
    for n in g.node:
        att = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
        if n.op_type == "Constant":
            t = att.get("value")
            if t is not None:
                shapes[n.output[0]] = tuple(t.dims)
            continue
        s = [shapes.get(x, ()) for x in n.input]
        o = shapes.get(n.output[0], ())
        if n.op_type in ("Conv", "ConvTranspose"):
            o = next(convs, None)
            if o is None:           # a functional convolution
                return params, None, ops
            if n.op_type == "Conv":
                macs += int(o[0] * np.prod(o[2:]) * np.prod(s[1]))
            else:
                macs += int(np.prod(s[0]) * np.prod(s[1][1:]))
        elif n.op_type == "Gemm":
            k = s[0][0] if att.get("transA", 0) else s[0][1]
            macs += int(np.prod(o) * k)
        elif n.op_type == "MatMul":
            if not o or 0 in o or not s[0]:
                return params, None, ops
            macs += int(np.prod(o) * s[0][-1])
        elif n.op_type in ("LSTM", "GRU"):
            macs += int(s[0][0] * s[0][1] * (np.prod(s[1]) + np.prod(s[2])))
    return params, macs, ops


def save_tensor(array, name, path):
    with open(path, "wb") as f:
        f.write(numpy_helper.from_array(np.ascontiguousarray(array), name).SerializeToString())


def generate(network, out_dir, check):
    start = time.time()
    model = network.build()
    init_weights(model, network.name, network.gain)
    if network.calibrate or network.inputs[0][1] == "normal":
        shape = network.calib_shape or shape_at(network.inputs[0][2], network.sizes[0])
        calibrate_batch_norm(model, network.name, shape, network.calib, network.calibrate)
    model.eval()

    names = [i[0] for i in network.inputs]
    sets = [[make_input(network, n, kind, shape_at(shape, sizes), k) for n, kind, shape in network.inputs]
            for k, sizes in enumerate(network.sizes)]
    arrays = sets[0]
    args = tuple(torch.from_numpy(a) for a in arrays)
    if network.prepare:
        network.prepare(model, *args)
    dynamic = {n: {i: x for i, x in enumerate(shape) if isinstance(x, str)} for n, _, shape in network.inputs}

    d = os.path.join(out_dir, network.name)
    os.makedirs(d, exist_ok=True)
    path = os.path.join(d, "model.onnx")
    # With gradients: without them nn.MultiheadAttention takes a fused path that has no ONNX form.
    torch.onnx.export(model, args, path, input_names=names, output_names=network.outputs, opset_version=network.opset,
                      do_constant_folding=True, dynamic_axes=dynamic if any(dynamic.values()) else None,
                      training=torch.onnx.TrainingMode.PRESERVE if network.keep_bn else torch.onnx.TrainingMode.EVAL)
    if check:
        onnx.checker.check_model(path)

    def run(net, xs):
        with torch.no_grad():
            y = net(*xs)
        flat = []
        for t in (y if isinstance(y, (tuple, list)) else (y,)):
            flat += list(t) if isinstance(t, (tuple, list)) else [t]
        return [t.numpy() for t in flat]

    conv_shapes = conv_output_shapes(model, args)
    f32 = run(model, args)
    model.double()
    refs = [run(model, [t.double() if t.is_floating_point() else t for t in map(torch.from_numpy, xs)]) for xs in sets]
    err = max(float(np.abs(a - b).max()) for a, b in zip(f32, refs[0]) if a.size)
    refs = [[np.asarray(r, np.float32 if r.dtype == np.float64 else r.dtype) for r in ref] for ref in refs]
    ref = refs[0]
    assert all(np.isfinite(r).all() for x in refs for r in x), "reference output is not finite"

    for k, xs in enumerate(sets):
        data = os.path.join(d, f"test_data_set_{k}")
        os.makedirs(data, exist_ok=True)
        for i, (n, a) in enumerate(zip(names, xs)):
            save_tensor(a, n, os.path.join(data, f"input_{i}.pb"))
        for i, (n, a) in enumerate(zip(network.outputs, refs[k])):
            save_tensor(a, n, os.path.join(data, f"output_{i}.pb"))

    params, macs, ops = count(path, conv_shapes)
    info = {
        "name": network.name, "note": network.note, "opset": network.opset,
        "inputs": {n: [str(a.dtype), list(shape)] for a, (n, _, shape) in zip(arrays, network.inputs)},
        "outputs": {n: list(a.shape) for n, a in zip(network.outputs, ref)},
        "output_std": [round(float(a.std()), 4) for a in ref],
        "parameters": params, "macs": macs, "gflop": macs and round(2e-9 * macs, 6),
        "file_bytes": os.path.getsize(path), "torch_f32_max_abs_err": err,
        "nodes": sum(v for k, v in ops.items() if k != "Constant"), "ops": dict(sorted(ops.items())),
    }
    with open(os.path.join(d, "info.json"), "w") as f:
        json.dump(info, f, indent=1)
        f.write("\n")
    print(f"{network.name:<20} {params / 1e6:8.3f} M parameters {2e-9 * (macs or 0):10.4f} GFLOP "
          f"{info['nodes']:5} nodes  f32 error {err:.1e}  ({time.time() - start:.0f} s)", flush=True)


def main(description, networks):
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--out", help="folder to write to")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--list", action="store_true", help="the names, and no more")
    parser.add_argument("--check", action="store_true", help="run onnx.checker on each network")
    parser.add_argument("--threads", type=int, default=1, help="of torch; the files do not depend on it")
    args = parser.parse_args()
    if args.list:
        for network in networks:
            print(f"{network.name:<20} opset {network.opset}  {network.note}")
        return
    if not args.out:
        parser.error("--out is required")
    known = [network.name for network in networks]
    only = args.only.split(",") if args.only else known
    if unknown := sorted(set(only) - set(known)):
        sys.exit(f"no network {', '.join(unknown)}; --list has their names")
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    for network in networks:
        if network.name in only:
            generate(network, args.out, args.check)
