#!/bin/bash
# Runs clang-tidy (.clang-tidy) on C++ sources with Bazel's compiler flags. Needs the generated headers of a
# `bazel build //...`. Prints the findings, and fails if there are any.
#   tools/check_tidy.sh [FILE ...]     default: every .cc of the repository except tests
# A file without findings is checked again only if the hash of the settings, of the file and of all headers of this
# repository that it includes, directly or indirectly, has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files '*.cc' ':!*_test.cc'); fi
external=$(bazel info output_base 2> /dev/null)/external
export TIDY_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/tritonrl/tidy
export TIDY_FLAGS="-std=c++20 -w -DOMPI_SKIP_MPICXX=1 -DPCRE2_CODE_UNIT_WIDTH=8 -DSPDLOG_FMT_EXTERNAL -DSPDLOG_COMPILED_LIB -DSPDLOG_SHARED_LIB -I. -Ibazel-bin
  -isystem $external/debian/openmpi -idirafter $external/pypi/torch_include
  -idirafter $external/pypi/torch_include/torch/csrc/api/include
  -isystem $external/pypi/cuda_include -isystem $external/pypi/nccl_include
  -isystem $external/pypi/cudnn_include -isystem $external/cudnn_frontend/include
  -isystem $external/tree_sitter/core/lib/include -DCUDNN_FRONTEND_SKIP_JSON_LIB"
mkdir -p "$TIDY_CACHE"

# The hash and the includes of each file of the repository; x.proto stands for x.pb.h.
declare -A hash includes
while read -r sum name; do hash[$name]=$sum; done < <(git ls-files '*.h' '*.cc' '*.proto' | xargs sha256sum)
while IFS=: read -r name line; do
  line=${line#*\"}
  line=${line%%\"*}
  line=${line/%.grpc.pb.h/.proto}
  line=${line/%.pb.h/.proto}
  if [ -n "${hash[$line]:-}" ]; then includes[$name]+=" $line"; fi
done < <(git ls-files '*.h' '*.cc' '*.proto' | xargs grep -HE '^(#include|import) +"')

# key FILE: prints the hash of the settings, of the file and of all its headers.
settings=$(cat .clang-tidy tools/check_tidy.sh | sha256sum)
key() {
  local -A seen=([$1]=1)
  local -a queue=("$1")
  local next
  while [ ${#queue[@]} -gt 0 ]; do
    for next in ${includes[${queue[0]}]:-}; do
      if [ -z "${seen[$next]:-}" ]; then
        seen[$next]=1
        queue+=("$next")
      fi
    done
    queue=("${queue[@]:1}")
  done
  for next in "${!seen[@]}"; do echo "$next ${hash[$next]:-}"; done | sort | cat - <(echo "$settings $1") |
    sha256sum | cut -c1-40
}

# check FILE:REMEMBERED ...: checks the files as one translation unit, so that headers are parsed once. Files that do not
# compile together (tidy_groups.awk takes care of most), or have findings, are checked in halves, at last one by one.
check() {
  local half=$(($# / 2)) unit=$1 together output
  if [ $# = 1 ]; then
    unit=${1%:*}
  else
    together=$(mktemp -d)
    unit=$together/unit.cc
    printf '#include "%s"\n' "${@%:*}" > "$unit"
  fi
  # shellcheck disable=SC2086  # the flags are words
  if output=$(clang-tidy --quiet "$unit" -- $TIDY_FLAGS 2> /dev/null); then
    touch "${@#*:}"
  elif [ $# = 1 ]; then
    echo "$output"
    return 1
  else
    check "${@:1:half}"
    local first=$?
    check "${@:half + 1}" && [ $first = 0 ]
  fi
  local result=$?
  [ -z "${together:-}" ] || rm -r "$together"
  return $result
}
export -f check
todo=()
for file in "${files[@]}"; do
  remembered=$TIDY_CACHE/$(key "$file")
  if [ ! -e "$remembered" ]; then todo+=("$file:$remembered"); fi
done
echo "clang-tidy: ${#files[@]} files, ${#todo[@]} of them to check"
if [ ${#todo[@]} -gt 0 ]; then
  # shellcheck disable=SC2016  # $1 is a group of files, which have no spaces
  printf '%s\n' "${todo[@]}" | awk -f tools/tidy_groups.awk -v most="${TIDY_TOGETHER:-8}" |
    xargs -d '\n' -n 1 -P "${TIDY_JOBS:-$(nproc)}" bash -c 'check $1' check
fi
echo "clang-tidy: no findings"
