#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# package.sh - the Debian package has the version of conf/version.h, and is built from what
# packaging/debian-packages.txt has in its section "build". Says so if not.
set -u

control=packaging/debian/control
version=$(sed -n 's/^#define FS_VERSION "\(.*\)"$/\1/p' conf/version.h)
changelog=$(sed -n '1s/^flashield (\([^)]*\)) .*/\1/p' packaging/debian/changelog)
[ -n "$version" ] && [ "$version" = "$changelog" ] ||
	echo "packaging/debian/changelog: is of version \"$changelog\", conf/version.h says \"$version\""

# build-essential is there when a package is built; debhelper and its like are in the section "package".
listed=$(sed -n 's/^build //p' packaging/debian-packages.txt | grep -v '^build-essential$' | sort)
needed=$(sed -n '/^Build-Depends:/,/^[A-Z]/p' "$control" | sed -n 's/^ \([a-z0-9.+-]*\),.*/\1/p' | grep -v '^dh-' | sort)
[ "$listed" = "$needed" ] || {
	echo "$control: Build-Depends isn't the section build of packaging/debian-packages.txt:"
	printf '%s\n%s\n' "$listed" "$needed" | sort | uniq -u
}
