#!/usr/bin/env python3
"""One product on one thread with everything in the caches: ours and llama.cpp's, format by format, in turns.

  bench/hot_side_by_side.py [--rounds 5] [--shapes 4096x4096,4096x14336] [--formats Q4_K,IQ2_XS] [--ours-without avx512]

Ours is bench/hot_bench of a build with -DBOLTBEAM_BENCH=ON; llama.cpp's is test-backend-ops, which scripts/fetch-llama-cpp
fetches, with one line of --test-file for each product. Both quantise the column and multiply; neither splits the work.
A round times a format with both, and every other round in the other order. The ratio is theirs over ours: above 1 ours
is faster. Shapes are ROWSxCOLUMNS. The last-level cache should hold the table; --cpu pins both. Standard library only.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from side_by_side import SEED, bootstrap, cpu_model

ROOT = Path(__file__).resolve().parent.parent
MATMUL = 29  # the operation's number in lines of test files


def find_ours():
    built = [ROOT / "build" / name / "bench/hot_bench" for name in ("bench", "release", "dev")]
    for candidate in [os.environ.get("HOT_BENCH"), *map(str, built)]:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    sys.exit("hot_side_by_side: no hot_bench: scripts/build bench hot_bench")


def find_theirs():
    done = subprocess.run([str(ROOT / "scripts/fetch-llama-cpp")], capture_output=True, text=True, check=False)
    program = Path(done.stdout.strip()) / "test-backend-ops"
    if done.returncode != 0 or not program.is_file():
        sys.exit(f"hot_side_by_side: no test-backend-ops: {done.stderr.strip()[-300:]}")
    return str(program)


class Ours:
    def __init__(self, program, without):
        flags = [f"--without={prefix}" for prefix in without]
        self.process = subprocess.Popen([program, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def formats(self):
        found, line = [], self.ask("formats")
        while line:
            name, *numbers = line.split()
            found.append((name, *map(int, numbers)))
            line = self.process.stdout.readline().strip()
        return found

    def microseconds(self, name, rows, cols):
        answer = self.ask(f"{name} {rows} {cols}")
        if answer.startswith("refused"):
            sys.exit(f"hot_side_by_side: {name}: {answer}")
        return float(answer.split()[0])


def test_line(kind, elements, block_bytes, rows, cols):
    """Result, parameters, then both sources: type, sizes, strides."""
    row = cols // elements * block_bytes
    numbers = [MATMUL, 0, rows, 1, 1, 1, 16, *[0] * 16, 2,
               kind, cols, rows, 1, 1, block_bytes, row, row * rows, row * rows,
               0, cols, 1, 1, 1, 4, 4 * cols, 4 * cols, 4 * cols]
    return " ".join(map(str, numbers)) + " hot\n"


def their_microseconds(program, line):
    """None when it does not have the format."""
    with tempfile.NamedTemporaryFile("w", suffix=".ops") as lines:
        lines.write(line)
        lines.flush()
        command = [program, "perf", "-b", "CPU", "--test-file", lines.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"([0-9.]+) us/run", done.stdout)
    return float(found.group(1)) if found else None


def compare(arguments, ours, theirs, format_row, shape):
    name, kind, elements, block_bytes = format_row
    rows, cols = map(int, shape.split("x"))
    line = test_line(kind, elements, block_bytes, rows, cols)
    pairs = []
    for index in range(arguments.rounds):
        pair = {}
        for side in ("ours", "theirs") if index % 2 == 0 else ("theirs", "ours"):
            pair[side] = (ours.microseconds(name, rows, cols) if side == "ours" else their_microseconds(theirs, line))
            if pair[side] is None:
                return None
        pairs.append(pair)
    ratio, low, high = bootstrap([math.log(pair["theirs"] / pair["ours"]) for pair in pairs])
    return {"format": name, "shape": shape, "ours_us": [pair["ours"] for pair in pairs],
            "theirs_us": [pair["theirs"] for pair in pairs], "ratio": ratio, "ratio_low": low, "ratio_high": high}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", default="4096x4096,4096x14336")
    parser.add_argument("--formats", default="", help="by comma; all that both have unless given")
    parser.add_argument("--ours-without", default="", help="instruction sets that ours must not use, by comma")
    parser.add_argument("--cpu", type=int, help="run both on this CPU")
    parser.add_argument("--json", help="also write all numbers to this file")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or not all(re.fullmatch(r"[0-9]+x[0-9]+", shape) for shape in arguments.shapes.split(",")):
        sys.exit("hot_side_by_side: at least 1 round, and shapes as ROWSxCOLUMNS")
    if arguments.cpu is not None:
        os.sched_setaffinity(0, {arguments.cpu})
    theirs = find_theirs()
    ours = Ours(find_ours(), [prefix for prefix in arguments.ours_without.split(",") if prefix])
    wanted = [name for name in arguments.formats.split(",") if name]
    results = []
    for format_row in ours.formats():
        for shape in arguments.shapes.split(","):
            if wanted and format_row[0] not in wanted:
                continue
            result = compare(arguments, ours, theirs, format_row, shape)
            if result is None:
                print(f"{format_row[0]}: llama.cpp does not have it", file=sys.stderr)
                break
            results.append(result)
            print(f"{result['format']} {shape}: {result['ratio']:.2f}", file=sys.stderr)
    print(f"{cpu_model()}, one thread, {arguments.rounds} interleaved rounds, medians, 95 % bootstrap interval\n")
    print("| format | shape | ours us | llama.cpp us | ratio | interval |\n|-|-|-:|-:|-:|-:|")
    for result in results:
        print(f"| {result['format']} | {result['shape']} | {statistics.median(result['ours_us']):.0f} | "
              f"{statistics.median(result['theirs_us']):.0f} | {result['ratio']:.2f} | "
              f"{result['ratio_low']:.2f} to {result['ratio_high']:.2f} |")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"cpu": cpu_model(), "seed": SEED, "results": results}, indent=2) + "\n",
                                        encoding="utf-8")
    if any(result["ratio"] < 1 for result in results):
        sys.exit(4)


if __name__ == "__main__":
    main()
