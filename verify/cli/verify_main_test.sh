#!/bin/bash
# Tests the program as a user calls it: exit codes, one sentence on stderr for each mistake, text and JSON output.
set -u
verify="$PWD/verify/cli/verify"
server="$PWD/exec/service/server"
examples="$PWD/verify/examples"
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/verify_main.XXXXXX")"
failures=0

# Most runs below use one server's warm workers, as starting them takes most of a run's time. It starts meanwhile.
"$server" --backend=native --workers=1 --register="$work/register" >"$work/server" 2>&1 &
server_pid=$!
trap 'kill "$server_pid" 2>/dev/null; wait; rm -rf "$work"' EXIT
there="--servers=$work/register"

# check NAME EXPECTED_CODE EXPECTED_TEXT ARGUMENTS...: the text may be on stdout or stderr.
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
check help_flags 0 "--preflight: check the tasks" --help
check help_common_flags 0 "--log_level: least level logged" --help
check version 0 "TritonRL " --version
check log_flags 2 "--reference is missing" --log_level=error --log_format=json
check bad_log_level 2 "--log_level is debug, info, warning, error or off, not 'loud'" --log_level=loud
check no_arguments 2 "--reference is missing"
check missing_file 2 "no_such_file.py" "$reference" --candidate="$work/no_such_file.py"
check unknown_flag 2 "unknown flag --colour" --colour=red
check no_of_a_text 2 "unknown flag --noout" --noout
check exact_tolerance 2 "--tolerance must be above 0" "$reference" --candidate="$examples/softmax_honest.py" --tolerance=0
check bad_value 2 "--trials='many'" --trials=many
check bad_backend 2 "abacus" "$reference" --candidate="$examples/softmax_honest.py" --backend=abacus
check stray_argument 2 "unexpected argument 'b.py'" b.py
check bad_style 2 '--response_style "odd" is unknown; use "auto", "thinking" or "plain"' --response_style=odd
check bad_block 2 '--code_block "second" is unknown; use "auto", "only"' --code_block=second
check half_a_judge 2 "--judge_model" "$reference" --candidate="$examples/softmax_honest.py" --judge_url=http://x

check honest 0 "(modelled: reference" "$reference" --candidate="$examples/softmax_honest.py" --backend=native
for _ in $(seq 1200); do
  ls "$work"/register/servers/*.json >/dev/null 2>&1 && break
  sleep 0.1
done
check wrong_json 1 '"reason":"MISMATCH"' "$reference" --candidate="$examples/softmax_wrong.py" --json "$there"
if ! python3 -c 'import json, sys; v = json.load(open(sys.argv[1])); assert v["correct"] is False and v["compiled"] is True and "speedup" not in v' "$work/out"; then
  echo "FAIL wrong_json: not the JSON object expected"
  failures=$((failures + 1))
fi
check cheat 1 "> y = torch.softmax(x * self.scale, dim=1)" "$reference" --candidate="$examples/softmax_cheat.py"

check bad_rules 2 "none of the rules paper, strict, robust" "$reference" --candidate="$examples/softmax_honest.py" --rules=exact
check paper_rules 0 "(modelled: reference" "$reference" --candidate="$examples/softmax_honest.py" "$there" --rules=paper
check robust 0 "robust rules' inputs" "$reference" --candidate="$examples/softmax_honest.py" "$there" --rules=robust
check tasks_missing 2 "--tasks is missing" --preflight
check tasks_alone 2 "--tasks goes with --preflight" --tasks="$examples"
check tasks_gone 2 "no_such_folder" --preflight --tasks="$work/no_such_folder"
# Two tasks: one with results of about 1e-3, on which zeros pass with the paper's tolerance, and a sound one.
mkdir "$work/tasks"
for scale in 1e-3 3; do
  printf 'import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x * %s\ndef get_inputs(): return [torch.randn(4, 32)]\ndef get_init_inputs(): return []\n' "$scale" >"$work/tasks/by_$scale.py"
done
check preflight 1 "2 tasks by the strict rules: 1 sound, 1 unsound" --preflight --tasks="$work/tasks" --out="$work/preflight.jsonl" --backend=native
if ! grep -q "unsound .*by_1e-3 .*zeros passes" "$work/out" || [ "$(grep -c '"state"' "$work/preflight.jsonl")" != 2 ]; then
  echo "FAIL preflight: table or file is not as expected"
  cat "$work/out" "$work/preflight.jsonl"
  failures=$((failures + 1))
fi
check preflight_robust 0 "2 tasks by the robust rules: 2 sound" --preflight --tasks="$work/tasks" --rules=robust "$there"

# Relative paths are relative to the caller's folder, not to the folder in which bazel runs the program.
cp "$examples"/softmax_*.py "$work/"
echo "def get_inputs(): return []" >"$work/broken.py"
export BUILD_WORKING_DIRECTORY="$work"
{ echo 'Here it is:'; echo '```python'; cat "$work/softmax_honest.py"; echo '```'; } >"$work/fenced.py"
fence='fenced.py:2: a Markdown fence (```) stands here: pass the Python code alone'
check fenced_candidate 2 "--candidate: $fence" --reference=softmax_reference.py --candidate=fenced.py
check fenced_reference 2 "--reference: $fence" --reference=fenced.py --candidate=softmax_honest.py
{ cat "$work/softmax_reference.py"; printf '\nlisted = get_inputs\ndef get_inputs(): return {"x": listed()[0]}\n'; } >"$work/by_name.py"
check inputs_by_name 2 "get_inputs returned a dict, it must return a list of positional arguments" \
  --reference=by_name.py --candidate=softmax_honest.py "$there"
check broken_reference 2 "broken.py" --reference=broken.py --candidate=softmax_honest.py "$there"

[ "$failures" = 0 ] && echo "all checks passed"
exit "$failures"
