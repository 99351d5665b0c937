# SPDX-License-Identifier: BSD-3-Clause
"""flashield-record end to end: a known sequence of requests comes back from the trace, from memcached and from the daemon;
what servers that lie, refuse, skip or go away do to it; flashield-sim plays what it wrote."""
import collections
import gzip
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import threading

import pytest

from helpers import PATIENCE, Daemon, free_port, memcached_command, until
from test_sim import SIM, sim

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
RECORD = os.path.join(BUILD, "flashield-record")
HEADER = "time_ms,app,op,key,key_size,value_size,ttl_s"

pytestmark = pytest.mark.skipif(not os.path.exists(RECORD), reason=f"{RECORD} is not built")

Row = collections.namedtuple("Row", HEADER.split(","))


def record(*options, **keywords):
    return subprocess.run([RECORD, *options], capture_output=True, text=True, timeout=PATIENCE, check=False, **keywords)


def rows_of(path):
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="ascii") as file:
        lines = file.read().splitlines()
    assert lines[0] == HEADER
    return [Row(*line.split(",")) for line in lines[1:]]


def requests_of(rows):
    """Without times, and with the number of its first appearance in place of each key."""
    order = {}
    return [(row.op, order.setdefault(row.key, len(order)), int(row.key_size), int(row.value_size), int(row.ttl_s)) for row in rows]


class Recording:
    """A recorder beside a server, that watches already."""

    def __init__(self, server, path, *options):
        self.process = subprocess.Popen([RECORD, "--server", f"127.0.0.1:{server.port}", "--output", str(path), *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(path.exists, "a file, which is made when the server has agreed")

    def end(self, signal_number=None):
        """(exit status, summary, errors)"""
        if signal_number:
            self.process.send_signal(signal_number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


# memcached's log thread may sleep for a second, and 64 KiB hold some hundred lines until then.
BUFFERS = ["-m", "64", "-o", "worker_logbuf_size=4096,watcher_logbuf_size=4096"]


@pytest.fixture(scope="module")
def flashield():
    with Daemon(BUFFERS) as daemon:
        yield daemon


@pytest.fixture(scope="module", params=["memcached", "flashield"])
def server(request):
    """A server of each kind, with several threads."""
    if request.param == "flashield":
        yield request.getfixturevalue("flashield")
        return
    if not shutil.which(memcached_command()):
        pytest.skip("memcached is not installed")
    with Daemon([*BUFFERS, "-U", "0"], program=memcached_command()) as memcached:
        yield memcached


@pytest.mark.parametrize("options,named", [
    ([], "--output"),
    (["--output", "-", "more"], "more"),
    (["--output", "-", "--sample", "0"], "--sample"),
    (["--output", "-", "--sample", "2"], "--sample"),
    (["--output", "-", "--delimiter", "::"], "--delimiter"),
    (["--output", "-", "--apps", "some"], "hash, name, none"),
    (["--output", "-", "--duration", "0"], "--duration"),
    (["--output", "-", "--limit", "0"], "--limit"),
    (["--output", "-", "--fill-window", "2h"], "--fill-window"),
    (["--output", "-", "--server", "nonsense"], "nonsense"),
])
def test_bad_usage_names_the_option_and_exits_2(options, named):
    done = record(*options)
    assert done.returncode == 2 and named in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_server_that_is_not_there(tmp_path):
    done = record("--server", f"127.0.0.1:{free_port()}", "--output", str(tmp_path / "t.csv"))
    assert done.returncode == 2 and "can't reach the server" in done.stderr
    assert not (tmp_path / "t.csv").exists()


def test_a_server_that_refuses_to_be_watched(start, tmp_path):
    daemon = start("-W")
    done = record("--server", f"127.0.0.1:{daemon.port}", "--output", str(tmp_path / "t.csv"))
    assert done.returncode == 2 and "refuses" in done.stderr and "watch commands not allowed" in done.stderr


def test_a_folder_that_is_not_there(server):
    done = record("--server", f"127.0.0.1:{server.port}", "--output", "/nowhere/at/all.csv")
    assert done.returncode == 2 and "/nowhere/at/all.csv" in done.stderr


def act(client, prefix):
    """A known sequence, and the requests of it: (op, key, size of key, size of value, TTL)."""
    one, two, three = (prefix + name for name in (b"one", b"second", b"%/,\xff"))

    def ask(line, answer):
        assert client.ask(line) == answer

    assert client.get(one) == []
    client.set(one, b"x" * 10, exptime=60)
    assert len(client.get(one)) == 1
    client.set(two, b"y" * 300)
    client.set(two, b"z" * 301)
    ask(b"append %b 0 0 9\r\n123456789\r\n" % two, b"STORED\r\n")
    ask(b"add %b 0 0 1\r\n1\r\n" % two, b"NOT_STORED\r\n")
    assert len(client.get(one, two)) == 2
    assert client.get(three) == []
    ask(b"replace %b 0 0 1\r\n1\r\n" % three, b"NOT_STORED\r\n")
    client.set(three, b"")
    assert len(client.get(three)) == 1
    ask(b"set %b 0 -1 2\r\nab\r\n" % three, b"STORED\r\n")
    return [("get", 0, len(one), 10, 60), ("get", 0, len(one), 10, 0), ("set", 1, len(two), 300, 0), ("set", 1, len(two), 301, 0),
            ("set", 1, len(two), 310, 0), ("get", 0, len(one), 10, 0), ("get", 1, len(two), 310, 0), ("get", 2, len(three), 0, 0),
            ("get", 2, len(three), 0, 0), ("delete", 2, len(three), -1, 0)]


def test_a_known_sequence_comes_back(server, tmp_path):
    path = tmp_path / "t.csv.gz"
    with server.client() as client:
        recording = Recording(server, path, "--limit", "10")
        expected = act(client, b"known:")
        status, summary, errors = recording.end()
    assert (status, errors) == (0, "")
    rows = rows_of(path)
    assert requests_of(rows) == expected
    times = [int(row.time_ms) for row in rows]
    assert times[0] == 0 and times == sorted(times)
    lines = {line.split()[0]: line.split()[1:] for line in summary.splitlines()}
    assert [lines[name][0] for name in ("requests", "gets", "sets", "deletes", "keys", "apps")] == ["10", "6", "3", "1", "3", "1"]


def test_no_key_is_in_the_file(server, tmp_path):
    path = tmp_path / "t.csv"
    with server.client() as client:
        recording = Recording(server, path, "--limit", "1")
        client.get(b"tenant:secret")
        assert recording.end()[0] == 0
    text = path.read_text(encoding="ascii")
    assert "secret" not in text and "tenant" not in text


def test_with_one_salt_names_are_the_same(server, tmp_path):
    names = []
    with server.client() as client:
        for number, salt in enumerate((["--salt", "a"], ["--salt", "a"], ["--salt", "b"], [])):
            path = tmp_path / f"{number}.csv"
            recording = Recording(server, path, "--limit", "1", *salt)
            client.get(b"tenant:key")
            assert recording.end()[0] == 0
            names.append((rows_of(path)[0].key, rows_of(path)[0].app))
    assert names[0] == names[1] and len(set(names)) == 3


@pytest.mark.parametrize("options,apps", [
    (["--apps", "name"], ["a", "b%2Fc", "-"]),
    (["--apps", "name", "--delimiter", "/"], ["-", "b", "-"]),
    (["--apps", "none"], ["-", "-", "-"]),
])
def test_applications(server, tmp_path, options, apps):
    path = tmp_path / "t.csv"
    with server.client() as client:
        recording = Recording(server, path, "--limit", "3", *options)
        client.get(b"a:1", b"b/c:2", b"plain")
        assert recording.end()[0] == 0
    assert [row.app for row in rows_of(path)] == apps


def all_thrice(path):
    """The requests by key in the file, if there are three of each. The end of its last line may not be written yet."""
    whole = path.read_text().rpartition("\n")[0].splitlines()
    counts = collections.Counter(line.split(",")[Row._fields.index("key")] for line in whole[1:])
    return counts if counts and set(counts.values()) == {3} else None


def test_a_sample_has_all_requests_of_its_keys(server, tmp_path):
    path = tmp_path / "t.csv"
    with server.client() as client:
        recording = Recording(server, path, "--sample", "1/4")
        for _ in range(3):
            for at in range(0, 1000, 50):
                client.get(*[b"sampled-%d" % (at + n) for n in range(50)])
        counts = until(lambda: all_thrice(path), "three requests of each key")
        assert recording.end(signal.SIGTERM)[0] == 0
    assert 150 < len(counts) < 350


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_whole_file(server, tmp_path, signal_number):
    path = tmp_path / "t.csv.gz"
    recording = Recording(server, path)
    status, summary, _ = recording.end(signal_number)
    assert status == 0 and summary.startswith("requests")
    rows_of(path)


def test_it_ends_after_a_duration(server, tmp_path):
    done = record("--server", f"127.0.0.1:{server.port}", "--output", "-", "--duration", "10ms")
    assert done.returncode == 0 and done.stdout.startswith(HEADER) and "requests" in done.stderr


def test_deletes_and_counters_of_the_daemon(flashield, tmp_path):
    path = tmp_path / "t.csv"
    with flashield.client() as client:
        recording = Recording(flashield, path, "--limit", "5")
        client.set(b"n", b"5")
        client.ask(b"incr n 1\r\n")
        client.ask(b"touch n 100\r\n")
        client.ask(b"gat 100 n\r\n")
        while client.line() != b"END\r\n":
            pass
        client.ask(b"delete n\r\n")
        status, summary, _ = recording.end()
    assert status == 0 and "2 of them were incr, decr or touch" in summary
    assert requests_of(rows_of(path)) == [("set", 0, 1, 1, 0), ("get", 0, 1, -1, 0), ("get", 0, 1, -1, 0), ("get", 0, 1, 1, 0),
                                          ("delete", 0, 1, -1, 0)]


def test_requests_of_many_connections_keep_their_order(server, tmp_path):
    """Threads' lines come in blocks; each connection is another thread's."""
    path = tmp_path / "t.csv"
    clients = [server.client() for _ in range(8)]
    recording = Recording(server, path, "--limit", "600", "--fill-window", "0")
    expected = []
    for turn in range(300):
        clients[turn % 8].set(b"turn", b"v" * turn)
        clients[(turn + 3) % 8].get(b"turn")
        expected += [("set", 0, 4, turn, 0), ("get", 0, 4, turn, 0)]
    status, _, errors = recording.end()
    for client in clients:
        client.close()
    assert (status, errors) == (0, "")
    assert requests_of(rows_of(path)) == expected


# ---- servers that a test writes ------------------------------------------------------------------


class Liar:
    """Answers "watch" with the lines, "stats" with the count of dropped lines, and then closes."""

    def __init__(self, lines, words=b"deletions", dropped=(0, 0), ends=b""):
        self.lines, self.words, self.dropped, self.ends = lines, words, list(dropped), ends
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client, client.makefile("rb") as reader:
                self.answer(client, reader)

    def answer(self, client, reader):
        for line in reader:
            if line.startswith(b"stats"):
                client.sendall(b"STAT pid 1\r\nSTAT log_worker_dropped %d\r\nEND\r\n" % self.dropped.pop(0))
            elif b"deletions" in line and not self.words:
                client.sendall(b"ERROR\r\n")
            else:
                try:
                    client.sendall(b"OK\r\n" + b"".join(self.lines) + self.ends)
                except OSError:
                    pass
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def line(gid, kind, key, rest, time=None):
    return b"ts=1700000000.%d gid=%d type=%b key=%b %b\n" % (gid if time is None else time, gid, kind, key, rest)


def got(gid, key, size=None, cfd=9):
    return line(gid, b"item_get", key, b"status=%b clsid=1 cfd=%d size=%d" % (b"not_found" if size is None else b"found", cfd, size or 0))


def recorded(path, *arguments, options=(), **keywords):
    with Liar(*arguments, **keywords) as liar:
        return record("--server", f"127.0.0.1:{liar.port}", "--output", str(path), *options)


def test_a_server_that_goes_away_leaves_a_whole_file(tmp_path):
    path = tmp_path / "t.csv.gz"
    done = recorded(path, [got(1, b"a", 5), got(2, b"b", 6)], ends=b"ts=1700000000.3 gid=3 type=item_g")
    assert done.returncode == 2 and "closed the connection" in done.stderr
    assert requests_of(rows_of(path)) == [("get", 0, 1, 5, 0), ("get", 1, 1, 6, 0)]


def test_lost_lines_are_told(tmp_path):
    lines = [got(1, b"a", 5), b"skipped=40\n", got(60, b"b", 6), b"skipped=2\n", b"garbage\x07\n", got(70, b"c", 6)]
    done = recorded(tmp_path / "t.csv", lines, dropped=(3, 10), options=["--limit", "3", "--quiet"])
    assert "skipped 42 lines, and its threads dropped 7;" in done.stderr
    assert '1 lines made no sense, the last of them "garbage?"' in done.stderr
    assert len(rows_of(tmp_path / "t.csv")) == 3


@pytest.mark.parametrize("words", [b"", b"deletions"])
def test_deletes_of_a_newer_memcached(tmp_path, words):
    """Its line stands behind that of a look-up; an older one has none."""
    lines = [got(1, b"a", 5), got(2, b"a", 5), line(3, b"deleted", b"a", b"cmd=delete clsid=1 size=5"), got(4, b"a")]
    done = recorded(tmp_path / "t.csv", lines if words else lines[:2] + lines[3:], words=words)
    expected = [("get", 0, 1, 5, 0), ("delete", 0, 1, -1, 0), ("get", 0, 1, -1, 0)]
    assert requests_of(rows_of(tmp_path / "t.csv")) == (expected if words else [expected[0], expected[0], expected[2]])
    assert ("deletes, incr, decr and touch look like gets" in done.stdout) == (not words)


def test_lines_out_of_order_are_put_back(tmp_path):
    lines = [got(2, b"a", 2), got(4, b"a", 4), got(1, b"a", 1), got(3, b"a", 3)]
    recorded(tmp_path / "t.csv", lines)
    assert [row.value_size for row in rows_of(tmp_path / "t.csv")] == ["1", "2", "3", "4"]


def test_a_server_that_is_no_memcached(tmp_path):
    listener = socket.create_server(("127.0.0.1", free_port()))
    with listener:
        done = record("--server", f"127.0.0.1:{listener.getsockname()[1]}", "--output", str(tmp_path / "t.csv"), "--timeout", "50ms")
    assert done.returncode == 2 and "does not answer" in done.stderr


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv"])
def test_a_full_disk_leaves_a_file_that_can_be_read(tmp_path, name):
    """A limit of the file's size stands for the disk."""
    limit = 1 << 20

    def small_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    lines = [got(n, b"key%d" % n, n % 1000) for n in range(1, 200001)]
    with Liar(lines) as liar:
        done = record("--server", f"127.0.0.1:{liar.port}", "--output", str(tmp_path / name), preexec_fn=small_disk)
    assert done.returncode == 2 and "File too large; it holds what came before" in done.stderr
    rows = rows_of(tmp_path / name)
    assert 10000 < len(rows) < 200000
    assert [int(row.value_size) for row in rows] == [n % 1000 for n in range(1, len(rows) + 1)]


def test_a_full_disk_keeps_what_was_in_the_file_before(tmp_path):
    """Standard output that is appended to a file: only what the recorder has written is cut off."""
    before = b"what was there before\n" * 30000
    (tmp_path / "all").write_bytes(before)
    limit = len(before) + 100000

    def small_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with Liar([got(n, b"key%d" % n, 1) for n in range(1, 20001)]) as liar, (tmp_path / "all").open("ab") as file:
        done = subprocess.run([RECORD, "--server", f"127.0.0.1:{liar.port}", "--output", "-"], stdout=file, stderr=subprocess.PIPE,
                              text=True, timeout=PATIENCE, check=False, preexec_fn=small_disk)
    assert done.returncode == 2 and "File too large" in done.stderr
    after = (tmp_path / "all").read_bytes()
    assert after.startswith(before + HEADER.encode() + b"\n")
    assert all(line.count(b",") == 6 for line in after[len(before):].splitlines())


def test_the_file_is_whole_while_the_server_is_asked_what_it_dropped(tmp_path):
    """A server that no longer answers keeps nothing out of the file."""
    path = tmp_path / "t.csv"

    class Silent(Liar):
        def answer(self, client, reader):
            if self.dropped or not path.exists():
                super().answer(client, reader)
            else:
                reader.read()

    with Silent([got(n, b"key%d" % n, n) for n in range(1, 5)], dropped=(0,)) as liar:
        recording = Recording(liar, path, "--timeout", "1h", "--limit", "4")
        until(lambda: path.read_text().count("\n") == 5, "all rows")
        assert recording.process.poll() is None
        recording.end(signal.SIGKILL)


def test_an_application_without_a_name(tmp_path):
    """Such keys have names that a trace can hold."""
    keys = [b"%3Ab", b"-1%3Ab", b"-%3Ab", b"b"]
    done = recorded(tmp_path / "t.csv", [got(n, key, 1) for n, key in enumerate(keys, 1)], options=["--apps", "name"])
    assert "made no sense" not in done.stderr
    assert [row.app for row in rows_of(tmp_path / "t.csv")] == ["-", "%2D1", "-", "-"]


def test_what_a_refusal_says_is_printable(tmp_path):
    class Rude(Liar):
        def answer(self, client, reader):
            for _ in reader:
                client.sendall(b"NO \x1b]0;title\x07\xff\r\n")

    with Rude([]) as liar:
        done = record("--server", f"127.0.0.1:{liar.port}", "--output", str(tmp_path / "t.csv"))
    assert done.returncode == 2 and done.stderr.endswith('refuses "watch": NO ?]0;title??\n')


# ---- the way to sizes ----------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists(SIM), reason=f"{SIM} is not built")
def test_the_simulator_plays_what_was_recorded(server, tmp_path):
    """Look-aside traffic: the trace has a get for each, with its size, and no set beside."""
    path, order = tmp_path / "t.csv.gz", random.Random(5)
    keys = [order.choices([order.randrange(50), 100 + order.randrange(500)], [2, 1])[0] for _ in range(3000)]
    with server.client() as client:
        recording = Recording(server, path, "--limit", str(len(keys)))
        for key in keys:
            if not client.get(b"play:%d" % key):
                client.set(b"play:%d" % key, b"v" * (200 + key))
        status, _, errors = recording.end()
    assert (status, errors) == (0, "")
    rows = rows_of(path)
    assert [(row.op, int(row.value_size)) for row in rows] == [("get", 200 + key) for key in keys]
    played = json.loads(sim("run", "--trace", str(path), "--policy", "lru", "--dram", "1g", "--warmup", "0s", "--json", "-").stdout)
    assert played["gets"] == len(keys) and played["get_hits"] == len(keys) - len(set(keys))
    sized = json.loads(sim("size", "--trace", str(path), "--policy", "freq", "--hit-ratio", "60%", "--json", "-").stdout)
    assert sized["chosen"]["hit_ratio"] >= 0.6


def test_a_memcached_that_cannot_tell_deletes_says_so(tmp_path):
    """1.6.18: a delete shows as a get."""
    if not shutil.which(memcached_command()):
        pytest.skip("memcached is not installed")
    with Daemon(["-m", "64", "-U", "0"], program=memcached_command()) as memcached, memcached.client() as client:
        if not client.ask(b"version\r\n").startswith(b"VERSION 1.6.18"):
            pytest.skip("another memcached")
        recording = Recording(memcached, tmp_path / "t.csv", "--limit", "2")
        client.set(b"k", b"v")
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"
        status, summary, _ = recording.end()
    assert status == 0 and "deletes, incr, decr and touch look like gets" in summary
    assert requests_of(rows_of(tmp_path / "t.csv")) == [("set", 0, 1, 1, 0), ("get", 0, 1, 1, 0)]
