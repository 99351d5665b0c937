#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# headers.sh - each header compiles alone, also when included twice. Prints what doesn't.
set -u

flags="-std=gnu11 -I. -D_GNU_SOURCE -Wall -Wextra -Wundef -Werror -fsyntax-only"

# A test folder's headers are covered by the tests themselves.
find . -name '*.h' -not -path './.*' -not -path './build/*' -not -path './tests/*' | sort | while read -r header; do
	header=${header#./}
	# shellcheck disable=SC2086 # the flags are words on purpose
	printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
		${CC:-cc} $flags -x c - 2>/dev/null || echo "$header: doesn't compile alone"
done
