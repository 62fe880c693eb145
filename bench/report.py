# SPDX-License-Identifier: Apache-2.0
"""Tables and the plot of what compare.py measured.

    report.py FILE.json [--plot FILE.svg] [--markdown]

Ratios are an engine's time over Tenon's in the same round: above 1 Tenon is faster. The best peer is the one with the least median
among those whose outputs agree with ONNX Runtime's to 1e-4 of 1 + the largest output; others are marked `!`.
"""

import argparse
import collections
import json
import math
import pathlib
import statistics

EXACT = 1e-4
TITLES = ["model", "threads", "engine", "median ms", "least ms", "ratio", "from..to", "of least", "from..to", "error", "load s", "MB", "GFLOP/s"]
COLOURS = {"onnxruntime": "#3b6fb6", "openvino": "#8f5fbf", "mnn": "#d9822b", "litert": "#2f9e6e", "ncnn": "#c23b4a", "inductor": "#7a7a7a"}


def grouped(measurements):
    """{(model, threads): {engine: {round: measurement}}}, in the order of the file."""
    groups = collections.defaultdict(lambda: collections.defaultdict(dict))
    for m in measurements:
        groups[m["model"], m["threads"]][m["engine"]][m["round"]] = m
    return groups


def ratio(theirs, mine, of):
    """(median, least, largest) of the rounds' ratios, or None where no round has both."""
    values = [theirs[i][of] / mine[i][of] for i in sorted(theirs.keys() & mine.keys())]
    return (statistics.median(values), min(values), max(values)) if values else None


def is_exact(rounds):
    return all("error" not in m or (m["error"] is not None and m["error"] <= EXACT) for m in rounds.values())


def median_of(rounds, of="median_ms"):
    return statistics.median(m[of] for m in rounds.values())


def best_peer(engines, first):
    """The exact peer with the least median, or None."""
    peers = [e for e in engines if e in COLOURS and is_exact(engines[e])]
    return min(peers, key=lambda e: median_of(engines[e])) if first in engines and peers else None


def rows(results, first, gflop):
    """A row for each engine that ran."""
    lines = []
    for (name, threads), engines in grouped(results).items():
        for engine, rounds in engines.items():
            line = [name, str(threads), f"{'' if engine in COLOURS or engine == 'baseline' else 'tenon '}{engine}{'' if is_exact(rounds) else '!'}",
                    f"{median_of(rounds):.3f}", f"{min(m['min_ms'] for m in rounds.values()):.3f}"]
            for of in ("median_ms", "min_ms"):
                value = ratio(rounds, engines[first], of) if engine != first and first in engines else None
                line += [f"{value[0]:.2f}", f"{value[1]:.2f}..{value[2]:.2f}"] if value else ["", ""]
            errors = [m["error"] for m in rounds.values() if "error" in m]
            line.append("" if not errors else "wrong" if None in errors else f"{max(errors):.0e}")
            line.append(f"{median_of(rounds, 'compile_ms') / 1e3:.2f}")
            line.append(f"{max(m.get('rss_mb', 0) for m in rounds.values()):.0f}")
            lines.append(line + [f"{gflop * 1e3 / median_of(rounds):.1f}" if gflop else ""])
    return lines


class Table:
    """Prints each row as it comes: a long run that is cut off has shown what it measured."""

    def __init__(self, first_width):
        self.widths = [first_width, 7, 14] + [max(len(title), 9) for title in TITLES[3:]]
        self.add(TITLES)
        print("-|-".join("-" * width for width in self.widths), flush=True)

    def add(self, cells):
        print(" | ".join(c.ljust(w) if i in (0, 2) else c.rjust(w) for i, (c, w) in enumerate(zip(cells, self.widths))), flush=True)


def head(record):
    lines = [f"{record['host']}, load average {record['load']:.1f}"]
    for threads, peak in record["machine"].items():
        lines.append(f"{threads} threads: {peak['fma_gflops']:.0f} GFLOP/s of FMAs, {peak['read_gb_s']:.1f} GB/s read")
    lines.append("times in ms, engines alternating; ratios: the engine's time over Tenon's, above 1 Tenon is faster; load: until the network")
    lines.append("can run, compilation included; MB: most resident memory; error: from ONNX Runtime, over 1 + the largest output, `!` above 1e-4")
    return "\n".join(lines) + "\n"


def summary(record, markdown=False):
    """Best peer over Tenon for each network, the geometric means, and why peers are missing."""
    first = record["first"]
    titles = ["model", "threads", "tenon ms", "best peer", "its ms", "ratio", "from..to", "of least", "from..to"]
    table, means = [titles], collections.defaultdict(list)
    for (name, threads), engines in grouped(record["measurements"]).items():
        best = best_peer(engines, first)
        if not best:
            continue
        of_median, of_least = (ratio(engines[best], engines[first], of) for of in ("median_ms", "min_ms"))
        means[threads].append((of_median[0], of_least[0]))
        table.append([name, str(threads), f"{median_of(engines[first]):.3f}", best, f"{median_of(engines[best]):.3f}",
                      f"{of_median[0]:.2f}", f"{of_median[1]:.2f}..{of_median[2]:.2f}",
                      f"{of_least[0]:.2f}", f"{of_least[1]:.2f}..{of_least[2]:.2f}"])
    for threads, values in sorted(means.items()):
        of_median, of_least = (statistics.geometric_mean(column) for column in zip(*values))
        table.append([f"geometric mean of {len(values)}", str(threads), "", "", "", f"{of_median:.2f}", "", f"{of_least:.2f}", ""])
    if len(table) == 1:
        return ""
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in table]
        lines.insert(1, "|" + " --- |" * len(titles))
        return "\n".join(lines)
    widths = [max(len(row[i]) for row in table) for i in range(len(titles))]
    lines = ["", *(" | ".join(c.ljust(w) for c, w in zip(row, widths)) for row in table), ""]
    reasons = collections.defaultdict(list)
    for p in record["problems"]:
        reasons[p["engine"], p["problem"]].append(p["model"])
    lines += [f"{engine}: {', '.join(models)}: {problem}" for (engine, problem), models in reasons.items()]
    return "\n".join(lines)


def plot(record):
    """An SVG: a group of bars for each network and thread count, a bar for each peer, its ratio on a logarithmic axis around 1."""
    first = record["first"]
    groups = [(key, {e: ratio(r, engines[first], "median_ms") for e, r in engines.items() if e in COLOURS}, engines)
              for key, engines in grouped(record["measurements"]).items() if first in engines]
    shown = [e for e in COLOURS if any(e in ratios for _, ratios, _ in groups)]
    bar, gap, left, top, height = 7, 10, 60, 40, 300
    step = bar * max(len(shown), 1) + gap
    width = left + step * len(groups) + 20
    low, high = math.log2(0.5), math.log2(16)

    def y(value):
        return top + height * (high - min(max(math.log2(value), low), high)) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top + height + 150}" font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="16">Time of each peer over Tenon\'s (above 1 Tenon is faster; pale: outputs differ): {record["host"]}</text>']
    for i, engine in enumerate(shown):
        out.append(f'<rect x="{left + 110 * i}" y="22" width="10" height="10" fill="{COLOURS[engine]}"/>'
                   f'<text x="{left + 14 + 110 * i}" y="31">{engine}</text>')
    for tick in (0.5, 1, 2, 4, 8, 16):
        out.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="{"#000" if tick == 1 else "#ddd"}"/>'
                   f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>')
    for i, ((name, threads), ratios, engines) in enumerate(groups):
        x = left + gap / 2 + step * i
        for k, engine in enumerate(shown):
            value = ratios.get(engine)
            if not value:
                continue
            a, b = sorted((y(value[0]), y(1)))
            middle = x + bar * k + bar / 2
            out.append(f'<rect x="{x + bar * k:.1f}" y="{a:.1f}" width="{bar - 1}" height="{max(b - a, 0.5):.1f}" fill="{COLOURS[engine]}"'
                       f'{"" if is_exact(engines[engine]) else " fill-opacity=" + chr(34) + "0.3" + chr(34)}>'
                       f'<title>{name}, {threads} threads, {engine}: {value[0]:.2f} ({value[1]:.2f} to {value[2]:.2f})</title></rect>'
                       f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{y(value[1]):.1f}" y2="{y(value[2]):.1f}" stroke="#333"/>')
        at = x + (step - gap) / 2
        out.append(f'<text transform="translate({at:.1f},{top + height + 12}) rotate(60)">{name}, {threads}</text>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE.svg")
    parser.add_argument("--markdown", action="store_true", help="the summary as a table of Markdown")
    args = parser.parse_args()
    record = json.loads(args.json.read_text())
    if not args.markdown:
        print(head(record))
        table = Table(max([len(m["model"]) for m in record["measurements"]], default=5))
        for row in rows(record["measurements"], record["first"], None):
            table.add(row)
    print(summary(record, args.markdown))
    if args.plot:
        args.plot.write_text(plot(record))


if __name__ == "__main__":
    main()
