#!/usr/bin/env python3
"""Decodes with boltbeam and with llama-bench in turns on the same file, and says which is faster, by how much, and how
far both are from the limit of the memory as boltbeam's audit measures it in the same run.

  bench/side_by_side.py MODEL.gguf [--pairs 9] [--tokens 32] [--threads 2] [--depths 0,512] [--audit-seconds 3]
                        [--isa avx2] [--json FILE]

boltbeam is BOLTBEAM, or the one in build/ or on PATH; llama-bench is LLAMA_BIN (a folder or the program), or on PATH.
Every pair is two fresh processes, one of each program, in the order A B, then B A. The limit is audited before the
first pair and after every pair; a pair between whose audits it moved by more than a tenth counts for the ratio, and for
no share. FILE has every pair as soon as it was measured. Standard library only.
"""
import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

SEED = 20261129
RESAMPLES = 10_000
MOVED = 0.10  # of the limit, between the audits before and after a pair


def find_boltbeam():
    root = Path(__file__).resolve().parent.parent
    built = [str(path) for name in ("release", "ci", "dev") for path in [root / "build" / name / "apps/boltbeam/boltbeam"]]
    for candidate in [os.environ.get("BOLTBEAM"), *built, shutil.which("boltbeam")]:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    sys.exit("side_by_side: no boltbeam: build it, or set BOLTBEAM to the program")


def find_llama_bench():
    given = os.environ.get("LLAMA_BIN")
    for candidate in [given, given and os.path.join(given, "llama-bench"), shutil.which("llama-bench")]:
        if candidate and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    sys.exit("side_by_side: no llama-bench: put it on PATH, or set LLAMA_BIN to its folder")


REFUSED = 3  # boltbeam's exit status for a measurement that it does not believe


def run_json(command):
    """Standard output as JSON; None when boltbeam refused what it measured and has nothing to show. An audit that does
    not tie out exits 3 too and is still read: it says so itself."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        message = f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()[-300:]}"
        if done.returncode != REFUSED:
            sys.exit(f"side_by_side: {message}")
        print(f"side_by_side: left out: {message}", file=sys.stderr)
        return None


def rate(program, arguments, depth):
    """Tokens per second of one process; both programs speak the same flags."""
    flags = ["-p", "0", "-n", str(arguments.tokens), "-d", str(depth), "-r", "2", "-t", str(arguments.threads)]
    tests = run_json([*program, *flags, "-o", "json"])
    return tests[0]["avg_ts"] if tests else None


def audit(boltbeam, arguments, depth):
    command = [*boltbeam, "audit", arguments.model, "-t", str(arguments.threads), "--depth", str(depth)]
    command += ["--isa", arguments.isa] if arguments.isa else []
    account = run_json([*command, "--seconds", str(arguments.audit_seconds), "-o", "json"])
    return account and account["depths"][0]


def median_of(accounts, field):
    """nan when every audit was refused."""
    return statistics.median([account[field] for account in accounts] or [math.nan])


def bootstrap(logs):
    """The median of log-ratios and its 95 % interval, as factors."""
    draw = random.Random(SEED)
    medians = sorted(statistics.median(draw.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]
    return [math.exp(value) for value in (statistics.median(logs), low, high)]


def limit_of(before, after):
    """Of a pair between two audits; nan where it moved, or was not believed."""
    if not before or not after:
        return math.nan
    ends = [before["limit_tok_s"], after["limit_tok_s"]]
    return statistics.mean(ends) if max(ends) / min(ends) < 1 + MOVED else math.nan


def summary(depth, pairs, accounts):
    ratio, low, high = bootstrap([math.log(pair["ours"] / pair["theirs"]) for pair in pairs])
    steady = [pair for pair in pairs if not math.isnan(pair["limit"])]
    share = {name: statistics.median([pair[name] / pair["limit"] for pair in steady] or [math.nan])
             for name in ("ours", "theirs")}
    return {"depth": depth, "ratio": ratio, "ratio_low": low, "ratio_high": high, "pairs": pairs,
            "ours_tok_s": statistics.median(pair["ours"] for pair in pairs),
            "theirs_tok_s": statistics.median(pair["theirs"] for pair in pairs),
            "faster_pairs": sum(pair["ours"] > pair["theirs"] for pair in pairs), "steady_pairs": len(steady),
            "limit_tok_s": median_of(accounts, "limit_tok_s"),
            "read_bandwidth_gb_s": median_of(accounts, "read_bandwidth_gb_s"), "audits": len(accounts),
            "share_of_limit": share["ours"], "theirs_share_of_limit": share["theirs"],
            "audited_share_of_limit": median_of(accounts, "share_of_limit")}


def compare(arguments, boltbeam, llama_bench, depth, keep):
    """keep: called with what is known after each pair."""
    programs = {"ours": [boltbeam, "bench", "-m", arguments.model], "theirs": [llama_bench, "-m", arguments.model]}
    programs["ours"] += ["--isa", arguments.isa] if arguments.isa else []
    pairs, refused = [], 0
    audits = [audit([boltbeam], arguments, depth)]
    while len(pairs) < arguments.pairs:
        rates = {}
        for name in ("ours", "theirs") if len(pairs) % 2 == 0 else ("theirs", "ours"):
            rates[name] = rate(programs[name], arguments, depth)
        audits.append(audit([boltbeam], arguments, depth))
        if rates["ours"] is None:
            refused += 1  # by its own checks: the pair is taken again
            if refused > arguments.pairs:
                sys.exit(f"side_by_side: {refused} runs of boltbeam were refused: a quieter machine")
            continue
        rates["limit"] = limit_of(*audits[-2:])
        rates["audited_share_of_limit"] = audits[-1]["share_of_limit"] if audits[-1] else math.nan
        pairs.append(rates)
        limit = "moved" if math.isnan(rates["limit"]) else f"{rates['limit']:.2f}"
        print(f"depth {depth}, pair {len(pairs)} of {arguments.pairs}: {rates['ours']:.2f} and {rates['theirs']:.2f} "
              f"tok/s, limit {limit}, audited {rates['audited_share_of_limit']:.1%} of it", file=sys.stderr)
        result = summary(depth, pairs, [account for account in audits if account])
        keep(result)
    return result


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--depths", default="0,512")
    parser.add_argument("--audit-seconds", type=float, default=3)
    parser.add_argument("--isa", help="hold boltbeam to this instruction set: avx2, avx512, ...")
    parser.add_argument("--json", help="also write all numbers to this file, after each pair")
    arguments = parser.parse_args()
    if arguments.pairs < 1 or arguments.tokens < 1 or arguments.threads < 1:
        sys.exit("side_by_side: --pairs, --tokens and --threads are at least 1")
    boltbeam, llama_bench = find_boltbeam(), find_llama_bench()
    results = []

    def keep(latest):
        if arguments.json:
            document = {"cpu": cpu_model(), "model": arguments.model, "seed": SEED, "isa": arguments.isa,
                        "results": [*results, latest]}
            Path(arguments.json).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    for depth in arguments.depths.split(","):
        results.append(compare(arguments, boltbeam, llama_bench, int(depth), keep))
    held = f", held to {arguments.isa}" if arguments.isa else ""
    print(f"{arguments.model} on {cpu_model()}{held}, {arguments.threads} threads; {arguments.pairs} interleaved pairs of "
          f"processes, medians, 95 % bootstrap interval (seed {SEED})\n")
    print("| depth | boltbeam tok/s | llama-bench tok/s | ratio | interval | faster | limit tok/s | ours of it | theirs "
          "| audited |")
    print("| ----: | -------------: | ----------------: | ----: | -------: | -----: | ----------: | ---------: | -----: "
          "| ------: |")
    for result in results:
        print(f"| {result['depth']} | {result['ours_tok_s']:.2f} | "
              f"{result['theirs_tok_s']:.2f} | {result['ratio']:.3f} | "
              f"{result['ratio_low']:.3f} to {result['ratio_high']:.3f} | {result['faster_pairs']} of {arguments.pairs} | "
              f"{result['limit_tok_s']:.2f} | "
              f"{result['share_of_limit']:.1%} | {result['theirs_share_of_limit']:.1%} | "
              f"{result['audited_share_of_limit']:.1%} |")
    steady = ", ".join(f"{result['steady_pairs']} of {len(result['pairs'])}" for result in results)
    print(f"\nOurs and theirs of the limit: medians over the pairs during which it kept still ({steady}), of a program's "
          "rate over the mean of the audits before and after. Audited: our token against memory measured in the same "
          "rounds, which a drift does not touch.")


if __name__ == "__main__":
    main()
