# SPDX-License-Identifier: Apache-2.0
"""Exports four scikit-learn pipelines with skl2onnx, and records what ONNX Runtime computes with them.

    make_sklearn.py --out build/sklearn [--only NAME,...]

    random_forest       100 trees on scaled numbers and an encoded column of strings; labels are strings
    svm                 a support vector classifier with probabilities on scaled numbers
    gradient_boosting   300 trees on scaled numbers and an encoded column of integers
    knn_imputer         missing numbers from the nearest of 300 rows, in 6 columns, then a scaler

The classifiers end in ZipMap, as scikit-learn's users export them; all have a symbolic batch. Data and training are seeded: the same versions of
the packages give the same networks. A folder has the layout of make_models.py: test_data_set_0 is a batch of 1, test_data_set_1 one of
1000; a sequence of maps is recorded as the tensor of their keys and the tensor of their values, a row each.

Runs under bench/python.sh, which has scikit-learn, skl2onnx and onnxruntime.
"""

import argparse
import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import KNNImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

FEATURES = 20
BATCHES = (1, 1000)
WORDS = np.array(["red", "green", "blue", "white", "black"])
LABELS = np.array(["apple", "pear", "plum"])


def data(rows):
    """(numbers, the column of categories, classes)"""
    numbers, classes = make_classification(rows, FEATURES, n_informative=10, n_classes=3, random_state=0)
    rng = np.random.RandomState(1)
    categories = (classes + rng.randint(0, 3, rows)) % len(WORDS)
    return numbers.astype(np.float32), categories.astype(np.int64), classes


def with_column(model):
    """The model behind a scaler of the numbers and an encoder of the last column."""
    return make_pipeline(ColumnTransformer([("scale", StandardScaler(), list(range(FEATURES))),
                                            ("encode", OneHotEncoder(handle_unknown="ignore"), [FEATURES])]), model)


def random_forest():
    numbers, categories, classes = data(4000)
    words = WORDS[categories].reshape(-1, 1).astype(object)
    table = np.concatenate([numbers.astype(object), words], axis=1)
    pipeline = with_column(RandomForestClassifier(100, max_depth=12, random_state=0)).fit(table, LABELS[classes])
    return pipeline, {"x": numbers, "category": words}


def gradient_boosting():
    numbers, categories, classes = data(4000)
    table = np.concatenate([numbers, categories.reshape(-1, 1)], axis=1)
    pipeline = with_column(GradientBoostingClassifier(n_estimators=100, random_state=0)).fit(table, classes)
    return pipeline, {"x": numbers, "category": categories.reshape(-1, 1)}


def svm():
    numbers, _, classes = data(2000)
    pipeline = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)).fit(numbers, classes)
    return pipeline, {"x": numbers}


def knn_imputer():
    numbers = data(1300)[0][:, :6]
    numbers[np.random.RandomState(2).rand(*numbers.shape) < 0.2] = np.nan
    pipeline = make_pipeline(KNNImputer(n_neighbors=3), StandardScaler()).fit(numbers[:300])
    return pipeline, {"x": numbers[300:]}


NETWORKS = {"random_forest": random_forest, "svm": svm, "gradient_boosting": gradient_boosting, "knn_imputer": knn_imputer}
OPSETS = {"knn_imputer": 18}


def input_type(array):
    kind = {"f": FloatTensorType, "i": Int64TensorType, "O": StringTensorType}[array.dtype.kind]
    return kind([None, array.shape[1]])


def batch_is_symbolic(model):
    for value in list(model.graph.input) + list(model.graph.output):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.dim[0].dim_param = "batch"


def tensors_of(name, value):
    """The tensors that are recorded of an output: a sequence of maps is its keys and its values."""
    if isinstance(value, list):
        keys = list(value[0])
        rows = np.array([[row[key] for key in keys] for row in value], np.float32)
        return [(f"{name}.keys", np.array(keys, object if isinstance(keys[0], str) else np.int64)), (f"{name}.values", rows)]
    return [(name, np.asarray(value, object) if value.dtype.kind in "UO" else value)]


def record(folder, session, inputs):
    folder.mkdir(parents=True, exist_ok=True)
    outputs = []
    for output, value in zip(session.get_outputs(), session.run(None, inputs)):
        outputs += tensors_of(output.name, value)
    for kind, tensors in (("input", list(inputs.items())), ("output", outputs)):
        for i, (name, value) in enumerate(tensors):
            (folder / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())


def generate(name, out):
    pipeline, inputs = NETWORKS[name]()
    model = convert_sklearn(pipeline, name, [(key, input_type(value)) for key, value in inputs.items()],
                            target_opset=OPSETS.get(name, 17))
    batch_is_symbolic(model)
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for i, batch in enumerate(BATCHES):
        record(folder / f"test_data_set_{i}", session, {key: value[:batch] for key, value in inputs.items()})
    ops = [node.op_type for node in model.graph.node]
    info = {"name": name, "nodes": len(ops), "ops": {op: ops.count(op) for op in sorted(set(ops))},
            "inputs": {key: [str(value.dtype), ["batch", value.shape[1]]] for key, value in inputs.items()}}
    (folder / "info.json").write_text(json.dumps(info, indent=1) + "\n")
    print(f"{name:<24} {len(ops):5} nodes", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to")
    parser.add_argument("--only", help="networks, separated by commas")
    args = parser.parse_args()
    for name in args.only.split(",") if args.only else NETWORKS:
        if not (args.out / name / "info.json").is_file():
            generate(name, args.out)


if __name__ == "__main__":
    main()
