#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# reference.sh - manual pages and guides say what the tables of options, counters and metrics say, and the pages are
# well formed. Says what isn't so.
set -u

log=$(mktemp)
trap 'rm -f "$log"' EXIT
program=${BUILD:-build}/obj/release/print-reference

if ! ${MAKE:-make} CC=gcc VARIANT=release "BUILD=${BUILD:-build}" "$program" >"$log" 2>&1; then
	echo "packaging/doc, packaging/man: can't be checked, as $program doesn't build:"
	tail -5 "$log"
else
	/usr/bin/python3 "$(dirname "$0")/reference.py" "$program" check
fi

# Where there is no man, its warnings can't be seen; the package's own check sees them.
if command -v groff >/dev/null; then
	for page in packaging/man/*.[158]; do
		groff -mandoc -Tutf8 -ww -z "$page" 2>&1
	done
fi
