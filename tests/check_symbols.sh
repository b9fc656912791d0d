#!/usr/bin/env bash
# The library returns errors: it never prints, aborts or exits. The code generator's plugin is not part of this rule: it
# answers for LLVM.
set -euo pipefail
build=${1:?the build folder}
library=$(find "$build" -maxdepth 3 -name libboltbeam.a | head -n1)
[[ -n $library ]] || { echo "$build: no libboltbeam.a; build first"; exit 1; }

# Sanitizers and checked builds call abort themselves; this rule is about what the sources say.
if nm -u "$library" 2>/dev/null | grep -qE '__(a|t|ub)san_'; then
  echo "a build with sanitizers: not checked"
  exit 0
fi
forbidden='printf|vprintf|fprintf|vfprintf|puts|fputs|putchar|fputc|putc|perror|abort|exit|_exit|_Exit|quick_exit|__assert_fail|_ZSt4cout|_ZSt4cerr|_ZSt4clog|(__printf_chk|__fprintf_chk|__vfprintf_chk)'
found=$(nm -A -u "$library" | awk '{n = split($1, part, ":"); print part[2], $NF}' | grep -E " ($forbidden)(@|$)" || true)
if [[ -n $found ]]; then
  echo "the library must not print, abort or exit; it refers to:"
  echo "$found"
  exit 1
fi
