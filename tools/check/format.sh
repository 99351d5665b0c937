#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# format.sh - prints each C and C++ source that "make format" would change.
set -u

if ! command -v clang-format >/dev/null; then
	echo "clang-format is missing: make deps-test installs it"
	exit 1
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT
find . \( -name '*.c' -o -name '*.h' -o -name '*.cc' \) -not -path './.*' -not -path './build/*' -print0 |
	xargs -0 -P 2 -n 40 clang-format --dry-run >"$output" 2>&1 || echo "clang-format failed: $(head -1 "$output")"
sed -n 's/^\.\/\([^:]*\):.*\[-Wclang-format-violations\]$/\1: make format would change it/p' "$output" | sort -u
