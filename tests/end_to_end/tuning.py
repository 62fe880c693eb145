#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon tune`, `tenon measure` and --tuned as users run them: kernels that crash, hang, take all memory or are wrong, searches that are
killed, nodes of a cluster that go away, several writers, databases that are none, and programs that are the same for the same database.

    tests/end_to_end/tuning.py build/bin/tenon
"""

import filecmp
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

TENON = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits/digits_b1.onnx"

# A product and a call for each of its results. The C function knows the program that called it first, by the places of its calls: it
# behaves for that one, of the default plan, and not for others.
KERNEL = """
from tenon.script import ir as I, tir as T, relax as R

@I.ir_module
class Module:
    @T.prim_func
    def kernel(a: T.Buffer((32, 64), "float32"), b: T.Buffer((64, 48), "float32"), c: T.Buffer((32, 48), "float32")):
        t = T.alloc_buffer((32, 48), "float32")
        for i, j, k in T.grid(32, 48, 64):
            with T.block("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    t[vi, vj] = T.float32(0)
                t[vi, vj] = t[vi, vj] + a[vi, vk] * b[vk, vj]
        for i, j in T.grid(32, 48):
            with T.block("then"):
                vi, vj = T.axis.remap("SS", [i, j])
                c[vi, vj] = T.call_pure_extern("float32", "then", t[vi, vj])
    @R.function
    def main(a: R.Tensor((32, 64), "float32"), b: R.Tensor((64, 48), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.kernel, (a, b), out_sinfo=R.Tensor((32, 48), "float32"))
            R.output(y)
        return y
"""
THEN = """
float then(float x);
static const void* known[4096];
static int calls, places;
float then(float x) {
  const void* const place = __builtin_return_address(0);
  int i = 0;
  while (i < places && known[i] != place) ++i;
  if (i == places && calls < 32 * 48) known[places++] = place;
  if (calls < 32 * 48) ++calls;
  else if (i == places) %s
  return x * 2;
}
"""


def run(*words, status=0, env=None):
    """What a command says, on both streams; its status is looked at."""
    done = subprocess.run([str(word) for word in (TENON, *words)], capture_output=True, text=True, env={**os.environ, **(env or {})})
    assert done.returncode == status, f"{words}: status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def rows(database, query, *values):
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def change(database, *commands):
    connection = sqlite3.connect(database)
    for command in commands:
        connection.execute(*command)
    connection.commit()
    connection.close()


def descendants(pid):
    """Processes that a process started, and those started in turn."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has just ended
        if state != "Z":
            parents[int(path.parent.name)] = int(parent)
    found = {pid}
    while more := {each for each, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, process=None):
    while not condition():
        time.sleep(0.1)
        assert process is None or process.poll() is None, "the search ended by itself"


def survives_bad_plans(folder):
    """Plans under which a kernel crashes, hangs, takes all memory or is wrong are recorded as that, are never chosen, and not tried again."""
    (folder / "kernel.py").write_text(KERNEL)
    faults = {
        "crash": "__builtin_trap();",
        "timeout": "for (;;) calls = 32 * 48;",
        "memory": "for (;;) __builtin_memset(__builtin_malloc(1 << 20), 1, 1 << 20);",
        "wrong": "return x * 3;",
    }
    for name, what in faults.items():
        (folder / f"{name}.c").write_text(THEN % what)
        database = folder / f"{name}.db"
        words = ["tune", folder / "kernel.py", "--link", folder / f"{name}.c", "--db", database, "--run-limit", 10, "--memory-limit", 1024]
        said = run(*words, "--trials", 4)
        assert f" {name}" in said, said
        ended = rows(database, "SELECT plan, status FROM measurement ORDER BY id")
        assert len(ended) == 4 and ended[0] == ("", "ok") and len({plan for plan, _ in ended}) == 4, ended
        assert [status for _, status in ended[1:]] == [name] * 3, ended
        assert rows(database, "SELECT count(*) FROM choice") == [(0,)]
        run(*words, "--trials", 1)
        again = rows(database, "SELECT plan, status FROM measurement ORDER BY id")
        assert again[:4] == ended and len(again) == 5 and again[4][0] not in [plan for plan, _ in ended], again


def survives_bad_kernels(folder):
    """A kernel that crashes as it is ends its measurement and nothing else."""
    (folder / "always.c").write_text("float then(float x);\nfloat then(float x) { __builtin_trap(); return x; }\n")
    said = run("tune", folder / "kernel.py", "--link", folder / "always.c", "--db", folder / "always.db")
    assert "not tuned, crash: signal 4" in said and "0 of 0 kernels" in said, said


def resumes(folder):
    """Killed in the middle, again and again, it goes on with every record that it had; what is known is not measured again."""
    database = folder / "resumed.db"
    words = [str(word) for word in (TENON, "tune", DIGITS, "--db", database, "--seconds", 3600, "--threads", 1)]
    query = "SELECT id, kernel, plan, stage, status, ratio FROM measurement WHERE stage < 2 ORDER BY id"
    before = []
    for _ in range(3):
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        wait_until(lambda: database.exists() and rows(database, "SELECT name FROM sqlite_schema WHERE name = 'choice'"), child)
        wait_until(lambda: len(rows(database, query)) >= len(before) + 4, child)
        wait_until(lambda: descendants(child.pid), child)
        seen, started = rows(database, query), descendants(child.pid)
        child.kill()
        child.wait()
        # A measurement that went on would falsify those of the next search.
        wait_until(lambda: not any(is_running(pid) for pid in started))
        after = rows(database, query)
        assert seen[: len(before)] == before and after[: len(seen)] == seen, (before, seen, after)
        before = after
    run("tune", DIGITS, "--db", database, "--threads", 1, "--trials", 3)
    after = rows(database, query)
    assert after[: len(before)] == before and len(after) == len(before) + 3, (len(before), len(after))
    assert len({row[1:4] for row in after}) == len(after), "what was known is measured again"
    assert rows(database, "PRAGMA integrity_check") == [("ok",)]


def takes_several_writers(folder):
    """Two searches at once keep all that both measured."""
    database = folder / "shared.db"
    words = [str(word) for word in (TENON, "tune", DIGITS, "--db", database, "--trials", 10, "--threads")]
    both = [subprocess.Popen([*words, threads], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for threads in ("1", "2")]
    for child in both:
        said = child.communicate()[0]
        assert child.returncode == 0, said
    assert rows(database, "SELECT threads, count(*) FROM measurement WHERE stage < 2 GROUP BY threads ORDER BY threads") == [(1, 10), (2, 10)]
    assert rows(database, "PRAGMA integrity_check") == [("ok",)]


# A product whose plain loops are slow.
PRODUCT = """
from tenon.script import ir as I, tir as T, relax as R

@I.ir_module
class Module:
    @T.prim_func
    def product(a: T.Buffer((192, 192), "float32"), b: T.Buffer((192, 192), "float32"), c: T.Buffer((192, 192), "float32")):
        for i, j, k in T.grid(192, 192, 192):
            with T.block("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    c[vi, vj] = T.float32(0)
                c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
    @R.function
    def main(a: R.Tensor((192, 192), "float32"), b: R.Tensor((192, 192), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.product, (a, b), out_sinfo=R.Tensor((192, 192), "float32"))
            R.output(y)
        return y
"""


def looks_at_the_network(folder):
    """A plan that was faster alone is given up where the network is slower by it, and not looked at again."""
    (folder / "product.py").write_text(PRODUCT)
    database = folder / "network.db"
    words = ["tune", folder / "product.py", "--db", database, "--threads", 1, "--trials", 1]
    assert "the network takes" not in run(*words), "there is no plan yet"
    key = rows(database, "SELECT kernel, target, machine, threads, compiler FROM measurement")[0]
    plan = json.dumps([{"block": "sum", "algorithm": "loops", "nests": []}])
    for stage in (0, 1):
        change(
            database,
            (
                "INSERT INTO measurement(kernel, target, machine, threads, compiler, plan, stage, status, ratio, median_us, default_us, "
                "detail) VALUES(?, ?, ?, ?, ?, ?, ?, 'ok', 0.5, 1, 2, '')",
                (*key, plan, stage),
            ),
        )
    for _ in range(2):
        run(*words)
        given_up = rows(database, "SELECT ratio, detail FROM measurement WHERE plan = ? AND stage = 2", plan)
        assert len(given_up) == 1 and given_up[0][0] >= 1 and given_up[0][1] == "between other kernels", given_up
        assert rows(database, "SELECT count(*) FROM choice WHERE plan = ?", plan) == [(0,)]


def is_deterministic(folder):
    """The same database gives the same program; it names its plans, and another plan is another program."""
    database = folder / "shared.db"
    change(database, ("DELETE FROM choice",))
    # Any plan that is right will do: what is asked is not how fast it is.
    ok = "plan != '' AND status = 'ok' AND stage = 0"
    kernel, target, machine, compiler, plan = rows(
        database, f"SELECT kernel, target, machine, compiler, plan FROM measurement WHERE {ok} ORDER BY threads DESC LIMIT 1"
    )[0]
    chosen = "INSERT INTO choice VALUES(?, ?, ?, 2, ?, ?, 0.5)"
    change(database, (chosen, (kernel, target, machine, compiler, plan)))
    for name in "ab":
        (folder / name).mkdir()
        run("compile", DIGITS, "--tuned", database, "-o", folder / name / "x.so")
    assert filecmp.cmp(folder / "a/x.so", folder / "b/x.so", shallow=False)
    assert json.loads((folder / "a/x.json").read_text())["tuned"] == [{"kernel": kernel, "plan": json.loads(plan)}]
    run("compile", DIGITS, "-o", folder / "b/x.so")
    assert not filecmp.cmp(folder / "a/x.so", folder / "b/x.so", shallow=False)
    assert "tuned" not in json.loads((folder / "b/x.json").read_text())
    run("run", DIGITS, "--tuned", database, "--compare")

    # Programs that were compiled before are found by the plans that they were made by.
    cache = {"TENON_CACHE": str(folder / "cache")}
    assert "compile" in run("run", DIGITS, "--tuned", database, env=cache)
    assert "compiled before" in run("run", DIGITS, "--tuned", database, env=cache)
    change(database, ("DELETE FROM choice",))
    assert "compiled before" not in run("run", DIGITS, "--tuned", database, env=cache)
    assert "warning[TN0012]" in run("run", DIGITS, "--tuned", database, "--no-cache")

    # Plans of one kind of machine are never taken for another.
    change(database, (chosen, (kernel, target, machine, compiler, plan)), (chosen, (kernel, target, "0123", compiler, plan)))
    said = run("compile", DIGITS, "--tuned", database, "-o", folder / "b/x.so", status=1)
    assert "error[TN0015]" in said and "plans of 2 kinds of machines" in said and machine in said, said
    run("compile", DIGITS, "--tuned", database, "--machine", machine, "-o", folder / "b/x.so")
    assert filecmp.cmp(folder / "a/x.so", folder / "b/x.so", shallow=False)
    said = run("compile", DIGITS, "--tuned", database, "--machine", "4567", "-o", folder / "b/x.so", status=1)
    assert "there are no plans of machine 4567" in said, said
    assert "no database is given" in run("run", DIGITS, "--machine", machine, status=2)

    # A plan of a database that does not fit, as another version may have written it, is left out.
    change(database, ("DELETE FROM choice",), (chosen, (kernel, target, machine, compiler, plan.replace('"columns":', '"columns":99'))))
    said = run("compile", DIGITS, "--tuned", database, "-o", folder / "b/x.so")
    assert "refused" in run("explain", DIGITS, "--tuned", database, "--pass", "DefaultSchedule"), said


def cluster(folder, deaths=0, is_mixed=False):
    """Scripts in the place of Slurm's, and their folder: two nodes that share the jobs of an array.

    The first node goes away in the middle of its first job, in so many submissions. In a mixed cluster the second one is of another kind.
    """
    folder.mkdir()
    (folder / "sbatch").write_text(f"""#!{sys.executable}
import os, pathlib, subprocess, sys, time
folder, deaths, is_mixed = pathlib.Path({str(folder)!r}), {deaths}, {is_mixed}

def measures(pid):
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                return True
        except OSError:
            continue
    return False

def be_node(node, submission, elements):
    for element in elements:
        dies = node == 0 and submission < deaths
        # A result replaces another as a whole; a node that went away gives none.
        script = pathlib.Path(sys.argv[-1]).read_text().replace("$SLURM_ARRAY_TASK_ID", element)
        result = pathlib.Path(script.split()[-1])
        measured = folder / f"{{submission}}.{{element}}"
        job = subprocess.Popen(["sh", "-c", script.replace(str(result), str(measured))])
        if dies:
            while job.poll() is None and not measures(job.pid):
                time.sleep(0.01)
            job.kill()
            return
        job.wait()
        if is_mixed and node == 1:
            text = measured.read_text()
            machine = text.split('"machine": "')[1].split('"')[0]
            measured.write_text(text.replace(machine, "another"))
        measured.rename(result)

submission = len(list(folder.glob("submitted.*")))
(folder / f"submitted.{{submission}}").write_text(" ".join(sys.argv[1:]))
elements = next(word for word in sys.argv if word.startswith("--array=")).removeprefix("--array=").split(",")
for node in (0, 1):
    runs = folder / f"runs.{{100 + submission}}.{{node}}"
    runs.touch()
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        os.setsid()
        try:
            be_node(node, submission, elements[node::2])
        finally:
            runs.unlink()
            os._exit(0)
print(100 + submission)
""")
    (folder / "squeue").write_text(f"""#!/bin/sh
for word; do job=${{word#--job=}}; done
for each in {folder}/runs.$job.*; do test -e $each && echo RUNNING; done
exit 0
""")
    for name in ("sbatch", "squeue"):
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def uses_a_cluster(folder):
    """Measurements as arrays of jobs for Slurm: those whose node goes away are submitted again, three times in all."""
    shared = folder / "shared"
    shared.mkdir()
    words = ["tune", DIGITS, "--launcher", "slurm", "--launcher-folder", shared, "--launcher-option=--exclusive", "--threads", 1]
    query = "SELECT status, count(*) FROM measurement GROUP BY status ORDER BY status"

    def arrays(path):
        submitted = [(path / f"submitted.{i}").read_text().split() for i in range(len(list(path.glob("submitted.*"))))]
        assert all("--requeue" in each and "--exclusive" in each for each in submitted), submitted
        return [word.removeprefix("--array=") for each in submitted for word in each if word.startswith("--array=")]

    # The node comes back for the third submission.
    database = folder / "back.db"
    run(*words, "--db", database, "--trials", 4, env=cluster(folder / "back", deaths=2))
    assert arrays(folder / "back") == ["0,1,2,3", "0,2", "0"], arrays(folder / "back")
    assert rows(database, query) == [("ok", 4)]
    assert not list(shared.iterdir()), "files of jobs are left"

    # It does not: its job is lost, as that is recorded, and not submitted again.
    database = folder / "lost.db"
    path = cluster(folder / "lost", deaths=99)
    run(*words, "--db", database, "--trials", 4, env=path)
    assert rows(database, query) == [("lost", 1), ("ok", 3)]
    assert rows(database, "SELECT detail FROM measurement WHERE status = 'lost'") == [("no result after 3 submissions",)]
    run(*words, "--db", database, "--trials", 1, env=cluster(folder / "well"))
    assert rows(database, query) == [("lost", 1), ("ok", 4)]

    # Results are kept by the machine that they came from.
    database = folder / "mixed.db"
    said = run(*words, "--db", database, "--trials", 4, env=cluster(folder / "mixed", is_mixed=True))
    assert "2 results are of machines another: they are kept apart; `--machine another` searches for those" in said, said
    kinds = dict(rows(database, "SELECT machine, count(*) FROM measurement WHERE status = 'ok' GROUP BY machine"))
    assert len(kinds) == 2 and set(kinds.values()) == {2} and kinds["another"] == 2, kinds
    assert {machine for machine, in rows(database, "SELECT fingerprint FROM machine")} == set(kinds)
    path = cluster(folder / "others", is_mixed=True)
    said = run(*words, "--db", database, "--trials", 2, "--machine", "another", "--json", env=path)
    found = json.loads(said[: said.rindex("}") + 1])
    assert sum(kernel["default_us"] > 0 for kernel in found["kernels"]) == 3, found
    assert "measurements run here" in run("tune", DIGITS, "--db", database, "--machine", "another", status=2)

    refuses = folder / "refuses"
    refuses.mkdir()
    (refuses / "sbatch").write_text("#!/bin/sh\necho no partition; exit 1\n")
    (refuses / "sbatch").chmod(0o755)
    said = run(*words, "--db", folder / "refused.db", env={"PATH": f"{refuses}:{os.environ['PATH']}"}, status=1)
    assert "`sbatch" in said and "ended with status 1: no partition" in said, said


def tells_bad_files(folder):
    """Databases and jobs that are none."""
    (folder / "text.db").write_text("no database, but a file that is long enough to have a header of one hundred bytes" * 9)
    damaged = folder / "damaged.db"
    content = bytearray((folder / "shared.db").read_bytes())
    content[len(content) // 3 :] = b"\xff" * (len(content) - len(content) // 3)
    damaged.write_bytes(content)
    foreign = folder / "foreign.db"
    change(foreign, ("CREATE TABLE t(x)",))
    old = folder / "old.db"
    old.write_bytes((folder / "shared.db").read_bytes())
    change(old, ("PRAGMA user_version = 99",))
    for database, words in {
        folder / "text.db": "not a database",
        damaged: "expected a database of `tenon tune`",
        foreign: "the file is a SQLite database of another program",
        old: "the database has version 99; expected 1",
    }.items():
        for command in (["tune", DIGITS, "--db", database], ["run", DIGITS, "--no-cache", "--tuned", database]):
            said = run(*command, status=1)
            assert f"error[TN0015]: {database}: " in said and words in said, said
    assert "error[TN0002]" in run("run", DIGITS, "--no-cache", "--tuned", folder / "absent.db", status=1)

    job = folder / "job.json"
    for text, words in {
        "{": "parse error",
        "[]": "is no object",
        '{"version": 1}': "has version 1; expected 2",
        '{"version": 2}': "has no `kernel`",
        '{"version": 2, "kernel": 3}': "has 3 as `kernel`, which is of another type",
    }.items():
        job.write_text(text)
        said = run("measure", job, "-o", folder / "result.json", status=1)
        assert f"error[TN0016]: {job}: " in said and words in said, said
    for option, words in {"--seconds": "--seconds 0 is not above 0", "--run-limit": "--run-limit 0 is not above 0"}.items():
        assert words in run("tune", DIGITS, "--db", folder / "x.db", option, 0, status=2)
    for option, words in {"--memory-limit": "--memory-limit 0 is below 1"}.items():
        assert words in run("tune", DIGITS, "--db", folder / "x.db", option, 0, status=2)
    assert "--max-peak -1 is below 0" in run("tune", DIGITS, "--db", folder / "x.db", "--max-peak=-1", status=2)
    assert "--trials -1 is below 0" in run("tune", DIGITS, "--db", folder / "x.db", "--trials=-1", status=2)
    assert "expected local or slurm" in run("tune", DIGITS, "--db", folder / "x.db", "--launcher", "cloud", status=2)
    assert "code of this target is not measured" in run("tune", DIGITS, "--db", folder / "x.db", "--target", "c", status=2)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for test in (survives_bad_plans, survives_bad_kernels, resumes, takes_several_writers, looks_at_the_network, is_deterministic, uses_a_cluster, tells_bad_files):
            test(folder)
            print(f"{test.__name__}: ok", flush=True)


main()
