#!/bin/bash
# The program as a user calls it: exit codes, one sentence on stderr for each mistake, text and JSON.
set -u
verify="$PWD/verify/verify"
examples="$PWD/verify/examples"
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/verify_main.XXXXXX")"
trap 'rm -rf "$work"' EXIT
failures=0

# check NAME EXPECTED_CODE EXPECTED_TEXT ARGUMENTS...: text may stand on stdout or stderr.
check() {
  local name="$1" code="$2" text="$3"
  shift 3
  "$verify" "$@" >"$work/out" 2>"$work/err"
  local got=$?
  if [ "$got" != "$code" ]; then
    echo "FAIL $name: exit code $got, expected $code"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
  fi
  if ! cat "$work/out" "$work/err" | grep -qF -- "$text"; then
    echo "FAIL $name: '$text' is not in the output"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
  fi
  if [ "$code" = 2 ] && [ "$(grep -c '^verify: ' "$work/err")" != 1 ]; then
    echo "FAIL $name: not one sentence on stderr"
    cat "$work/err"
    failures=$((failures + 1))
  fi
}

reference="--reference=$examples/softmax_reference.py"
check help 0 "Exit codes" --help
check no_arguments 2 "--reference is missing"
check missing_file 2 "no_such_file.py" "$reference" --candidate="$work/no_such_file.py"
check unknown_flag 2 "unknown flag --colour" --colour=red
check bad_value 2 "--trials='many'" --trials=many
check bad_backend 2 "abacus" "$reference" --candidate="$examples/softmax_honest.py" --backend=abacus
check stray_argument 2 "unexpected argument 'b.py'" b.py
check half_a_judge 2 "--judge_model" "$reference" --candidate="$examples/softmax_honest.py" --judge_url=http://x

check honest 0 "(modelled: reference" "$reference" --candidate="$examples/softmax_honest.py" --backend=interpreter
check wrong_json 1 '"outcome":"mismatch"' "$reference" --candidate="$examples/softmax_wrong.py" --json --backend=interpreter
if ! python3 -c 'import json, sys; v = json.load(open(sys.argv[1])); assert v["correct"] is False and v["compiled"] is True and v["speedup"] is None' "$work/out"; then
  echo "FAIL wrong_json: not the JSON object expected"
  failures=$((failures + 1))
fi
check cheat 1 "> y = torch.softmax(x * self.scale, dim=1)" "$reference" --candidate="$examples/softmax_cheat.py"

# Relative paths are the caller's, not those of the folder bazel runs the program in.
cp "$examples"/softmax_*.py "$work/"
echo "def get_inputs(): return []" >"$work/broken.py"
export BUILD_WORKING_DIRECTORY="$work"
check broken_reference 2 "broken.py" --reference=broken.py --candidate=softmax_honest.py --backend=interpreter

[ "$failures" = 0 ] && echo "all checks passed"
exit "$failures"
