# SPDX-License-Identifier: BSD-3-Clause
"""Two memcacheds, from Debian's source packages: the newest one of its newer suites, and the one of Debian 12. They are fetched by
apt, which checks them, and built once in build/upstream. Their programs are what tests/compare and tests/clients compare with, and
their own tests are what run.py runs.

    tree = source.built()           the folder with the newest memcached, memcached-debug, timedrun and t/; or Missing, with the reason
    tree = source.built("debian")   that with Debian 12's

MEMCACHED_SOURCE names an unpacked source of another version instead of the newest; it is copied and built here too.
"""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "upstream"

VERSION = "1.6.45"
VERSIONS = {"newest": VERSION, "debian": "1.6.18"}
# The newer suites move on to later versions; which of them has this one still is not asked beforehand. Debian 12 stays at its version.
SUITES = {"newest": ("unstable", "testing"), "debian": ("bookworm",)}
PACKAGES = {"newest": f"memcached={VERSION}-1", "debian": "memcached/bookworm"}
MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

# As Debian configures it, without the proxy: that would want Lua.
CONFIGURE = ["./configure", "--enable-sasl", "--enable-sasl-pwdb", "--enable-tls"]
GOALS = ["memcached", "memcached-debug", "timedrun", "sizes", "testapp"]
FETCH_SECONDS = 300
BUILD_SECONDS = 600


class Missing(Exception):
    """Why there is none here."""


def run(command, seconds, why, **more):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, **more)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{why}: {error}") from error
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if re.match(r"E:|.*(error|Error)", line)]
        raise Missing(f"{why}: {(lines or [f'exit code {done.returncode}'])[0]}")
    return done.stdout


def apt_root(folder, suites):
    """A root of apt's own with nothing but the sources of these suites. The system's is left alone; only its way to the network
    is taken over."""
    for name in ("etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "etc" / "sources.list").write_text("".join(
        f"deb-src [signed-by={KEYRING}] {MIRROR} {suite} main\n" for suite in suites))
    network = [line for line in run(["apt-config", "dump"], FETCH_SECONDS, "apt-config").splitlines() if line.startswith("Acquire::http")]
    # The version is pinned, so a mirror that is behind is as good as another.
    (folder / "apt.conf").write_text("\n".join([
        *network, f'Dir::Etc "{folder}/etc"; Dir::State "{folder}/state"; Dir::Cache "{folder}/cache";',
        'Acquire::Check-Valid-Until "false"; Acquire::Retries "1"; Acquire::http::Timeout "20"; APT::Sandbox::User "root";\n']))
    return dict(os.environ, APT_CONFIG=str(folder / "apt.conf"))


def fetch(which, into):
    """Unpacks the source there."""
    package = PACKAGES[which]
    for program in ("apt-get", "apt-config", "perl", "make", "gcc"):
        if not shutil.which(program):
            raise Missing(f"{program} isn't installed")
    with tempfile.TemporaryDirectory() as folder:
        env = apt_root(pathlib.Path(folder), SUITES[which])
        run(["apt-get", "-q", "update", "--error-on=any"], FETCH_SECONDS, "apt-get update", env=env)
        run(["apt-get", "-q", "--tar-only", "--download-only", "source", package], FETCH_SECONDS,
            f"apt-get source {package} from {' and '.join(SUITES[which])}", env=env, cwd=folder)
        archives = list(pathlib.Path(folder).glob(f"memcached_{VERSIONS[which]}.orig.tar.*"))
        if len(archives) != 1:
            raise Missing(f"apt-get source {package} has left {len(archives)} archives of {VERSIONS[which]}")
        run(["tar", "-xf", str(archives[0]), "--strip-components=1", "-C", str(into)], FETCH_SECONDS, "tar")


def build(tree):
    run(CONFIGURE, BUILD_SECONDS, "configure of memcached", cwd=tree)
    run(["make", f"-j{os.cpu_count()}", *GOALS], BUILD_SECONDS, "make of memcached", cwd=tree)


def make_tree(which, folder, given):
    shutil.rmtree(folder, ignore_errors=True)
    work = folder.with_name(folder.name + ".new")
    shutil.rmtree(work, ignore_errors=True)
    if given:
        shutil.copytree(given, work, symlinks=True)
    else:
        work.mkdir(parents=True)
        fetch(which, work)
    build(work)
    work.rename(folder)


def built(which="newest"):
    """The folder of a built memcached. It is made by whoever comes first; others wait."""
    given = os.environ.get("MEMCACHED_SOURCE") if which == "newest" else None
    folder = CACHE / (f"given-{pathlib.Path(given).resolve().name}" if given else f"memcached-{VERSIONS[which]}")
    if given and not pathlib.Path(given, "configure").exists():
        raise Missing(f"MEMCACHED_SOURCE={given} has no configure")
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "memcached").exists():
            make_tree(which, folder, given)
    return folder
