#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# sample_config.sh - packaging/samples/flashield.conf is what conf/options.def makes. Says so if not.
set -u

made=$(mktemp)
log=$(mktemp)
trap 'rm -f "$made" "$log"' EXIT
program=${BUILD:-build}/obj/release/print-sample

if ! ${MAKE:-make} CC=gcc VARIANT=release "BUILD=${BUILD:-build}" "$program" >"$log" 2>&1; then
	echo "packaging/samples/flashield.conf: can't be checked, as $program doesn't build:"
	tail -5 "$log"
elif ! "$program" >"$made" || ! cmp -s "$made" packaging/samples/flashield.conf; then
	echo "packaging/samples/flashield.conf: not current, run: make sample-config"
fi
