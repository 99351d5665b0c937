# SPDX-License-Identifier: BSD-3-Clause
"""What suites need: programs and modules of Debian's packages, and pinned downloads, kept in build/clients.

A need is a function that returns what a suite's command uses, or raises Missing with the reason. Each is looked for
once in a run, and downloaded once in the life of build/clients.
"""
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import servers

CACHE = pathlib.Path(os.environ.get("CLIENTS_CACHE", str(servers.ROOT / "build" / "clients"))).resolve()


class Missing(Exception):
    """Why a suite can't be run here."""


def need(function):
    """Once per run, by whoever comes first; the others wait for it and get the same answer."""
    lock = threading.Lock()
    answers = []

    @functools.wraps(function)
    def once():
        with lock:
            if not answers:
                try:
                    answers.append((function(), None))
                except Missing as why:
                    answers.append((None, why))
        value, why = answers[0]
        if why:
            raise why
        return value
    return once


def program(name, package):
    found = shutil.which(name)
    if not found:
        raise Missing(f"{name} (Debian's {package}) isn't installed")
    return found


def module(name, package):
    if subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode:
        raise Missing(f"Python's {name} (Debian's {package}) isn't installed")
    return name


@need
def memccapable():
    return program("memccapable", "libmemcached-tools")


@need
def pylibmc():
    return module("pylibmc", "python3-pylibmc")


@need
def python_memcached():
    return module("memcache", "python3-memcache")


@need
def pymemcache():
    return module("pymemcache", "python3-pymemcache")


@need
def bmemcached():
    return module("bmemcached", "python3-binary-memcached")


@need
def django():
    return module("pymemcache, django", "python3-django")


@need
def php():
    program("php", "php-cli")
    if b"memcached" not in subprocess.run(["php", "-m"], capture_output=True, check=False).stdout.split():
        raise Missing("PHP's memcached (Debian's php-memcached) isn't installed")


@need
def dalli():
    program("ruby", "ruby")
    if subprocess.run(["ruby", "-e", "require 'dalli'"], capture_output=True, check=False).returncode:
        raise Missing("Ruby's dalli (Debian's ruby-dalli) isn't installed")


@need
def memcached_tool():
    if not os.path.exists("/usr/share/memcached/scripts/memcached-tool"):
        raise Missing("memcached-tool (Debian's memcached) isn't installed")
    program("perl", "perl")


@need
def openssl():
    return program("openssl", "openssl")


@need
def sasl():
    for path in os.environ.get("PATH", "").split(os.pathsep) + ["/usr/sbin"]:
        if os.access(os.path.join(path, "saslpasswd2"), os.X_OK):
            return
    raise Missing("saslpasswd2 (Debian's sasl2-bin) isn't installed")


# ---- what Debian doesn't have -----------------------------------------------------------------

FETCH_SECONDS = 300
PYPI = {"pymemcache": "4.0.0", "python-memcached": "1.62", "python-binary-memcached": "0.31.4", "pylibmc": "1.6.3"}
PYPI_BESIDE = ["trustme==1.2.1"]  # what their tests import


def download(name, version, make):
    """A folder of build/clients with what make(folder) puts there; made anew when the version changes."""
    folder = CACHE / name
    stamp = folder / "stamp"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == version:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make(folder)
    stamp.write_text(version, encoding="utf-8")
    return folder


def fetched(what, command, **more):
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False,
                                stdin=subprocess.DEVNULL, **more)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{what}: {error}") from None
    if result.returncode:
        last = (result.stderr.strip() or result.stdout.strip() or "no reason given").splitlines()[-1]
        raise Missing(f"{what} couldn't be fetched: {last[:200]}")


@need
def pypi():
    """{package: folder of its source}, for the tests that are in it, and under "python" an interpreter that has them."""
    def make(folder):
        fetched("a Python environment", [sys.executable, "-m", "venv", "--system-site-packages", str(folder / "venv")])
        pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]
        fetched("PyPI's packages", [*pip, "install", *PYPI_BESIDE])
        for name, version in PYPI.items():
            fetched(f"PyPI's {name}", [*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", str(folder),
                                       f"{name}=={version}"])
        for archive in folder.glob("*.tar.gz"):
            shutil.unpack_archive(archive, folder)
    folder = download("pypi", repr((PYPI, PYPI_BESIDE, sys.version_info)), make)
    found = {name: next(path for path in (folder / f"{name}-{version}", folder / f"{name.replace('-', '_')}-{version}")
                        if path.is_dir()) for name, version in PYPI.items()}
    return {**found, "python": str(folder / "venv" / "bin" / "python")}


@need
def node():
    """The folder of node_modules."""
    program("node", "nodejs")
    program("npm", "npm")
    source = servers.HERE / "node"

    def make(folder):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, folder)
        fetched("npm's packages", ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder)
    return download("node", (source / "package-lock.json").read_text(encoding="utf-8"), make) / "node_modules"


@need
def go():
    """(source of the Go client, the environment to build it in)"""
    program("go", "golang-go")
    env = dict(os.environ, GOPATH=str(CACHE / "gopath"), GOCACHE=str(CACHE / "gocache"), GOFLAGS="-modcacherw",
               GOTOOLCHAIN="local")
    CACHE.mkdir(parents=True, exist_ok=True)
    source = servers.HERE / "go"
    fetched("Go's modules", ["go", "mod", "download"], cwd=source, env=env)
    found = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", "github.com/bradfitz/gomemcache"], cwd=source, env=env,
                           capture_output=True, text=True, check=False)
    if found.returncode:
        raise Missing(f"Go's modules: {found.stderr.strip()[-200:]}")
    return pathlib.Path(found.stdout.strip()), env


@need
def java():
    """The class path of the Java clients and of our programs."""
    for name, package in (("java", "default-jdk-headless"), ("javac", "default-jdk-headless"), ("mvn", "maven")):
        program(name, package)
    source = servers.HERE / "java"
    pom = source / "pom.xml"

    def make(folder):
        fetched("Maven's packages", ["mvn", "-q", "-B", "-f", str(pom), f"-Dmaven.repo.local={CACHE / 'm2'}",
                                     "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
                                     f"-DoutputDirectory={folder}"])
    jars = download("java", pom.read_text(encoding="utf-8"), make)
    classes = CACHE / "classes"
    fetched("the Java programs", ["javac", "-cp", f"{jars}/*", "-d", str(classes), *map(str, source.glob("*.java"))])
    return f"{jars}/*:{classes}"
