#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# build-info.sh VARIANT COMPILER... - prints a C source with the text that "flashield --version" adds: commit, compiler, libraries.
#
# The commit is git's, where this tree is a checkout, with "modified" if tracked files differ from it. Else it is that of
# packaging/commit, which git archive and build-deb.sh write; else it is unknown.
# build-info.sh --commit - prints the commit alone.
set -euo pipefail
cd "$(dirname "$0")/.."

git_here() {
	git -c safe.directory='*' "$@" 2>/dev/null
}

commit() {
	local found
	# A checkout of something else may lie around an unpacked tarball.
	if [ -e .git ] && found=$(git_here rev-parse --short=12 HEAD); then
		[ -z "$(git_here status --porcelain --untracked-files=no)" ] || found="$found, modified"
	else
		found=$(cat packaging/commit 2>/dev/null || true)
		case $found in '' | *Format*) found=unknown ;; esac
	fi
	printf '%s\n' "$found"
}

library() {
	local version
	! version=$("${PKG_CONFIG:-pkg-config}" --modversion "$2" 2>/dev/null) || printf ' %s %s,' "$1" "$version"
}

libraries() {
	library libevent libevent
	library OpenSSL openssl
	library jemalloc jemalloc
	library jansson jansson
	library inih inih
	library libsasl2 libsasl2
	library libsystemd libsystemd
	library libseccomp libseccomp
	library prometheus-cpp prometheus-cpp-core
	library libmicrohttpd libmicrohttpd
	library GnuTLS gnutls
	library libxcrypt libxcrypt
	library xxHash libxxhash
}

if [ "$1" = --commit ]; then
	commit
	exit 0
fi
variant=$1
shift
compiler=$("$@" --version 2>/dev/null | head -n 1)
built_with=$(libraries)
text="commit $(commit)\\ncompiler ${compiler:-unknown}, $variant\\nlibraries${built_with%,}\\n"
printf '/* Made by tools/build-info.sh. */\n#include "server/build_info.h"\n\nconst char build_info[] = "%s";\n' "${text//\"/}"
