#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of the core: seeds one fault at a time, and tells whether the tests see it.

    scripts/mutants.py [--build build] [--only WORD]... [--first N] [--seconds 60] [--list]

Each mutant replaces one text, which must stand once in its file, in the working tree (which must be clean: the file is restored
afterwards), builds the tests of its room and runs them; where they pass, random programs run for --seconds. A mutant that no test
sees survives: a test is missing. First all of these run once without a mutant: one that fails then would kill every mutant. Status 1
where that happens, where more than two mutants survive, or where a text is no longer found or does not compile.
"""

import argparse
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

# A program that a mutant keeps from ending has used so much of a processor, whatever runs beside it; and may take so long at all.
PROGRAM_CPU_SECONDS, WALL_SECONDS = 120, 3600
ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "tenon"

# What tests a room: programs of build/bin, in the order in which they are tried, then random programs.
ROOMS = {
    "arith": (["test_arith", "test_tir"], ["fuzz_tir"]),
    "tir": (["test_tir", "golden", "test_interp"], ["fuzz_tir"]),
    "graph": (["test_graph", "test_interp", "golden", "test_driver"], ["fuzz_graphs"]),
    "memory": (["test_memory"], []),
}
RANDOM = {
    "fuzz_tir": ["--kind", "schedules", "--seed", "1"],
    "fuzz_graphs": ["--seed", "1", "--targets", "native", "--reduce-seconds", "0"],
}

# (room, file below src/tenon/, what stands there, what is put there)
MUTANTS = [
    # bounds
    ("arith", "arith/bounds.cpp", "divide_limit(a.max, least) : -1;", "divide_limit(a.max, least) : -2;"),
    ("arith", "arith/bounds.cpp", "std::max(b.max - 1, int64_t{0})", "std::max(b.max - 2, int64_t{0})"),
    ("arith", "arith/bounds.cpp", "if (a.min >= 0) out.max = std::min(out.max, a.max);",
     "if (a.max >= 0) out.max = std::min(out.max, a.max);"),
    ("arith", "arith/bounds.cpp", "if (power % 2 == 0) range", "if (power % 2 == 1) range"),
    ("arith", "arith/bounds.cpp", "return ConstBound{std::min(x.min, y.min), std::max(x.max, y.max)};",
     "return ConstBound{std::min(x.min, y.min), std::min(x.max, y.max)};"),
    ("arith", "arith/bounds.cpp", "{x.min >= 0 ? 0 : 1 - *c,", "{x.min >= 0 ? 0 : 2 - *c,"),
    ("arith", "arith/bounds.cpp", "std::max(std::abs(x.min), std::abs(x.max))", "std::abs(x.max)"),
    ("arith", "arith/bounds.cpp", "(term.coeff > 0) == is_min;", "(term.coeff > 0) != is_min;"),
    ("arith", "arith/bounds.cpp", "if (x.min >= 0) range = intersect(range, {0, x.max});",
     "range = intersect(range, {0, x.max});"),
    ("arith", "arith/bounds.cpp", "return intersect(range, {x.min >> n,", "return intersect(range, {(x.min >> n) + 1,"),
    # simplifier rules
    ("arith", "arith/simplify.cpp", "b == 0.0 && !std::signbit(*b)", "b == 0.0"),
    ("arith", "arith/simplify.cpp", "if (!nonnegative(a, 4) || !nonnegative(b, 4)) break;", "if (!nonnegative(b, 4)) break;"),
    ("arith", "arith/simplify.cpp", "from.bits <= dtype.bits : from.bits < dtype.bits);",
     "from.bits >= dtype.bits : from.bits < dtype.bits);"),
    ("arith", "arith/simplify.cpp", "if (c != -1 && a.constant % c == 0 &&", "if (c != -1 &&"),
    ("arith", "arith/quotient.cpp", "if (unit == 1) break;", "if (unit == 2) break;"),
    ("arith", "arith/quotient.cpp", "if (k != floor_div(range.max, unit)) continue;", ""),
    ("arith", "arith/quotient.cpp", "inner.kind == AtomKind::kFloorMod && inner.b.is_constant() && r.constant == 0 &&",
     "inner.kind == AtomKind::kFloorMod && inner.b.is_constant() &&"),
    ("arith", "arith/quotient.cpp", "if (Int128{term.coeff} * inner->b.constant % c != 0) continue;", ""),
    ("arith", "arith/condition.cpp", "if (nonnegative(d, budget)) return false;", "if (nonnegative(add(d, Poly(1)), budget)) return false;"),
    ("arith", "arith/condition.cpp", "if (positive(d) || positive(negate(d))) return false;", "if (nonnegative(d, budget)) return false;"),
    ("arith", "arith/iter_map.cpp", "if (kind_ == MapKind::kBijective) throw NotUnderstood{};", ""),
    ("arith", "arith/int_set.cpp", "if (term.coeff < 0) std::swap(part.low, part.high);", ""),
    # legality of schedule primitives
    ("tir", "tir/schedule/loops.cpp", "if (!analyzer.proves_equal(node->extent, total))\n    body", "if (false)\n    body"),
    ("tir", "tir/schedule/loops.cpp", "(kind == IterKind::kScan || kind == IterKind::kOpaque) &&",
     "kind == IterKind::kOpaque &&"),
    ("tir", "tir/schedule/loops.cpp", "analyzer.simplify(range->max - range->min + 1)};",
     "analyzer.simplify(range->max - range->min)};"),
    ("tir", "tir/schedule/compute_at.cpp", "check_inputs_are_there(root(), *realize, at, axes, analyzer);",
     "if (false) check_inputs_are_there(root(), *realize, at, axes, analyzer);"),
    ("tir", "tir/schedule/compute_at.cpp", "check_runs_all(*realize, at, axes, analyzer);",
     "if (false) check_runs_all(*realize, at, axes, analyzer);"),
    ("tir", "tir/schedule/compute_at.cpp", "all = analyzer.proves_less_equal((*run)[i].min, domains[i].min) &&",
     "all = (*run)[i].min &&"),
    ("tir", "tir/schedule/reduction.cpp", "Expr(iter.var) < end, combiner->value", "Expr(iter.var) <= end, combiner->value"),
    ("tir", "tir/schedule/padding.cpp", "if (!combiner || combiner->op != BinaryOp::kAdd || !starts_at_zero ||",
     "if (!combiner || combiner->op != BinaryOp::kAdd || (false && !starts_at_zero) ||"),
    ("tir", "tir/schedule/padding.cpp", "const bool repeated = axis && std::count(axes->begin(), axes->end(), axis) > 1;",
     "const bool repeated = axis && std::count(axes->begin(), axes->end(), axis) > 2;"),
    ("tir", "tir/schedule/coverage.cpp", "if ((around_.empty() || uses(loop.extent, around_)) &&", "if (false &&"),
    ("tir", "tir/schedule/coverage.cpp", "if (!strict) difference = difference - 1;",
     "if (strict) difference = difference - 1;"),
    ("tir", "tir/schedule/in_place.cpp", "if (store->buffer.same_as(input_)) is_understood_ = false;", ""),
    # rules of the graph
    ("graph", "graph/transforms/fold_constants.cpp", "!call->op->pure) return std::nullopt;", "false) return std::nullopt;"),
    ("graph", "graph/transforms/fold_batchnorm.cpp",
     "if (!is_used_once(norm.args[0]) || !is_used_once(match[product_])) return {};", ""),
    ("graph", "graph/transforms/fold_batchnorm.cpp",
     'if (op == "matmul") return axis == ndim - 1 && tensor_type(args[1])->ndim == 2;', 'if (op == "matmul") return true;'),
    ("graph", "graph/transforms/simplify_graph.cpp", "axis += axis < 0 ? ndim : 0;", "axis += axis < 0 ? ndim - 1 : 0;"),
    ("graph", "graph/transforms/simplify_graph.cpp", '{{"axis", std::vector<int64_t>{-1}}, {"keepdims", true}}', '{{"keepdims", true}}'),
    ("graph", "graph/transforms/simplify_graph.cpp", "return is_of_type(m[x], type_of(call)) ? power(", "return true ? power("),
    ("graph", "graph/patterns/rewriter.cpp", "if (given.empty() || !given[0]) return false;", ""),
    # the checker of memory plans
    ("memory", "memory/check_plan.cpp", "if (offset + buffers[below].bytes > plan.offsets[i]) return overlap(below, i);",
     "if (offset > plan.offsets[i]) return overlap(below, i);"),
    ("memory", "memory/check_plan.cpp", "if (end > peak)", "if (end > peak + b.bytes)"),
]


def run(command, cpu_seconds=resource.RLIM_INFINITY):
    """Status and the end of the output."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=WALL_SECONDS, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL, ""
    return done.returncode, done.stdout


class Broken(Exception):
    """A mutant that does not compile is none: no test saw it."""


def verdict(options, programs, random):
    """Which program fails with what stands in the tree, or None. A later one is not even built where an earlier one fails."""
    for program in programs + random:
        # Random programs are left out of a build without the back ends that they need.
        if program in random and not (options.build / "bin" / program).exists():
            continue
        status, said = run(["cmake", "--build", options.build, "--target", program])
        if status != 0:
            raise Broken(said[-2000:])
        command = [options.build / "bin" / program]
        if program in random:
            command += RANDOM[program] + ["--seconds", str(options.seconds), "--out", options.build / "mutants"]
        else:
            command += ["--gtest_brief=1", "--gtest_fail_fast"]
        status, said = run(command, PROGRAM_CPU_SECONDS + (options.seconds if program in random else 0))
        failed = re.search(r"\[  FAILED  \] ([^\s,]+)", said)
        if failed:
            return f"{program} {failed[1]}"
        if status < 0:
            return f"{program}, which ended with {signal.Signals(-status).name}"
        if status != 0:
            return program
    return None


def passes_unchanged(options, chosen):
    """Whether the tests, each once, pass on the tree as it is."""
    rooms = {m[0] for m in chosen}
    programs = list(dict.fromkeys(p for room, (tests, _) in ROOMS.items() if room in rooms for p in tests))
    random = list(dict.fromkeys(p for room, (_, tests) in ROOMS.items() if room in rooms for p in tests))
    try:
        by = verdict(options, programs, random)
    except Broken as error:
        by = f"the build\n{error}"
    print(f"without a mutant FAILS: {by}" if by else f"without a mutant all pass: {', '.join(programs + random)}", flush=True)
    return by is None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", action="append", help="mutants with this word in their file or text; may be repeated")
    parser.add_argument("--seconds", type=int, default=60, help="of random programs for each mutant")
    parser.add_argument("--first", type=int, default=1, help="number of the first to try, of those chosen")
    parser.add_argument("--list", action="store_true", help="only check that each text stands once")
    options = parser.parse_args()
    options.build = options.build.resolve()

    if not options.list and subprocess.run(["git", "diff", "--quiet", "--", "src"], cwd=ROOT).returncode != 0:
        sys.exit("src/ has changes that are not committed: mutants are put into these files and taken out again")
    chosen = [m for m in MUTANTS if not options.only or any(w in " ".join(m) for w in options.only)]
    chosen = chosen[options.first - 1:]
    if not options.list and not passes_unchanged(options, chosen):
        return 1
    lost, survivors, killed = [], [], 0
    for number, (room, name, old, new) in enumerate(chosen, options.first):
        path = SRC / name
        text = path.read_text()
        if text.count(old) != 1:
            lost.append(f"{name}: {old} stands {text.count(old)} times")
            print(f"{number:2} {name}: LOST: {old}", flush=True)
            continue
        if options.list:
            continue
        start = time.monotonic()
        try:
            path.write_text(text.replace(old, new))
            by = verdict(options, *ROOMS[room])
        except Broken as error:
            lost.append(f"{name}: {old} does not compile")
            print(f"{number:2} {name}: DOES NOT COMPILE: {old}\n{error}", flush=True)
            continue
        finally:
            path.write_text(text)
        killed += by is not None
        if by is None:
            survivors.append(f"{name}: {old}")
        print(f"{number:2} {name}: {'killed by ' + by if by else 'SURVIVED'} ({time.monotonic() - start:.0f} s)  {old}", flush=True)
    print(f"{len(chosen)} mutants: {killed} killed, {len(survivors)} survived, {len(lost)} lost")
    return 1 if lost or len(survivors) > 2 else 0


if __name__ == "__main__":
    sys.exit(main())
