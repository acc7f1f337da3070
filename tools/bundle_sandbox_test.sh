#!/bin/bash
# Tests that the bundled bubblewrap confines candidates on a host without bubblewrap: check_host finds no bwrap on
# PATH and starts a worker with the copy, whose folder was moved after its creation.
set -euo pipefail
folder=$(mktemp -d /tmp/tritonrl-bundle-test-XXXXXX)
trap '/bin/rm -rf "$folder"' EXIT
chmod 755 "$folder"
tools/bundle_sandbox.sh "$folder/made"
mv "$folder/made" "$folder/moved"

export PATH=/nonexistent
if exec/host_check/check_host > "$folder/without" 2>&1; then
  echo "check_host is content without any bubblewrap:" && /bin/cat "$folder/without"
  exit 1
fi
/bin/grep -q "bwrap is not installed" "$folder/without" || { /bin/cat "$folder/without"; exit 1; }

export TRITONRL_BWRAP=$folder/moved/sandbox/bwrap
exec/host_check/check_host > "$folder/with" 2>&1 || { /bin/cat "$folder/with"; exit 1; }
/bin/grep "$TRITONRL_BWRAP" "$folder/with"
/bin/grep -E "^in force +mount namespace" "$folder/with"

export TRITONRL_BWRAP=$folder/nothing-here
if exec/host_check/check_host > "$folder/wrong" 2>&1; then exit 1; fi
/bin/grep "nothing-here (from TRITONRL_BWRAP) cannot be executed" "$folder/wrong"
