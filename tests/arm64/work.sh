# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
# What is done in the emulated machine: unit tests, then the daemon with flash in a file and on a raw drive. A line for each
# check, "PASS arm64 machine: what" or "FAIL ...", and below a failure what was seen, as tests/package/report.py prints them.
# All of it is in sh of busybox. BOUND, in seconds, ends what hangs.
PORT=11211
BOUND=1200

tell() { # tell CODE WHAT LOG
	if [ "$1" = 0 ]; then
		echo "PASS arm64 machine: $2"
	else
		echo "FAIL arm64 machine: $2 (exit code $1)"
		[ -z "$3" ] || grep -v '^ok ' "$3" | tail -n 30 | sed 's/^/  /'
	fi
}

units() {
	while read -r program; do
		CMOCKA_MESSAGE_OUTPUT=TAP timeout $BOUND "/tests/$program" </dev/null >/run/log 2>&1
		tell $? "$program" /run/log
	done </tests/list
}

ask() { # the rest of the answers to these lines
	printf '%s\r\n' "$@" quit | timeout 60 nc 127.0.0.1 $PORT 2>/dev/null | tr -d '\r'
}

start() { # start OPTION...
	flashield -u root -l 127.0.0.1 -p $PORT -t 2 --metrics-listen off --seccomp on "$@" >>/run/daemon.log 2>&1 &
	daemon=$!
	tries=0
	until ask version | grep -q ^VERSION; do
		tries=$((tries + 1))
		if [ $tries -gt 300 ] || ! kill -0 $daemon 2>/dev/null; then
			return 1
		fi
		sleep 1
	done
}

row() { # row REPORT NAME
	ask "stats $1" | sed -n "s/^STAT $2 //p"
}

stop() {
	kill -TERM $daemon
	wait $daemon
}

# Random commands from many connections, while objects move between memory and flash: each answer must be one that may be.
model() { # model WHAT OPTION...
	what=$1
	shift
	: >/run/daemon.log
	if ! start -m 4 -I 131072 --segment-size 128k --admission all --flash-read-timeout 60s "$@"; then
		tell 1 "$what: starts" /run/daemon.log
		return
	fi
	timeout $BOUND model_client --server 127.0.0.1:$PORT --name arm64 --seconds 20 --wait 300 --item-limit 131072 --value-max 100000 \
		--large 2048 --keys 20000 --rate 500 --flush-every 120 --patience 180 \
		--require flash_hits,segments_written,segments_reclaimed >/run/log 2>&1
	tell $? "$what: no answer is wrong, and objects were written, read and reclaimed" /run/log
	stop
	tell $? "$what: SIGTERM ends it with 0" /run/daemon.log
}

fill() {
	n=0
	while [ $n -lt 6000 ]; do
		printf 'set key%d 0 0 900 noreply\r\n%0900d\r\n' $n $n
		n=$((n + 1))
	done
	printf 'version\r\nquit\r\n'
}

# (values that are right, values that are wrong)
count_values() {
	n=0
	while [ $n -lt 6000 ]; do
		printf 'get key%d\r\n' $n
		n=$((n + 1))
	done >/run/gets
	printf 'quit\r\n' >>/run/gets
	timeout $BOUND nc 127.0.0.1 $PORT </run/gets | tr -d '\r' | awk '
		/^VALUE / { number = substr($2, 4); next }
		/^END/ { next }
		{ good = length($0) == 900; sub(/^0*/, ""); if (good && $0 == (number == "0" ? "" : number)) right++; else wrong++ }
		END { print right + 0, wrong + 0 }'
}

# What is on flash outlives a kill: the index in a file on tmpfs, the records on the drive.
killed() {
	: >/run/daemon.log
	set -- -m 4 --segment-size 512k --admission all --flash-path /srv/warm --flash-size 32m --region-dir /dev/shm
	start "$@"
	tell $? "with a region: starts" /run/daemon.log
	fill | timeout $BOUND nc 127.0.0.1 $PORT >/dev/null
	before=$(count_values)
	kill -KILL $daemon
	wait $daemon
	start "$@"
	tell $? "with a region: starts again after SIGKILL" /run/daemon.log
	state=$(row flash flash_start)
	after=$(count_values)
	echo "before: $before; after: $after; $state" >/run/log
	[ "${after#* }" = 0 ] && [ "${before#* }" = 0 ] && [ "${after% *}" -gt 0 ] && [ "${state#warm}" != "$state" ]
	tell $? "with a region: flash is warm after it, and each of its values is right ($(cat /run/log))" /run/log
	stop
	tell $? "with a region: SIGTERM ends it with 0" /run/daemon.log
}

units
model "flash in a file" --flash-path /srv/flash --flash-size 2m
model "flash on a raw drive" --flash-path /dev/vdb --flash-size 2m
killed
