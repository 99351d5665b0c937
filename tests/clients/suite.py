# SPDX-License-Identifier: BSD-3-Clause
"""What a suite is: a row of suites.py."""
from dataclasses import dataclass, field
from typing import Callable

import counting


@dataclass
class Setup:
    """What a suite's daemons are started with beyond their place's options, and what its command is told of it."""
    options: list = field(default_factory=list)
    env: dict = field(default_factory=dict)
    tls: bool = False
    words: list = field(default_factory=list)


@dataclass
class Context:
    """What a suite's command is made from."""
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
    setup: Callable = lambda folder, place: Setup()
    places: tuple = ("dram", "flash", "full")
    seconds: int = 600  # a bound for what hangs: most take 10, on a busy machine ten times that
    not_plain: str = ""  # why Debian's memcached can't pass it
