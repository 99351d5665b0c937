#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# install-deps.sh SECTION... - installs the Debian packages of these sections of
# debian-packages.txt that are missing. Quick and silent when there is nothing to do.
set -eu

list=$(dirname "$0")/debian-packages.txt

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "install-deps: not a Debian system; needed are the counterparts of the packages in $list" >&2
	exit 0
fi

installed() {
	dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q 'ok installed'
}

# Of packages with | between them: is one installed?
one_installed() {
	for one in $(echo "$1" | tr '|' ' '); do
		! installed "$one" || return 0
	done
	return 1
}
# Which of them is the first that apt can install?
first_known() {
	for one in $(echo "$1" | tr '|' ' '); do
		if apt-cache show "$one" >/dev/null 2>&1; then
			echo "$one"
			return
		fi
	done
	echo "$1" | cut -d '|' -f 1 # apt-get tells that it doesn't know it
}

missing=
for section in "$@"; do
	entries=$(sed -n "s/^$section //p" "$list")
	for entry in $entries; do
		one_installed "$entry" || missing="$missing $entry"
	done
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "install-deps: missing packages:$missing" >&2
		echo "install-deps: neither root nor sudo is here to install them; run as root: apt-get install$missing" >&2
		exit 1
	fi
	as_root=sudo
fi

# Some packages bring services (memcached, prometheus) that a build or a test has no use for: none is started while they are
# installed here, by Debian's own switch. One that is there already is the administrator's, and stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap '$as_root rm -f "$policy"' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
	$as_root chmod 755 "$policy"
fi

echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # the list is words on purpose
{
	$as_root apt-get -q -o DPkg::Lock::Timeout=120 update &&
		chosen=$(for entry in $missing; do first_known "$entry"; done) &&
		$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 \
			install -y --no-install-recommends $chosen </dev/null
} >&2 || {
	echo "install-deps: apt-get could not install:$missing" >&2
	exit 1
}
