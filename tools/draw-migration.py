#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plays two changes of a cache under load on this machine, and draws the hit ratio over time as one picture. Needs memcached
and python3-matplotlib, and programs that are built. Servers listen on 127.0.0.1 alone.

  a migration   clients read from a memcached, and go over to a Flashield that flashield-dump and flashield-load have filled;
                beside it, to one that is empty
  an upgrade    three nodes are stopped and started one after the other; beside it, nodes that start empty

draw-migration.py --output packaging/doc/migration.png
"""
import argparse
import hashlib
import itertools
import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import time

import matplotlib

matplotlib.use("Agg")
from matplotlib import figure  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEYS, EXPONENT, VALUE = 80000, 0.9, b"v" * 300
TICK, REQUESTS = 0.25, 500  # seconds, and gets within them
WRITES = 0.02  # of the requests: the object has changed, and is stored again
PATIENCE = 30  # seconds, for a server to start or to end
WARM, COLD, PLAIN, FAINT = "#3274d9", "#e02f44", "#2b2f36", "#8a919c"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server that can be stopped and started again at its port."""

    def __init__(self, command):
        self.port = free_port()
        self.command = [*command, "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-u", "root"]
        self.process, self.socket = None, None
        self.begin()
        end = time.monotonic() + PATIENCE
        while not self.connect():
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"it does not start: {' '.join(self.command)}")
            time.sleep(0.02)

    def begin(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask_to_end(self):
        self.process.send_signal(signal.SIGTERM)

    def has_ended(self):
        return self.process.poll() is not None

    def end(self):
        self.ask_to_end()
        self.process.wait(PATIENCE)

    def connect(self):
        try:
            self.socket = socket.create_connection(("127.0.0.1", self.port), 1)
        except OSError:
            self.socket = None
        return self.socket is not None

    def exchange(self, request, last):
        """Sends it and returns the answer up to the line `last`; b"" when the server is away."""
        if not self.socket and not self.connect():
            return b""
        answer = b""
        try:
            self.socket.sendall(request)
            while not answer.endswith(last):
                part = self.socket.recv(1 << 20)
                if not part:
                    raise OSError("closed")
                answer += part
        except OSError:
            self.socket = None
            return b""
        return answer

    def get(self, keys):
        """The keys that it has."""
        if not keys:
            return set()
        lines = self.exchange(b"get " + b" ".join(keys) + b"\r\n", b"END\r\n").split(b"\r\n")
        return {line.split(b" ")[1] for line in lines if line.startswith(b"VALUE ")}

    def set(self, keys):
        request = b"".join(b"set %s 0 0 %d noreply\r\n%s\r\n" % (key, len(VALUE), VALUE) for key in keys)
        if request:
            self.exchange(request + b"mn\r\n", b"MN\r\n")


class Pool:
    """Nodes of which each has its keys; those of a node that is away are misses."""

    def __init__(self, servers):
        self.servers = servers

    def parts(self, keys):
        parts = [[] for _ in self.servers]
        for key in keys:
            parts[hashlib.blake2b(key, digest_size=2).digest()[0] % len(parts)].append(key)
        return zip(self.servers, parts)

    def get(self, keys):
        return set().union(*(server.get(part) for server, part in self.parts(keys)))

    def set(self, keys):
        for server, part in self.parts(keys):
            server.set(part)

    def end(self):
        for server in self.servers:
            server.end()


class Load:
    """Gets of a Zipf distribution; what misses comes from the database and is stored."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        names = [b"object:%06d" % number for number in range(KEYS)]
        self.random.shuffle(names)
        self.names = names
        self.weights = list(itertools.accumulate((rank + 1) ** -EXPONENT for rank in range(KEYS)))

    def draw(self, count):
        return self.random.choices(self.names, cum_weights=self.weights, k=count)

    def fill(self, pools):
        """Stores each key, the least asked for first."""
        for at in range(KEYS, 0, -REQUESTS):
            for pool in pools:
                pool.set(self.names[max(at - REQUESTS, 0):at])
            time.sleep(0.01)  # a node moves objects to flash meanwhile

    def turn(self, readers, also_written=()):
        """One tick's requests to each of the readers. Returns their hit ratios."""
        asked, changed = self.draw(REQUESTS), set(self.draw(int(REQUESTS * WRITES)))
        ratios = []
        for pool in readers:
            found = pool.get(list(dict.fromkeys(asked)))
            pool.set([key for key in dict.fromkeys(asked) if key not in found or key in changed])
            ratios.append(100 * sum(key in found for key in asked) / len(asked))
        missed = [key for key in dict.fromkeys(asked) if key in changed]
        for pool in also_written:
            pool.set(missed)
        return ratios


class Clock:
    """Ticks at their times; a late one is not made up for."""

    def __init__(self):
        self.began = self.next = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.began

    def wait(self):
        self.next = max(self.next + TICK, time.monotonic())
        time.sleep(max(self.next - time.monotonic(), 0))


def flashield(folder, name, memory, *more):
    state = folder / f"{name}.state"
    state.mkdir()
    return Pool([Server([str(ROOT / "build" / "flashield"), "-m", str(memory), "-t", "1", "--flash-path", str(folder / name), "--flash-size",
                         "64m", "--segment-size", "512k", "--admission", "all", "--state-dir", str(state), "--metrics-listen", "off", *more])])


def play_migration(folder, seconds):
    """Returns the lines {name: [(second, percent)]} and the events [(second, text)]."""
    old = Pool([Server(["memcached", "-m", "16", "-t", "1"])])
    new, empty = flashield(folder, "new", 12), flashield(folder, "empty", 12)
    load, events = Load(1), []
    load.fill([old])
    for _ in range(int(0.2 * seconds / TICK)):
        load.turn([old])
    lines, clock, copying, moved = {"memcached": [], "warm": [], "empty": []}, Clock(), None, None
    while clock.seconds() < seconds:
        now = clock.seconds()
        if not copying and now > 0.2 * seconds:
            events.append((now, "both are written;\ndump | load"))
            copying = subprocess.Popen(f"build/flashield-dump --quiet --server 127.0.0.1:{old.servers[0].port} --rate 4k --output - | "
                                       f"build/flashield-load --quiet --server 127.0.0.1:{new.servers[0].port} -", shell=True, cwd=ROOT)
        if copying and not moved and copying.poll() is not None:
            if copying.returncode != 0:
                raise SystemExit("flashield-dump or flashield-load has failed")
            moved = now
            events.append((now, "clients read\nfrom the new node"))
        if moved:
            warm, cold = load.turn([new, empty])
            lines["warm"].append((now, warm))
            lines["empty"].append((now, cold))
        else:
            lines["memcached"].append((now, load.turn([old], [new] if copying else [])[0]))
        clock.wait()
    for pool in (old, new, empty):
        pool.end()
    return lines, events


def play_upgrade(folder, seconds):
    pools = [Pool([node for number in range(3) for node in flashield(folder, f"{name}{number}", 6, *more).servers])
             for name, more in (("kept", []), ("lost", ["--restart-max-downtime", "0"]))]
    load, events = Load(2), []
    load.fill(pools)
    for _ in range(int(0.2 * seconds / TICK)):
        load.turn(pools)
    lines, clock, done, ending = {"kept": [], "lost": []}, Clock(), 0, []
    while clock.seconds() < seconds:
        now = clock.seconds()
        if done < 3 and now > (done + 1) * seconds / 5:
            events.append((now, f"node {done + 1}"))
            ending = [pool.servers[done] for pool in pools]
            for server in ending:
                server.ask_to_end()
            done += 1
        for server in [server for server in ending if server.has_ended()]:
            server.begin()  # the new version, in an upgrade
            ending.remove(server)
        kept, lost = load.turn(pools)
        lines["kept"].append((now, kept))
        lines["lost"].append((now, lost))
        clock.wait()
    for pool in pools:
        pool.end()
    return lines, events


def smooth(line, width=3):
    """Means of each tick and those before it."""
    values = [value for _, value in line]
    parts = [values[max(at + 1 - width, 0):at + 1] for at in range(len(values))]
    return [second for second, _ in line], [sum(part) / len(part) for part in parts]


def draw(panels, path):
    picture = figure.Figure(figsize=(9, 6.4), dpi=110, layout="constrained")
    for axes, (title, lines, events, styles) in zip(picture.subplots(len(panels), 1), panels):
        for name, line in lines.items():
            color, label = styles[name]
            axes.plot(*smooth(line), color=color, label=label, linewidth=1.5)
        for second, text in events:
            axes.axvline(second, color=FAINT, linestyle=":", linewidth=1)
            axes.annotate(text, (second, 3), xytext=(4, 0), textcoords="offset points", fontsize=8, color=PLAIN)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_ylim(0, 100)
        axes.set_xlim(left=0)
        axes.set_ylabel("hits, %")
        axes.legend(loc="lower right", fontsize=8, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("seconds")
    picture.savefig(path)


def tell(lines, events):
    for second, text in events:
        print(f"{second:6.1f} s  {' '.join(text.split())}")
    for name, line in lines.items():
        values = [value for _, value in line]
        print(f"  {name}: first five seconds {sum(values[:20]) / len(values[:20]):.1f} %, least of a second "
              f"{min(sum(values[at:at + 4]) / 4 for at in range(len(values) - 3)):.1f} %, last five {sum(values[-20:]) / 20:.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="the picture, a PNG")
    parser.add_argument("--seconds", type=float, default=75, help="of each of the two (75)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        migration = play_migration(pathlib.Path(folder), arguments.seconds)
        tell(*migration)
        upgrade = play_upgrade(pathlib.Path(folder), arguments.seconds)
        tell(*upgrade)
    draw([("From a memcached to a Flashield with a larger cache", *migration,
           {"memcached": (FAINT, "memcached, -m 16"), "warm": (WARM, "Flashield, -m 12 and 64 MiB of flash, filled by dump | load"),
            "empty": (COLD, "the same, empty")}),
          ("Three nodes are upgraded one after the other", *upgrade,
           {"kept": (WARM, "with --state-dir: warm"), "lost": (COLD, "with --restart-max-downtime 0: empty")})], arguments.output)


if __name__ == "__main__":
    main()
