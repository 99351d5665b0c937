# SPDX-License-Identifier: BSD-3-Clause
"""/metrics over HTTP: what Prometheus reads is valid, and is what stats says; nothing that a scraper does stops the daemon."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import threading

import pytest

from conftest import FLASH
from helpers import PATIENCE, SEGMENT, Client, Daemon, fill, flashield_command, free_port, is_frugal, on_flash, until
from metrics import Measured, counters, get, scrape, value

USER = ["-u", "nobody"] if os.geteuid() == 0 else []


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """With flash that is in use, hits and misses in both tiers, and applications."""
    with Measured(["--flash-path", str(tmp_path_factory.mktemp("flash") / "flash"), *FLASH]) as daemon:
        with daemon.client() as client:
            make_use(client)
        yield daemon


def make_use(client):
    """Objects of an application, and others until some of them are found on flash."""
    keys = [b"shop:%d" % i for i in range(300)]

    def some_on_flash():
        client.all(b"".join(b"set %s 0 0 4 noreply\r\nshop\r\n" % key for key in keys))
        fill(client, client.count("limit_maxbytes", b"") - client.count("dram_bytes"))
        written = client.count("segments_written")
        for _ in range(20):
            fill(client, SEGMENT)
        until(lambda: client.count("segments_written") > written, "a segment")
        return any(on_flash(client, key) for key in keys)
    until(some_on_flash, "an object on flash")
    client.get(b"absent")
    client.set(b"new", b"value")
    client.get(b"new")
    client.ask(b"incr absent 1\r\n")
    assert client.count("flash_hits") > 0


# ---- what is no address

@pytest.mark.parametrize("given", ["x", ":", "*", "**:9151", "9151", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000",
                                   "127.0.0.1:9151s", "127.0.0.1:1,127.0.0.1:2", "[::1]", "[::1:9151", "::1:9151",
                                   "[]:9151", "127.0.0.1:-1", "a b:1", "OFF"])
def test_no_address(given):
    """Refused before anything starts, with the option and what is accepted."""
    done = subprocess.run([flashield_command(), *USER, "-l", "127.0.0.1", "-p", str(free_port()), "--metrics-listen", given],
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 64
    assert done.stderr == (f'--metrics-listen: "{given}" is not ADDRESS:PORT, [IPV6]:PORT, *:PORT or off, with a port from 0 (any '
                           'that is free) to 65535\n')


@contextlib.contextmanager
def logged(options, path):
    """A daemon whose log can be read."""
    with open(path, "wb") as log, Daemon(options, stderr=log) as daemon:
        yield daemon


@pytest.mark.parametrize("address", ["127.0.0.1:{taken}", "203.0.113.1:{free}", "host.invalid:{free}"])
def test_not_bound(tmp_path, address):
    """A warning with address and reason; the daemon serves."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = address.format(taken=other.getsockname()[1], free=free_port())
        with logged([f"--metrics-listen={address}"], tmp_path / "log") as daemon, daemon.client() as client:
            assert client.set(b"key", b"value") == b"STORED\r\n"
            assert client.stats(b"settings")["metrics_listen"] == address
    text = (tmp_path / "log").read_text()
    assert "--metrics-listen" in text and text.count(address) >= 1 and "warn" in text, text
    if address.startswith("127"):
        assert re.search(r"Address already in use: it is held by (a process of|process \d+ \(\S+\),) user \w+", text), text


@pytest.mark.parametrize("given", ["off", ""])
def test_off(tmp_path, given):
    """Nothing listens but the cache."""
    with logged([f"--metrics-listen={given}", "-U", "0", "-v"], tmp_path / "log") as daemon:
        assert daemon.stats(b"settings")["metrics_listen"] == "off"
        assert listeners(daemon.process.pid) == {daemon.port}
    assert "metrics" not in (tmp_path / "log").read_text()


def test_any_port(tmp_path):
    """Port 0: "stats settings" and the log have the one that the kernel has chosen."""
    with logged(["--metrics-listen=127.0.0.1:0", "-U", "0"], tmp_path / "log") as daemon:
        address = daemon.stats(b"settings")["metrics_listen"]
        port = int(address.removeprefix("127.0.0.1:"))
        assert listeners(daemon.process.pid) == {daemon.port, port}
        assert scrape(port)
        assert f"http://{address}/metrics is for Prometheus" in (tmp_path / "log").read_text()


def listeners(pid):
    """TCP ports that a process listens on."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            inodes.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    ports = set()
    for table in "tcp", "tcp6":
        with open(f"/proc/net/{table}", encoding="ascii") as opened:
            rows = [row.split() for row in opened]
        ports |= {int(row[1].rsplit(":", 1)[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}
    return ports


def test_nothing_but_the_pages(measured):
    """No files, no other methods; HEAD has the header alone."""
    for path in "/", "/other", "/etc/passwd", "/../../etc/passwd", "/%2e%2e/etc/passwd", "/metrics/", "/readyz":
        assert get(measured.metrics_port, path) == (404, "there are /metrics, /healthz and /ready\n")
    for method in "PUT", "DELETE", "POST", "OPTIONS":
        assert get(measured.metrics_port, method=method)[0] == 405
    assert get(measured.metrics_port, method="HEAD") == (200, "")


def test_garbage_costs_its_connection_alone(measured):
    """Too long a line, no HTTP at all, a body that nobody wants."""
    for sent in b"\0" * 5000, b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n", b"get key\r\n\r\n", \
            b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"y" * 1000:
        with socket.create_connection(("127.0.0.1", measured.metrics_port), PATIENCE) as one:
            with contextlib.suppress(OSError):
                one.sendall(sent)
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    pass
        assert get(measured.metrics_port, "/healthz") == (200, "alive\n")


def test_ipv6():
    """As an address in brackets."""
    if not ipv6_is_there():
        pytest.skip("this machine has no IPv6")
    with Daemon(["--metrics-listen=[::1]:0"]) as daemon:
        address = daemon.stats(b"settings")["metrics_listen"]
        with socket.create_connection(("::1", int(address.removeprefix("[::1]:"))), PATIENCE) as one:
            one.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert one.makefile("rb").read().endswith(b"\r\n\r\nalive\n")


def ipv6_is_there():
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as one:
        one.bind(("::1", 0))
        return True
    return False


# ---- the pages for probes

def test_ready_tells_of_the_flash(measured):
    """Online here; the pages need no figures of a scrape."""
    assert get(measured.metrics_port, "/ready") == (200, "ready\nflash: online\n")
    assert get(measured.metrics_port, "/healthz") == (200, "alive\n")


def test_ready_without_flash(start, tmp_path):
    """It serves all the same: none is wanted, or it can't be used."""
    port = free_port()
    start(f"--metrics-listen=127.0.0.1:{port}")
    until(lambda: get(port, "/ready") == (200, "ready\nflash: none\n"), "a daemon that is ready")
    port, path = free_port(), tmp_path / "flash"
    start(f"--metrics-listen=127.0.0.1:{port}", "--flash-path", str(path), "--flash-size", "16m", "--segment-size", str(SEGMENT),
          "--flash-min-free", "1000000g")
    until(lambda: get(port, "/ready") == (200, "ready\nflash: can't be used\n"), "a daemon that is ready")


# ---- what is shown

def test_promtool(measured):
    """Prometheus' own check has nothing to say."""
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    status, text = get(measured.metrics_port)
    assert status == 200
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_counters_are_those_of_stats(measured):
    """Each one, when nothing happens meanwhile: all but what asking itself counts, and what goes on in the background."""
    moving = {"bytes_read", "bytes_written", "total_connections", "lru_crawler_starts", "crawler_items_checked",
              "crawler_reclaimed", "samples_taken", "samples_dropped"}
    with measured.client() as client:
        reports = {report: {} for report in (b"", b"flash", b"classifier")}

        def agree():
            for report in reports:
                reports[report] = client.stats(report)
            found = measured.scrape()
            return all(int(reports[report][name]) == value(found, series)
                       for name, (report, series) in counters().items()
                       if name in reports[report] and name not in moving)
        until(agree, "the same counters in stats and /metrics")
        assert int(reports[b"flash"]["flash_hits"]) > 0 and int(reports[b""]["get_misses"]) > 0


def test_gauges_are_those_of_stats(measured):
    """What a dashboard shows first."""
    with measured.client() as client:
        def agree():
            flash, general, found = client.stats(b"flash"), client.stats(), measured.scrape()
            return (value(found, "items", tier="flash") == int(flash["flash_items"]) > 0
                    and value(found, "items", tier="dram") == int(flash["dram_items"]) > 0
                    and value(found, "ghosts") == int(flash["flash_ghosts"])
                    and value(found, "segments", state="live") == int(flash["segments_used"]) > 0
                    and value(found, "segments", state="free") == int(flash["segments_free"])
                    and value(found, "index_slots_used") == int(flash["index_slots_used"])
                    and value(found, "memory_limit_bytes") == int(general["limit_maxbytes"])
                    and value(found, "connections") == int(general["curr_connections"])
                    and value(found, "memory_used_bytes") == int(flash["memory_used"]))
        until(agree, "the same gauges in stats and /metrics")
        found = measured.scrape()
    assert value(found, "flash_enabled") == 1
    assert value(found, "flash_size_bytes") == 32 << 20
    assert value(found, "index_load_ratio") <= 1 and (is_frugal() or value(found, "index_load_ratio") > 0)
    assert value(found, "clwa_ratio", window="1h") > 0
    assert value(found, "build_info", version=measured.stats(b"flash")["flashield_version"], compat_version="1.6.45") == 1
    assert value(found, "resident_memory_bytes") > 1 << 20
    assert value(found, "open_fds") == len(os.listdir(f"/proc/{measured.process.pid}/fd")) or value(found, "open_fds") > 10


def test_histograms(measured):
    """Buckets ascend up to the count, and each kind of request has been measured."""
    def measured_all():
        found = measured.scrape()
        counts = found["flashield_request_duration_seconds_count"]
        for series, buckets in (("request_duration_seconds", counts),
                                ("flash_io_duration_seconds", found["flashield_flash_io_duration_seconds_count"])):
            for labels, count in buckets.items():
                steps = sorted((float(dict(key)["le"]), number) for key, number in
                               found[f"flashield_{series}_bucket"].items() if set(labels) < set(key))
                assert len(steps) == 23 and steps[-1] == (float("inf"), count)
                assert [number for _, number in steps] == sorted(number for _, number in steps)
        return all(counts[(("kind", kind),)] > 0 for kind in ("dram_hit", "flash_hit", "miss", "set"))
    until(measured_all, "a duration of each kind")


def test_applications(measured):
    """By tier, with any bytes that a key may have."""
    with measured.client() as client:
        client.get(b"caf\xc3\xa9:x", b"\xff\xfe:x", b'"quoted":x', b"back\\slash:x")
        found = measured.scrape()
    asked = {dict(labels)["application"] for labels in found["flashield_application_gets_total"]}
    assert {"shop", "others", "caf\u00e9", r"\\xff\\xfe", r'\"quoted\"', r"back\\x5cslash"} <= asked
    assert value(found, "application_sets_total", application="shop") >= 300
    assert value(found, "application_written_bytes_total", application="shop") >= 300 * 10


def test_reset_takes_nothing_back(measured):
    """stats reset begins anew in stats; what Prometheus has seen stays."""
    with measured.client() as client:
        before = measured.scrape()
        assert client.ask(b"stats reset\r\n") == b"RESET\r\n"
        assert client.count("cmd_set", b"") == 0
        after = measured.scrape()
    for name, series in before.items():
        if name.startswith("flashield_") and name.endswith(("_total", "_bucket", "_count", "_sum")):
            for labels, number in series.items():
                assert after[name][labels] >= number, (name, labels)


# ---- beside a load, and at the end

def test_scrapes_during_load(start, flash_options):
    """Nothing goes back from one scrape to the next while two clients write and read."""
    port = free_port()
    daemon = start(f"--metrics-listen=127.0.0.1:{port}", *flash_options)
    done = threading.Event()

    def load(number):
        with daemon.client() as client:
            while not done.is_set():
                fill(client, 64 << 10)
                client.get(*(b"load-%d:%d" % (number, i) for i in range(50)))

    threads = [threading.Thread(target=load, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        scrapes = [scrape(port)]

        def one_more():
            before, after = scrapes[-1], scrape(port)
            scrapes.append(after)
            for name, series in before.items():
                if name.startswith("flashield_") and name.endswith(("_total", "_bucket", "_count")):
                    for labels, number in series.items():
                        assert after[name][labels] >= number, (name, labels)
            return len(scrapes) > 20 and value(after, "segments_written_total") >= 20

        until(one_more, "20 segments")
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_stop_while_scrapers_hang():
    """Scrapers that say nothing, or half of a request, or read nothing, don't hold up the end."""
    with Measured([]) as daemon:
        hanging = [socket.create_connection(("127.0.0.1", daemon.metrics_port), PATIENCE) for _ in range(6)]
        try:
            hanging[0].sendall(b"GET /metr")
            for one in hanging[1:3]:
                one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
            assert daemon.stop(signal.SIGTERM) == 0
        finally:
            for one in hanging:
                one.close()


def test_signals_are_the_main_threads(measured):
    """The library's thread blocks them, or it would be interrupted instead."""
    wanted = sum(1 << (number - 1) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1))
    blocked = {}
    for task in os.listdir(f"/proc/{measured.process.pid}/task"):
        with open(f"/proc/{measured.process.pid}/task/{task}/status", encoding="ascii") as status:
            rows = dict(line.split(":", 1) for line in status)
        if rows["Name"].strip().startswith("MHD"):
            blocked[task] = int(rows["SigBlk"].strip(), 16)
    assert len(blocked) == 1
    assert all(mask & wanted == wanted for mask in blocked.values())


def test_in_the_background(open_folder):
    """-d: it is served by the process that stays."""
    port, metrics_port, pid_file = free_port(), free_port(), open_folder / "pid"
    done = subprocess.run([flashield_command(), *USER, "-d", "-P", str(pid_file), "-l", "127.0.0.1", "-p", str(port),
                           f"--metrics-listen=127.0.0.1:{metrics_port}"], timeout=PATIENCE, check=False)
    assert done.returncode == 0
    pid = int(pid_file.read_text())
    try:
        with Client(port) as client:
            assert client.count("pid", b"") == pid
        assert get(metrics_port)[0] == 200
    finally:
        os.kill(pid, signal.SIGTERM)
    until(lambda: not pid_file.exists(), "the end")
