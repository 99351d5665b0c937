# SPDX-License-Identifier: BSD-3-Clause
"""One run of the checker: a worker that goes on, and a daemon that is ended and started under it again and again.

A bound ends what hangs. It is minutes, as a busy machine may stand still; no speed is judged.
"""
import contextlib
import os
import pathlib
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "protocol"))

from helpers import free_port  # noqa: E402 (it needs the path above)

PATIENCE = 240  # seconds
EXTRA = 240  # seconds more for what a busy machine doesn't reach in time
ITEM_LIMIT = 128 << 10
LEAST_SHARE = 0.99  # of the flash objects, after a warm start
ALLOWED = 1  # and so many more may be missing
LEAST_REBUILT = 0.9  # with an index that is made anew from a journal
LEAST_OF_MANY = 0.999  # over all kills of a run, once so many objects were counted:
MANY = 5000
MEASURED = 3  # of so many restarts one is measured with nothing under way, and, where no value expires, one under load
AT_REST = 20  # censuses, until the cleaner has moved nothing during one, and so many seconds behind it:
SETTLED = 0.3
INTERRUPTED = 6  # and about each sixth start is killed at once, and followed by another
LIFE_BETWEEN = 0.4  # seconds at most, between two deaths at chosen instants
KILL_LINE = "fault point: {} kills the process"  # FAULT_KILL_LINE of base/fault.h
SUMMED = ("flash_hits", "segments_written", "segments_reclaimed", "index_slots_cleared", "false_matches", "index_moves",
          "flash_promotions", "flash_copy_hits", "flash_copies_dropped", "flash_dead_on_commit", "frugal_kills", "frugal_merges", "frugal_chain_reads", "flash_read_errors", "flash_checksum_errors", "flash_write_errors",
          "flash_reads_shed", "segments_swept", "filter_rejects", "filter_units_loaded")
SHOWN = ("flash_hits", "segments_written", "segments_reclaimed", "index_slots_cleared", "false_matches", "index_moves",
         "flash_promotions")


@dataclass(frozen=True)
class Instant:
    """A fault point at which a daemon kills itself, after up to so many calls of it."""
    point: str
    calls: int
    after: str = ""  # the end of the daemon before, where it must be this one
    over: str = ""  # a row of "stats flash": once it is 0, the point isn't reached any more in this daemon's life
    fresh: bool = False  # on a new flash
    at_stop: bool = False  # the daemon is told to stop
    warm: bool = True  # with a region the next start is warm


class Failure(Exception):
    """What is wrong, in a few words."""


class Late(Failure):
    """A wait that ran out, or a share that was missed: nothing was wrong so far."""


class Worker:
    """stale_worker, and what it says."""

    def __init__(self, command, said):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.said = said
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            text = line.decode("utf-8", "replace").rstrip("\n")
            if not text.startswith(("paused", "going", "census", "compare", "figures")):
                self.said.append(text)
            self.lines.put(text)
        self.lines.put(None)

    def alive(self):
        """Fails when it has found something."""
        if self.process.poll() is not None:
            self.reader.join(PATIENCE)
            raise Failure(next((line for line in self.said if line.startswith("VIOLATION")),
                               f"the worker ended with {self.process.returncode}"))

    def ask(self, word):
        """Its answer, which begins with the word that belongs to it."""
        begins = {"pause": "paused", "go": "going", "end": "figures"}.get(word, word)
        try:
            self.process.stdin.write(word.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            self.alive()
            raise
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(queue.Empty):
                line = self.lines.get(timeout=1)
                if line is None:
                    self.process.wait()
                    self.alive()
                if line.startswith(begins):
                    return line
        raise Late(f"the worker did not answer to \"{word}\" within {PATIENCE} s")

    def figures(self, word="figures"):
        return {name: int(number) for name, number in (pair.split("=") for pair in self.ask(word).split()[1:])}


class Daemon:
    """One life of the daemon."""

    def __init__(self, command, port, faults, log):
        self.port = port
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        env=dict(os.environ, FLASHIELD_FAULTS=faults))

    def alive(self):
        if self.process.poll() is not None:
            raise Failure(f"the daemon ended by itself with {self.process.returncode}")

    def ended(self):
        return self.process.poll() is not None

    def talk(self, command, last):
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            connection.sendall(command)
            answer = b""
            while not answer.endswith(last):
                more = connection.recv(65536)
                if not more:
                    raise OSError("the connection was closed")
                answer += more
            return answer.decode("utf-8", "replace")

    def wait_until_up(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.alive()
            with contextlib.suppress(OSError):
                self.talk(b"version\r\n", b"\n")
                return
            time.sleep(0.005)
        raise Late(f"the daemon did not answer within {PATIENCE} s")

    def stats(self):
        rows = {}
        for line in self.talk(b"stats flash\r\n", b"END\r\n").splitlines():
            if line.startswith("STAT "):
                _, name, value = line.split(" ", 2)
                rows[name] = value
        return rows

    def end(self, name):
        """Ends it by TERM or KILL."""
        self.alive()
        self.process.send_signal(signal.SIGTERM if name == "TERM" else signal.SIGKILL)
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Late(f"the daemon did not end within {PATIENCE} s after SIGTERM") from None
        if code != (0 if name == "TERM" else -signal.SIGKILL):
            raise Failure(f"the daemon ended with {code} after SIG{name}")


class Run:
    """One configuration with one seed. Use with "with"; then go() fails by a Failure."""

    def __init__(self, binary, config, arguments, seed):
        self.binary, self.config, self.arguments, self.seed = binary, config, arguments, seed
        self.randomness = random.Random(seed)
        self.help = subprocess.run([binary, "--help"], stdout=subprocess.PIPE, check=False).stdout.decode("utf-8", "replace")
        self.port = free_port()
        self.said, self.sums, self.figures = [], dict.fromkeys(SUMMED, 0), {}
        self.starts = {"warm": 0, "cold": 0}
        self.shares = {}  # of flash objects, by kind of restart: [served, of, least share, restarts]
        self.ends = {"TERM": 0, "KILL": 0}
        self.left, self.kept = 0, 0  # objects on flash shortly before ends, and at the starts after them
        self.moves = [0, 0]  # of the flash: begun, ended
        self.interrupted = 0  # starts that were killed
        self.instants = {instant.point: 0 for instant in config["instants"]}  # deaths at each of these fault points
        self.uncounted = 0  # ends that came before the start had counted all slots
        self.daemon = self.worker = self.region = None

    def missing_option(self):
        needs = self.config["needs"]
        return needs if needs and needs not in self.help else None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="flashield-stale-", dir=self.arguments.directory)
        if self.config["region"] and "--region-dir" in self.help:
            shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
            self.region = tempfile.TemporaryDirectory(prefix="flashield-stale-", dir=shared)
        self.log = open(os.path.join(self.folder.name, "log"), "wb+")
        self.flash = os.path.join(self.folder.name, "flash")
        return self

    def __exit__(self, *_):
        for part in (self.worker, self.daemon):
            if part and part.process.poll() is None:
                part.process.kill()
                part.process.wait()
        self.log.close()
        self.folder.cleanup()
        if self.region:
            self.region.cleanup()

    def command(self):
        c, folder = self.config, self.folder.name
        command = [self.binary, "-l", "127.0.0.1", "-p", str(self.port), "-t", "2", "-m", str(c["m"]), "-I", str(ITEM_LIMIT),
                   "--metrics-listen=off", "--flash-path", self.flash, "--flash-size", c["flash"],
                   "--segment-size", c["segment"], "--state-dir", folder]
        if os.geteuid() == 0:
            command += ["-u", "root"]
        if c["steady"]:  # however busy the machine is, no read is answered as a miss for its sake
            command += ["--flash-read-timeout", "60s"]
        if self.region:
            command += ["--region-dir", self.region.name]
        return command + c["daemon"]

    def log_lines(self):
        with open(self.log.name, "rb") as log:
            return log.read().decode("utf-8", "replace").splitlines()

    # ---- lives of the daemon

    def start_process(self, more=""):
        faults = re.sub(r"(\d+)-(\d+)", lambda range_: str(self.randomness.randint(int(range_[1]), int(range_[2]))),
                        self.config["faults"])
        self.daemon = Daemon(self.command(), self.port, f"{faults},{more}", self.log)

    def start(self):
        self.start_process()
        self.daemon.wait_until_up()

    def kill_a_start(self):
        """A start that is killed at a random instant, often before it is over."""
        self.start_process()
        time.sleep(self.randomness.random() * 0.05)
        self.daemon.end("KILL")
        self.interrupted += 1

    def add_figures(self):
        rows = self.daemon.stats()
        self.add_rows(rows)
        return rows

    def add_rows(self, rows):
        for name in SUMMED:
            self.sums[name] += int(rows.get(name, 0))

    def all_sums(self):
        """With those of the daemon that runs."""
        rows = self.daemon.stats()
        return {name: self.sums[name] + int(rows.get(name, 0)) for name in SUMMED}

    def expects_warm(self, end):
        return end == "TERM" or self.region is not None or self.config["needs"] is not None

    def judge_start(self, end, strict):
        rows = self.daemon.stats()
        late = time.monotonic() + PATIENCE
        while int(rows.get("index_slots_uncounted", 0)) and "recount_slow" not in self.config["faults"]:
            if time.monotonic() > late:
                raise Late(f"{rows['index_slots_uncounted']} slots are still uncounted after {PATIENCE} s")
            rows = self.daemon.stats()
        how = rows["flash_start"]
        warm = not how.startswith("cold")
        self.starts["warm" if warm else "cold"] += 1
        self.kept += int(rows["flash_items"])
        if strict and not warm:
            raise Failure(f"after SIG{end} the start was \"{how}\"")
        return rows

    def ask_census(self, word):
        words = self.worker.ask(word).split()[1:]
        if words == ["failed"]:
            self.daemon.alive()
            raise Failure("a census lost its connection")
        return [int(number) for number in words]

    def moved(self):
        """What changes whenever the cleaner writes or reclaims; None while it does."""
        rows = self.daemon.stats()
        idle = sum(int(rows["segments_" + state]) for state in ("used", "free", "retired")) == int(rows["segments_total"])
        return (rows["segments_written"], rows["segments_reclaimed"]) if idle else None

    def census_at_rest(self):
        """Has the worker note the keys that flash serves, and that stay there. False: the cleaner never came to rest."""
        for _ in range(AT_REST):
            before = self.moved()
            self.ask_census("census")
            end, same = time.monotonic() + SETTLED, before is not None
            while same and time.monotonic() < end:
                time.sleep(0.02)
                same = self.moved() == before
            if same:
                return True
        return False

    def await_loaded(self):
        """Until the objects that memory held are there, as some of them were on flash before a clean stop."""
        end = time.monotonic() + PATIENCE
        while self.daemon.stats()["dram_loading"] != "0":
            if time.monotonic() > end:
                raise Late(f"objects of DRAM were not loaded within {PATIENCE} s")
            time.sleep(0.01)

    def count_share(self, kind, served, of, least, allowed=0):
        sums = self.shares.setdefault(kind, [0, 0, 1.0, 0])
        share = served / of if of else 1.0
        self.shares[kind] = [sums[0] + served, sums[1] + of, min(sums[2], share), sums[3] + 1]
        if served + allowed < of * least:
            raise Late(f"{kind}: {served} of {of} objects on flash were served")

    def compare(self, end):
        """The keys that flash served before are found. An index that is made anew from a journal is asked while it grows. After
        a clean stop memory is full again at once, and the new daemon may reclaim segments for it: that is no loss of the stop."""
        rebuilt = self.config["needs"] is not None
        least = LEAST_REBUILT if rebuilt else LEAST_SHARE
        until = time.monotonic() + (60 if rebuilt else 0)
        self.await_loaded()
        while True:
            served, of, _, _ = self.ask_census("compare")
            if served + ALLOWED >= of * least or time.monotonic() > until:
                break
            time.sleep(0.1)
        if end == "TERM" and int(self.daemon.stats()["segments_reclaimed"]):
            return self.count_share("SIGTERM at rest, and a reclaim since", served, of, 0)
        return self.count_share(f"SIG{end} at rest", served, of, least, ALLOWED)

    def serve_all_slots(self, rows, kind="SIGKILL under load"):
        """Behind a kill under load: each object that the start has found in the index is served."""
        found = int(rows["flash_items"]) + int(rows["flash_ghosts"])
        served = self.ask_census("compare")[3]
        self.count_share(kind, served, found, LEAST_SHARE, ALLOWED)

    def restart(self, number):
        end = self.config["ends"][number % len(self.config["ends"])]
        interrupt = self.randomness.randrange(INTERRUPTED) == 0
        strict = self.expects_warm(end) and self.config["steady"] and not interrupt
        at_rest = under_load = False
        if number % MEASURED == 0 and strict and self.config["measured"]:
            self.worker.ask("pause")
            at_rest = self.census_at_rest()
        rows = self.add_figures()
        self.left += int(rows["flash_items"])
        self.uncounted += int(rows.get("index_slots_uncounted", 0)) > 0
        self.daemon.end(end)
        self.ends[end] += 1
        if self.config["moves"]:
            strict &= self.follow_moves(rows)
        if number % MEASURED == 1 and end == "KILL" and strict and "--lasting" in self.config["worker"]:
            self.worker.ask("pause")
            under_load = True
        if interrupt:
            self.kill_a_start()
        if self.randomness.randrange(4) == 0:
            time.sleep(self.randomness.random() * 0.2)
        self.start()
        rows = self.judge_start(end, strict)
        if at_rest:
            self.compare(end)
        if under_load:
            self.serve_all_slots(rows)
        if self.config["moves"]:
            self.begin_move()
        self.worker.ask("go")

    def begin_move(self):
        """The flash goes to another file, so slowly that some ends come in the midst."""
        number = self.moves[0] = self.moves[0] + 1
        path = os.path.join(self.folder.name, f"flash-{number}")
        answer = self.daemon.talk(b"flash_move %s 0 %d\r\n" % (path.encode(), self.randomness.choice((0, 8 << 20, 32 << 20))), b"\n")
        if answer != "OK\r\n":
            raise Failure(f"flash_move is answered by {answer!r}")

    def follow_moves(self, rows):
        """Finds out where the flash is, as its operator would. Must the next start be warm? With a move under way at the end, the
        answer may be older than the end."""
        moved = [found[1] for found in map(re.compile(r"flash: it is in (\S+) now").search, self.log_lines()) if found]
        if moved and moved[-1] != self.flash:
            os.unlink(self.flash)
            self.flash = moved[-1]
        self.moves[1] = len(moved)
        return rows["flash_move"] in ("none", "done", "cancelled", "failed")

    # ---- deaths at chosen instants

    def await_death(self, instant, said_before):
        """Until the daemon has killed itself at the armed point, and by nothing else. Adds what it counted last. False: the
        point is behind it, and it is killed from outside."""
        rows, end = {}, time.monotonic() + PATIENCE
        while not self.daemon.ended():
            self.worker.alive()
            with contextlib.suppress(OSError):
                rows = self.daemon.stats()
                if instant.over and int(rows[instant.over]) == 0 and not self.daemon.ended():
                    self.daemon.end("KILL")
                    return False
            if time.monotonic() > end:
                raise Late(f"{instant.point} did not fire within {PATIENCE} s")
            time.sleep(0.02)
        code = self.daemon.process.wait()
        kills = [line for line in self.log_lines()[said_before:] if line.startswith("fault point: ")]
        if code != -signal.SIGKILL or kills != [KILL_LINE.format(instant.point)]:
            raise Failure(f"the daemon ended with {code} and said {kills}, where {instant.point} was to kill it")
        self.add_rows(rows)
        self.instants[instant.point] += 1
        return True

    def forget_all(self):
        """The next start is that of a new flash. Only the note of CAS ids stays: without it a client could replace a value by
        the id of an old one."""
        for folder in [self.folder] + ([self.region] if self.region else []):
            for name in os.listdir(folder.name):
                if name != "log" and not name.endswith(".ids"):
                    os.unlink(os.path.join(folder.name, name))

    def die_at(self, number):
        """Ends the daemon, starts one that kills itself at the next of the instants, and one behind it that is judged."""
        instant = self.config["instants"][number % len(self.config["instants"])]
        end = instant.after or self.config["ends"][number // len(self.config["instants"]) % len(self.config["ends"])]
        self.add_figures()
        self.daemon.end(end)
        self.ends[end] += 1
        if instant.fresh:
            self.forget_all()
        said_before, calls = len(self.log_lines()), int(instant.calls * self.randomness.random() ** 2)
        self.start_process(f"{instant.point}=after:{calls}")
        if instant.at_stop:
            self.daemon.wait_until_up()
            self.pass_time(self.randomness.random() * LIFE_BETWEEN)
            self.daemon.process.send_signal(signal.SIGTERM)
        self.await_death(instant, said_before)
        self.worker.ask("pause")
        self.start()
        rows = self.judge_start("KILL", self.config["steady"] and instant.warm and self.expects_warm("KILL"))
        if self.config["measured"] and not instant.at_stop:  # behind a stop, objects of memory come to flash meanwhile
            self.serve_all_slots(rows, "SIGKILL at an instant")
        self.worker.ask("go")

    # ---- the run

    def reached(self):
        sums = self.all_sums()
        return [name for name in self.config["require"] if sums[name] == 0] + \
            [point for point, deaths in self.instants.items() if deaths == 0]

    def pass_time(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.worker.alive()
            self.daemon.alive()
            time.sleep(min(0.1, max(0, end - time.monotonic())))

    def watch_progress(self, last):
        """(commands, when they last grew)."""
        commands = self.worker.figures()["commands"]
        if commands == last[0] and time.monotonic() - last[1] > PATIENCE:
            raise Late(f"no command was answered for {PATIENCE} s")
        return last if commands == last[0] else (commands, time.monotonic())

    def go(self):
        began = time.monotonic()
        self.start()
        worker = self.arguments.worker or os.path.join(os.path.dirname(self.binary), "stale_worker")
        self.worker = Worker([worker, "--port", str(self.port), "--seed",
                              str(self.seed), *self.config["worker"]], self.said)
        longest = self.arguments.life or min(5.0, max(0.5, self.arguments.seconds / 8))
        if self.instants:
            longest = min(longest, LIFE_BETWEEN)
        progress, restarts = (0, began), 0
        while True:
            self.pass_time(0.02 + self.randomness.random() ** 2 * longest)
            progress = self.watch_progress(progress)
            passed = time.monotonic() - began
            missed = self.reached() if passed > self.arguments.seconds else None
            reached = missed == [] and restarts > 1 and not self.config["stale"]  # that one goes on until it has found some
            if reached or passed > self.arguments.seconds + EXTRA:
                break
            if missed:  # a slow daemon needs longer lives for it
                longest = min(LIFE_BETWEEN if self.instants else 20.0, longest * 1.3)
            if self.instants:
                self.die_at(restarts)
            else:
                self.restart(restarts)
            restarts += 1
        self.figures = self.worker.figures("end")
        if self.worker.process.wait(PATIENCE) != 0:
            self.worker.alive()
        self.add_figures()
        self.daemon.end("TERM")
        self.judge_end(missed)

    def judge_end(self, missed):
        late = []
        for kind, (served, of, _, _) in self.shares.items():
            if "KILL" in kind and self.config["needs"] is None and of >= MANY and served < of * LEAST_OF_MANY:
                late.append(f"{kind}: {served} of {of} objects on flash were served")
        bad = [line for line in self.log_lines() if re.search(r"Sanitizer|runtime error:|assertion", line)]
        if bad:
            raise Failure(f"the log has \"{bad[0]}\"")
        if self.config["moves"] and not self.moves[1]:
            late.append(f"none of {self.moves[0]} moves of the flash ended")
        if missed:
            late.append(f"{' '.join(missed)} stayed at 0: the run did not reach what it is for")
        if late:
            raise Late("; ".join(late))

    def summary(self):
        parts = [f"kills {self.ends['KILL']}, stops {self.ends['TERM']}, "
                 f"starts warm {self.starts['warm']}, cold {self.starts['cold']}"]
        if self.instants:
            parts.append("deaths at " + ", ".join(f"{point} {deaths}" for point, deaths in self.instants.items()))
        parts += [f"{kind}: {served} of {of} flash objects served, least {100 * least:.2f} % of {restarts}"
                  for kind, (served, of, least, restarts) in sorted(self.shares.items())]
        parts.append(f"objects at ends {self.left}, found at starts {self.kept}, interrupted starts {self.interrupted}, "
                     f"ended in a recount {self.uncounted}")
        if self.config["moves"]:
            parts.append(f"moves of the flash {self.moves[0]}, ended {self.moves[1]}")
        parts += [f"{name} {number}" for name, number in self.figures.items()]
        parts += [f"{name} {self.sums[name]}" for name in SHOWN if self.sums[name]]
        return ", ".join(parts)
