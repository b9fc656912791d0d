#!/usr/bin/env bash
# What a person sees when something can't be done: one line on stderr that says what was found and what to do, nothing
# on stdout, the right exit status, and nothing half-written left behind.
#
#   tests/refusals.sh PROGRAM
set -uo pipefail
program=$(realpath "${1:?the program}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export XDG_DATA_HOME=$folder/data XDG_CACHE_HOME=$folder/cache XDG_CONFIG_HOME=$folder/config
failures=0

complain() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# refuse STATUS WORDS ARGUMENT...: the words must be on the line.
refuse() {
  local status=$1 words=$2 got lines
  shift 2
  timeout 60 "$program" "$@" >stdout 2>stderr </dev/null
  got=$?
  lines=$(wc -l <stderr)
  ((got == status)) || complain "$*: exit status $got, expected $status: $(head -c 300 stderr)"
  ((lines == 1)) || complain "$*: $lines lines on stderr, expected 1: $(head -c 300 stderr)"
  grep -q '^boltbeam: ' stderr || complain "$*: the line does not say whose it is: $(head -c 300 stderr)"
  grep -qF -- "$words" stderr || complain "$*: no '$words' in: $(head -c 300 stderr)"
  # bench closes its table or its JSON whatever happens.
  [[ $1 == bench || ! -s stdout ]] || complain "$*: wrote to stdout: $(head -c 100 stdout)"
}

nothing_left() {
  local left
  left=$(find "$folder" -name '*.gguf*' ! -name 'good.gguf*' ! -name 'bad-*' | sed -n 1,3p)
  [[ -z $left ]] || complain "$1: left behind: $left"
}

# A whole model, and what can be wrong with one.
"$program" synth tiny-qwen3:Q4_K_M --out good.gguf >stdout 2>stderr || complain "synth of a good file: $(cat stderr)"
head -c 5000 good.gguf >bad-cut.gguf
head -c -1000 good.gguf >bad-tail.gguf
printf 'PK\003\004 not a model at all, but long enough to have a header' >bad-zip.gguf
: >bad-empty.gguf
mkdir bad-folder
{ printf 'GGUF\003\000\000\000'; head -c 64 /dev/zero | tr '\0' '\377'; } >bad-hostile.gguf

refuse 2 'no-such-command' no-such-command
refuse 2 '--no-such-flag; see boltbeam inspect --help' inspect good.gguf --no-such-flag
refuse 2 '--no-such-flag; see boltbeam chip measure --help' chip measure --no-such-flag
refuse 2 'no flag --no-such-flag' bound --no-such-flag
refuse 1 'missing.gguf' inspect missing.gguf
for file in bad-cut bad-tail bad-zip bad-empty bad-hostile; do refuse 1 "$file" inspect $file.gguf; done
refuse 1 'bad-folder' inspect bad-folder
sed 's/qwen3/\x1b[31m/' good.gguf >bad-escape.gguf
refuse 1 '\x1b[31m' inspect bad-escape.gguf
! grep -q $'\x1b' stderr || complain "an escape sequence of a file reached the terminal"
refuse 2 'no-such-chip' bound good.gguf --chip no-such-chip
refuse 2 "model 'nobody'" synth nobody:F32
refuse 2 "type 'Q9'" synth tiny-llama:Q9
refuse 2 'layers' synth tiny-llama:F32 --layers -1
refuse 2 '1 to 28, as many as qwen3-0.6b has' synth qwen3-0.6b:F32 --layers 29
refuse 2 'at most 1e+09 GB/s' bound good.gguf --bandwidth 1e300
refuse 1 'no-such-folder' inspect good.gguf --out no-such-folder/m.txt
refuse 1 'no-such-folder' synth tiny-llama:F32 --out no-such-folder/m.gguf
refuse 1 'device' synth tiny-llama:F32 --out /dev/null
refuse 1 'folder' synth tiny-llama:F32 --out bad-folder
[[ -c /dev/null ]] || complain 'synth replaced /dev/null by a file'
refuse 2 '-1' synth tiny-llama:F32 --seed -1
nothing_left 'a refused synth'

# Without --out every kind of file has a name of its own: make audit must not find holes under the model's name.
for flags in '' '--sparse' '--layers 1' '--seed 2' '--tokenizer'; do "$program" synth tiny-llama:F32 $flags 2>/dev/null; done |
  sort -u >stdout
(($(wc -l <stdout) == 5)) || complain "synth: five kinds of file share names: $(tr '\n' ' ' <stdout)"
rm -rf cache

# A link to a full device stands in for it: a file that is renamed to its name would replace what the link names.
if [[ -c /dev/full ]]; then
  ln -s /dev/full bad-full
  refuse 1 'No space left' inspect good.gguf --out bad-full
  "$program" --help >/dev/full 2>stderr && complain '--help on a full device: exit status 0'
  [[ -L bad-full ]] || complain '--out replaced a link to a device by a file'
fi

# A disk that fills up while the file is written. The limit on a file's size stands in for it: the same error path.
(
  trap '' XFSZ
  ulimit -f 2000
  refuse 1 'full.gguf' synth qwen3-0.6b:Q8_0 --layers 1 --out full.gguf
  exit "$failures"
)
failures=$?
nothing_left 'a full disk'

# Ctrl-C in the middle of writing. A shell's background job ignores SIGINT; env undoes that. Without --foreground the
# signal would come twice.
timeout --foreground --signal=INT 1 env --default-signal=INT "$program" synth qwen3-4b:F32 --out stopped.gguf >stdout 2>stderr </dev/null
status=$?
((status != 0)) || complain "Ctrl-C: exit status 0"
(($(wc -l <stderr) == 1)) || complain "Ctrl-C: not one line: $(head -c 300 stderr)"
nothing_left 'Ctrl-C'

# While tokens are computed, too.
SECONDS=0
timeout --foreground --signal=INT 2 env --default-signal=INT "$program" bench -m good.gguf -p 0 -n 100000 -r 1 -t 1 >stdout 2>stderr </dev/null
((SECONDS < 8)) || complain "Ctrl-C in bench: stopped after $SECONDS s"
grep -q 'stopped by the user' stderr || complain "Ctrl-C in bench: $(head -c 300 stderr)"

# Twice, the second before the first was heeded: the process ends at once and still leaves nothing.
env --default-signal=INT "$program" synth qwen3-4b:F32 --out stopped.gguf >stdout 2>stderr </dev/null &
stopped=$!
sleep 1
kill -STOP $stopped
kill -INT $stopped
kill -TERM $stopped
kill -CONT $stopped
wait $stopped
status=$?
((status == 130)) || complain "Ctrl-C twice: exit status $status"
(($(wc -l <stderr) == 1)) || complain "Ctrl-C twice: not one line: $(head -c 300 stderr)"
nothing_left 'Ctrl-C twice'

refuse 1 'tokenizer' run good.gguf -p hello
case $(uname -m) in x86_64) missing=neon ;; *) missing=avx2 ;; esac
refuse 2 'has: plain' bench good.gguf --isa $missing
refuse 2 '--isa' bench good.gguf --isa avx9
refuse 1 'bad-cut' run bad-cut.gguf -p hello
refuse 2 '-1' bench -m good.gguf -t -1
refuse 2 'boltbeam: --n-gpu-layers: not a setting' bench -m good.gguf -ngl 99
refuse 2 'up to 16777216' bench -m good.gguf -p 99999999
refuse 2 'nan' bench -m good.gguf --delay nan
"$program" synth tiny-qwen3:Q4_K_M --sparse --out good.gguf.sparse >/dev/null 2>&1
refuse 1 'holes' bench -m good.gguf.sparse -t 1
refuse 2 '-1' audit good.gguf -t -1
refuse 2 'nan' audit good.gguf --seconds nan
refuse 1 'bad-tail' audit bad-tail.gguf

# Everything that a person reads fits 80 columns.
for command in '' inspect bound chip 'chip measure' run perplexity bench audit kernel 'kernel show' synth doctor; do
  wide=$("$program" $command --help | awk 'length > 80 && !found++')
  [[ -z $wide ]] || complain "$command --help: wider than 80 columns: $wide"
done

((failures == 0)) || exit 1
echo "every refusal is one clear line"
