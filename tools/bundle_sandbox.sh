#!/bin/bash
# Copies bubblewrap with the libraries it needs to FOLDER/sandbox, for hosts that lack it:
#   tools/bundle_sandbox.sh FOLDER
# FOLDER/sandbox/bwrap starts it from wherever the folder was moved to; TRITONRL_BWRAP names it to our
# programs. glibc is the host's, version 2.34 or later.
set -euo pipefail
to=$1/sandbox
program=$(command -v bwrap)
mkdir -p "$to/lib"
cp -L "$program" "$to/bwrap.bin"
ldd "$program" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libdl|libpthread)[.-]' |
  xargs -r cp -nL -t "$to/lib"
cat > "$to/bwrap" << 'WRAPPER'
#!/bin/sh
# Only bubblewrap itself sees these libraries: it starts its command with an environment of its own.
here=${0%/*}
LD_LIBRARY_PATH=$here/lib exec "$here/bwrap.bin" "$@"
WRAPPER
# The user that runs candidates starts it, not the one who unpacked it.
chmod -R a+rX "$to"
chmod 755 "$to/bwrap" "$to/bwrap.bin"
