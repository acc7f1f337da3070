#!/bin/bash
# Checks the subject of the last commit: "area: subject" with at most 72 characters. A merge commit is not checked.
#   tools/check_commits.sh [COMMIT]
# The area is one word, mostly a folder; several are separated by ", ".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
commit=${1:-HEAD}
if ! git rev-parse --quiet --verify "$commit^{commit}" > /dev/null; then
  echo "check_commits: there is no commit $commit here"
  exit 1
fi
if git rev-parse --quiet --verify "$commit^2" > /dev/null; then exit 0; fi
subject=$(git log -1 --format=%s "$commit")
if [ "${#subject}" -gt 72 ]; then
  echo "check_commits: the subject has ${#subject} characters instead of at most 72: $subject"
  exit 1
fi
if [[ ! $subject =~ ^[A-Za-z0-9_./-]+(,\ [A-Za-z0-9_./-]+)*:\ [^\ ] ]]; then
  echo "check_commits: the subject does not begin with its area, as in \"base: subject\": $subject"
  exit 1
fi
