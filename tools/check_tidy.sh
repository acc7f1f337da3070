#!/bin/bash
# Runs clang-tidy (.clang-tidy) over C++ sources with the flags that Bazel compiles them with.
#   tools/check_tidy.sh [FILE ...]     default: every .cc of the repository, tests left out
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files '*.cc' ':!*_test.cc'); fi
root=$(bazel info execution_root 2> /dev/null)
flags=(-std=c++20 -O1 -w -DOMPI_SKIP_MPICXX=1 -DPCRE2_CODE_UNIT_WIDTH=8 -I. -Ibazel-bin
  -isystem "$root/external/debian/openmpi" -isystem "$root/external/pypi/torch_include"
  -isystem "$root/external/pypi/torch_include/torch/csrc/api/include"
  -isystem "$root/external/pypi/cuda_include" -isystem "$root/external/pypi/nccl_include"
  -isystem "$root/external/tree_sitter/core/lib/include")
printf '%s\0' "${files[@]}" | xargs -0 -n 4 -P "$(nproc)" sh -c '
  clang-tidy --quiet "$@" -- '"$(printf '%q ' "${flags[@]}")"' 2> /dev/null' sh
echo "clang-tidy: ${#files[@]} files without a finding"
