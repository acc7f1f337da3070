#!/bin/bash
# Runs a Python file with the pinned wheels: run_python.sh FILE [ARGUMENTS]. FILE is a path from the
# workspace's root; Bazel starts this script in the folder of the runfiles.
set -euo pipefail
runfiles=$PWD
environment=$runfiles/../pypi/python_env.txt
if [ ! -f "$environment" ]; then environment=$runfiles/external/pypi/python_env.txt; fi
python=$(sed -n 1p "$environment")
site=$(sed -n 2p "$environment")
export PYTHONPATH=$runfiles:$site PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1
file=$1
shift
exec "$python" "$file" "$@"
