#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# build-deb.sh FOLDER - builds the Debian packages from a copy of the tree as it is now, committed or
# not. FOLDER is made anew; packages, sources and the copy lie in it, and nothing is written elsewhere. DEB_HOST_ARCH=arm64 builds
# for another machine than this one (packaging/README.md).
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
version=$(dpkg-parsechangelog -l "$top/packaging/debian/changelog" -S Version)
case $1 in /*) folder=$1 ;; *) folder=$top/$1 ;; esac
copy=$folder/flashield-$version

rm -rf "$folder"
mkdir -p "$copy"

# What git has or would have; outside of a checkout, all but what is built.
list_files() {
	git -c safe.directory='*' ls-files --cached --others --exclude-standard -z 2>/dev/null ||
		find . -name .git -prune -o -path ./build -prune -o -name __pycache__ -prune -o ! -type d -print0
}
# Files that were deleted but are still in git's index are passed over.
cd "$top"
list_files | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
	tar -c --null --no-recursion --files-from=- -f - | tar -x -C "$copy" -f -
mv "$copy/packaging/debian" "$copy/debian"
tools/build-info.sh --commit >"$copy/packaging/commit"

# The caller's make, compiler flags and variant aren't the package's.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES VARIANT BUILD CC CFLAGS CPPFLAGS LDFLAGS PREFIX DESTDIR
options=${DEB_BUILD_OPTIONS-nocheck}
DEB_BUILD_OPTIONS="${options:+$options }parallel=$(nproc)"
export DEB_BUILD_OPTIONS
case $DEB_BUILD_OPTIONS in *nocheck*) export DEB_BUILD_PROFILES=nocheck ;; esac

cd "$copy"
dpkg-buildpackage -us -uc ${DEB_HOST_ARCH:+--host-arch "$DEB_HOST_ARCH"} >"$folder/build.log" 2>&1 || {
	tail -40 "$folder/build.log" >&2
	echo "build-deb: failed; all of it is in $folder/build.log" >&2
	exit 1
}
ls "$folder"/*.deb
