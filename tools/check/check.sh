#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check.sh - style and consistency, for "make check". Silent when clean; otherwise a line per
# finding, and exit code 1. Run from the top folder.
set -u

here=$(dirname "$0")
findings=$(mktemp)
trap 'rm -f "$findings"' EXIT

python3=/usr/bin/python3
[ -x "$python3" ] || python3=python3

"$python3" "$here/sources.py" >>"$findings" 2>&1 || [ -s "$findings" ] || echo "tools/check/sources.py failed" >>"$findings"
"$python3" "$here/figures.py" >>"$findings" 2>&1
"$python3" "$here/shapes.py" >>"$findings" 2>&1
"$python3" "$here/proofs.py" >>"$findings" 2>&1
"$python3" "$here/waits.py" >>"$findings" 2>&1 || [ -s "$findings" ] || echo "tools/check/waits.py failed" >>"$findings"
"$python3" tests/mutants/run.py --check >>"$findings" 2>&1
"$python3" tests/sched/races.py --check >>"$findings" 2>&1
"$python3" "$here/vocabulary.py" >>"$findings" 2>&1 || [ -s "$findings" ] || echo "tools/check/vocabulary.py failed" >>"$findings"
"$python3" "$here/names.py" >>"$findings" 2>&1 || [ -s "$findings" ] || echo "tools/check/names.py failed" >>"$findings"
sh "$here/format.sh" >>"$findings" 2>&1
sh "$here/headers.sh" >>"$findings" 2>&1
sh "$here/lint.sh" >>"$findings" 2>&1
sh "$here/sample_config.sh" >>"$findings" 2>&1
sh "$here/reference.sh" >>"$findings" 2>&1
sh "$here/package.sh" >>"$findings" 2>&1

if [ -s "$findings" ]; then
	cat "$findings"
	exit 1
fi
