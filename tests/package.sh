#!/usr/bin/env bash
# The Debian package, as root: it installs with what it depends on, runs from where it lies, and leaves nothing behind.
set -euo pipefail
package=${1:?a package that make deb has built}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

apt-get install -y -qq "$(realpath "$package")" >/dev/null
dpkg -L boltbeam | while read -r path; do [[ -d $path ]] || echo "$path"; done | sort >"$scratch/files"
wc -l <"$scratch/files" | sed 's/$/ files/'

cd "$scratch"
program=$(command -v boltbeam)
[[ $program == /usr/bin/boltbeam ]] || { echo "boltbeam is found at $program"; exit 1; }
boltbeam --version
boltbeam synth tiny-llama:Q4_K_M --tokenizer --out model.gguf >/dev/null
boltbeam kernel check model.gguf --home "$scratch/home" >/dev/null  # the compiler's plugin and the chips' data are found
# 3: so small a token may not tie out on a machine that others use.
boltbeam audit model.gguf --seconds 0.1 -t 1 --html report.html --home "$scratch/home" >/dev/null || [[ $? == 3 ]]
grep -q '</html>' report.html
# The manual names every command; completions know them too.
for page in boltbeam boltbeam-search boltbeam-ledger; do
  grep -q "/man1/$page.1" files || { echo "no manual page $page"; exit 1; }
done
grep -q 'bash-completion' files || { echo "no completion for bash"; exit 1; }

apt-get purge -y -qq boltbeam >/dev/null
while read -r path; do
  [[ ! -e $path ]] || { echo "$path is left behind"; exit 1; }
done <files
echo "installs, runs, and is removed"
