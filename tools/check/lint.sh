#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# lint.sh - other people's checks: spelling (codespell), shell scripts (shellcheck), Python (ruff), C (cppcheck, clang-tidy).
# Prints a line per finding. Which rules are left out, and why, stands in words.txt and cppcheck.txt here, in ruff.toml and
# in .clang-tidy.
set -u

here=$(dirname "$0")
build=${BUILD:-build}
ruff_version=0.6.9

missing() {
	command -v "$1" >/dev/null && return 1
	echo "$1 is missing: make deps-test installs it"
}

# Debian 12 has no ruff: it comes from PyPI, once.
ruff() {
	mkdir -p "$build/check"
	folder=$build/check/ruff-$ruff_version
	if [ ! -x "$folder/bin/ruff" ] && ! { /usr/bin/python3 -m venv "$folder" &&
		"$folder/bin/pip" -q --disable-pip-version-check install "ruff==$ruff_version"; } >"$build/check/pip" 2>&1; then
		echo "ruff $ruff_version could not be fetched from PyPI: $(tail -1 "$build/check/pip")"
		return
	fi
	"$folder/bin/ruff" check --quiet --output-format concise --cache-dir "$build/check/ruff-cache" . | grep -E '^[^ ]+:[0-9]+:'
}

spelling() {
	missing codespell || codespell -q 3 -I "$here/words.txt" --skip "./.git,./$build,./tests/fuzz/corpus,*.json" .
}

scripts() {
	missing shellcheck && return
	find . .ci/run packaging/debian \( -name '*.sh' -o -path .ci/run -o -name '*.p*inst' -o -name '*.p*rm' \) -not -path './.git/*' \
		-not -path "./$build/*" -print0 | xargs -0 shellcheck -f gcc -S warning
}

folders='base conf classifier flashindex segments server tools'

c() {
	# shellcheck disable=SC2086 # the folders are words on purpose
	missing cppcheck || cppcheck -q -j 2 --enable=warning,performance,portability --inline-suppr --std=c11 -I. -D_GNU_SOURCE \
		--suppressions-list="$here/cppcheck.txt" --template='{file}:{line}: {message} [{id}]' $folders 2>&1
	missing clang-tidy && return
	mkdir -p "$build/check"
	${MAKE:-make} -s compile_commands.json
	# shellcheck disable=SC2086
	find $folders -name '*.c' -print0 | xargs -0 -P 2 -n 8 clang-tidy -p . --quiet >"$build/check/tidy" 2>/dev/null
	code=$?
	sed -n "s|^$PWD/||; /: error: /p" "$build/check/tidy"
	[ $code -eq 0 ] || grep -q ': error: ' "$build/check/tidy" || echo "clang-tidy failed with $code"
}

ruff
spelling
scripts
c
