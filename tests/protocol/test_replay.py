# SPDX-License-Identifier: BSD-3-Clause
"""flashield-replay end to end: against memcached, against the daemon, and against servers that lie."""
import gzip
import json
import os
import shutil
import socket
import socketserver
import subprocess
import threading

import pytest

from helpers import PATIENCE, in_time, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
REPLAY = os.path.join(BUILD, "flashield-replay")
DAEMON = os.environ.get("FLASHIELD_BIN", os.path.join(BUILD, "flashield"))
HEADER = "time_ms,app,op,key,key_size,value_size,ttl_s\n"

pytestmark = pytest.mark.skipif(not os.path.exists(REPLAY), reason=f"{REPLAY} is not built")


def wait_for(path, process):
    """Until the server accepts on its unix socket."""
    def accepts():
        assert process.poll() is None, "the server ended at its start"
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(path) == 0

    until(accepts, "the server to accept connections")


@pytest.fixture(params=["memcached", "flashield"])
def server(request, tmp_path):
    program = shutil.which("memcached") if request.param == "memcached" else DAEMON
    if not program or not os.path.exists(program):
        pytest.skip(f"{request.param} is not here")
    path = str(tmp_path / "server.sock")
    metrics = [] if request.param == "memcached" else ["--metrics-listen=off"]
    process = subprocess.Popen([program, "-s", path, "-m", "64", "-t", "2", "-U", "0", "-u", "root", *metrics],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(path, process)
        yield path
    finally:
        # memcached takes a second for a clean end, which nothing here needs.
        (process.kill if request.param == "memcached" else process.terminate)()
        process.wait(PATIENCE)


STATS = {
    b"stats": b"STAT version fake\r\nEND\r\n",
    b"settings": b"STAT training_window 1d\r\nSTAT flashiness_horizon auto\r\nEND\r\n",
}


class Fake:
    """A server in Python: answer(command words, stored, state) gives the bytes of an answer."""

    def __init__(self, answer, stats=None):
        state, reports = {}, {**STATS, **(stats or {})}

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                for line in self.rfile:
                    words = line.split()
                    if words[0] == b"stats":
                        self.wfile.write(reports.get(words[-1], b"ERROR\r\n"))
                        continue
                    stored = self.rfile.read(int(words[4]) + 2)[:-2] if words[0] in (b"set", b"add") else None
                    reply = answer(words, stored, state)
                    if reply is None:
                        return
                    self.wfile.write(reply)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self.address

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def honest(words, stored, state):
    if words[0] == b"set":
        state[words[1]] = stored
        return b"STORED\r\n"
    if words[0] == b"delete":
        return b"DELETED\r\n" if state.pop(words[1], None) is not None else b"NOT_FOUND\r\n"
    value = state.get(words[1])
    if value is None:
        return b"END\r\n"
    return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (words[1], len(value), value)


def write_trace(path, rows, header=HEADER):
    text = header + "".join(",".join(map(str, row)) + "\n" for row in rows)
    if str(path).endswith(".gz"):
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        path.write_text(text)
    return str(path)


def replay(trace, server, *options):
    """Exit status, the report as JSON (or None), standard error."""
    done = subprocess.run([REPLAY, "--server", server, "--json", "-", "--quiet", *options, trace],
                          capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def zipf_rows(count, keys, size=100):
    """Gets over keys of falling popularity, three applications, no randomness of the library's."""
    seed, rows = 12345, []
    for n in range(count):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        key = int(keys ** ((seed >> 40) / 2**24)) - 1
        rows.append((n * 10, key % 3 + 1, "get", key, 30, size + key % 50, 0))
    return rows


# --- what must fail -----------------------------------------------------------------------------


@pytest.mark.parametrize("arguments,named", [
    (["--copies", "0", "x"], "--copies"),
    (["--copies", "many", "x"], "--copies"),
    (["--depth", "4k", "x"], "--depth"),
    (["--skip", "-1", "x"], "--skip"),
    (["--speed", "-1", "x"], "--speed"),
    (["--speed", "1/0", "x"], "--speed"),
    (["--warmup", "1.5", "x"], "--warmup"),
    (["--warmup", "1 day", "x"], "--warmup"),
    (["--mode", "sideways", "x"], "look-aside, literal, gets-only"),
    (["--format", "xml", "x"], "memcachier"),
    (["--threads", "9", "x"], "--threads"),
    (["--ttl", "scaled", "x"], "--speed"),
    (["--no-such-option", "x"], "no-such-option"),
    ([], "no trace"),
    (["x", "y"], "more than one"),
])
def test_bad_usage_names_the_option_and_exits_2(arguments, named):
    done = subprocess.run([REPLAY, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert named in done.stderr


def test_no_server_is_one_clear_line(tmp_path):
    trace = write_trace(tmp_path / "t.csv", zipf_rows(10, 5))
    code, report, error = replay(trace, str(tmp_path / "nobody.sock"))
    assert code == 2 and report is None
    assert "nobody.sock" in error and len(error.splitlines()) == 1


def test_a_server_that_is_no_memcached_is_refused(tmp_path):
    trace = write_trace(tmp_path / "t.csv", zipf_rows(100, 5))
    with Fake(lambda *_: b"HTTP/1.1 400 Bad Request\r\n") as address:
        code, _, error = replay(trace, address)
    assert code == 2
    assert "HTTP/1.1 400" in error


def test_a_server_that_goes_away_exits_2(tmp_path):
    trace = write_trace(tmp_path / "t.csv", zipf_rows(2000, 500))
    seen = []

    def leave(words, stored, state):
        seen.append(words)
        return honest(words, stored, state) if len(seen) < 100 else None

    with Fake(leave) as address:
        code, _, error = replay(trace, address, "--connections", "1")
    assert code == 2
    assert address in error


def test_a_server_that_hangs_exits_2(tmp_path):
    trace = write_trace(tmp_path / "t.csv", zipf_rows(10, 5))
    with Fake(lambda *_: b"") as address:
        code, _, error = replay(trace, address, "--timeout", "300ms")
    assert code == 2
    assert "--timeout" in error


def test_a_truncated_trace_exits_2(tmp_path):
    path = write_trace(tmp_path / "t.csv.gz", zipf_rows(20000, 5000))
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 1000)
    with Fake(honest) as address:
        code, _, error = replay(path, address)
    assert code == 2
    assert "truncated" in error


def test_an_older_value_is_found_and_exits_1(tmp_path):
    rows = [(0, 1, "set", 1, 20, 50, 0), (1, 1, "set", 1, 20, 50, 0), (2, 1, "get", 1, 20, 50, 0)]

    def first_value_for_ever(words, stored, state):
        if words[0] == b"set" and words[1] in state:
            return b"STORED\r\n"
        return honest(words, stored, state)

    with Fake(first_value_for_ever) as address:
        code, report, error = replay(write_trace(tmp_path / "t.csv", rows), address)
    assert code == 1
    assert report["values"]["older"] == 1 and report["values"]["wrong"] == 0
    assert "an older value" in error and "app1:" in error


def test_a_value_that_survives_its_delete_is_found(tmp_path):
    rows = [(0, 1, "set", 1, 20, 50, 0), (1, 1, "delete", 1, 20, -1, 0), (2, 1, "get", 1, 20, -1, 0)]

    def never_deletes(words, stored, state):
        return b"DELETED\r\n" if words[0] == b"delete" else honest(words, stored, state)

    with Fake(never_deletes) as address:
        code, report, _ = replay(write_trace(tmp_path / "t.csv", rows), address)
    assert code == 1
    assert report["values"]["older"] == 1


def test_swapped_and_damaged_values_are_found(tmp_path):
    rows = [(0, 1, "set", 1, 20, 50, 0), (0, 1, "set", 2, 20, 50, 0), (1, 1, "get", 1, 20, 50, 0),
            (2, 1, "get", 2, 20, 50, 0)]

    def lies(words, stored, state):
        if words[0] != b"get":
            return honest(words, stored, state)
        values = list(state.values())
        value = values[1] if words[1] == list(state)[0] else values[1][:-1] + b"!"
        return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (words[1], len(value), value)

    with Fake(lies) as address:
        code, report, _ = replay(write_trace(tmp_path / "t.csv", rows), address, "--connections", "1")
    assert code == 1
    assert report["values"]["wrong"] == 2


# --- what must be exact -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [
    [], ["--depth", "1", "--connections", "1"], ["--depth", "64", "--connections", "3"],
    ["--threads", "2", "--connections", "5", "--depth", "32"],
])
def test_with_room_for_all_each_key_misses_once(server, tmp_path, shape):
    rows = zipf_rows(20000, 3000)
    trace = write_trace(tmp_path / "t.csv.gz", rows)
    keys = {row[3] for row in rows}
    code, report, error = replay(trace, server, *shape)
    assert code == 0, error
    assert report["requests"] == report["gets"] == len(rows)
    assert report["hits"] == len(rows) - len(keys)
    assert report["values"]["checked"] == report["hits"]
    assert report["values"]["fills"] == len(keys)
    assert report["latency"]["hit"]["count"] == report["hits"]
    for app in (1, 2, 3):
        own = [row for row in rows if row[1] == app]
        assert report["apps"][str(app)]["gets"] == len(own)
        assert report["apps"][str(app)]["hits"] == len(own) - len({row[3] for row in own})


def test_copies_have_keys_of_their_own(server, tmp_path):
    rows = zipf_rows(5000, 400)
    code, report, error = replay(write_trace(tmp_path / "t.csv", rows), server, "--copies", "5")
    assert code == 0, error
    assert report["gets"] == 5 * len(rows)
    assert report["hits"] == 5 * (len(rows) - len({row[3] for row in rows}))


def test_a_trace_is_played_in_parts_by_skip_and_limit(server, tmp_path):
    """The keys of a later part are those of the earlier ones: a get misses only where its key is new in the whole trace."""
    rows = zipf_rows(4000, 300)
    trace, hits = write_trace(tmp_path / "t.csv", rows), 0
    for part in (["--limit", "1000"], ["--skip", "1000", "--limit", "500", "--warmup", "0.2"],
                 ["--skip", "1500", "--threads", "2", "--speed", "1000"]):
        code, report, error = replay(trace, server, *part)
        assert code == 0, error
        hits += report["hits"]
    begins, new = 0, set()
    for end, counted in ((1000, 0), (1500, 100), (4000, 0)):
        for number, row in enumerate(rows[begins:end]):
            hits -= row[3] in new and number >= counted
            new.add(row[3])
        begins = end
    assert hits == 0


def test_behind_a_traces_end_there_is_nothing_to_skip_to(server, tmp_path):
    code, report, error = replay(write_trace(tmp_path / "t.csv", zipf_rows(100, 50)), server, "--skip", "100")
    assert code == 2 and report is None
    assert "--skip: the trace has no more than 100 requests" in error


def test_literal_plays_what_the_trace_says(server, tmp_path):
    rows = [(0, 1, "get", 1, 20, 50, 0), (1, 1, "get", 1, 20, 50, 0), (2, 1, "set", 1, 20, 50, 0),
            (3, 1, "get", 1, 20, 50, 0), (4, 1, "delete", 1, 20, -1, 0), (5, 1, "get", 1, 20, 50, 0)]
    code, report, error = replay(write_trace(tmp_path / "t.csv", rows), server, "--mode", "literal")
    assert code == 0, error
    assert (report["gets"], report["hits"], report["sets"]) == (4, 1, 1)
    assert report["values"]["deletes"] == 1 and report["values"]["fills"] == 0


def test_warmup_is_left_out_of_all_counts(server, tmp_path):
    rows = [(n * 1000, 1, "get", n % 100, 20, 50, 0) for n in range(1000)]
    trace = write_trace(tmp_path / "t.csv", rows)
    for warmup in ("0.1", "100s"):
        code, report, error = replay(trace, server, "--warmup", warmup, "--flush")
        assert code == 0, error
        assert report["gets"] == report["hits"] == 900
        assert report["played"] == 1000


def test_values_over_the_limit_are_counted_not_fatal(server, tmp_path):
    rows = [(0, 1, "get", 1, 20, 3 << 20, 0), (1, 1, "get", 2, 20, 100, 0), (2, 1, "get", 1, 20, 3 << 20, 0)]
    code, report, error = replay(write_trace(tmp_path / "t.csv", rows), server)
    assert code == 0, error
    assert report["hits"] == 0
    assert report["values"]["too_large"] == 2


def test_keys_and_values_have_their_real_sizes(tmp_path):
    seen = []

    def look(words, stored, state):
        if words[0] == b"set":
            seen.append((words[1].decode(), len(stored)))
        return honest(words, stored, state)

    rows = [(0, 7, "get", 5, 60, 1234, 0), (0, 19, "get", 6, 16, 0, 0), (0, 7, "get", 8, -1, 9, 0)]
    with Fake(look) as address:
        code, _, _ = replay(write_trace(tmp_path / "t.csv", rows), address)
    assert code == 0
    assert sorted((key.split(":")[0], len(key), size) for key, size in seen) == [
        ("app19", 16, 0), ("app7", 24, 9), ("app7", 60, 1234)]


@pytest.mark.parametrize("name,header,rows", [
    ("memcachier", "", [(0.5, 3, 1, 20, -1, 7, 0), (0.5, 3, 2, 20, 40, 7, 1), (1.5, 3, 1, 20, 40, 7, 1),
                        (2.0, 3, 6, 20, -1, 8, 1)]),
    ("twitter", "", [(0, "nz:a", 20, 0, 1, "get", 0), (0, "nz:a", 20, 40, 1, "set", 60),
                     (1, "nz:a", 20, 40, 2, "gets", 0), (2, "nz:a", 20, 4, 2, "incr", 0)]),
    ("meta", "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase\n",
     [(0, 11, 20, "GET", 1, 0, 0, 0, 4), (0, 11, 20, "SET", 1, 40, 0, 0, 4), (1, 11, 20, "GET", 1, 40, 1, 0, 4)]),
])
def test_other_formats_are_known_by_their_columns(server, tmp_path, name, header, rows):
    code, report, error = replay(write_trace(tmp_path / "t.csv", rows, header), server)
    assert code == 0, error
    assert report["trace"]["format"] == name
    assert (report["gets"], report["hits"], report["sets"]) == (2, 1, 1)


def test_unknown_times_span_a_week(tmp_path):
    rows = [(-1, 1, "get", n, 20, 10, 0) for n in range(100)]
    with Fake(honest) as address:
        code, report, _ = replay(write_trace(tmp_path / "t.csv", rows), address)
    assert code == 0
    assert report["trace"]["span_seconds"] == 604800


@pytest.mark.clock
def test_pace_follows_the_trace(tmp_path):
    rows = [(n * 1000, 1, "get", n, 20, 10, 0) for n in range(50)]
    with Fake(honest) as address:
        code, report, _ = replay(write_trace(tmp_path / "t.csv", rows), address, "--speed", "100")
    assert code == 0
    assert report["run_seconds"] >= 0.48
    in_time(report["run_seconds"] <= 5, f"{report['run_seconds']} s for a trace of 0.49 s")


def test_a_value_from_an_earlier_run_is_accepted_but_said(server, tmp_path):
    trace = write_trace(tmp_path / "t.csv", zipf_rows(1000, 100))
    assert replay(trace, server)[0] == 0
    code, report, error = replay(trace, server)
    assert code == 0, error
    assert report["hits"] == report["gets"]
    assert report["values"]["from_before"] == report["hits"]


def test_the_report_is_complete_and_advises(server, tmp_path):
    trace = write_trace(tmp_path / "t.csv", zipf_rows(2000, 300))
    done = subprocess.run([REPLAY, "--server", server, "--quiet", trace], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0
    for part in ("requests/s", "Hit ratio", "app 1", "p99.9", "--training-window", "--flashiness-horizon", "memory"):
        assert part in done.stdout


def test_each_tier_is_told_against_its_own_limit(tmp_path):
    """`bytes` of stats counts both tiers, and -m bounds one of them."""
    trace = write_trace(tmp_path / "t.csv", zipf_rows(100, 30))
    rows = {b"stats": b"STAT version 1\r\nSTAT curr_items 9\r\nSTAT bytes 6144\r\nSTAT limit_maxbytes 2048\r\n"
                      b"STAT extstore_bytes_used 5120\r\nSTAT extstore_limit_maxbytes 8192\r\nEND\r\n",
            b"flash": b"STAT flash_enabled 1\r\nSTAT flash_hits 0\r\nSTAT dram_bytes 1024\r\nEND\r\n"}
    with Fake(honest, rows) as address:
        code, report, _ = replay(trace, address)
        assert code == 0
        server = report["server"]
        assert [server[name] for name in ("bytes_used", "dram_bytes_used", "memory_limit", "flash_bytes_used", "flash_limit")] == [
            6144, 1024, 2048, 5120, 8192]
        done = subprocess.run([REPLAY, "--server", address, "--quiet", trace], capture_output=True, text=True, timeout=PATIENCE)
    told = dict(line.split(None, 1) for line in done.stdout.splitlines() if line.startswith(("  memory ", "  flash  ")))
    assert told == {"memory": "1.00 KiB in items, limit 2.00 KiB", "flash": "5.00 KiB in items, limit 8.00 KiB"}


def test_a_ratio_of_nothing_is_null(tmp_path):
    """The server tells nan: the report has null."""
    trace = write_trace(tmp_path / "t.csv", zipf_rows(100, 30))
    rows = {b"flash": b"STAT flash_enabled 1\r\nSTAT segment_fill nan\r\nSTAT index_load 0.500000\r\nEND\r\n",
            b"classifier": b"STAT precision nan\r\nSTAT recall 0.250000\r\nEND\r\n"}
    with Fake(honest, rows) as address:
        code, report, _ = replay(trace, address)
        assert code == 0
        server = report["server"]
        assert (server["segment_fill"], server["index_load"], server["precision"], server["recall"]) == (None, 0.5, None, 0.25)


def test_a_run_too_short_for_the_servers_training_window_warns(tmp_path):
    trace = write_trace(tmp_path / "t.csv", zipf_rows(100, 30))
    with Fake(honest) as address:
        done = subprocess.run([REPLAY, "--server", address, "--quiet", trace], capture_output=True, text=True,
                              timeout=PATIENCE)
    assert done.returncode == 0
    assert "WARNING" in done.stdout and "training window" in done.stdout
