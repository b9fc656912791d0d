#!/usr/bin/env bash
# Does scripts/gate-quality.sh see what it has to see? Small random files of each kind of decoder pass it, and files that
# were damaged on purpose don't.
#
#   scripts/gate-controls.sh
#
#   pass     four-layer random F32 files of llama, qwen2 (with biases), qwen3 and gemma3 kind: mean KL <= 1e-3
#   controls the same weights read wrongly, one fault at a time: RoPE of the other kind, RoPE with another base, in local
#            layers alone too, a sliding window of twice the length, the minimums of a quantised format dropped, one
#            sub-block taking its neighbour's scale: each must miss its bound
#
# Exit status 0: every file passes and every fault is caught. Settings: those of gate-quality.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gate=$here/gate-quality.sh
threads=${GATE_THREADS:-2}
boltbeam=${BOLTBEAM:-}
for candidate in "$here"/../build/{release,dev}/apps/boltbeam/boltbeam "$(command -v boltbeam || true)"; do
  [[ -n $boltbeam || ! -x $candidate ]] || boltbeam=$candidate
done
[[ -x $boltbeam ]] || { echo "gate-controls: boltbeam is missing: build it, or set BOLTBEAM to the program" >&2; exit 1; }
export BOLTBEAM=$boltbeam
folder=${GATE_FOLDER:-}
if [[ -z $folder ]]; then
  folder=$(mktemp -d "${TMPDIR:-/tmp}/gate-controls-XXXXXX")
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
status=0

# Writes a damaged copy: FAULT, from, to. All edits keep every length, so that the file stays whole.
damage() {
  python3 - "$@" <<'P'
import struct, sys

fault, source, target = sys.argv[1:]
data = bytearray(open(source, "rb").read())
position = 24
sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

def take(form):
    global position
    values = struct.unpack_from("<" + form, data, position)
    position += struct.calcsize("<" + form)
    return values[0] if len(values) == 1 else values

def text():
    global position
    length = take("Q")
    position += length
    return bytes(data[position - length:position])

def skip(kind):
    global position
    if kind == 8:
        text()
    elif kind == 9:
        element, count = take("IQ")
        if element == 8:
            for _ in range(count):
                text()
        else:
            position += sizes[element] * count
    else:
        position += sizes[kind]

tensors, keys = struct.unpack_from("<QQ", data, 8)
places = {}
for _ in range(keys):
    name_at = position + 8
    name, kind = text(), take("I")
    places[name.decode()] = (name_at, position)
    skip(kind)
infos = []
for _ in range(tensors):
    name = text().decode()
    shape = [take("Q") for _ in range(take("I"))]
    kind, offset = take("IQ")
    infos.append((name, shape, kind, offset))
start = (position + 31) // 32 * 32

if fault in ("rope.freq_base", "rope.freq_base_swa", "attention.sliding_window"):
    at = next(value for name, (_, value) in places.items() if name.endswith("." + fault))
    form = "<f" if fault.startswith("rope") else "<I"
    struct.pack_into(form, data, at, 2 * struct.unpack_from(form, data, at)[0])
elif fault == "rope-kind":
    # qwen2 rotates halves, llama neighbours; both names have five letters, and llama may have biases, too.
    for name, (name_at, value) in places.items():
        if name.startswith("qwen2."):
            data[name_at:name_at + 5] = b"llama"
    at = places["general.architecture"][1] + 8
    data[at:at + 5] = b"llama"
else:
    # Q4_1: blocks of 20 bytes, float16 scale, float16 minimum, 16 bytes of codes.
    for name, shape, kind, offset in infos:
        if kind != 3:
            continue
        blocks = shape[0] * shape[1] // 32
        for block in range(blocks):
            at = start + offset + 20 * block
            if fault == "minimums":
                data[at + 2:at + 4] = b"\0\0"
            elif fault == "sub-block" and block % 8 == 0:
                data[at:at + 4] = data[at + 20:at + 24]
open(target, "wb").write(data)
P
}

kl_of() { # file, base, flag...
  local file=$1 base=$2
  shift 2
  "$boltbeam" perplexity "$file" -t "$threads" --kl-divergence-base "$base" -o json "$@" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["kl_mean"])'
}

caught() { # fault, file, base, bound, flag...
  local fault=$1 file=$2 base=$3 bound=$4 kl
  shift 4
  kl=$(kl_of "$file" "$base" "$@")
  if python3 -c "import sys; sys.exit(not $kl > $bound)"; then
    printf '%-32s mean KL %.3e, above %.1e: caught\n' "$fault" "$kl" "$bound"
  else
    printf '%-32s mean KL %.3e, not above %.1e: NOT CAUGHT\n' "$fault" "$kl" "$bound"
    status=1
  fi
}

export GATE_CHUNKS=${GATE_CHUNKS:-9}
for kind in llama qwen2 qwen3 gemma3; do
  mkdir -p "$folder/$kind"
  "$boltbeam" synth "tiny-$kind:F32" --tokenizer --out "$folder/$kind/model.gguf" >/dev/null 2>&1
  echo "random F32 file, $kind:"
  GATE_FOLDER=$folder/$kind GATE_ONLY=f32 GATE_MAX_KL=1e-3 "$gate" "$folder/$kind/model.gguf" || status=1
done
mkdir -p "$folder/q4_1"
"$boltbeam" synth tiny-llama:Q4_1 --tokenizer --out "$folder/q4_1/model.gguf" >/dev/null 2>&1
echo "random Q4_1 file, llama:"
GATE_FOLDER=$folder/q4_1 GATE_MAX_KL=1e-3 "$gate" "$folder/q4_1/model.gguf" || status=1
read -r theirs _ _ <"$folder/q4_1/llama.kl"

f32=(-ctk f32 -ctv f32)
damage rope-kind "$folder/qwen2/f32.gguf" "$folder/damaged.gguf"
caught "RoPE of the other kind" "$folder/damaged.gguf" "$folder/qwen2/base.logits" 1e-3 "${f32[@]}"
damage rope.freq_base "$folder/llama/f32.gguf" "$folder/damaged.gguf"
caught "RoPE with twice the base" "$folder/damaged.gguf" "$folder/llama/base.logits" 1e-3 "${f32[@]}"
damage rope.freq_base_swa "$folder/gemma3/f32.gguf" "$folder/damaged.gguf"
caught "twice the base in local layers" "$folder/damaged.gguf" "$folder/gemma3/base.logits" 1e-3 "${f32[@]}"
damage attention.sliding_window "$folder/gemma3/f32.gguf" "$folder/damaged.gguf"
caught "a window of twice the length" "$folder/damaged.gguf" "$folder/gemma3/base.logits" 1e-3 "${f32[@]}"
bound=$(python3 -c "print(1.25 * $theirs)")
damage minimums "$folder/q4_1/model.gguf" "$folder/damaged.gguf"
caught "minimums dropped" "$folder/damaged.gguf" "$folder/q4_1/base.logits" "$bound"
damage sub-block "$folder/q4_1/model.gguf" "$folder/damaged.gguf"
caught "every eighth block's scale wrong" "$folder/damaged.gguf" "$folder/q4_1/base.logits" "$bound"
exit $status
