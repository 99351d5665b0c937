# SPDX-License-Identifier: BSD-3-Clause
"""The suites: a row says what it needs, which daemons it talks to, how it is run and how its tests are counted."""
import os
import sys
from dataclasses import dataclass, field
from typing import Callable

import counting
import fetch
import servers

HERE = servers.HERE
EVERYWHERE = ("dram", "flash")


@dataclass
class Setup:
    """What a suite's daemons are started with beyond their place's options."""
    options: list = field(default_factory=list)
    env: dict = field(default_factory=dict)
    tls: bool = False


@dataclass
class Context:
    place: str
    folder: str  # the suite's own, removed afterwards
    servers: list  # "127.0.0.1:PORT"
    tools: dict  # what each need returned, by its name
    setup: Setup


@dataclass
class Suite:
    name: str
    command: Callable  # Context -> argv
    count: Callable = counting.ours
    needs: list = field(default_factory=list)
    servers: int = 1
    setup: Callable = None  # (folder, place) -> Setup
    places: tuple = EVERYWHERE
    seconds: int = 120
    least_from_flash: int = 5


def drop_in(folder, place):
    """The environment in which "memcached" is the daemon under test, for suites that start it themselves."""
    bin_folder = os.path.join(folder, "bin")
    os.mkdir(bin_folder)
    wrapper = os.path.join(bin_folder, "memcached")
    user = " -u nobody" if os.geteuid() == 0 else ""
    with open(wrapper, "w", encoding="utf-8") as opened:
        opened.write(f'#!/bin/sh\nexec {servers.program_of(place)}{user} "$@"\n')
    os.chmod(wrapper, 0o755)
    return {"PATH": bin_folder + os.pathsep + os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}


def script(path, *options):
    """A script of ours in this folder, which gets the servers' addresses."""
    interpreter = {".py": [sys.executable], ".php": ["php"], ".rb": ["ruby"], ".sh": ["bash"]}[os.path.splitext(path)[1]]
    return lambda context: [*interpreter, str(HERE / path), *context.servers, *options]


def capable(option):
    def command(context):
        port = context.servers[0].rsplit(":", 1)[1]
        return ["memccapable", "-h", "127.0.0.1", "-p", port, "-t", "30", option]
    return command


SUITES = [
    # memccapable's own requests leave no time to move: what it sets must be counted and read at once.
    Suite("memccapable ascii", capable("-a"), counting.memccapable, [fetch.memccapable], least_from_flash=0),
    Suite("memccapable binary", capable("-b"), counting.memccapable, [fetch.memccapable], least_from_flash=0),
    Suite("pylibmc text", script("python/use_pylibmc.py"), needs=[fetch.pylibmc]),
    Suite("pylibmc text ketama", script("python/use_pylibmc.py"), needs=[fetch.pylibmc], servers=3),
    Suite("pylibmc binary", script("python/use_pylibmc.py", "--binary"), needs=[fetch.pylibmc]),
    Suite("pylibmc binary ketama", script("python/use_pylibmc.py", "--binary"), needs=[fetch.pylibmc], servers=3),
    Suite("python-memcached", script("python/use_python_memcached.py"), needs=[fetch.python_memcached]),
    Suite("python-memcached three servers", script("python/use_python_memcached.py"), needs=[fetch.python_memcached],
          servers=3),
]
