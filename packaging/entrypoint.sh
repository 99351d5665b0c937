#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The image's entry point. Options start the daemon with them, as the daemon's name before them does, or memcached's; without a word the
# image's own options do. Any other command is run as it is.
set -eu
state=/var/lib/flashield

case "${1-}" in
-*) ;;
"") set -- --listen 0.0.0.0 --metrics-listen 0.0.0.0:9151 --memory-limit 256m
	[ ! -w "$state" ] || set -- "$@" --flash-path "$state/flash" --flash-size 4g --flash-min-free 8g ;;
flashield | memcached) shift ;;
# What the charts for Bitnami's image run: it has options in the environment.
/run.sh | /opt/bitnami/scripts/memcached/run.sh)
	shift
	if [ -n "${MEMCACHED_PASSWORD-}" ]; then
		echo "MEMCACHED_PASSWORD has no effect here: give a file of users by --auth-file" >&2
		exit 64
	fi
	# shellcheck disable=SC2086 # the extra flags are words on purpose
	set -- -p "${MEMCACHED_PORT_NUMBER:-11211}" -v ${MEMCACHED_LISTEN_ADDRESS:+-l "$MEMCACHED_LISTEN_ADDRESS"} \
		${MEMCACHED_CACHE_SIZE:+-m "$MEMCACHED_CACHE_SIZE"} ${MEMCACHED_MAX_CONNECTIONS:+-c "$MEMCACHED_MAX_CONNECTIONS"} \
		${MEMCACHED_THREADS:+-t "$MEMCACHED_THREADS"} ${MEMCACHED_MAX_ITEM_SIZE:+-I "$MEMCACHED_MAX_ITEM_SIZE"} \
		${MEMCACHED_EXTRA_FLAGS-} "$@"
	;;
*) exec "$@" ;;
esac

# Another user than the image's may not write there, and a read-only root has no place without a volume.
if [ -w "$state" ]; then
	set -- --state-dir "$state" "$@"
else
	echo "nothing outlives a stop: $state can't be written" >&2
fi
exec flashield "$@"
