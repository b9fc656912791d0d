#!/usr/bin/env python3
"""How often the judge is wrong: many judgements of sides whose difference is known, each in a process of its own.

    bench/judge_series.py MODEL --runs 40                      # the same plan on both sides: `boltbeam judge`
    bench/judge_series.py MODEL --runs 20 --slow 0.02          # B slowed inside its generated code: judge_slowed

Each run loads both sides anew and counts, also one that refused its measurement or failed. Prints one line a run and a
table at the end; --append keeps each run's JSON below a line that says of what series it is, and a series that was
stopped goes on from there. Best on a machine of one's own.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time


def command(arguments, seed):
    build = pathlib.Path(arguments.build)
    depth, budget = str(arguments.depth), arguments.budget
    if arguments.slow:
        return [build / "bench/judge_slowed", arguments.model, arguments.part, str(arguments.slow),
                budget.removesuffix("s"), str(seed), depth]
    return [build / "apps/boltbeam/boltbeam", "judge", arguments.model, "--no-record", "--confirm", "0", "-d", depth,
            "--budget", budget, "--seed", str(seed), "-o", "json"] + (["--swap-load"] if seed % 2 else [])


def one_run(arguments, seed):
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in command(arguments, seed)], capture_output=True, text=True, check=False)
    run = {"seed": seed, "seconds": time.monotonic() - begin}
    if not done.stdout.startswith("{"):
        return run | {"failed": f"exit status {done.returncode}: {done.stderr.strip()[-300:]}"}
    judged = json.loads(done.stdout)
    if not judged["depths"]:
        return run | {"failed": f"nothing was timed: {judged['reason']}"}
    return run | {"b": judged["b"], "verdict": judged["verdict"], "refused": judged["refused"],
                  "reason": judged["reason"]} | judged["depths"][0]


def change(ratio):
    """In per cent; none where every round was spoiled."""
    return "-" if ratio is None else f"{(ratio - 1) * 100:+.2f}"


def spoiled_share(run):
    return sum(run["spoiled_windows"].values()) / 4 / run["rounds"]


def row(run):
    if "failed" in run:
        return f"{run['seed']:3}  failed: {run['failed']}"
    ratio, low, high = (change(run[key]) for key in ("ratio", "ratio_low", "ratio_high"))
    spoiled = spoiled_share(run)
    outcome = "refused" if run["refused"] else run["outcome"]
    return (f"{run['seed']:3}  {outcome:20} {ratio:>6} % ({low} to {high})  "
            f"{run['rounds']:4} rounds, {spoiled:4.0%} of windows spoiled, {run['spent_s']:5.1f} s of {run['seconds']:5.1f} s  {run['b']}")


def summary(all_runs):
    runs = [run for run in all_runs if "failed" not in run]
    count = {name: sum(not run["refused"] and run["outcome"] == name for run in runs)
             for name in ("faster", "slower", "no difference shown")}
    lines = [
        "",
        f"{len(all_runs)} runs: {count['faster']} faster, {count['slower']} slower, "
        f"{count['no difference shown']} no difference shown ({sum(run['equivalent'] for run in runs)} equivalent), "
        f"{sum(run['refused'] for run in runs)} refused, {len(all_runs) - len(runs)} failed"]
    ratios = [run["ratio"] for run in runs if run["ratio"] is not None]
    if ratios:
        lines += [
            f"ratio: median {change(statistics.median(ratios))} %, {change(min(ratios))} to {change(max(ratios))} %",
            f"spoiled windows: median {statistics.median(map(spoiled_share, runs)):.1%}; "
            f"measured for {statistics.median(run['spent_s'] for run in runs):.1f} s, "
            f"in all {statistics.median(run['seconds'] for run in runs):.1f} s (medians)"]
    return "\n".join(lines)


def series_of(arguments):
    """What its runs have in common; another one's are not theirs."""
    return {key: getattr(arguments, key) for key in ("model", "slow", "part", "depth", "budget")}


def kept_runs(file, series):
    if not file.exists():
        file.write_text(json.dumps({"series": series}) + "\n")
        return []
    head, *runs = [json.loads(line) for line in file.read_text().splitlines()]
    if head.get("series") != series:
        sys.exit(f"{file}: runs of {head.get('series')}, not of {series}: name another file")
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--slow", type=float, default=0, help="share by which B's token is made longer; 0: the same plan")
    parser.add_argument("--part", default="norm", help="whose kernels are slowed")
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--append", help="a file of JSON lines, one a run")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further run after so many")
    arguments = parser.parse_args()
    kept = pathlib.Path(arguments.append) if arguments.append else None
    runs = kept_runs(kept, series_of(arguments)) if kept else []
    begin = time.monotonic()
    while len(runs) < arguments.runs and time.monotonic() - begin < arguments.seconds:
        runs.append(one_run(arguments, len(runs) + 1))
        print(row(runs[-1]), flush=True)
        if kept:
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(runs[-1]) + "\n")
    if runs:
        print(summary(runs))


if __name__ == "__main__":
    main()
