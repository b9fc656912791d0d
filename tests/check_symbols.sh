#!/usr/bin/env bash
# The library returns errors: it never prints, aborts or exits. The code generator's plugin is not part of this rule: it
# answers for LLVM.
set -euo pipefail
build=${1:?the build folder}
library=$(find "$build" -maxdepth 3 -name libboltbeam.a -print -quit)
[[ -n $library ]] || { echo "$build: no libboltbeam.a; build first"; exit 1; }

references=$(nm -A -u "$library" 2>/dev/null)

# Sanitizers and checked builds call abort themselves; this rule is about what the sources say.
if [[ $references =~ __(a|t|ub)san_ ]]; then
  echo "a build with sanitizers: not checked"
  exit 0
fi
forbidden='printf|vprintf|fprintf|vfprintf|puts|fputs|putchar|fputc|putc|perror|abort|exit|_exit|_Exit|quick_exit|__assert_fail|_ZSt4cout|_ZSt4cerr|_ZSt4clog|(__printf_chk|__fprintf_chk|__vfprintf_chk)'
found=$(awk '{n = split($1, part, ":"); print part[2], $NF}' <<<"$references" | grep -E " ($forbidden)(@|$)" || true)
if [[ -n $found ]]; then
  echo "the library must not print, abort or exit; it refers to:"
  echo "$found"
  exit 1
fi
