#!/usr/bin/env bash
# A new chip, weight format or architecture is an edit of data/: code must not know their names. The names are read from
# the registries themselves. Tests and benchmarks may name what they test; comments may explain with an example.
set -euo pipefail
status=0

names_in() { # glob of JSON files, key
  # shellcheck disable=SC2086
  cat $1 2>/dev/null | grep -oE "\"$2\": *\"[^\"]+\"" | sed -E 's/.*: *"([^"]+)"/\1/' | sort -u || true
}

# Code of FOLDER... without comments and without what tests.
code_of() {
  find "$@" \( -name '*.cc' -o -name '*.h' -o -name '*.inc' \) ! -name '*_test.cc' -type f -print0 |
    xargs -0 -r grep -HnE '' | sed -E 's_(:[0-9]+:|[[:space:]])//.*$_\1_'
}

forbid() { # why, pattern, folder...
  local why=$1 pattern=$2 hits
  shift 2
  [[ -n $pattern ]] || return 0
  hits=$(code_of "$@" | grep -iE "$pattern" || true)
  [[ -z $hits ]] && return 0
  printf '%s:\n%s\n' "$why" "$hits"
  status=1
}

join() { paste -sd'|' | sed 's/[.]/\\./g'; }

# Formats with a block layout: Q4_K, MXFP4. Plain floats and integers are types of any program.
formats=$(names_in 'data/formats/*.json' name | grep -E '^(I?Q|T?Q|MX|NV)[0-9FP]+' | join)
word='(^|[^A-Za-z0-9])'
[[ -z $formats ]] || forbid 'code generation must not know a weight format' "$word($formats)([^A-Za-z0-9]|$)" src/codegen src/kernel src/runtime

# The lowering sees a loop program, never what it is for.
operations='rope|attention|rms_?norm|softmax|silu|gemv|gemm|embedding|argmax|sampl(e|ing)|kv_?cache|token'
forbid 'code generation must not know an operation of a model' "$word($operations)([^A-Za-z0-9]|$)" src/codegen

chips=$(names_in 'data/chips/*.json' id | join)
forbid 'code must not name a chip' "${chips:+\"($chips)\"}" src apps

architectures=$(names_in 'data/models/architectures.json' name | join)
forbid 'code must not name an architecture' "${architectures:+\"($architectures)(\"|\.[a-z]+[_.])}" src apps
shapes=$(names_in 'data/models/shapes.json' name | join)
forbid 'the library must not name a model' "${shapes:+($shapes)}" src

# A path of one person's machine means nothing on another. Files of others are kept as they are published.
hits=$(git grep -nE '(^|[^A-Za-z0-9_.$}])/(home|root|work|Users)/[A-Za-z]' -- . ':!tests/check_names.sh' ':!tests/data/imports' \
  ':!tests/data/ledger/nv_decode_seed_ledger.jsonl' || true)
if [[ -n $hits ]]; then
  printf 'a path of one machine:\n%s\n' "$hits"
  status=1
fi
exit $status
