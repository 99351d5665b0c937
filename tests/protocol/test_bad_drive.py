# SPDX-License-Identifier: BSD-3-Clause
"""A daemon on a drive that hangs, or that does fewer reads than clients ask for, and an object on flash that all
clients want. The drive is emulated by tools/slowdrive. No test judges how fast the machine is."""
import contextlib
import itertools
import random
import select
import socket
import time

import pytest

from crowd import Crowd
from helpers import PATIENCE, fill, in_time, is_frugal, until
from slowdrive import LIBRARY, SlowDrive

pytestmark = [pytest.mark.clock, pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built: a sanitizer's variant?")]

VALUE = 900  # bytes
MIB = 1 << 20
MEMORY = 64  # MiB
OPTIONS = ["-m", str(MEMORY), "--flash-size", "64m", "--segment-size", "256k", "--admission", "read-once",
           "--flash-read-timeout", "300ms"]


def value_of(key):
    return key.ljust(VALUE, b"v")


def set_all(client, keys):
    client.all(b"".join(b"set %s 0 0 %d noreply\r\n%s\r\n" % (key, VALUE, value_of(key)) for key in keys))


def set_and_read(client, keys):
    """What was read is worth flash (--admission read-once)."""
    set_all(client, keys)
    for first in range(0, len(keys), 100):
        assert len(client.get(*keys[first:first + 100])) > 0


def on_the_drive(start, folder, threads, **environment):
    """A daemon with so many workers on an emulated drive, and the drive."""
    drive = SlowDrive(folder, folder / "flash")
    drive.environment.update(environment)
    options = ["-t", str(threads), "--flash-path", str(folder / "flash"), *OPTIONS]
    return start(*options, environment=drive.environment), drive


def keys_on_flash(daemon, drive, count):
    """Keys whose objects the daemon reads from the drive. DRAM is full of others then."""
    keys = [b"wanted-%d" % n for n in range(count)]
    with daemon.client() as client:
        set_and_read(client, keys)

        def moved():
            fill(client, 256 << 10)
            return client.count("flash_items") > count * 2 // 3

        until(moved, "objects to move to flash")
        found = []
        for key in keys:
            done = drive.reads.done
            if client.get(key) and drive.reads.done > done:
                found.append(key)
    in_time(len(found) > count // 2, f"{len(found)} of {count} keys were read from the drive")
    return found


# ---- a drive that hangs --------------------------------------------------------------------------------

CONNECTIONS = 200
RESIDENT_MOST = 1.1 * MEMORY * MIB + 24 * MIB
ITEMS_LEAST = 0.95
HANG_LEAST = 4.0  # seconds; longer than it takes the daemon to tell of it
LOOK_SECONDS = 0.02
WATCHDOG_USEC = 4000000  # a thread that stands still for half of it starves the watchdog


class Watchdog:
    """The service manager's part: when was it fed last?"""

    def __init__(self, folder):
        path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.setblocking(False)
        path.chmod(0o777)
        self.fed_at = 0
        self.environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": str(WATCHDOG_USEC)}

    def look(self):
        """Waits a moment for more, and takes all that has come."""
        select.select([self.socket], [], [], LOOK_SECONDS)
        with contextlib.suppress(BlockingIOError):
            while True:
                if b"WATCHDOG=1" in self.socket.recv(4096):
                    self.fed_at = time.monotonic()


class Bystander:
    """A client that needs nothing of the drive, and looks at the daemon."""

    def __init__(self, daemon, client):
        self.daemon = daemon
        self.client = client
        self.rounds = 0
        self.items = []
        self.resident = 0
        self.crawled = False
        client.all(b"".join(b"set expires-%d 0 1 5 noreply\r\nvalue\r\n" % n for n in range(100)))

    def ask(self, command, answer):
        assert self.client.ask(command) == answer

    def use_dram(self):
        key = b"dram-%d" % self.rounds
        self.rounds += 1
        self.ask(b"set %s 0 0 5\r\nvalue\r\n" % key, b"STORED\r\n")
        self.ask(b"get %s\r\n" % key, b"VALUE %s 0 5\r\n" % key)
        assert (self.client.line(), self.client.line()) == (b"value\r\n", b"END\r\n")
        self.ask(b"delete %s\r\n" % key, b"DELETED\r\n")
        self.ask(b"delete %s\r\n" % key, b"NOT_FOUND\r\n")

    def crawl(self):
        """What has expired is found, which is no client's work."""
        if not self.crawled:
            assert self.client.ask(b"lru_crawler crawl all\r\n").startswith((b"OK", b"BUSY"))
            self.crawled = self.client.count("crawler_reclaimed", b"") > 0

    def look(self):
        """Its figures."""
        rows = self.client.stats(b"flash")
        self.items.append(int(rows["dram_items"]))
        self.resident = max(self.resident, self.daemon.resident_bytes())
        return rows

    def items_before(self):
        """As many as there are in the mean of some looks."""
        for _ in range(10):
            self.use_dram()
            self.look()
        before, self.items = sum(self.items) / len(self.items), []
        return before


@contextlib.contextmanager
def hanging(drive, reads, writes):
    """A daemon can't end before its drive answers."""
    drive.reads.hang, drive.writes.hang = reads, writes
    try:
        yield
    finally:
        drive.reads.hang = drive.writes.hang = 0


def hang_with_write(drive, client, reads):
    """A write waits for the drive first: once hanging reads have taken the flash offline, none would begin."""
    number = itertools.count()

    def begun():
        set_and_read(client, [b"written-%d" % next(number) for _ in range(100)])
        return drive.writes.held > 0

    until(begun, "a write to wait")
    drive.reads.hang = reads


def is_told(rows, reads, writes):
    """The daemon says that the drive does not answer."""
    return (not reads or rows["flash_offline"] == "1") and (not writes or int(rows.get("flash_waited_ms", 0)) > 1000)


def watch_hang(bystander, watchdog, reads, writes):
    """Waits until the daemon has told of the hang, and has fed the watchdog at a time when a thread that stands still
    would be missed. (told, fed): both came in time."""
    began = time.monotonic()
    told = fed = False
    while not (told and fed) and time.monotonic() < began + PATIENCE:
        bystander.use_dram()
        bystander.crawl()
        if writes:  # new objects, which are to be written
            set_and_read(bystander.client, [b"new-%d-%d" % (bystander.rounds, n) for n in range(100)])
        told |= is_told(bystander.look(), reads, writes)
        watchdog.look()
        fed = watchdog.fed_at > began + HANG_LEAST
    return told, fed


def flash_hits_come(client):
    before = client.count("flash_hits")
    until(lambda: client.count("flash_hits") > before, "hits from flash")


@pytest.mark.parametrize("reads,writes", [(1, 0), (0, 1), (1, 1)], ids=["reads", "writes", "both"])
def test_a_drive_that_hangs_takes_only_flash_along(start, open_folder, reads, writes):
    """Connections stay, commands that need no drive are answered, what has expired is freed, memory is within its bound
    and the watchdog is fed. Flash is back when the drive is. Hanging reads take the flash offline; hanging writes are
    told, and what is on flash is read meanwhile."""
    watchdog = Watchdog(open_folder)
    daemon, drive = on_the_drive(start, open_folder, 1, **watchdog.environment)
    keys = keys_on_flash(daemon, drive, 3000)

    def question(_):
        return b"get %s\r\n" % random.choice(keys)

    with daemon.client() as client, Crowd(daemon.port, CONNECTIONS, question, pause=0.05) as crowd:
        crowd.each_is_answered("all to be answered")
        flash_hits_come(client)
        bystander = Bystander(daemon, client)
        before = bystander.items_before()
        with hanging(drive, reads and not writes, writes):
            if writes:
                hang_with_write(drive, client, reads)
            told, fed = watch_hang(bystander, watchdog, reads, writes)
            crowd.each_is_answered("all to be answered while the drive hangs")
            assert bool(drive.reads.held) == bool(reads) and bool(drive.writes.held) == bool(writes)
        assert told and fed
        assert bystander.crawled
        in_time(bystander.resident <= RESIDENT_MOST, f"{bystander.resident} bytes are resident")
        in_time(min(bystander.items) >= ITEMS_LEAST * before, f"of {before} objects {min(bystander.items)} stayed")
        flash_hits_come(client)
        until(lambda: client.count("flash_offline") == 0, "the flash to be online")
        crowd.each_is_answered("all to be answered after the hang")
        assert crowd.lost == 0


STALL_SECONDS = 30
later = itertools.count()
HOT = 20  # keys in DRAM that are read all the while


def use_dram_through_stall(client, keys, seconds):
    """Sets new objects and reads hot ones until the time is over, and asks for one on flash now and then. The keys that were set."""
    hot, new, until_then = [b"hot-%d" % n for n in range(HOT)], [], time.monotonic() + seconds
    set_all(client, hot)
    while time.monotonic() < until_then:
        new.append(b"new-%d" % len(new))
        assert client.set(new[-1], value_of(new[-1])) == b"STORED\r\n"
        for key in [new[-1], *hot]:
            assert [data for _, _, data, _ in client.get(key)] == [value_of(key)]
        if len(new) % 100 == 0:
            key = random.choice(keys)
            assert [data for _, _, data, _ in client.get(key)] in ([], [value_of(key)])
    return new


@pytest.mark.long
def test_a_drive_that_stalls_for_half_a_minute(start, open_folder):
    """Sets and hits in DRAM are answered all the while. Afterwards flash is back: what was there before is served with its
    values, and further segments are written."""
    daemon, drive = on_the_drive(start, open_folder, 2)
    keys = keys_on_flash(daemon, drive, 3000)
    with daemon.client() as client:
        with hanging(drive, 1, 1):
            new = use_dram_through_stall(client, keys, STALL_SECONDS)
            assert client.count("flash_offline") == 1
        assert len(new) > 100
        until(lambda: client.count("flash_offline") == 0, "the flash to be online")
        before, found = client.count("flash_hits"), {}

        def most_are_read():  # a drive that is busy again may refuse some
            for key in set(keys) - set(found):
                found.update((key, data) for key, _, data, _ in client.get(key))
            return len(found) > 0.9 * len(keys)

        until(most_are_read, "what was on flash")
        assert client.count("flash_hits") > before
        assert all(data == value_of(key) for key, data in found.items())
        written = client.count("segments_written")
        until(lambda: set_and_read(client, [b"later-%d" % next(later) for _ in range(500)]) or
              client.count("segments_written") > written, "further segments")


# ---- a drive that is asked for too much ----------------------------------------------------------------

READS_PER_SECOND = 2000
KEYS_PER_GET = 20
FEW, MANY = 5, 100  # connections: those few keep the drive busy
WINDOW_READS = 3 * READS_PER_SECOND  # of the drive
HITS_LEAST = 0.5
WHOLE_LEAST = 0.9


def hits_per_read(daemon, drive, client, keys, connections, pause):
    """Flash hits for each read of a drive that does as many as it can, with so many connections, whose gets have
    different keys; and the answers meanwhile."""
    starts = itertools.cycle(range(0, len(keys), KEYS_PER_GET))

    def question(_):
        first = next(starts)
        return b"get %s\r\n" % b" ".join(keys[first:first + KEYS_PER_GET])

    with Crowd(daemon.port, connections, question, pause) as crowd:
        crowd.each_is_answered("all to be answered")
        began, before, done = time.monotonic(), client.count("flash_hits"), drive.reads.done
        until(lambda: drive.reads.done >= done + WINDOW_READS, "the drive to do so many reads")
        hits, reads = client.count("flash_hits") - before, drive.reads.done - done
        crowd.each_is_answered("all to be answered again")
        assert crowd.lost == 0
    return hits / reads, crowd.since(began)


def test_a_drive_that_is_asked_for_too_much_does_what_it_can(start, open_folder):
    """Many connections ask for ten times what the drive does. They get about as much as few connections do; for the
    rest they get misses, a whole multiget or none of it."""
    daemon, drive = on_the_drive(start, open_folder, 2)
    keys = keys_on_flash(daemon, drive, 4000)
    keys = keys[:len(keys) // KEYS_PER_GET * KEYS_PER_GET]
    with daemon.client() as client:
        drive.reads.per_second = READS_PER_SECOND
        few, _ = hits_per_read(daemon, drive, client, keys, FEW, 0)
        shed = int(client.stats(b"flash").get("flash_reads_shed", 0))
        many, answers = hits_per_read(daemon, drive, client, keys, MANY, 0.1)
        whole = sum(answer.values in (0, KEYS_PER_GET) for answer in answers)
        in_time(many >= HITS_LEAST * few > 0, f"{many} hits a read with many connections, {few} with few")
        assert client.count("flash_reads_shed") > shed
        # With the frugal index a read is of a whole page. Who wants another key of it while it is read has that for nothing, even
        # where the other keys of a multiget are refused.
        in_time(is_frugal() or whole >= WHOLE_LEAST * len(answers), f"{whole} of {len(answers)} multigets were whole")
        drive.reads.per_second = 0


# ---- an object that all want ---------------------------------------------------------------------------

HOT_CONNECTIONS = 200
HOT_PIPELINE = 50
HOT_GETS = 300000
READS_MOST = 0.01
HITS_LEAST_OF_GETS = 0.99  # the others were not answered in time


def test_an_object_that_all_want_is_read_once_for_many(start, open_folder):
    """The object stays on flash, and at most one of a hundred gets reads the drive."""
    daemon, drive = on_the_drive(start, open_folder, 2)
    request = b"get %s\r\n" % keys_on_flash(daemon, drive, 2000)[0] * HOT_PIPELINE
    with daemon.client() as client:
        hits, counted, done = client.count("flash_hits"), client.count("flash_reads"), drive.reads.done
        with Crowd(daemon.port, HOT_CONNECTIONS, lambda _: request) as crowd:
            crowd.has_answers(HOT_GETS // HOT_PIPELINE)
        gets = sum(answer.commands for answer in crowd.answers)
        assert crowd.lost == 0
        assert gets >= HOT_GETS
        assert drive.reads.done - done <= READS_MOST * gets
        assert client.count("flash_reads") - counted <= READS_MOST * gets
        hits = client.count("flash_hits") - hits
        in_time(hits >= HITS_LEAST_OF_GETS * gets, f"{hits} of {gets} gets were hits")
        assert sum(answer.values for answer in crowd.answers) >= hits - HOT_CONNECTIONS * HOT_PIPELINE
