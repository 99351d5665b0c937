# SPDX-License-Identifier: BSD-3-Clause
"""The releases in which the package is built and tried, and where each of them is had."""
import hashlib
import os
import subprocess
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass

DEBIAN = "http://deb.debian.org/debian"
UBUNTU = "http://archive.ubuntu.com/ubuntu"


@dataclass(frozen=True)
class Release:
    name: str
    mirror: str = DEBIAN
    components: str = "main"
    script: str = ""  # of debootstrap, for a release that Debian 12's doesn't know yet
    keyring: str = "/usr/share/keyrings/debian-archive-keyring.gpg"
    # The package of Debian's that has the keyring, and the sum of it, where Debian 12 has no such package.
    keyring_package: str = ""
    keyring_sum: str = ""

    def index(self):
        return f"{self.mirror}/dists/{self.name}/InRelease"

    def why_not(self):
        """Why it can't be had here, or None."""
        try:
            urllib.request.urlopen(self.index(), timeout=15).close()
        except (OSError, urllib.error.URLError) as why:
            return f"{self.mirror} can't be reached: {why}"
        return None

    def find_keyring(self, folder):
        """The file of keys by which debootstrap trusts the mirror; it may be unpacked into the folder."""
        if os.path.exists(self.keyring) or not self.keyring_package:
            return self.keyring
        with urllib.request.urlopen(f"{DEBIAN}/{self.keyring_package}", timeout=60) as answer, tempfile.NamedTemporaryFile() as deb:
            deb.write(answer.read())
            deb.flush()
            with open(deb.name, "rb") as written:
                found = hashlib.sha256(written.read()).hexdigest()
            assert found == self.keyring_sum, f"{self.keyring_package} has the sum {found}"
            subprocess.run(["dpkg-deb", "-x", deb.name, folder], check=True)
        return folder + self.keyring

    def is_here(self):
        """Is it the release of this machine, whose compiler and libraries are at hand?"""
        with open("/etc/os-release", encoding="utf-8") as lines:
            return f"VERSION_CODENAME={self.name}\n" in lines.readlines()


RELEASES = {release.name: release for release in (
    Release("bookworm"),
    Release("trixie"),
    Release("noble", UBUNTU, "main,universe", "/usr/share/debootstrap/scripts/gutsy", "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
            "pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1-0.2_all.deb",
            "b2e7ed48431bf9e7978ae810bbdaf253093570d6e3f864e575b7c13554b81174"),
)}
