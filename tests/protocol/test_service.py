# SPDX-License-Identifier: BSD-3-Clause
"""A daemon under a service manager: what it tells a notify socket, sockets that are handed over, the
journal, the units. The manager's part is played by the tests."""
import contextlib
import errno
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import pytest

from helpers import PATIENCE, ROOT, Client, flashield_command, free_port, has_faults, until
from test_tls import Authority

USER = ["-u", "nobody"] if os.geteuid() == 0 else []
UNITS = ROOT / "packaging" / "systemd"
SECURITY_MOST = 2.0
# Sets LISTEN_PID, moves the descriptors of the first word to 3, 4, ..., and becomes the daemon.
LAUNCHER = """
import fcntl, os, sys
given = [fcntl.fcntl(int(word), fcntl.F_DUPFD_CLOEXEC, 100) for word in sys.argv[1].split(",") if word]
for at, fd in enumerate(given):
    os.dup2(fd, 3 + at)
os.environ.setdefault("LISTEN_PID", str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Notified:
    """A daemon, and the messages that it sends to its service manager: each a dict."""

    def __init__(self, folder, *options, env=None, listen=True, before=None):
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.path.chmod(0o777)
        self.socket.settimeout(PATIENCE)
        if before:
            before(self.path)
        self.port = free_port()
        listening = ["-l", "127.0.0.1", "-p", str(self.port)] if listen else []
        self.process = subprocess.Popen(
            [flashield_command(), *USER, *listening, "--metrics-listen", "off", *options], stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env=dict(os.environ, NOTIFY_SOCKET=str(self.path), **(env or {})))

    def message(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def until(self, name, value=None):
        """The next message that has this, and those before it."""
        before = []
        while True:
            message = self.message()
            if name in message and (value is None or message[name] == value):
                return message, before
            before.append(message)
        raise AssertionError(f"no {name} in {before}")

    def finish(self):
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=PATIENCE)[1]
        assert self.process.returncode == 0, said
        return said

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.socket.close()


@pytest.fixture
def notified(open_folder):
    """notified(options...) -> Notified, which ends with the test."""
    with contextlib.ExitStack() as stack:
        def start(*options, **keywords):
            started = Notified(open_folder, *options, **keywords)
            stack.callback(started.close)
            return started

        yield start


# ---- notify ------------------------------------------------------------------------------------


def test_not_ready_when_the_start_fails(dram_daemon, notified):
    """No READY=1 from one that can't serve."""
    started = notified("-l", "127.0.0.1", "-p", str(dram_daemon.port), listen=False)
    assert started.process.wait(PATIENCE) == 71
    started.socket.settimeout(0)  # all that it has sent is there
    with pytest.raises(BlockingIOError):
        while True:
            assert "READY" not in started.message()


def test_ports_that_are_any(notified):
    """-p -1 and port 0 of --metrics-listen: the line of state has those that the kernel has chosen."""
    started = notified("-l", "127.0.0.1", "-p", "-1", "--metrics-listen", "127.0.0.1:0", listen=False)
    status = started.until("READY", "1")[0]["STATUS"]
    found = re.fullmatch(r"0 objects; port (\d+); metrics at 127\.0\.0\.1:(\d+)", status)
    assert found, status
    assert connects(int(found[1])) and connects(int(found[2]))
    started.finish()


def failed_status(started, exit_code):
    """The last line of state of a start that fails, and its errno."""
    assert started.process.wait(PATIENCE) == exit_code
    message, _ = started.until("STATUS")
    return message["STATUS"], message.get("ERRNO")


def test_status_says_why_the_start_failed(dram_daemon, notified, open_folder):
    """A port that is held, options, a foreign flash file, users: "systemctl status" shows it after the end."""
    port = str(dram_daemon.port)
    user = "nobody" if USER else pwd.getpwuid(os.geteuid()).pw_name  # its user now, not the root that it was
    status, error = failed_status(notified("-l", "127.0.0.1", "-p", port, listen=False), 71)
    assert f"TCP 127.0.0.1:{port} is held by process {dram_daemon.process.pid} (flashield), user {user}" in status, status
    assert status.startswith("The start failed: ") and error == str(errno.EADDRINUSE)
    (open_folder / "notify").unlink()
    assert failed_status(notified("-t", "0"), 1) == (
        "The start failed: Number of threads must be greater than 0", str(errno.EINVAL))
    (open_folder / "notify").unlink()
    foreign = open_folder / "letters"
    foreign.write_text("somebody's letters")
    foreign.chmod(0o666)
    status, error = failed_status(notified("--flash-path", str(foreign), "--flash-size", "64m"), 71)
    assert f"flash-path {foreign}: holds something that is not a cache" in status and error == str(errno.EEXIST)
    (open_folder / "notify").unlink()
    if USER:  # only root changes the user
        assert failed_status(notified("-u", "nobody-at-all"), 67)[0] == (
            "The start failed: can't find the user nobody-at-all to switch to")


def test_a_service_manager_that_hangs(notified, open_folder):
    """Its queue is full: the daemon serves, reloads and ends all the same, and tells that it is ready when there is room."""
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)
    started = notified(before=lambda path: fill(filler, path))
    until(lambda: connects(started.port), "a connection")
    started.process.send_signal(signal.SIGHUP)
    with Client(started.port) as client:
        assert client.ask(b"mn\r\n") == b"MN\r\n"
    started.until("READY", "1")
    filler.close()
    started.finish()


def fill(filler, path):
    with contextlib.suppress(BlockingIOError):
        while True:
            filler.sendto(b"X=1", str(path))


def test_notify_socket_that_is_not_there(open_folder):
    """It serves all the same, and says so once."""
    port = free_port()
    with subprocess.Popen([flashield_command(), *USER, "-l", "127.0.0.1", "-p", str(port)], stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, NOTIFY_SOCKET=str(open_folder / "nobody"))) as process:
        try:
            until(lambda: connects(port), "a connection")
        finally:
            process.terminate()
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0
    assert said.count("can't tell the service manager the daemon's state: No such file or directory") == 1


def connects(port):
    with contextlib.suppress(OSError), Client(port):
        return True
    return False


def test_ready_means_served(notified, open_folder):
    """The first connection after READY=1 is answered, while the flash file is still being made."""
    started = notified("--flash-path", str(open_folder / "flash"), "--flash-size", "64m", "--segment-size", "64k", "-m", "8")
    ready, _ = started.until("READY", "1")
    with Client(started.port) as client:
        assert client.ask(b"version\r\n").startswith(b"VERSION")
    assert ready["MAINPID"] == str(started.process.pid)
    status = "0 objects, 0 in DRAM and 0 on flash; flash 0 % full"
    assert re.fullmatch(status + "(; [0-9.]+ MiB of 64.00 MiB of the flash file are made)?", ready["STATUS"])
    started.finish()


def test_reload_and_stop(notified):
    """RELOADING=1 with the time, then READY=1; STOPPING=1 at the end."""
    started = notified()
    started.until("READY", "1")
    earlier = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    started.process.send_signal(signal.SIGHUP)
    reloading, before = started.until("RELOADING", "1")
    assert before == []
    assert earlier <= int(reloading["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert started.until("READY", "1")[1] == []
    started.finish()
    assert started.until("STOPPING", "1")[1] == []


def test_the_end_asks_for_time_and_says_what_it_does(notified, open_folder):
    """With --state-dir it may take minutes: the service manager waits for as long as it hears of it."""
    started = notified("--state-dir", str(open_folder), "--flash-path", "flash", "--flash-size", "64m", "--segment-size", "64k", "-m", "8")
    started.until("READY", "1")
    with Client(started.port) as client:
        client.set(b"key", b"value" * 1000)
    started.finish()
    message, _ = started.until("EXTEND_TIMEOUT_USEC")
    assert message == {"EXTEND_TIMEOUT_USEC": "120000000", "STATUS": "Stopping: writes to flash are being finished"}
    message, _ = started.until("EXTEND_TIMEOUT_USEC")
    assert message["EXTEND_TIMEOUT_USEC"] == "120000000"
    assert re.fullmatch(r"Stopping: memory is being saved: [0-9.]+ \w+ of [0-9.]+ \w+", message["STATUS"])


def test_state_and_watchdog(notified):
    """Idle workers count as alive; the line of state follows what the cache has."""
    started = notified("-t", "4", env={"WATCHDOG_USEC": "4000000"})
    started.until("READY", "1")
    with Client(started.port) as client:
        client.set(b"key", b"value")
        client.get(b"key")
    message, before = started.until("STATUS")
    assert message["STATUS"] == "1 objects; hit ratio 100.0 %"
    assert sum("WATCHDOG" in message for message in before) >= 3
    started.finish()


def test_watchdog_of_another_process(notified):
    """WATCHDOG_PID names another: it isn't for us."""
    started = notified(env={"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": "1"})
    started.until("READY", "1")
    started.finish()
    message, before = started.until("STOPPING", "1")
    assert not any("WATCHDOG" in each for each in [message, *before])


@pytest.mark.clock
@pytest.mark.skipif(not has_faults(), reason="this build has no fault points")
def test_worker_that_hangs_stops_the_watchdog(notified):
    """One of four is enough: for the whole of its time nothing comes."""
    watchdog_seconds = 4
    started = notified("-t", "4", env={"WATCHDOG_USEC": f"{watchdog_seconds}000000",
                                       "FLASHIELD_FAULTS": "net_worker_hangs=after:8"})
    started.until("WATCHDOG", "1")

    def starves():
        end = time.monotonic() + watchdog_seconds
        try:
            while True:
                started.socket.settimeout(max(end - time.monotonic(), 0.001))
                if "WATCHDOG" in started.message():
                    break
        except TimeoutError:
            return True
        return False

    until(starves, "the watchdog's end")
    started.socket.settimeout(PATIENCE)
    started.finish()


def test_background_names_its_main_process(notified, open_folder):
    """-d: the process that was started names the one that serves."""
    pid_file = open_folder / "pid"
    started = notified("-d", "-P", str(pid_file))
    ready, _ = started.until("READY", "1")
    assert ready["MAINPID"] != str(started.process.pid)
    assert started.process.wait(PATIENCE) == 0
    pid = int(pid_file.read_text())
    try:
        assert ready["MAINPID"] == str(pid)
    finally:
        os.kill(pid, signal.SIGTERM)
    started.until("STOPPING", "1")
    until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the process's end")


# ---- sockets handed over -----------------------------------------------------------------------


@contextlib.contextmanager
def handed_over(sockets, *options, names=None, env=None):
    """A process that was given these as descriptors 3, 4, ..."""
    fds = [each.fileno() for each in sockets]
    env = {**os.environ, "LISTEN_FDS": str(len(fds)), **(env or {})}
    if names:
        env["LISTEN_FDNAMES"] = ":".join(names)
    command = [flashield_command(), *USER, "--metrics-listen", "off", *options]
    with subprocess.Popen([sys.executable, "-c", LAUNCHER, ",".join(map(str, fds)), *command], stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, pass_fds=fds, env=env) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


def refused(*sockets, **keywords):
    """What it says to these, having ended with exit code 71."""
    with handed_over(sockets, **keywords) as process:
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 71
    return said


def listening(family=socket.AF_INET, address=("127.0.0.1", 0), kind=socket.SOCK_STREAM):
    made = socket.socket(family, kind)
    made.bind(address)
    if kind == socket.SOCK_STREAM:
        made.listen()
    return made


def test_descriptors_that_can_not_be_served(tmp_path):
    """Each is told by its number and name, with what is wrong with it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert "descriptor 3 (web) can't be used: it doesn't listen; its .socket unit needs Accept=no" in \
            refused(bound, names=["web"])
    with open(tmp_path / "file", "wb") as opened:
        assert "it isn't a socket" in refused(opened)
    with listening(socket.AF_UNIX, str(tmp_path / "d"), socket.SOCK_DGRAM) as datagrams:
        assert "datagrams of UNIX sockets aren't served" in refused(datagrams)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as packets:
        assert "it is neither a stream socket nor one of datagrams" in refused(packets)
    with socket.socket(type=socket.SOCK_DGRAM) as unbound:
        assert "it isn't bound to a port" in refused(unbound)
    with listening() as good, listening() as named:
        said = refused(good, named, names=["plain", "tls"])
        assert "descriptor 4 (tls) can't be used: its name asks for TLS, which is off (-Z)" in said


def test_descriptors_that_are_not_there():
    """LISTEN_FDS that makes no sense is an error, as the sockets would be missing."""
    with handed_over([], env={"LISTEN_FDS": "many"}) as process:
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 64
    assert "LISTEN_FDS" in said
    with handed_over([], env={"LISTEN_FDS": "1"}) as process:
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 64


def test_descriptors_of_another_process():
    """LISTEN_PID names another: the options count."""
    port = free_port()
    with listening() as unused, handed_over([unused], "-l", "127.0.0.1", "-p", str(port), env={"LISTEN_PID": "1"}) as process:
        until(lambda: connects(port), "a connection")
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_sockets_handed_over(open_folder):
    """TCP, UNIX and UDP are served, and nothing that the options name; who connected before waits."""
    path, port = open_folder / "socket", free_port()
    with listening() as tcp, listening(socket.AF_UNIX, str(path)) as local, \
            listening(kind=socket.SOCK_DGRAM) as datagrams, socket.socket(type=socket.SOCK_DGRAM) as sender:
        path.chmod(0o777)
        with Client(tcp.getsockname()[1]) as early, \
                handed_over([tcp, local, datagrams], "-l", "127.0.0.1", "-p", str(port), "-t", "3") as process:
            assert early.set(b"key", b"value") == b"STORED\r\n"
            with Client(0, str(path)) as client:
                assert client.get(b"key") == [(b"key", 0, b"value", None)]
            assert not connects(port)
            sender.settimeout(PATIENCE)
            sender.connect(datagrams.getsockname())
            for _ in range(8):  # whichever worker is first
                sender.send(b"\0\1\0\0\0\1\0\0get key\r\n")
                assert sender.recv(2000).endswith(b"VALUE key 0 5\r\nvalue\r\nEND\r\n")
            process.terminate()
            assert process.wait(PATIENCE) == 0
        assert path.exists(), "the socket is its maker's to remove"
        with Client(tcp.getsockname()[1]):  # still listens, for the next daemon
            pass


@pytest.fixture(scope="module")
def authority():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        path.chmod(0o755)
        made = Authority(path, "authority")
        made.sign("localhost")
        yield made


def tls_options(authority):
    return ["-Z", "-o", f"ssl_chain_cert={authority.path('localhost.pem')},ssl_key={authority.path('localhost.key')}"]


def test_a_restart_behind_sockets_refuses_nobody(open_folder):
    """Who connects while no daemon runs waits, and is served by the next one, with what the last one had."""
    options = ["--state-dir", str(open_folder)]
    with listening() as tcp:
        with handed_over([tcp], *options) as process:
            with Client(tcp.getsockname()[1]) as client:
                assert client.set(b"key", b"value") == b"STORED\r\n"
            process.terminate()
            assert process.wait(PATIENCE) == 0
        with Client(tcp.getsockname()[1]) as waiting, handed_over([tcp], *options):
            until(lambda: waiting.get(b"key") == [(b"key", 0, b"value", None)], "what memory held")


def test_names_choose_tls(authority):
    """With -Z a socket speaks TLS, but for one that is named notls."""
    context = ssl.create_default_context(cafile=authority.path("ca.pem"))
    context.check_hostname = False
    with listening() as one, listening() as two, listening() as plain, \
            handed_over([one, two, plain], *tls_options(authority), names=["any", "tls", "notls"]) as process:
        with Client(plain.getsockname()[1]) as client:
            assert client.ask(b"version\r\n").startswith(b"VERSION")
        for tls in one, two:
            with socket.create_connection(tls.getsockname(), PATIENCE) as connection, \
                    context.wrap_socket(connection) as wrapped:
                wrapped.sendall(b"version\r\n")
                assert wrapped.recv(100).startswith(b"VERSION")
        process.terminate()
        assert process.wait(PATIENCE) == 0


# ---- the log -----------------------------------------------------------------------------------


def test_what_clients_cause_is_limited(authority):
    """Of many failed handshakes five are told."""
    with listening() as tls, handed_over([tls], "-v", *tls_options(authority)) as process:
        for _ in range(20):
            with Client(tls.getsockname()[1]) as client:
                client.send(b"get key\r\n\r\n\r\n")
                assert client.ends()
        process.terminate()
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0
    assert said.count("TLS handshake failed") == 5


def may_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/run"], check=False,
                                                capture_output=True).returncode == 0


may_mount_here = pytest.mark.skipif(not may_mount(), reason="mounts need root")


def entries(journal):
    """What the daemon has sent to the journal, each a dict; none of it needs the form for several lines."""
    found = []
    with contextlib.suppress(BlockingIOError):
        while True:
            lines = journal.recv(65536).decode().splitlines()
            assert all("=" in line for line in lines), lines
            found.append(dict(line.split("=", 1) for line in lines))
    return found


def in_the_journal(folder, port, with_socket):
    """Serves once, with a journal at its place if there is to be one. (entries, standard error)."""
    (folder / "journal").mkdir()
    log = folder / "log"
    mounts = f"mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal && mount --bind {folder}/journal /run/systemd/journal"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal, open(log, "wb") as stderr:
        if with_socket:
            journal.bind(str(folder / "journal" / "socket"))
            (folder / "journal" / "socket").chmod(0o777)
            journal.setblocking(False)
        stream = os.fstat(stderr.fileno())
        command = [flashield_command(), *USER, "-v", "-l", "127.0.0.1", "-p", str(port), "--metrics-listen", "off",
                   "--seccomp", "on"]  # which must let what it takes pass
        with subprocess.Popen(["unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh", *command], stderr=stderr,
                              env=dict(os.environ, JOURNAL_STREAM=f"{stream.st_dev}:{stream.st_ino}")) as process:
            until(lambda: connects(port), "a connection")
            with Client(port) as client:
                assert client.ask(b"cache_memlimit 100\r\n") == b"OK\r\n"
            process.terminate()
            assert process.wait(PATIENCE) == 0
        return entries(journal) if with_socket else [], log.read_text()


def test_wrong_options_are_errors_in_the_journal(tmp_path):
    """Each line has an error's priority there."""
    with open(tmp_path / "log", "wb") as stderr:
        stream = os.fstat(stderr.fileno())
        done = subprocess.run([flashield_command(), *USER, "-p", "70000"], stderr=stderr, timeout=PATIENCE, check=False,
                              env=dict(os.environ, JOURNAL_STREAM=f"{stream.st_dev}:{stream.st_ino}"))
    said = (tmp_path / "log").read_text()
    assert done.returncode == 64
    assert "70000" in said and all(line.startswith("<3>") for line in said.splitlines()), said


@may_mount_here
def test_fields_in_the_journal(open_folder):
    """Lines have their place and thread, events their name and figures; nothing is on standard error."""
    found, said = in_the_journal(open_folder, free_port(), True)
    assert said == ""
    events = {entry["FLASHIELD_EVENT"]: entry for entry in found if "FLASHIELD_EVENT" in entry}
    assert {"started", "memory_limit", "stopping"} <= set(events)
    limit = events["memory_limit"]
    assert (limit["FLASHIELD_MEGABYTES"], limit["PRIORITY"], limit["SYSLOG_IDENTIFIER"]) == ("100", "5", "flashield")
    assert limit["CODE_FILE"] == "server/proto/text_admin.c"
    assert limit["THREAD"].startswith("worker ")
    assert int(limit["CODE_LINE"]) > 0 and limit["CODE_FUNC"]
    assert "100 MiB" in limit["MESSAGE"]
    assert all("MESSAGE" in entry for entry in found)


@may_mount_here
def test_journal_without_its_socket(open_folder):
    """Lines go to standard error, with their priority."""
    _, said = in_the_journal(open_folder, free_port(), False)
    assert "<5>a client has set the memory limit to 100 MiB\n" in said
    assert all(re.match("<[3-7]>", line) for line in said.splitlines()), said


@may_mount_here
def test_holder_that_can_not_be_seen(memcached):
    """Who may not see others' processes names user and version of who has the port."""
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t proc -o hidepid=invisible proc /proc && exec setpriv --reuid=nobody '
              '--regid=nogroup --clear-groups "$@"', "sh"]

    def is_named():
        """memcached has a second to answer, which a machine that stands still may not give it."""
        done = subprocess.run([*hidden, flashield_command(), "-l", "127.0.0.1", "-p", str(memcached.port)],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 71
        return re.search(rf"TCP 127.0.0.1:{memcached.port} is held by memcached 1\.6\.\d+ \(user \w+\)\n$", done.stderr)

    until(is_named, "the holder's name and version")


# ---- units -------------------------------------------------------------------------------------

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")


@pytest.fixture
def units(tmp_path):
    """The units' paths, made to start the daemon that is there."""
    for unit in [*UNITS.glob("*.service"), *UNITS.glob("*.socket")]:
        (tmp_path / unit.name).write_text(unit.read_text().replace("/usr/bin/flashield", flashield_command()))
    return [tmp_path / name for name in ("flashield.service", "flashield@one.service", "flashield.socket")]


def analyze(*words):
    return subprocess.run(["systemd-analyze", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE, check=False)


@needs_systemd
def test_units_are_without_fault(units):
    """systemd-analyze verify is silent; it isn't to a unit with a fault."""
    done = analyze("verify", "--man=no", *units)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    broken = units[0].with_name("broken.service")
    broken.write_text(units[0].read_text().replace("WatchdogSec=60s", "WatchdogSec=soon"))
    assert "Failed to parse" in analyze("verify", "--man=no", broken).stderr


@needs_systemd
def test_exposure(units):
    """systemd-analyze security: at most 2.0."""
    for unit in units[:2]:
        done = analyze("security", "--offline=true", unit)
        assert float(re.search(r"exposure level for \S+: ([\d.]+)", done.stdout).group(1)) <= SECURITY_MOST


def test_instances_differ_in_their_places_only():
    """Limits and sandbox are the same."""
    def lines(name):
        return [line for line in (UNITS / name).read_text().splitlines()
                if not re.match(r"#|Description=|Exec[A-Za-z]+=|StateDirectory=|RuntimeDirectory(Preserve)?=", line)]

    assert lines("flashield.service") == lines("flashield@.service")
