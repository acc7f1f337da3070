#!/bin/bash
# Runs clang-tidy (.clang-tidy) over C++ sources with the flags that Bazel compiles them with, after a
# `bazel build //...` (generated headers). Prints findings and fails if there are any.
#   tools/check_tidy.sh [FILE ...]     default: every .cc of the repository, tests left out
# A file without a finding is remembered by the hash of itself, of all headers and of the settings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files '*.cc' ':!*_test.cc'); fi
external=$(bazel info output_base 2> /dev/null)/external
export TIDY_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/tritonrl/tidy
export TIDY_BASE
TIDY_BASE=$(git ls-files '*.h' '*.proto' .clang-tidy | xargs cat | sha256sum | cut -c1-32)
export TIDY_FLAGS="-std=c++20 -w -DOMPI_SKIP_MPICXX=1 -DPCRE2_CODE_UNIT_WIDTH=8 -I. -Ibazel-bin
  -isystem $external/debian/openmpi -isystem $external/pypi/torch_include
  -isystem $external/pypi/torch_include/torch/csrc/api/include
  -isystem $external/pypi/cuda_include -isystem $external/pypi/nccl_include
  -isystem $external/tree_sitter/core/lib/include"
mkdir -p "$TIDY_CACHE"

check() {
  local key
  key=$TIDY_CACHE/$(cat "$1" <(echo "$TIDY_BASE $1") | sha256sum | cut -c1-40)
  if [ -e "$key" ]; then return 0; fi
  # shellcheck disable=SC2086  # the flags are words
  clang-tidy --quiet "$1" -- $TIDY_FLAGS 2> /dev/null && touch "$key"
}
export -f check
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'check "$1"' check
echo "clang-tidy: ${#files[@]} files without a finding"
