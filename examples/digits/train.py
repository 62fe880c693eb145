"""Trains the small convolutional network of this folder and writes it as ONNX, with test images.

    apt-get install python3-torch python3-sklearn python3-onnx
    /usr/bin/python3 train.py            # seconds; same files on every run with the same packages

Data: the handwritten digits of the UCI repository that scikit-learn carries (1,797 images of 8x8
pixels, values 0 to 16, here divided by 16). The last 450, in the data set's own order, are the test set.

Writes, beside this script:

    digits.onnx        input "image" float32 (batch, 1, 8, 8), output "probabilities" float32 (batch, 10)
    digits_b1.onnx     the same network with a batch of 1, for targets that want every size fixed
    test_images.npy    float32 (450, 1, 8, 8)
    test_labels.npy    int64 (450,)

BatchNormalization stays a node of its own in the files, as training frameworks export it, so that
the compiler has something to fold.
"""

import pathlib

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).resolve().parent
TEST_IMAGES = 450
EPOCHS = 40


class Digits(torch.nn.Module):
    """8x8 -> conv 16 -> conv 32 -> pool 4x4 -> conv 32 -> pool 2x2 -> dense 10."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.ModuleList(
            [torch.nn.Conv2d(1, 16, 3, padding=1, bias=False),
             torch.nn.Conv2d(16, 32, 3, padding=1, bias=False),
             torch.nn.Conv2d(32, 32, 3, padding=1, bias=False)])
        self.norm = torch.nn.ModuleList([torch.nn.BatchNorm2d(n) for n in (16, 32, 32)])
        self.dense = torch.nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        x = F.relu(self.norm[0](self.conv[0](x)))
        x = F.max_pool2d(F.relu(self.norm[1](self.conv[1](x))), 2)
        x = F.max_pool2d(F.relu(self.norm[2](self.conv[2](x))), 2)
        return self.dense(F.dropout(x.flatten(1), 0.3, self.training))


def shifted(images, generator):
    """The images, each moved by -1, 0 or 1 pixels each way."""
    padded = F.pad(images, (1, 1, 1, 1))
    moves = torch.randint(0, 3, (len(images), 2), generator=generator)
    return torch.stack([p[:, y:y + 8, x:x + 8] for p, (y, x) in zip(padded, moves.tolist())])


def train(images, labels):
    torch.manual_seed(7)
    torch.set_num_threads(1)  # sums of one order: the same weights on every run
    generator = torch.Generator().manual_seed(7)
    model = Digits()
    batch = 64
    steps = EPOCHS * (len(images) // batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    model.train()
    for _ in range(EPOCHS):
        order = torch.randperm(len(images), generator=generator)
        for start in range(0, len(images) - batch + 1, batch):
            pick = order[start:start + batch]
            loss = F.cross_entropy(model(shifted(images[pick], generator)), labels[pick], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def to_onnx(model, batch):
    """The network as ONNX, opset 13; batch: a number, or a name for a size given at run time."""
    nodes, weights = [], []

    def weight(name, tensor):
        weights.append(numpy_helper.from_array(tensor.detach().numpy().astype(np.float32), name))
        return name

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    x = "image"
    for i, (conv, norm) in enumerate(zip(model.conv, model.norm), start=1):
        x = node("Conv", [x, weight(f"conv{i}.weight", conv.weight)], f"conv{i}",
                 kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
        statistics = [weight(f"norm{i}.{name}", value) for name, value in (
            ("scale", norm.weight), ("bias", norm.bias), ("mean", norm.running_mean), ("variance", norm.running_var))]
        x = node("BatchNormalization", [x, *statistics], f"norm{i}", epsilon=norm.eps)
        x = node("Relu", [x], f"relu{i}")
        if i > 1:
            x = node("MaxPool", [x], f"pool{i}", kernel_shape=[2, 2], strides=[2, 2])
    x = node("Flatten", [x], "flat", axis=1)
    x = node("Gemm", [x, weight("dense.weight", model.dense.weight), weight("dense.bias", model.dense.bias)],
             "logits", transB=1)
    node("Softmax", [x], "probabilities", axis=-1)

    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [batch, 10])],
        weights)
    result = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="train.py")
    result.ir_version = 8
    onnx.checker.check_model(result, full_check=True)
    return result


def main():
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, None]
    labels = data.target.astype(np.int64)
    model = train(torch.from_numpy(images[:-TEST_IMAGES]), torch.from_numpy(labels[:-TEST_IMAGES]))

    test_images, test_labels = images[-TEST_IMAGES:], labels[-TEST_IMAGES:]
    with torch.no_grad():
        answers = model(torch.from_numpy(test_images)).argmax(1).numpy()
    print(f"accuracy on {TEST_IMAGES} test images: {(answers == test_labels).mean():.2%}")

    onnx.save(to_onnx(model, "batch"), HERE / "digits.onnx")
    onnx.save(to_onnx(model, 1), HERE / "digits_b1.onnx")
    np.save(HERE / "test_images.npy", test_images)
    np.save(HERE / "test_labels.npy", test_labels)


if __name__ == "__main__":
    main()
