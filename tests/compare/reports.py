# SPDX-License-Identifier: BSD-3-Clause
"""The reports behind stats: the same names in the same order, values of the same form, and of settings the same values,
under several sets of options. Ours may have more settings, behind memcached's."""
import re

from helpers import Daemon, as_memcached, memcached_command
from binary import BinaryClient

OPTION_SETS = ["", "-C", "-M", "-F -X -W", "-D /", "-t 2 -c 100 -R 5 -b 50", "-I 2m", "-A", "-v", "-f 1.1 -n 64", "-o no_lru_crawler,no_lru_maintainer",
               "-o slab_automove=0,lru_crawler_sleep=200,lru_crawler_tocrawl=7", "-o hot_lru_pct=10,warm_lru_pct=30,temporary_ttl=70", "-m 64 -X",
               "-o idle_timeout=100,maxconns_fast,track_sizes", "-o no_hashexpand,hashpower=17,hash_algorithm=jenkins", "-m 100 -B ascii",
               "-o slab_chunk_max=256,tail_repair_time=100,watcher_logbuf_size=128,worker_logbuf_size=128"]

# What each process has of its own; what memcached has by its own defaults where ours has none.
OWN_VALUES = {"tcpport"}

SOME = b"".join(b"set report-%d 0 %d %d\r\n%s\r\n" % (n, n, size, b"v" * size) for n, size in enumerate((1, 50, 300, 1000, 5000))) + \
    b"get report-1 report-2 none\r\nincr none 1\r\ntouch report-3 90\r\ngat 80 report-3\r\n"


# What is asked before the reports are: by these some rows come and go.
COMMANDS = {"-o no_lru_crawler,no_lru_maintainer": b"lru_crawler enable\r\n"}


def form(value):
    """What kind of thing it is, for who reads it."""
    for name, pattern in (("whole", r"\d+"), ("negative", r"-\d+"), ("real", r"\d+\.\d+"), ("yes or no", "yes|no"), ("on or off", "on|off")):
        if re.fullmatch(pattern, value):
            return name
    return "text"


def rows(client, report):
    client.send(b"stats " + report + b"\r\n")
    found = []
    while (line := client.line()) != b"END\r\n":
        stat, name, value = line.decode().rstrip("\r\n").split(" ", 2)
        assert stat == "STAT" and line.endswith(b"\r\n"), line
        found.append((name, value))
    return found


def class_names(found):
    """The names of one class, each once, in their order; and those of no class."""
    return list(dict.fromkeys(re.sub(r"\d+:", "N:", name) for name, _ in found))


def compare_general(ours, theirs):
    found = [(name, form(value)) for name, value in ours], [(name, form(value)) for name, value in theirs]
    return [] if found[0] == found[1] else [f"general: {sorted(set(found[0]) ^ set(found[1])) or 'another order'}"]


def compare_settings(ours, theirs):
    names = [name for name, _ in theirs]
    if [name for name, _ in ours][:len(names)] != names:
        return [f"settings: other names {sorted(set(names) - set(name for name, _ in ours))}, or another order"]
    return [f"settings: {name} is {mine}, memcached's {value}" for (name, mine), (_, value) in zip(ours, theirs)
            if mine != value and name not in OWN_VALUES]


def compare_names(report, ours, theirs):
    mine, memcacheds = class_names(ours), class_names(theirs)
    return [] if mine == memcacheds else [f"{report}: {mine} beside {memcacheds}"]


def compare_binary(daemons, report):
    found = []
    for daemon in daemons:
        with BinaryClient(daemon.port) as client:
            found.append([re.sub(r"\d+:", "N:", name) for name in client.rows(report)])
    mine, memcacheds = (list(dict.fromkeys(names)) for names in found)
    same = mine[:len(memcacheds)] == memcacheds if report == b"settings" else mine == memcacheds
    return [] if same else [f"binary {report}: {set(mine) ^ set(memcacheds)}"]


def compare_with(options, **more):
    """What differs under these options."""
    words = options.split()
    memory = [] if "-m" in words else ["-m", "64"]
    different = []
    with Daemon([*memory, *words, *as_memcached()], **more) as ours, Daemon([*memory, *words, "-U", "0"], program=memcached_command(), **more) as theirs:
        clients = ours.client(), theirs.client()
        for client in clients:
            client.all(SOME + COMMANDS.get(options, b""))
        found = {report: [rows(client, report) for client in clients] for report in (b"", b"settings", b"items", b"slabs", b"conns")}
        different += compare_general(*found[b""]) + compare_settings(*found[b"settings"])
        for report in (b"items", b"slabs", b"conns"):
            different += compare_names(report, *found[report])
        if "ascii" not in words:
            for report in (b"", b"settings", b"items", b"slabs"):
                different += compare_binary((ours, theirs), report)
        for client in clients:
            client.close()
    return different
