#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `tenon tune` places in libraries, as users run it: what a library computes faster, what it does not, functions that crash, hang or are
wrong, a limit of memory, and programs that are the same for the same database.

    tests/end_to_end/placement_tuning.py build/bin/tenon
"""

import filecmp
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

TENON = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]

# The sum of a product is that of the products of sums of columns and rows, which takes n^2 steps and not n^3: a library that knows this is
# faster than any code for the two operators. The other composite is e^x, which a C loop in double precision does not compute faster.
MODEL = """
from tenon.script import ir as I, tir as T, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((384, 384), "float32")):
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.tanh(x)
            product = R.matmul(a, b)
            total = R.sum(product)
            gate = R.exp(x)
            scaled = R.multiply(gate, total)
            again = R.tanh(gate)
            y = R.add(scaled, again)
            R.output(y)
        return y
"""
PATTERNS = """
from tenon.script import ir as I, tir as T, relax as R

@I.ir_module
class Patterns:
    @R.function
    def total(a: R.Tensor(("n", "k"), "float32"), b: R.Tensor(("k", "m"), "float32")):
        product = R.matmul(a, b)
        y = R.sum(product)
        return y
    @R.function
    def gate(x: R.Tensor(("n", "m"), "float32")):
        y = R.exp(x)
        return y
"""
SIGNATURES = """
from tenon.script import ir as I, tir as T, relax as R

@I.ir_module
class Signatures:
    @T.extern_func
    def total(a: T.Buffer(("n", "k"), "float32"), b: T.Buffer(("k", "m"), "float32"), y: T.Buffer((), "float32"),
              scratch: T.Buffer(("k * 8192",), "float32"), n: T.int64, k: T.int64, m: T.int64):
        T.func_attr({"effects": {"y": "out", "scratch": "scratch"}})
    @T.extern_func
    def gate(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32"), n: T.int64, m: T.int64):
        T.func_attr({"effects": {"y": "out"}})
"""
SCRATCH = 384 * 8192 * 4  # bytes of `total`
LIBRARY = """
#include <math.h>
#include <stdint.h>
void total(const float* a, const float* b, float* y, float* scratch, int64_t n, int64_t k, int64_t m);
void total(const float* a, const float* b, float* y, float* scratch, int64_t n, int64_t k, int64_t m) {
  double sum = 0;
  for (int64_t j = 0; j < k; ++j) scratch[j] = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < k; ++j) scratch[j] += a[i * k + j];
  for (int64_t j = 0; j < k; ++j) {
    double row = 0;
    for (int64_t i = 0; i < m; ++i) row += b[j * m + i];
    sum += scratch[j] * row;
  }
  *y = (float)sum;
}
void gate(const float* x, float* y, int64_t n, int64_t m);
void gate(const float* x, float* y, int64_t n, int64_t m) {
  %s
  for (int64_t i = 0; i < n * m; ++i) y[i] = (float)exp((double)x[i]);
}
"""


def run(*words, status=0):
    """What a command says, on both streams; its status is looked at."""
    done = subprocess.run([str(word) for word in (TENON, *words)], capture_output=True, text=True, env=os.environ)
    assert done.returncode == status, f"{words}: status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def rows(database, query):
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def words_of(folder, library="plain"):
    """The options that name the library."""
    options = ["--call-by-name", "toy", "--composite", folder / "patterns.py", "--signatures", folder / "signatures.py"]
    return [folder / "model.py", *options, "--link", folder / f"{library}.c", "--threads", 1]


def json_of(said):
    """Of a command's output, without the warnings behind it."""
    return json.loads(said[: said.rindex("\n}") + 2])


def provider_of(said, composite):
    """Who computes the operator of that name, as the JSON of a run says."""
    placements = json_of(said)["offload"]["placements"]
    return [each["provider"] or "own code" for each in placements if each["node"] == composite]


def providers_in(said):
    return {each["provider"] for each in json_of(said)["offload"]["placements"]}


def searches(folder, name, *more):
    database = folder / f"{name}.db"
    said = run("tune", *words_of(folder, name), "--db", database, "--trials", 10, "--json", *more)
    return database, json_of(said)


def by_name(found):
    return {part["part"].removesuffix("_1"): part for part in found["parts"]}


def places_what_is_faster(folder):
    """The library gets what it computes faster, and own code keeps the rest."""
    database, found = searches(folder, "plain")
    parts = by_name(found)
    assert set(parts) == {"total", "gate"}, parts
    assert parts["total"]["provider"] == "toy.total" and parts["total"]["ratio"] < 0.97, parts
    assert parts["gate"]["provider"] == "" and parts["gate"]["ratio"] == 1 and parts["gate"]["tried"] == 1, parts
    network = found["placed_network"]
    assert 0 < network["tuned_us"] < network["own_us"], network
    assert all("matmul" not in kernel["kernel"] for kernel in found["kernels"]), "plans are of what own code is left with"
    chosen = rows(database, "SELECT plan FROM choice WHERE kernel LIKE 'graph-%'")
    assert chosen == [("toy.total",)], chosen
    # What is known is not measured again.
    before = rows(database, "SELECT count(*) FROM measurement WHERE kernel LIKE 'graph-%'")
    run("tune", *words_of(folder), "--db", database, "--trials", 1)
    assert rows(database, "SELECT count(*) FROM measurement WHERE kernel LIKE 'graph-%'") == before

    said = run("run", *words_of(folder), "--tuned", database, "--json")
    assert provider_of(said, "product") == ["toy"] and provider_of(said, "gate") == ["own code"], said
    assert provider_of(run("run", *words_of(folder), "--json"), "gate") == ["toy"], "without a database all of it is the library's"
    run("run", *words_of(folder), "--tuned", database, "--compare")
    said = run("explain", *words_of(folder)[:-2], "--tuned", database, "--pass", "AnnotatePlacement")
    assert "toy.gate: measured: slower" in said, said
    # By hand it goes there all the same.
    said = run("run", *words_of(folder), "--tuned", database, "--place", "gate=toy", "--json")
    assert provider_of(said, "gate") == ["toy"], said


def is_deterministic(folder):
    """The same database gives the same program."""
    for name in "ab":
        (folder / name).mkdir()
        options = words_of(folder)[:-2]
        run("compile", *options, "--tuned", folder / "plain.db", "-o", folder / name / "x.so")
    assert filecmp.cmp(folder / "a/x.so", folder / "b/x.so", shallow=False)


def survives_bad_functions(folder):
    """What crashes, hangs or is wrong is recorded as that, and left to own code; the rest of the search goes on."""
    faults = {
        "crash": "__builtin_trap();",
        "timeout": "for (volatile int forever = 1; forever;) continue;",
        "wrong": "if (n * m > 0) { for (int64_t i = 0; i < n * m; ++i) y[i] = 3; return; }",
    }
    for name, what in faults.items():
        (folder / f"{name}.c").write_text(LIBRARY % what)
        database, found = searches(folder, name, "--run-limit", 10)
        parts = by_name(found)
        assert parts["gate"]["ended"] == {name: 1} and parts["gate"]["provider"] == "", parts
        assert parts["total"]["provider"] == "toy.total", parts
        said = run("run", *words_of(folder), "--tuned", database, "--json")
        assert provider_of(said, "product") == ["toy"] and provider_of(said, "gate") == ["own code"], said


def keeps_the_limit_of_memory(folder):
    """What would bring the peak above it is left to own code, and a limit that own code does not keep is an error."""
    _, found = searches(folder, "plain", "--max-peak", 1 << 40)
    assert found["peak_bytes"] >= SCRATCH, found
    (folder / "small.c").write_text(LIBRARY % "")
    database, found = searches(folder, "small", "--max-peak", SCRATCH - 1)
    own = found["peak_bytes"]
    assert own < SCRATCH and all(part["provider"] == "" for part in found["parts"]), found
    given_up = rows(database, "SELECT plan, detail FROM measurement WHERE kernel LIKE 'graph-%' AND stage = 2")
    assert len(given_up) == 1 and given_up[0][0] == "toy.total" and given_up[0][1].startswith("the peak would be "), given_up
    said = run("run", *words_of(folder), "--tuned", database, "--json")
    assert provider_of(said, "product") == ["own code"], said
    said = run("tune", *words_of(folder), "--db", database, "--trials", 1, "--max-peak", own - 1, status=1)
    assert "error[TN0702]" in said and f"the network needs {own} bytes" in said, said


def measures_plugins(folder):
    """A back end of a plugin, whose composites hold their constants, computes the same; what is chosen of it is placed, and the rest is not."""
    source, plugin, database = ROOT / "examples/accelerator", folder / "accelerator.so", folder / "plugin.db"
    files = [source / "acc_backend.c", source / "accelerator.c"]
    options = ["-O2", "-shared", "-fPIC", f"-I{ROOT}/include", f"-I{source}", "-lm", "-o", plugin]
    subprocess.run([os.environ.get("CC", "cc"), *files, *options], check=True)
    words = [source / "digits.onnx", "--plugin", plugin]
    run("tune", *words, "--db", database, "--threads", 1, "--trials", 12)
    measured = rows(database, "SELECT kernel, plan, status FROM measurement WHERE kernel LIKE 'graph-%' AND stage = 0 AND plan != ''")
    assert len(measured) >= 4 and all(plan.startswith("acc.") and status == "ok" for _, plan, status in measured), measured
    # Which ones are faster is the machine's to say; what follows is the same for any.
    key = "SELECT target, machine, threads, compiler FROM measurement WHERE kernel = ? AND stage = 0 LIMIT 1"
    connection = sqlite3.connect(database)
    connection.execute("DELETE FROM choice")
    connection.commit()
    assert providers_in(run("run", *words, "--json")) >= {"acc"}
    assert "acc" not in providers_in(run("run", *words, "--tuned", database, "--json"))
    convolutions = [(kernel, plan) for kernel, plan, _ in measured if plan == "acc.conv2d_relu"]
    for kernel, plan in convolutions:
        target, machine, threads, compiler = connection.execute(key, (kernel,)).fetchone()
        connection.execute("INSERT INTO choice VALUES(?, ?, ?, ?, ?, ?, 0.5)", (kernel, target, machine, threads, compiler, plan))
    connection.commit()
    connection.close()
    said = run("run", *words, "--tuned", database, "--json")
    taken = {each["by"] for each in json_of(said)["offload"]["placements"] if each["provider"] == "acc"}
    assert taken == {"acc.conv2d_relu"}, said
    run("run", *words, "--tuned", database, "--compare")


# A part whose second parameter is a constant of a size that nobody knows.
PART = """
from tenon.script import ir as I, tir as T, relax as R

@I.ir_module
class Module:
    @R.function(private=True)
    def total(a: R.Tensor(("n", "k"), "float32"), b: R.Tensor(("k", "m"), "float32")):
        R.func_attr({"Composite": "toy.total", "constant_params": [1]})
        with R.dataflow():
            y = R.matmul(a, b)
            R.output(y)
        return y
"""


def tells_bad_jobs(folder):
    """Jobs of parts that are none."""
    job = folder / "job.json"
    fields = {"version": 2, "kernel": "total", "hash": "0", "module": PART, "target": "native", "plan": "toy.total", "stage": 0, "seed": 0}
    fields |= {"threads": 1, "dims": {}, "link": [], "plugins": [], "seconds": 10, "memory_bytes": 1 << 33, "timed_seconds": 0.1, "cold": False}
    job.write_text(json.dumps(fields))
    said = run("measure", job, "-o", folder / "result.json", status=1)
    assert "error[TN0016]" in said and "the job is for 0" in said, said
    fields["hash"] = said.split(" has hash ")[1].split(";")[0]
    job.write_text(json.dumps(fields))
    said = run("measure", job, "-o", folder / "result.json", status=1)
    assert "error[TN0016]" in said and "kernel `total` is not called on tensors alone" in said, said
    job.write_text(json.dumps(fields | {"plugins": ["/nowhere.so"]}))
    assert "/nowhere.so" in run("measure", job, "-o", folder / "result.json", status=1)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in {"model.py": MODEL, "patterns.py": PATTERNS, "signatures.py": SIGNATURES, "plain.c": LIBRARY % ""}.items():
            (folder / file).write_text(text)
        for test in (places_what_is_faster, is_deterministic, survives_bad_functions, keeps_the_limit_of_memory, measures_plugins, tells_bad_jobs):
            test(folder)
            print(f"{test.__name__}: ok", flush=True)


main()
