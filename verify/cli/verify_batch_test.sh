#!/bin/bash
# Tests the batch mode by the program itself: folder and JSONL input, exit codes, Ctrl-C and kill -9 during a run,
# the web page.
set -u
verify="$PWD/verify/cli/verify"
server="$PWD/exec/service/server"
examples="$PWD/verify/examples"
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/verify_batch.XXXXXX")"
failures=0

# Most runs below use one server's warm workers, as starting them takes most of a run's time. It starts meanwhile.
"$server" --backend=native --workers=1 --register="$work/register" >"$work/server" 2>&1 &
server_pid=$!
trap 'kill "$server_pid" 2>/dev/null; wait; rm -rf "$work"' EXIT
there="--servers=$work/register"

fail() {
  echo "FAIL $1"
  cat "$work/out" "$work/err"
  failures=$((failures + 1))
}

# check NAME EXPECTED_CODE EXPECTED_TEXT ARGUMENTS...: the text may be on stdout or stderr.
check() {
  local name="$1" code="$2" text="$3"
  shift 3
  "$verify" "$@" >"$work/out" 2>"$work/err"
  local got=$?
  [ "$got" = "$code" ] || fail "$name: exit code $got, expected $code"
  cat "$work/out" "$work/err" | grep -qF -- "$text" || fail "$name: '$text' is not in the output"
}

# complete INPUT OUTPUT MESSAGE: fails if OUTPUT does not have each id of INPUT once with the expected verdict.
complete() {
  python3 - "$1" "$2" <<'P' || fail "$3"
import json, sys
given = [json.loads(line)["id"] for line in open(sys.argv[1])]
lines = [json.loads(line) for line in open(sys.argv[2])]
assert sorted(given) == sorted(line["id"] for line in lines), [line["id"] for line in lines]
for line in lines:
    verdict = line["verdict"]
    for key in ("valid", "outcome", "layers"):
        assert key in verdict, key
    expected = "MISMATCH" if "wrong" in line["id"] else "TORCH_COMPUTE" if "cheat" in line["id"] else "OK"
    assert verdict["outcome"]["reason"] == expected, line
    assert verdict.get("correct") is {"MISMATCH": False, "TORCH_COMPUTE": None, "OK": True}[expected], line
    assert ("speedup" in verdict) == (expected == "OK"), line
P
}

check out_missing 2 "--out is missing" --in="$examples"
check in_missing 2 "--out needs --in" --out="$work/x"
check both_forms 2 "give either --in" --in="$examples" --out="$work/x" --reference=a.py
check no_such_input 2 "no_such.jsonl" --in="$work/no_such.jsonl" --out="$work/x"
check same_file 2 "the same file" --in="$work/x" --out="$work/x"

check folder 0 "3 cases: 1 correct, 2 failed" --in="$examples" --out="$work/folder.jsonl" \
  --html="$work/folder.html" --backend=native
grep -q "<mark>" "$work/folder.html" || fail "folder: no marked line in the page"
check folder_again 0 "(0 written now, 3 were there)" --in="$examples" --out="$work/folder.jsonl" --backend=native

python3 - "$examples" "$work/cases.jsonl" <<'P'
import json, sys
read = lambda name: open(f"{sys.argv[1]}/softmax_{name}.py").read()
with open(sys.argv[2], "w") as out:
    for i in range(16):
        name = ("honest", "wrong", "honest", "cheat")[i % 4]
        case = {"id": f"{name} {i}", "reference_source": read("reference"), "candidate_source": read(name)}
        out.write(json.dumps(case) + "\n")
P
for _ in $(seq 1200); do
  ls "$work"/register/servers/*.json >/dev/null 2>&1 && break
  sleep 0.1
done

# stopped SIGNAL OUTPUT COMMAND...: sends SIGNAL to the run once it has written a line more to OUTPUT; its exit code.
stopped() {
  local signal="$1" output="$2" lines pid
  shift 2
  lines=$(cat "$output" 2>/dev/null | wc -l)
  "$@" >"$work/out" 2>"$work/err" &
  pid=$!
  for _ in $(seq 600); do
    [ "$(cat "$output" 2>/dev/null | wc -l)" -gt "$lines" ] && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  kill -"$signal" "$pid" 2>/dev/null
  wait "$pid"
}

# Two runs are killed and one is interrupted, each after it has written a line; the last run is not disturbed.
run=("$verify" --in="$work/cases.jsonl" --out="$work/verdicts.jsonl" "$there" --workers=1)
for signal in KILL KILL INT; do
  stopped "$signal" "$work/verdicts.jsonl" "${run[@]}"
  code=$?
  if [ "$signal" = INT ] && [ "$code" != 130 ]; then fail "interrupted: exit code $code"; fi
done
[ "$(wc -l <"$work/verdicts.jsonl")" -lt 16 ] || fail "nothing was left to go on with"
printf '{"id": "honest 0", "torn' >>"$work/verdicts.jsonl"
check resumed 0 "16 cases: 8 correct, 8 failed" "${run[@]:1}" --html="$work/page.html"
complete "$work/cases.jsonl" "$work/verdicts.jsonl" "resumed: not the lines expected"
[ "$(grep -c '<tr data-key=' "$work/page.html")" = 16 ] || fail "page: not 16 cases"
# One with workers of its own is interrupted too.
stopped INT "$work/own.jsonl" "$verify" --in="$work/cases.jsonl" --out="$work/own.jsonl" --backend=native --workers=1
code=$?
[ "$code" = 130 ] || fail "interrupted with its own workers: exit code $code"
[ "$(wc -l <"$work/own.jsonl")" -lt 16 ] || fail "with its own workers: nothing was left"

# A remote server gives the same verdicts, and exits with code 0 after SIGTERM.
check servers 0 "3 cases: 1 correct, 2 failed" --in="$examples" --out="$work/remote.jsonl" "$there"
python3 - "$work/folder.jsonl" "$work/remote.jsonl" <<'P' || fail "servers: other verdicts than here"
import json, sys
def read(path):
    lines = [json.loads(line) for line in open(path)]
    for line in lines:
        line.pop("input_hash")
        for key in ("worker", "seconds_lint", "seconds_run"):
            line["verdict"].pop(key, None)
    return lines
assert read(sys.argv[1]) == read(sys.argv[2])
P
# Samples of a run: their tasks come from a folder, their style from the record or from a flag.
mkdir "$work/tasks"
cp "$examples/softmax_reference.py" "$work/tasks/softmax.py"
python3 - "$examples" "$work/samples.jsonl" <<'P'
import json, sys
program = open(f"{sys.argv[1]}/softmax_honest.py").read()
block = f"```python\n{program}```\n"
with open(sys.argv[2], "w") as out:
    for sample, response in enumerate(["<think>p</think>\n" + block, block + "```python\nModelNew()\n```\n"]):
        out.write(json.dumps({"slot": 0, "sample": sample, "task": "softmax", "response": response}) + "\n")
P
samples=(--in="$work/samples.jsonl" --tasks="$work/tasks" "$there" --workers=1 --trials=2)
check samples 0 "2 cases: 1 correct, 1 failed" "${samples[@]}" --out="$work/samples_out.jsonl" --html="$work/samples.html"
check samples_plain 0 "2 cases: 2 correct, 0 failed" "${samples[@]}" --out="$work/plain_out.jsonl" --response_style=plain
check samples_without_tasks 2 "give their folder to --tasks" --in="$work/samples.jsonl" --out="$work/x.jsonl" "$there"

echo "not json" >"$work/broken.jsonl"
check broken_lines 2 "broken.jsonl, line 1: not a JSON object" --in="$work/broken.jsonl" --out="$work/broken_out.jsonl" "$there"
grep -q '"input_error":"' "$work/broken_out.jsonl" || fail "broken_lines: no line in the output"
cut -d, -f1 "$work/verdicts.jsonl" >"$work/notes"
check foreign_output 2 "line 1 is not a verdict" --in="$work/cases.jsonl" --out="$work/notes" "$there"

head -c 64 /dev/zero | tr '\0' a >"$work/wrong_token"
chmod 600 "$work/wrong_token"
address=$(sed -n 's/^server: \([^,]*\),.*/\1/p' "$work/server")
check wrong_token 2 "is not this server's" --in="$examples" --out="$work/remote2.jsonl" --servers="$address" --token_file="$work/wrong_token"
kill -TERM "$server_pid"
wait "$server_pid" || fail "servers: the server ended with code $?"
cat "$work/server"
head -c 64 /dev/zero | tr '\0' a >"$work/token"
chmod 644 "$work/token"
check open_token 2 "mode 600" --in="$examples" --out="$work/remote2.jsonl" --servers=127.0.0.1:1 --token_file="$work/token"
check no_token_file 2 "no_such_token" --in="$examples" --out="$work/remote2.jsonl" --servers=127.0.0.1:1 --token_file="$work/no_such_token"
check no_token 2 "--token_file" --in="$examples" --out="$work/remote2.jsonl" --servers=127.0.0.1:1

[ "$failures" = 0 ] && echo "all checks passed"
exit "$failures"
