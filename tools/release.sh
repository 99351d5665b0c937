#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# release.sh [--dry-run] FOLDER - checks that the tree is a release, and builds its packages into FOLDER, made anew.
#
# A release is a clean tree whose commit has the tag v<version>, where conf/version.h, CHANGELOG.md and
# packaging/debian/changelog name that version, nothing is left under "Unreleased", and "make check" is silent.
# All of that is looked at before anything is built, and each thing that is wrong gets a line.
# --dry-run: ends there; with exit code 0 when the tree is a release.
set -euo pipefail

usage() {
	echo "usage: release.sh [--dry-run] FOLDER" >&2
	exit 64
}

dry=
if [ "${1-}" = --dry-run ]; then
	dry=yes
	shift
fi
[ $# -eq 1 ] || usage
folder=$1

cd "$(dirname "$0")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL # the caller's jobs are not ours
wrong=0
complain() {
	echo "release: $*" >&2
	wrong=$((wrong + 1))
}

version=$(sed -n 's/^#define FS_VERSION "\(.*\)"$/\1/p' conf/version.h)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || complain "conf/version.h: \"$version\" is not MAJOR.MINOR.PATCH"

# CHANGELOG.md: the newest version with a date is this one, and all changes stand under it.
newest=$(sed -n 's/^## \[\([0-9][^]]*\)\].*/\1/p' CHANGELOG.md | head -n 1)
[ "$newest" = "$version" ] || complain "CHANGELOG.md: its newest version is \"$newest\", conf/version.h says \"$version\""
grep -Eq "^## \[${version//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md ||
	complain "CHANGELOG.md: \"## [$version] - DATE\" is missing"
left=$(sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep -c '^- ' || true)
[ "$left" -eq 0 ] || complain "CHANGELOG.md: $left changes stand under \"Unreleased\""

package=$(sed -n '1s/^flashield (\([^)]*\)) .*/\1/p' packaging/debian/changelog)
[ "$package" = "$version" ] || complain "packaging/debian/changelog: is of version \"$package\""
! sed -n 1p packaging/debian/changelog | grep -q UNRELEASED || complain "packaging/debian/changelog: says UNRELEASED"

if git rev-parse --git-dir >/dev/null 2>&1; then
	[ -z "$(git status --porcelain)" ] || complain "the tree is not clean: git status tells"
	if ! git rev-parse -q --verify "refs/tags/v$version" >/dev/null; then
		complain "there is no tag v$version"
	elif [ "$(git rev-parse "v$version^{commit}")" != "$(git rev-parse HEAD)" ]; then
		complain "the tag v$version is on another commit"
	fi
else
	complain "this is no checkout of git"
fi

if ! findings=$(make --no-print-directory check 2>&1) || [ -n "$findings" ]; then
	complain "make check is not silent:"
	printf '%s\n' "$findings" >&2
fi

if [ "$wrong" -gt 0 ]; then
	echo "release: not a release of $version: $wrong findings" >&2
	exit 1
fi
if [ "$dry" ]; then
	echo "release: this is $version; packages would be built into $folder"
	exit 0
fi

packaging/install-deps.sh build package
packaging/build-deb.sh "$folder"
(
	cd "$folder"
	rm -rf "flashield-$version"
	sha256sum -- *.deb *.dsc *.tar.* >SHA256SUMS
)
echo "release: $version is in $folder"
