#!/bin/bash
# Unpacks the pinned wheels once for each lock file and prints the folder they are in.
#
#   install.sh wheels  PYTHON LOCK_FILE   site-packages folder of the wheels
#   install.sh sources PYTHON LOCK_FILE   folder with the unpacked source packages
#   install.sh headers PYTHON LOCK_FILE   folder with the header folders of wheels that bring headers
#
# The folder is named after the lock file's hash and is renamed into place only when it is complete, so an
# interrupted set-up starts this step again, a second one finds it and needs no network, and several
# checkouts share it. Root's copy lies outside /root, since checked programs run as another user.
set -euo pipefail
kind=$1 python=$2 lock=$3
if [ -n "${TRITONRL_CACHE:-}" ]; then
  cache=$TRITONRL_CACHE
elif [ "$(id -u)" = 0 ]; then
  cache=/var/cache/tritonrl
else
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/tritonrl
fi
digest=$(sha256sum "$lock" | cut -c1-16)
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
target=$cache/$kind-$tag-$digest
if [ -d "$target" ]; then echo "$target"; exit 0; fi

mkdir -p "$cache"
exec 9>"$cache/.lock-$kind"
flock 9   # two set-ups at once: the second waits and finds the folder
if [ -d "$target" ]; then echo "$target"; exit 0; fi
rm -rf "$cache/.partial-$kind"-*
partial=$(mktemp -d "$cache/.partial-$kind-XXXXXX")
chmod 755 "$partial"
umask 022
pip=("$python" -m pip --disable-pip-version-check --no-input)
if [ "$kind" = wheels ]; then
  "${pip[@]}" install --quiet --no-deps --require-hashes --only-binary=:all: --no-compile \
    --root-user-action=ignore --target "$partial" -r "$lock" >&2
  # Byte code of what is imported at every start of a worker or test: 4 s instead of 10 s each time.
  PYTHONPATH=$partial env -u PYTHONDONTWRITEBYTECODE "$python" -c '
import torch, torch._dynamo, triton, numpy, sympy, safetensors.torch, tokenizers
import matplotlib.pyplot, tensorboardX, transformers.models.qwen3.modeling_qwen3
import transformers.models.llama.modeling_llama, openai, pyarrow.parquet
client = openai.OpenAI(api_key="none")
client.models, client.completions, client.chat.completions' >&2
elif [ "$kind" = headers ]; then
  "${pip[@]}" download --quiet --no-deps --require-hashes --only-binary=:all: --dest "$partial" -r "$lock" >&2
  for wheel in "$partial"/*.whl; do
    "$python" -c '
import sys, zipfile
# Of FlashInfer also the CCCL and CUTLASS that it was written for.
folders = ["include/", "flashinfer/data/include/"]
folders += ["flashinfer/data/cutlass/" + part for part in ("include/", "tools/util/include/")]
folders += ["flashinfer/data/cccl/" + part for part in ("cub/", "libcudacxx/include/", "thrust/")]
with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith(tuple(folders))])
' "$wheel" "$partial"
    rm "$wheel"
  done
else
  "${pip[@]}" download --quiet --no-deps --require-hashes --no-binary=:all: --no-build-isolation \
    --dest "$partial" -r "$lock" >&2
  for archive in "$partial"/*.tar.gz; do tar -xzf "$archive" -C "$partial" && rm "$archive"; done
fi
mv "$partial" "$target"
echo "$target"
