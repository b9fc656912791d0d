#!/usr/bin/env bash
# Is what boltbeam computes right? Compares it with llama.cpp over more than 2,000 positions of a text.
#
#   scripts/gate-quality.sh MODEL.gguf [TEXT]
#
#   F32        the file dequantised once, a 32-bit KV cache in both programs:
#              mean KL divergence <= 2e-5, and every miss within 0.02 in log-probability
#   quantised  the file itself, against the same F32 logits, beside llama.cpp's own distance from them:
#              mean KL <= 1.25 times llama.cpp's, top-1 agreement at most 2.5 points below its
#   q8_0 cache the F32 file, keys and values in 8-bit codes in both programs, against the same logits:
#              mean KL <= 1.25 times llama.cpp's
#
# Each in batches and token by token. Exit status: 0 all pass, 1 something does not or a program failed, 2 usage.
# TEXT: tests/data/prose.txt. Settings from the environment:
#   BOLTBEAM       the program (build/release, build/dev or PATH)
#   LLAMA_BIN      the folder of llama.cpp's tools (PATH; scripts/fetch-llama-cpp fetches them)
#   GATE_THREADS   threads of both programs (2)
#   GATE_CONTEXT   tokens of a chunk (512); above a model's sliding window, so that the window counts
#   GATE_CHUNKS    chunks, 255 positions each if they have 512 tokens (9)
#   GATE_FOLDER    where the F32 file and the logits are kept, to be used again (a temporary folder, removed)
#   GATE_ONLY      f32: only the F32 gate, for a file that is F32 already or to save time
#   GATE_MAX_KL    the F32 gate's bound on mean KL (2e-5)
#   GATE_MAX_GAP   its bound on the gap of a miss (0.02)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() {
  echo "gate-quality: $*" >&2
  exit 1
}

usage() {
  echo "gate-quality: $*; scripts/gate-quality.sh MODEL.gguf [TEXT]" >&2
  exit 2
}

[[ $# -ge 1 && $# -le 2 ]] || usage "expected one model and perhaps a text"
[[ -r $1 ]] || usage "$1 can't be read"
model=$(realpath "$1")
text=$(realpath "${2:-$here/tests/data/prose.txt}")
[[ -r $text ]] || usage "$text can't be read"
threads=${GATE_THREADS:-2} context=${GATE_CONTEXT:-512} chunks=${GATE_CHUNKS:-9}
scored=$((context - 1 - context / 2)) # positions of a chunk

llama() { # name: the path of one of llama.cpp's tools
  local found
  if [[ -n ${LLAMA_BIN:-} ]]; then found=$LLAMA_BIN/$1; else found=$(command -v "$1" || true); fi
  [[ -x $found ]] || fail "$1 is missing: set LLAMA_BIN to the folder of llama.cpp's tools (scripts/fetch-llama-cpp)"
  echo "$found"
}
quantize=$(llama llama-quantize) perplexity=$(llama llama-perplexity)

boltbeam=${BOLTBEAM:-}
for candidate in "$here/build/release/apps/boltbeam/boltbeam" "$here/build/dev/apps/boltbeam/boltbeam" "$(command -v boltbeam || true)"; do
  [[ -n $boltbeam || ! -x $candidate ]] || boltbeam=$candidate
done
[[ -x $boltbeam ]] || fail "boltbeam is missing: build it, or set BOLTBEAM to the program"

folder=${GATE_FOLDER:-}
if [[ -z $folder ]]; then
  folder=$(mktemp -d "${TMPDIR:-/tmp}/gate-quality-XXXXXX")
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
folder=$(realpath "$folder")

step() { # what, command...: runs it, shows its output only when it fails
  echo "gate-quality: $1" >&2
  shift
  "$@" >"$folder/log" 2>&1 </dev/null || {
    tail -n 5 "$folder/log" >&2
    fail "this failed: $*"
  }
}

f32=$folder/f32.gguf base=$folder/base.logits
if [[ ! -e $f32 ]]; then
  step "dequantising to F32" "$quantize" --allow-requantize "$model" "$folder/f32.part" F32
  mv "$folder/f32.part" "$f32"
fi
if [[ ! -e $base ]]; then
  step "llama.cpp's logits of the F32 file" "$perplexity" -m "$f32" -f "$text" -c "$context" -t "$threads" --chunks "$chunks" \
    -ctk f32 -ctv f32 -fa off --kl-divergence-base "$folder/base.part"
  mv "$folder/base.part" "$base"
fi

ours() { # result, model, flag...
  local result=$1 file=$2
  shift 2
  step "boltbeam on $(basename "$file")${*:+ with $*}" "$boltbeam" perplexity "$file" -t "$threads" \
    --chunks "$chunks" --kl-divergence-base "$base" -o json --out "$folder/$result.json" "$@"
}
ours f32-batches "$f32" -ctk f32 -ctv f32
ours f32-tokens "$f32" -ctk f32 -ctv f32 --token-by-token
# llama-perplexity prints from a thread of its own and may end before that has caught up, on a busy machine nearly always:
# then its last lines are missing. Each row of its table is a running mean, so the last row that covers 2,000 positions
# will do; the statistics below the table are better. Writes "KL TOP1 CHUNKS" to RESULT.kl.
theirs() { # model, result, flag...
  local try in_base file=$1 result=$2
  shift 2
  in_base=$(od -An -td4 -j16 -N4 "$base" | tr -d ' ')
  for try in 1 2 3 4 5; do
    step "llama.cpp on $(basename "$file")${*:+ with $*}" "$perplexity" -m "$file" "$@" -c "$context" -t "$threads" --kl-divergence \
      --kl-divergence-base "$base"
    mv "$folder/log" "$folder/llama.log"
    awk -v chunks="$in_base" -v scored="$scored" '/Mean +KLD:/ { kl = $3 } /Same top p:/ { top = $4 }
      $1 ~ /^[0-9]+$/ && NF >= 17 && $1 * scored >= 2000 { row = $8 " " $15 " " $1 }
      END { if (kl != "" && top != "") print kl, top, chunks; else if (row != "") print row }' \
      "$folder/llama.log" >"$folder/$result.kl"
    [[ ! -s $folder/$result.kl ]] || return 0
  done
  fail "llama-perplexity printed no mean KLD and no same top p in $try runs: another version?"
}

if [[ ${GATE_ONLY:-} != f32 ]]; then
  theirs "$model" llama
  theirs "$f32" llama-cache -ctk q8_0 -ctv q8_0 -fa on
  ours cache-batches "$f32" -ctk q8_0 -ctv q8_0
  ours cache-tokens "$f32" -ctk q8_0 -ctv q8_0 --token-by-token
  ours quantised-batches "$model"
  ours quantised-tokens "$model" --token-by-token
fi

python3 - "$folder" "${GATE_ONLY:-}" "${GATE_MAX_KL:-2e-5}" "${GATE_MAX_GAP:-0.02}" "$scored" <<'P'
import json, pathlib, sys

folder, only = pathlib.Path(sys.argv[1]), sys.argv[2]
max_kl, max_gap, scored = float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
failed = False

def verdict(holds):
    global failed
    failed = failed or not holds
    return "pass" if holds else "FAIL"

def ours(name):
    return json.loads((folder / f"{name}.json").read_text())

def row(*cells):
    print("{:<10} {:<16} {:>7} {:>11} {:>10} {:>8} {:>9} {:>7}  {}".format(*cells).rstrip())

row("gate", "computed", "tokens", "mean KL", "largest", "top-1 %", "misses", "gap", "verdict")
for name, how in (("f32-batches", "in batches"), ("f32-tokens", "token by token")):
    r = ours(name)
    gap = max((m["gap"] for m in r["misses"]), default=0.0)
    holds = r["kl_mean"] <= max_kl and gap <= max_gap and r["tokens"] >= 2000
    row("F32", how, r["tokens"], f"{r['kl_mean']:.3e}", f"{r['kl_max']:.2e}", f"{100 * r['top1_agreement']:.2f}",
        len(r["misses"]), f"{gap:.4f}", verdict(holds))

if only != "f32":
    for gate, result, names in (("quantised", "llama", "quantised"), ("q8_0 cache", "llama-cache", "cache")):
        theirs_kl, theirs_top, theirs_chunks = map(float, (folder / f"{result}.kl").read_text().split())
        row(gate, "by llama.cpp", scored * int(theirs_chunks), f"{theirs_kl:.3e}", "", f"{theirs_top:.2f}", "", "", "")
        for name, how in ((f"{names}-batches", "in batches"), (f"{names}-tokens", "token by token")):
            r = ours(name)
            gap = max((m["gap"] for m in r["misses"]), default=0.0)
            top1 = 100 * r["top1_agreement"]
            holds = r["kl_mean"] <= 1.25 * theirs_kl and top1 >= theirs_top - 2.5 and r["tokens"] >= 2000
            row(gate, how, r["tokens"], f"{r['kl_mean']:.3e}", f"{r['kl_max']:.2e}", f"{top1:.2f}",
                len(r["misses"]), f"{gap:.4f}", f"{verdict(holds)}  ({r['kl_mean'] / theirs_kl:.2f} x llama.cpp's KL)")
sys.exit(1 if failed else 0)
P
