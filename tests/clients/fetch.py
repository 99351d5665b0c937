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
