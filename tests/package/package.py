# SPDX-License-Identifier: BSD-3-Clause
"""The packages as files: found, taken apart, made anew as a later version."""
import glob
import os
import subprocess

CONF = "/etc/flashield/flashield.conf"


def find(folder, kind="flashield"):
    found = glob.glob(os.path.join(folder, f"{kind}_*.deb"))
    assert len(found) == 1, f"{len(found)} packages {kind}_*.deb in {folder}"
    return found[0]


def field(deb, name):
    return subprocess.run(["dpkg-deb", "-f", deb, name], check=True, capture_output=True, text=True).stdout.strip()


def units(deb):
    """The folder in the package in which its units are: it differs between releases."""
    listed = subprocess.run(["dpkg-deb", "-c", deb], check=True, capture_output=True, text=True).stdout
    return next(line.split()[5][1:] for line in listed.splitlines() if line.endswith("/flashield.service")).rpartition("/")[0]


def later_version(deb, work):
    """The same with the version counted up and a line more in the default configuration: (file, version)."""
    version = field(deb, "Version") + "+1"
    tree = os.path.join(work, "later")
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    for path, edit in (("DEBIAN/control", lambda text: text.replace(f"Version: {version[:-2]}\n", f"Version: {version}\n")),
                       (CONF[1:], lambda text: text + "# a default of the later version\n")):
        with open(os.path.join(tree, path), "r+", encoding="utf-8") as opened:
            text = edit(opened.read())
            opened.seek(0)
            opened.write(text)
    later = os.path.join(work, "later.deb")
    subprocess.run(["dpkg-deb", "-b", "--root-owner-group", "-Znone", tree, later], check=True, capture_output=True)
    assert field(later, "Version") == version
    return later, version


def build_id(path):
    """Of a program, as its debug symbols are filed: "ab/cdef...debug"."""
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    number = notes.partition("Build ID: ")[2].split()[0]
    return f"{number[:2]}/{number[2:]}.debug"
