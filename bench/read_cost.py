#!/usr/bin/env python3
"""What inspect and bound cost on a file: wall time and peak memory, the median and the least of many processes.

  bench/read_cost.py MODEL.gguf [--runs 21]

boltbeam is BOLTBEAM, or the one in build/ or on PATH. Standard library only.
"""
import argparse
import os
import statistics
import sys
import time

from side_by_side import find_boltbeam


def cost(command):
    """Milliseconds of wall time and megabytes of peak resident memory of one process."""
    begin = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"read_cost: {' '.join(command)} failed")
    return wall * 1e3, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=21)
    arguments = parser.parse_args()
    boltbeam = find_boltbeam()
    print("| command | median ms | least ms | peak MB |\n|---|---:|---:|---:|")
    for name, flags in {"inspect": [], "bound": ["--chip", "rtx-5090"]}.items():
        costs = [cost([boltbeam, name, arguments.model, *flags]) for _ in range(arguments.runs)]
        walls = [wall for wall, _ in costs]
        print(f"| {name} | {statistics.median(walls):.1f} | {min(walls):.1f} | {max(peak for _, peak in costs):.1f} |")


if __name__ == "__main__":
    main()
