# SPDX-License-Identifier: Apache-2.0
"""Networks of torch: `tenon.from_torch`, and the backend of torch.compile."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch", reason="torch is not here: `make test-torch` runs this where it is")
pytest.importorskip("onnxscript", reason="onnxscript, which torch exports ONNX with, is not here")
nn, F = torch.nn, torch.nn.functional
DYNAMIC = torch.export.Dim.DYNAMIC


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)
        self.norm.running_mean.normal_()

    def forward(self, x):
        return self.head(F.relu(self.norm(self.conv(x))).mean((2, 3)))


def net():
    return Net().eval()


def picture(batch, seed=0):
    return torch.randn(batch, 3, 9, 9, generator=torch.Generator().manual_seed(seed))


def close(got, wanted):
    got = got.detach().numpy() if isinstance(got, torch.Tensor) else got
    np.testing.assert_allclose(got, wanted.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()
    yield


def compiled(model, **options):
    """The model, for calls without gradients; the graphs that were compiled."""
    from tenon import _dynamo

    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return _dynamo.backend(graph, inputs, options={"fallback": False, **options})

    function = torch.compile(model, backend=backend)

    def call(*args, **kwargs):
        with torch.no_grad():
            return function(*args, **kwargs)

    return call, graphs


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


# -- from_torch --------------------------------------------------------------------------------------------------------


def test_a_module_with_a_symbolic_batch():
    model = net()
    module = tenon.from_torch(model, (picture(2),), dynamic_shapes=({0: DYNAMIC},))
    program = tenon.compile(module)
    assert isinstance(program.inputs[0].shape[0], str)
    for batch in (1, 4):
        close(program(picture(batch)), model(picture(batch)))


def test_an_exported_program():
    model = net()
    program = torch.export.export(model, (picture(2),))
    close(tenon.compile(tenon.from_torch(program))(picture(2)), model(picture(2)))
    with pytest.raises(TypeError, match="has its inputs and shapes"):
        tenon.from_torch(program, (picture(2),))


def test_inputs_by_name_and_results_that_are_nested():
    class Two(nn.Module):
        def forward(self, x, *, scale):
            return {"sum": (x + scale, [x * scale])}

    x, scale = torch.ones(2, 3), torch.full((3,), 2.0)
    module = tenon.from_torch(Two().eval(), (x,), {"scale": scale})
    total, product = tenon.compile(module)(x, scale)
    close(total, x + 2)
    close(product, x * 2)


def test_weights_are_torchs_memory():
    model = nn.Linear(64, 64).eval()
    module = tenon.from_torch(model, (torch.ones(1, 64),))
    with torch.no_grad():
        model.weight.zero_()
    close(tenon.interpret(module, torch.ones(1, 64)), model.bias[None])


def test_weights_of_every_layout_and_type():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.dense = nn.Parameter(torch.randn(32, 16).t())  # not packed
            self.narrow = nn.Parameter(torch.randn(16, 32).to(torch.bfloat16))
            self.register_buffer("mask", torch.rand(16, 32) > 0.5)
            self.register_buffer("rows", torch.arange(64) % 16)
            self.register_buffer("empty", torch.zeros(0, 16))

        def forward(self, x):
            y = torch.where(self.mask, self.dense, self.narrow.to(torch.float32))
            return x @ torch.cat([y[self.rows], self.dense, self.dense.mean(1, keepdim=True).expand(16, 32)]).t(), self.empty + 1

    model, x = Mixed().eval(), torch.randn(3, 32)
    got = tenon.compile(tenon.from_torch(model, (x,)))(x)
    for a, b in zip(got, model(x), strict=True):
        close(a, b)


def test_weights_outlive_the_model():
    model = nn.Linear(64, 64).eval()
    wanted = model(torch.ones(1, 64)).detach()
    module = tenon.from_torch(model, (torch.ones(1, 64),))
    del model
    close(tenon.interpret(module, torch.ones(1, 64)), wanted)


def test_training_mode_is_refused():
    with pytest.raises(ValueError, match=r"`Net` is in training mode, as are 3 other modules; expected model.eval\(\)"):
        tenon.from_torch(Net(), (picture(2),))


def test_a_network_that_writes_is_refused():
    class Counts(nn.Module):
        def forward(self, x, y):
            y.add_(1)
            return x * y

    with pytest.raises(tenon.CompileError, match="Counts: the program writes to `y`"):
        tenon.from_torch(Counts().eval(), (torch.ones(2), torch.ones(2)))
    trained = torch.export.export(Net().train(), (picture(2),))
    with pytest.raises(tenon.CompileError, match="writes to `norm.running_mean`, `norm.running_var`"):
        tenon.from_torch(trained)


def test_operators_without_a_form_are_listed():
    class Spectra(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvalsh(x @ x.T) + torch.linalg.svdvals(x)

    with pytest.raises(tenon.CompileError, match="no form in ONNX has aten._linalg_eigh.default, aten._linalg_svd.default"):
        tenon.from_torch(Spectra().eval(), (torch.randn(4, 4),))


def test_what_is_no_network():
    with pytest.raises(TypeError, match="a model of type function"):
        tenon.from_torch(close, (torch.ones(1),))


def test_recurrences_keep_their_length():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.LSTM(4, 6, batch_first=True)

        def forward(self, x):
            return self.cells(x)[0]

    model = Words().eval()
    program = tenon.compile(tenon.from_torch(model, (torch.ones(2, 5, 4),), dynamic_shapes=({0: DYNAMIC, 1: DYNAMIC},)))
    for shape in ((2, 5, 4), (3, 9, 4)):
        x = torch.randn(shape)
        close(program(x), model(x))


# -- torch.compile -----------------------------------------------------------------------------------------------------


def test_the_backend_by_name():
    model = net()
    function = torch.compile(model, backend="tenon", options={"fallback": False, "threads": 1})
    with torch.no_grad():
        y = function(picture(2))
    assert isinstance(y, torch.Tensor)
    close(y, model(picture(2)))


def test_torch_finds_the_backend_by_itself():
    code = (
        "import torch; f = torch.compile(lambda x: x * 2, backend='tenon', options={'fallback': False}); print(f(torch.ones(2)).tolist())"
    )
    assert run(code) == "[2.0, 2.0]"


def test_importing_registers_the_backend_where_torch_has_looked_already():
    code = """
import torch._dynamo
from torch._dynamo.backends import registry
registry.list_backends()
registry._BACKENDS.pop("tenon", None)
import tenon, sys
print("tenon" in registry.list_backends(), "tenon._core" in sys.modules)
"""
    assert run(code) == "True False"


def test_import_loads_no_torch():
    assert run("import sys, tenon; tenon.compile; print('torch' in sys.modules)") == "False"


def test_sizes_become_symbols():
    model = net()
    call, graphs = compiled(model)
    for batch in (2, 3, 7, 11):
        close(call(picture(batch)), model(picture(batch)))
    assert len(graphs) == 2  # of the first size, and of all others


def test_weights_that_change():
    model = net()
    call, graphs = compiled(model)
    call(picture(2))
    with torch.no_grad():
        model.head.bias.add_(1)
        model.norm.running_var.mul_(4)
    close(call(picture(2)), model(picture(2)))
    model.head.weight = nn.Parameter(torch.ones_like(model.head.weight))
    close(call(picture(2)), model(picture(2)))
    model.head.weight.data = torch.full_like(model.head.weight, 2.0)
    close(call(picture(2)), model(picture(2)))


def test_weights_as_inputs():
    model = net()
    call, graphs = compiled(model, weights="inputs")
    close(call(picture(2)), model(picture(2)))
    model.head.weight.data.mul_(3)
    close(call(picture(2)), model(picture(2)))
    assert len(graphs) == 1


def test_gradients_are_torchs():
    model = net()
    function = torch.compile(model, backend="tenon")
    with pytest.warns(tenon.TenonWarning, match=r"its tensors require gradients.*torch.no_grad\(\)"):
        y = function(picture(2))
    close(y, model(picture(2)))
    y.sum().backward()
    assert model.head.weight.grad is not None
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", tenon.TenonWarning)
        close(function(picture(2)), model(picture(2)))


@pytest.mark.parametrize(
    ("function", "args", "reason"),
    [
        (lambda x: x + 1, (torch.ones(2, device="meta"),), "a tensor is on device meta; expected cpu"),
        (lambda x: torch.linalg.eigvalsh(x), (torch.eye(3),), "no form in ONNX has aten._linalg_eigh.default"),
        (lambda x: F.dropout(x, 0.5, True), (torch.ones(9),), "it draws random numbers: aten.dropout.default"),
        (lambda x: x.add_(1) * 2, (torch.ones(2),), "writes to"),
        (lambda x: (x + 1, x[1:]), (torch.ones(3),), "is a view of an input"),
    ],
    ids=["device", "operator", "random", "writes", "view"],
)
def test_what_torch_runs_itself(function, args, reason):
    with pytest.warns(tenon.TenonWarning, match=f"torch runs a graph of [0-9]+ operations itself: .*{reason}"):
        got = torch.compile(function, backend="tenon")(*[arg.clone() for arg in args])
    shape = (got[1] if isinstance(got, tuple) else got).shape
    wanted = function(*[arg.clone() for arg in args])
    assert shape == (wanted[1] if isinstance(wanted, tuple) else wanted).shape
    torch.compiler.reset()
    with pytest.raises(Exception, match=reason):
        torch.compile(function, backend="tenon", options={"fallback": False})(*[arg.clone() for arg in args])


def test_written_inputs_are_written():
    x = torch.ones(3)
    with pytest.warns(tenon.TenonWarning):
        torch.compile(lambda x: x.mul_(5), backend="tenon")(x)
    assert x.tolist() == [5.0] * 3


def test_graph_breaks_leave_the_rest_to_torch():
    def function(x):
        y = x * 2
        if y.sum().item() > 0:  # decided by data
            y = y + 1
        return y.relu() - 1

    call, graphs = compiled(function)
    for x in (torch.ones(3), -torch.ones(3)):
        close(call(x), function(x))
    assert len(graphs) >= 2


def test_element_types():
    def function(x, i):
        return x.to(torch.bfloat16) * 2, i + 1, x > 0, x.double(), x.half()

    call, _ = compiled(function)
    x, i = torch.tensor([-1.5, 0.0, 3.25]), torch.tensor([1, 2, 3])
    for got, wanted in zip(call(x, i), function(x, i)):
        assert got.dtype == wanted.dtype
        assert torch.equal(got, wanted)


def test_strided_inputs_and_inputs_that_require_gradients():
    call, _ = compiled(lambda x, w: x @ w)
    x, w = torch.randn(4, 5).T, torch.randn(4, 3, requires_grad=True)
    close(call(x, w), x @ w)


def test_numbers_beside_tensors():
    def function(x, n, scale):
        return (x.reshape(n, -1) * scale).sum(1), x.shape[0] + n, None, "text"

    call, _ = compiled(function)
    for n, scale in ((2, 0.5), (3, 1.5), (6, 0.25)):
        got, wanted = call(torch.arange(12.0), n, scale), function(torch.arange(12.0), n, scale)
        close(got[0], wanted[0])
        assert got[1:] == wanted[1:]


def test_settings_of_modules_under_dynamic():
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8, eps=0.5), nn.ELU(0.3)).eval()
    function = torch.compile(model, backend="tenon", dynamic=True, options={"fallback": False})
    with torch.no_grad():
        for batch in (2, 5):
            x = torch.randn(batch, 4)
            close(function(x), model(x))
        model[1].eps = 2.0
        close(function(x), model(x))


def test_inference_mode():
    model = net()
    function = torch.compile(model, backend="tenon", options={"fallback": False})
    with torch.inference_mode():
        for batch in (2, 5, 6):
            close(function(picture(batch)), model(picture(batch)))


@pytest.mark.parametrize("inside", [True, False])
def test_autocast_is_left_to_torch(inside):
    def function(x):
        if not inside:
            return x @ x
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x

    compiled_function = torch.compile(function, backend="tenon")
    with torch.autocast("cpu", torch.bfloat16, enabled=not inside), pytest.warns(tenon.TenonWarning, match="autocast is on"):
        assert compiled_function(torch.ones(3, 3)).dtype == torch.bfloat16


def test_fused_attention():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    call, _ = compiled(lambda x, padding: model(x, src_key_padding_mask=padding))
    x, padding = torch.randn(2, 5, 16), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        wanted = model(x, src_key_padding_mask=padding)
    close(call(x, padding), wanted)


def test_multi_head_attention_and_its_weights():
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    for options in ({}, {"average_attn_weights": False}, {"need_weights": False}):
        torch.compiler.reset()
        call, _ = compiled(lambda x: attention(x, x, x, **options))  # noqa: B023
        x = torch.randn(2, 5, 16)
        with torch.no_grad():
            wanted = attention(x, x, x, **options)
        got = call(x)
        close(got[0], wanted[0])
        assert (got[1] is None) == (wanted[1] is None)
        if wanted[1] is not None:
            close(got[1], wanted[1])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 3])
def test_bags_of_rows(mode, padding):
    model = nn.EmbeddingBag(30, 4, mode=mode, padding_idx=padding).eval()
    ids, starts = torch.tensor([3, 3, 9, 1, 3, 20, 20]), torch.tensor([0, 2, 2, 6])
    program = tenon.compile(tenon.from_torch(model, (ids, starts), dynamic_shapes=({0: DYNAMIC}, {0: DYNAMIC})))
    close(program(ids, starts), model(ids, starts))
    close(program(ids[:5], starts[:3]), model(ids[:5], starts[:3]))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"options": {"weights": "copied"}}, "weights='copied'; expected 'constants' or 'inputs'"),
        ({"mode": "max-autotune"}, "expected none"),
    ],
)
def test_bad_options_of_the_backend(arguments, text):
    with pytest.raises(Exception, match=text):
        torch.compile(lambda x: x + 1, backend="tenon", **arguments)(torch.ones(2))


def test_an_option_that_is_not_there():
    with pytest.raises(Exception, match="no option"):
        torch.compile(lambda x: x + 1, backend="tenon", options={"thread": 1})(torch.ones(2))
