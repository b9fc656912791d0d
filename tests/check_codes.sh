#!/usr/bin/env bash
# Every error code is used by the library or the program, and produced by some test.
set -euo pipefail
status=0
tests=$(find src tests apps -name '*_test.cc' -o -path 'tests/*' -name '*.cc' -o -path 'tests/*' -name '*.h' -o -path '*/testing/*')
code=$(find src apps \( -name '*.cc' -o -name '*.h' \) ! -name '*_test.cc' ! -path '*/testing/*')
for name in $(sed -nE 's/^BOLTBEAM_CODE\((k[A-Za-z0-9]+),.*/\1/p' src/base/error_codes.inc); do
  # shellcheck disable=SC2086
  grep -qw "$name" $code || { echo "$name: no source produces it"; status=1; }
  # shellcheck disable=SC2086
  grep -qw "$name" $tests || { echo "$name: no test produces it"; status=1; }
done
exit $status
