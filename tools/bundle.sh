#!/bin/bash
# Packs programs for a GPU machine that has torch's wheels but no build tools:
#   tools/bundle.sh OUT.tar.gz //trainer:sft //trainer:grpo_hrd ...
# An argument that is a path instead of a label is a script, which is packed beside `run` without its suffix .sh.
# The archive has bin/ (programs), runfiles/ (their data), lib/ (Debian's libraries, without glibc and
# libstdc++), sandbox/ (bubblewrap) and `run`, which starts a program:  ./run sft --config=...
# The machine needs Python with torch 2.11 (CUDA 13) and triton 3.6; ./run finds them by python3.
set -euo pipefail
out=$(realpath -m "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
targets=()
for argument in "$@"; do
  case $argument in
    //*) targets+=("$argument") ;;
    *) install -m 755 "$argument" "$folder/$(basename "$argument" .sh)" ;;
  esac
done
set -- "${targets[@]}"
./bazelw build "$@"
mkdir -p "$folder"/{bin,lib,runfiles/tritonrl}
shared_names=$(printf '%s\n' "${@/*:/}" | sort | uniq -d)

for target in "$@"; do
  path=${target#//}
  program=bazel-bin/${path/://}
  # An alias has no program of its own in bazel-bin; its actual target has.
  if [ ! -f "$program" ]; then
    actual=$(bazel query --output=build "$target" 2> /dev/null | sed -n 's/^  actual = "\(.*\)",$/\1/p')
    path=${actual#//}
    program=bazel-bin/${path/://}
  fi
  name=${path/*:/}
  # Programs with equal names are named by their labels: model_device_test, rollout_cuda_device_test.
  if grep -qx "$name" <<< "$shared_names"; then name=$(tr '/:' '__' <<< "$path"); fi
  cp -L "$program" "$folder/bin/$name"
  # Packs data files only: the GPU machine has the shared objects of the wheels.
  (cd "$program.runfiles/tritonrl" && find . \( -path ./_solib_k8 -o -path ./external \) -prune -o \
    \( -type f -o -type l \) ! -name "$(basename "$program")" -print0 |
    tar --null -chf - -T - ) | tar -xf - -C "$folder/runfiles/tritonrl"
  ldd "$program" | awk '$3 ~ /^\/(usr\/)?lib\// {print $3}' |
    grep -vE '/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libutil)[.-]' |
    xargs -r cp -nL -t "$folder/lib"
done
# The archive would keep the mode 0700 that mktemp gives the folder, but the sandbox's user must be able to enter.
chmod -R u+w,go+rX "$folder"
tools/bundle_sandbox.sh "$folder"
git rev-parse HEAD 2> /dev/null | cut -c1-7 > "$folder/commit" || true  # benches write it to their --csv

cat > "$folder/run" << 'RUN'
#!/bin/bash
# ./run PROGRAM [ARGUMENTS]: starts a program of bin/ with the libraries of this machine's torch.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${TRITONRL_PYTHON:-$(command -v python3)}
libraries=$("$python" - << 'P'
import glob, importlib.util, os
torch = os.path.dirname(importlib.util.find_spec("torch").origin)
site = os.path.dirname(torch)
print(":".join([torch + "/lib"] + sorted(glob.glob(site + "/nvidia/*/lib"))))
P
)
export LD_LIBRARY_PATH=$libraries:$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export TRITONRL_RUNFILES=$here/runfiles TRITONRL_PYTHON=$python TRITONRL_COMMIT=$(cat "$here/commit")
# Prefers the host's bubblewrap, as its security policy may let only that one create user namespaces.
if [ -z "${TRITONRL_BWRAP:-}" ] && ! bwrap --help 2> /dev/null | grep -q -- --disable-userns; then
  export TRITONRL_BWRAP=$here/sandbox/bwrap
fi
program=$1
shift
exec "$here/bin/$program" "$@"
RUN
chmod +x "$folder/run"
tar -C "$folder" -czf "$out" .
echo "$out: $(du -h "$out" | cut -f1)"
