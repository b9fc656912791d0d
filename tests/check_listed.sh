#!/usr/bin/env bash
# A source that no CMakeLists.txt names is never built, and a test that is never built always passes.
set -euo pipefail
status=0
while read -r file; do
  folder=${file%/*} name=${file##*/}
  while [[ ! -e $folder/CMakeLists.txt ]]; do
    name=${folder##*/}/$name
    folder=${folder%/*}
  done
  if ! grep -qE "(^|[^A-Za-z0-9_./])${name//./\\.}($|[^A-Za-z0-9_])" "$folder/CMakeLists.txt"; then
    stem=${name%.cc}
    # A loop over names without their ending is a list, too.
    grep -qwE "$stem" "$folder/CMakeLists.txt" && continue
    echo "$file: not listed in $folder/CMakeLists.txt"
    status=1
  fi
done < <(find src apps bench tests -name '*.cc' -type f | sort)
exit $status
