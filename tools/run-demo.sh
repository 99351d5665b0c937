#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run-demo.sh - what "make run" shows: a daemon with a flash file in build/run under a generated
# load, then left serving until Ctrl-C.
#
#   RUN_SECONDS=n   end by itself n seconds after the report (0 at once). Without it, and with
#                   standard input not a terminal, it ends after the report.
#   RUN_PORT=n      another port than 11211
#   RUN_SCALE=x     size of the generated trace
set -euo pipefail
cd "$(dirname "$0")/.."

run=build/run
port=${RUN_PORT:-11211}
scale=${RUN_SCALE:-0.005}
start_seconds=120 # a slow disk takes its time to preallocate the flash file
stop_seconds=30
daemon=

say() {
	printf '\n== %s\n' "$*"
}

die() {
	printf 'run-demo: %s\n' "$*" >&2
	exit 1
}

answers() {
	(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}

stop_daemon() {
	[ -n "$daemon" ] || return 0
	kill -TERM "$daemon" 2>/dev/null || true
	for ((i = 0; i < stop_seconds * 10; i++)); do
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$daemon" 2>/dev/null || true
	wait "$daemon" 2>/dev/null || true
	daemon=
}
trap stop_daemon EXIT
trap 'exit 130' INT TERM HUP

mkdir -p "$run"
answers && die "something answers on port $port already (a memcached? systemctl stop memcached); or take RUN_PORT=n"
free_kib=$(df -Pk "$run" | awk 'NR == 2 { print $4 }')
have_kib=$(($(stat -c %b "$run/flash" 2>/dev/null || echo 0) / 2))
[ $((free_kib + have_kib)) -gt $((2300 * 1024)) ] ||
	die "$run needs 2.3 GiB of disk, but $((free_kib / 1024)) MiB are free"

say "a daemon on 127.0.0.1:$port with 128 MiB of memory and a flash file of 2 GiB ($run/flash)"
echo "   Training window and horizon are 5 seconds each, so that a model is trained within the replay;"
echo "   in production they are a day and as long as objects stay on flash."
as_user=()
[ "$(id -u)" -ne 0 ] || as_user=(-u root)
build/flashield -l 127.0.0.1 -p "$port" -U 0 -m 128 --metrics-listen=off "${as_user[@]}" \
	--flash-path "$run/flash" --flash-size 2g --training-window 5s --flashiness-horizon 5s -v \
	>"$run/flashield.log" 2>&1 &
daemon=$!
for ((i = 0; i < start_seconds * 10; i++)); do
	answers && break
	kill -0 "$daemon" 2>/dev/null || {
		cat "$run/flashield.log" >&2
		daemon=
		die "the daemon ended"
	}
	sleep 0.1
done
answers || die "the daemon doesn't answer after $start_seconds s; see $run/flashield.log"
cat "$run/flashield.log"

say "a Memcachier-like sample ($scale of the published trace): $run/sample.csv.gz"
build/flashield-tracegen --scale "$scale" --seed 1 --format memcachier --quiet --output "$run/sample.csv.gz"

say "its replay"
build/flashield-replay --server "127.0.0.1:$port" --mode look-aside --connections 8 --warmup 0.15 \
	--json "$run/report.json" "$run/sample.csv.gz"
echo
echo "The report is in $run/report.json too, the daemon's log in $run/flashield.log."

if [ -n "${RUN_SECONDS:-}" ]; then
	say "serving for $RUN_SECONDS s more"
	sleep "$RUN_SECONDS" &
	wait -n $! "$daemon" || true
elif [ -t 0 ]; then
	say "serving on 127.0.0.1:$port until Ctrl-C"
	trap 'exit 0' INT
	wait "$daemon" || die "the daemon ended; see $run/flashield.log"
fi
[ -z "$daemon" ] || kill -0 "$daemon" 2>/dev/null || die "the daemon ended; see $run/flashield.log"
