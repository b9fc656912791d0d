#!/usr/bin/env bash
# One file, one noun: a source stays small enough to be read in one sitting. Warns above 400 lines, fails above 450.
set -euo pipefail
warn=400 limit=450 status=0
while read -r lines file; do
  if ((lines > limit)); then
    echo "$file: $lines lines; expected at most $limit: split it by noun"
    status=1
  elif ((lines > warn)); then
    echo "note: $file: $lines lines, more than $warn"
  fi
done < <(find src apps bench tests cmake scripts \( -name '*.cc' -o -name '*.h' -o -name '*.cmake' -o -path 'scripts/*' \) \
  -type f -exec wc -l {} \;)
exit $status
