#!/bin/bash
# Copies bubblewrap and its libraries to FOLDER/sandbox, for hosts without bubblewrap:
#   tools/bundle_sandbox.sh FOLDER
# FOLDER/sandbox/bwrap starts it, even after FOLDER was moved; programs get its path from TRITONRL_BWRAP.
# It uses the host's glibc, version 2.34 or later.
set -euo pipefail
to=$1/sandbox
program=$(command -v bwrap)
mkdir -p "$to/lib"
cp -L "$program" "$to/bwrap.bin"
ldd "$program" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libdl|libpthread)[.-]' |
  xargs -r cp -nL -t "$to/lib"
cat > "$to/bwrap" << 'WRAPPER'
#!/bin/sh
# Only bubblewrap uses these libraries: it starts its command with another environment.
here=${0%/*}
LD_LIBRARY_PATH=$here/lib exec "$here/bwrap.bin" "$@"
WRAPPER
# The user that runs candidates starts bubblewrap, not the user who unpacked it.
chmod -R a+rX "$to"
chmod 755 "$to/bwrap" "$to/bwrap.bin"
