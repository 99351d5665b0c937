# SPDX-License-Identifier: BSD-3-Clause
"""The process: options, limits, sockets, background, exit codes."""
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess

import pytest

from helpers import PATIENCE, ROOT, Client, Daemon, free_port, flashield_command, until

USER = ["-u", "nobody"] if os.geteuid() == 0 else []
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def run(*options):
    return subprocess.run([flashield_command(), "--metrics-listen=off", *options], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)


@as_root
def test_root_needs_a_user():
    """As root it refuses without -u, in memcached's words and with its exit code."""
    done = run("-p", str(free_port()))
    assert done.returncode == 64
    assert "can't run as root without the -u switch" in done.stderr


@as_root
def test_unknown_user():
    """A user that isn't there: exit code 67."""
    assert run("-u", "no-such-user", "-p", str(free_port())).returncode == 67


@as_root
def test_privileges_are_dropped(start):
    """It serves as the user that -u names."""
    daemon = start("-u", "nobody")
    assert os.stat(f"/proc/{daemon.process.pid}").st_uid != 0


def status_of(pid, task=None):
    text = pathlib.Path(f"/proc/{pid}/task/{task or pid}/status").read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def copy_for_all(folder):
    """The daemon's program where any user may run it, wherever it was built."""
    return shutil.copy(flashield_command(), folder / "flashield")


def test_nothing_is_left_to_gain(start):
    """No capability in any set that counts, in any thread, and none to be had by an exec; as root no other groups either."""
    daemon = start(*USER)
    for task in os.listdir(f"/proc/{daemon.process.pid}/task"):
        status = status_of(daemon.process.pid, task)
        names = ["CapInh", "CapPrm", "CapEff", "CapAmb"] + (["CapBnd"] if USER else [])
        assert [int(status[name], 16) for name in names] == [0] * len(names), task
        assert status["NoNewPrivs"] == "1"
        assert len(set(status["Uid"].split())) == len(set(status["Gid"].split())) == 1
        if USER:
            entry = pwd.getpwnam(USER[1])
            assert sorted(map(int, status["Groups"].split())) == sorted(os.getgrouplist(USER[1], entry.pw_gid))


@as_root
def test_given_capabilities_are_given_up(open_folder):
    """What a service manager grants (ambient capabilities) ends when the sockets are open."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    entry, path = pwd.getpwnam("nobody"), open_folder / "socket"
    with subprocess.Popen(["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups",
                           "--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service", copy_for_all(open_folder),
                           "-s", str(path), "--metrics-listen=off"]) as process:
        with until(lambda: connect(path), "a connection"):
            status = status_of(process.pid)
        process.terminate()
    assert process.returncode == 0
    assert [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [0] * 4
    assert status["Uid"].split()[0] == str(entry.pw_uid)


@as_root
def test_a_flash_file_that_root_makes_is_the_user_s(open_folder):
    """So that a start as that user can use it; one that was there stays whose it was."""
    flash = ["--flash-path", str(open_folder / "flash"), "--flash-size", "16m", "-m", "8"]
    entry = pwd.getpwnam("nobody")
    with Daemon(["-u", "nobody", *flash]) as daemon:
        assert daemon.stats(b"flash")["flash_enabled"] == "1"
    found = (open_folder / "flash").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (entry.pw_uid, entry.pw_gid, 0o600)
    with subprocess.Popen([copy_for_all(open_folder), *flash, "-s", str(open_folder / "socket"), "--metrics-listen=off"],
                          user=entry.pw_uid, group=entry.pw_gid, extra_groups=[]) as process:
        with until(lambda: connect(open_folder / "socket"), "a connection") as client:
            assert client.count("flash_enabled") == 1
        process.terminate()
        assert process.wait(PATIENCE) == 0
    os.chown(open_folder / "flash", 0, 0)
    with Daemon(["-u", "nobody", *flash]) as daemon:
        assert daemon.stats(b"flash")["flash_enabled"] == "1"
    assert (open_folder / "flash").stat().st_uid == 0


def test_the_state_directory(start, open_folder, monkeypatch):
    """A relative flash path lies in the directory that systemd names."""
    monkeypatch.setenv("STATE_DIRECTORY", f"{open_folder}:/nonexistent")
    daemon = start("--flash-path", "flash", "--flash-size", "16m", "-m", "8")
    assert (open_folder / "flash").stat().st_size == 16 << 20
    settings = daemon.stats(b"settings")
    assert (settings["state_dir"], settings["flash_path"]) == (str(open_folder), f"{open_folder}/flash")


def test_too_little_room_for_the_flash(start, open_folder):
    """With --flash-min-free memory alone is used, which is said in one line and in "stats flash"; a file that is there is used."""
    log = open_folder / "log"
    flash = ["--flash-path", str(open_folder / "flash"), "--flash-size", "16m", "-m", "8"]
    daemon = start(*flash, "--flash-min-free", "15p", stderr=log.open("w"))
    reason = daemon.stats(b"flash")["flash_unused_reason"]
    assert reason.startswith(f"{open_folder}/flash is not used, a file of 16.00 MiB: ") and reason.endswith("--flash-min-free asks for 15.00 PiB")
    assert daemon.stats(b"flash")["flash_enabled"] == "0"
    assert f"warning: flash: {reason}: all objects stay in memory\n" in log.read_text()
    assert not (open_folder / "flash").exists()
    assert start(*flash).stats(b"flash")["flash_unused_reason"] == "none"


def test_port_in_use(dram_daemon):
    """A port that is taken: a reason and exit code 71."""
    done = run(*USER, "-l", "127.0.0.1", "-p", str(dram_daemon.port))
    assert done.returncode == 71
    assert str(dram_daemon.port) in done.stderr


def test_bad_option():
    """A value out of range: exit code 64."""
    assert run(*USER, "-p", "70000").returncode == 64


def test_flash_path_that_cannot_be():
    """A flash file that can't be made: a reason, and not zero."""
    done = run(*USER, "-l", "127.0.0.1", "-p", str(free_port()), "--flash-path", "/nonexistent/x", "--flash-size", "64m")
    assert done.returncode != 0
    assert "/nonexistent/x" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals_stop_it(start, number):
    """Each asks it to stop, with exit code 0."""
    assert start().stop(number) == 0


def test_unix_socket(open_folder):
    """-s serves on a UNIX socket with the mode of -a, and removes it at the end."""
    path = open_folder / "socket"
    with Daemon(["-s", str(path), "-a", "0777"], listen=False) as daemon:
        with until(lambda: connect(path), "a connection") as client:
            assert stat.S_IMODE(path.stat().st_mode) == 0o777
            assert client.ask(b"version\r\n").startswith(b"VERSION")
        assert daemon.stop() == 0
    assert not path.exists()


def test_commands_in_the_log(open_folder):
    """-vv logs the lines of commands, without values; -v does not."""
    path = open_folder / "socket"
    for level in "-v", "-vv":
        with subprocess.Popen([flashield_command(), "--metrics-listen=off", *USER, "-s", str(path), "-a", "0777", level],
                              stderr=subprocess.PIPE) as process:
            try:
                until(path.is_socket, "the socket")
                with until(lambda: connect(path), "a connection") as client:
                    client.set(b"logged", b"secret")
                    client.send(b"get logged \x1b[1m\r\nget" + b" k" * 1000 + b"\r\nbogus\r\n")
                    client.values()
                    client.values()
                    assert client.line() == b"ERROR\r\n"
            finally:
                process.terminate()
            log = process.communicate(timeout=PATIENCE)[1]
            assert process.returncode == 0
        expected = [b" set logged 0 0 6\n", b" get logged ?[1m\n", b" bogus\n", b" ...\n"]
        assert [text in log for text in expected] == [level == "-vv"] * 4
        assert b"secret" not in log


def connect(path):
    try:
        return Client(0, str(path))
    except OSError:
        return None


def test_background_and_pid_file(open_folder):
    """-d returns when it serves; -P holds its pid until it ends."""
    port, pid_file = free_port(), open_folder / "pid"
    done = run(*USER, "-d", "-P", str(pid_file), "-l", "127.0.0.1", "-p", str(port))
    assert done.returncode == 0
    pid = int(pid_file.read_text())
    try:
        with Client(port) as client:
            assert client.count("pid", b"") == pid
    finally:
        os.kill(pid, signal.SIGTERM)
    until(lambda: not pid_file.exists(), "the pid file's end")
    until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the process's end")


TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "


@contextlib.contextmanager
def in_background(folder, *options, before=(), warns=""):
    """A daemon with -d, its pid and its port; warns is what it says of its options."""
    pid_file, port = folder / "pid", free_port()
    done = subprocess.run([*before, flashield_command(), *USER, "-d", "-P", str(pid_file), "-l", "127.0.0.1", "-p", str(port),
                           "--metrics-listen=off", *map(str, options)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0 and done.stdout == "" and re.fullmatch(warns, done.stderr.rstrip()), done.stderr
    pid = int(pid_file.read_text())
    try:
        yield pid, port
    finally:
        os.kill(pid, signal.SIGTERM)
        until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the process's end")


def test_log_file(open_folder):
    """Lines with a time; after a rotation SIGHUP makes a new file, and a file that can't be made is told in the old one."""
    folder = open_folder / "logs"
    folder.mkdir()
    folder.chmod(0o777)
    log, old = folder / "log", folder / "log.1"
    with in_background(open_folder, "--log-file", log) as (pid, port):
        with Client(port) as client:
            assert client.ask(b"cache_memlimit 100\r\n") == b"OK\r\n"
            log.rename(old)
            os.kill(pid, signal.SIGHUP)
            until(lambda: log.exists() and log.samefile(f"/proc/{pid}/fd/2"), "the new file")
            assert client.ask(b"cache_memlimit 90\r\n") == b"OK\r\n"
            log.unlink()
            log.mkdir()
            kept = os.open(f"/proc/{pid}/fd/2", os.O_RDONLY)
            os.kill(pid, signal.SIGHUP)
            until(lambda: b"the log goes on in the old file" in os.pread(kept, 10000, 0), "the line about it")
            lines = os.pread(kept, 10000, 0).decode().splitlines()
            os.close(kept)
    assert re.fullmatch(TIME + "notice: a client has set the memory limit to 100 MiB", old.read_text().splitlines()[-1])
    assert any(re.fullmatch(TIME + "notice: a client has set the memory limit to 90 MiB", line) for line in lines), lines


def test_notes_about_options_are_in_the_log_file(open_folder):
    """They are on standard error too, for the person who has typed the command."""
    log = open_folder / "log"
    note = r"warning: -e /nonexistent is without effect: .*"
    with in_background(open_folder, "--log-file", log, "-e", "/nonexistent", warns=TIME + note):
        until(lambda: re.search(f"{note}\n", log.read_text()), "the note")  # the command returns before it is written
        assert len(re.findall(f"^{TIME}{note}$", log.read_text(), re.MULTILINE)) == 1


def test_log_file_of_a_start_that_fails(open_folder, dram_daemon):
    """The reason is in the file, and on standard error for the person who has typed the command."""
    log = open_folder / "log"
    done = run(*USER, "-d", "--log-file", str(log), "-l", "127.0.0.1", "-p", str(dram_daemon.port))
    assert done.returncode == 71 and "is held by" in done.stderr
    assert re.fullmatch(TIME + f"error: the start failed: {re.escape(done.stderr)}", log.read_text())
    assert run(*USER, "--log-file", "/nonexistent/log").stderr == "--log-file: /nonexistent/log: No such file or directory\n"


NEW_DEV = """mkdir -p {0}/dev && mount -t tmpfs tmpfs {0}/dev && for each in null zero urandom random; do
touch {0}/dev/$each && mount --bind /dev/$each {0}/dev/$each; done && touch {0}/dev/log && mount --bind {0}/socket {0}/dev/log &&
mount --rbind {0}/dev /dev && exec "$@" """


@as_root
def test_background_logs_to_syslog(open_folder):
    """With -d and neither -v nor --log-file; the filter of system calls lets it pass."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(str(open_folder / "socket"))
        (open_folder / "socket").chmod(0o777)
        syslog.settimeout(PATIENCE)
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False).returncode:
            pytest.skip("mounts are not allowed")
        before = ["unshare", "-m", "sh", "-c", NEW_DEV.format(open_folder), "sh"]
        warns = r"(\S+ warning: --seccomp is without effect in this build.*)?"
        with in_background(open_folder, "--seccomp", "on", before=before, warns=warns) as (pid, port), Client(port) as client:
            assert client.ask(b"cache_memlimit 100\r\n") == b"OK\r\n"
            said = syslog.recv(1000).decode()
            if "--seccomp is without effect" in said:  # the warning goes there too
                assert said.startswith("<28>")
                said = syslog.recv(1000).decode()
            assert re.fullmatch(rf"<29>.* flashield\[{pid}\]: a client has set the memory limit to 100 MiB", said)


def served(*options):
    """What a daemon with these options says until it is told to stop, and its limits while it serves."""
    port = free_port()
    with subprocess.Popen([flashield_command(), "--metrics-listen=off", "-l", "127.0.0.1", "-p", str(port), *USER, *options],
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            with until(lambda: connect_to(port), "a connection"):
                limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
        finally:
            process.terminate()
        said = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 0, said
    return said, limits


def connect_to(port):
    try:
        return Client(port)
    except OSError:
        return None


@pytest.mark.skipif(os.geteuid() != 0, reason="the test becomes another user")
def test_a_limit_of_locked_memory_is_told_and_nothing_is_locked():
    """The kernel would refuse memory beyond it; who isn't root can't raise it."""
    port = free_port()
    with subprocess.Popen(["prlimit", "--memlock=1048576", "setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", flashield_command(),
                           "--metrics-listen=off", "-l", "127.0.0.1", "-p", str(port), "-k"], stderr=subprocess.PIPE, text=True) as process:
        try:
            with until(lambda: connect_to(port), "a connection"):
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        finally:
            process.terminate()
        said = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 0, said
    assert re.search(r"^VmLck:\s+0 kB$", status, re.M)
    assert "-k invalid, locked memory is limited to 1048576 bytes (ulimit -l, LimitMEMLOCK=)" in said


def test_pid_file_of_a_living_process(open_folder):
    """It is overwritten, as memcached does, but not without a word; a dead one's without."""
    path = open_folder / "pid"
    path.write_text(f"{os.getpid()}\n")
    path.chmod(0o666)
    assert f"named the running process {os.getpid()};" in served("-P", str(path))[0]
    assert not path.exists()
    path.write_text("1073741823\n")
    assert "pid file" not in served("-P", str(path))[0]


def test_pid_file_that_cannot_be_written():
    """It serves without, as memcached does."""
    assert "warning: can't write the pid file /nonexistent/pid: No such file or directory" in served("-P", "/nonexistent/pid")[0]


def test_pid_file_of_the_next_daemon_stays(start, open_folder):
    """Who ends takes no file away that tells another by now."""
    path = open_folder / "pid"
    first = start("-P", str(path))
    until(path.exists, "the pid file")
    second = start("-P", str(path))
    until(lambda: path.read_text() == f"{second.process.pid}\n", "the second's pid")
    assert first.stop() == 0
    assert path.read_text() == f"{second.process.pid}\n"


def test_core_dumps():
    """-r raises the limit as far as it goes."""
    core = [line for line in served("-r")[1].splitlines() if line.startswith("Max core file size")][0].split()
    assert core[4] == core[5]


def test_large_pages_and_locked_memory():
    """-L and -k serve, whether the kernel grants them or not; then they say so."""
    said, _ = served("-L", "-k")
    assert all(re.match(TIME + "(notice: |warning: -[kL] )", line) for line in said.splitlines()), said


def test_options_without_effect_are_told_at_v():
    """-v logs a line for each, and without -v there is none. -e has its line always, because nothing is restored."""
    assert "info: -f is without effect: there are no slabs here\n" in served("-f", "1.1", "-v")[0]
    assert "without effect" not in served("-f", "1.1", "-o", "hashpower=20")[0]
    assert "warning: -e /x is without effect" in served("-e", "/x")[0]


def test_debians_memcached_conf(open_folder):
    """--config takes /etc/memcached.conf as it is."""
    path, port = open_folder / "memcached.conf", free_port()
    path.write_text(f"# memcached\n-d\nlogfile /var/log/memcached.log\n-m 96\n-p {port}\n-l 127.0.0.1\n-P {open_folder}/pid\n"
                    + (f"-u {USER[1]}\n" if USER else ""))
    with Daemon(["--config", str(path)], port=port, listen=False) as daemon:
        until(lambda: connect_to(port), "a connection").close()
        assert daemon.stats(b"settings")["maxbytes"] == str(96 << 20)
        assert (open_folder / "pid").read_text() == f"{daemon.process.pid}\n"


def test_versions():
    """-V prints memcached's line on standard output, and ours beside; --compat-version is what clients are told."""
    done = run("-V")
    assert (done.returncode, done.stdout) == (0, "memcached 1.6.45\n")
    assert re.fullmatch(r"flashield \d+\.\d+\.\d+\ncommit ([0-9a-f]{7,40}(, modified)?|unknown)\ncompiler \S.*, \w+\n"
                        r"libraries libevent \S+, OpenSSL \S+, .*, GnuTLS \S+, .*\n", done.stderr)
    assert run("-V", "--compat-version=1.5.22").stdout == "memcached 1.5.22\n"


def test_commit_of_a_tarball(tmp_path):
    """git archive writes it into the tree; a copy of the files without git has none, and builds all the same."""
    def told(folder):
        return subprocess.run([folder / "tools" / "build-info.sh", "--commit"], capture_output=True, text=True, timeout=PATIENCE,
                              check=True).stdout

    copy = tmp_path / "copy"
    for name in ("tools/build-info.sh", "packaging/commit"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    if "Format" in (ROOT / "packaging" / "commit").read_text():
        assert told(copy) == "unknown\n"
    archive = subprocess.run(["git", "-c", "safe.directory=*", "archive", "HEAD", "tools/build-info.sh", "packaging/commit"],
                             cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False)
    if archive.returncode:
        pytest.skip("this is no checkout")
    (tmp_path / "tarball").mkdir()
    subprocess.run(["tar", "-x", "-C", tmp_path / "tarball"], input=archive.stdout, timeout=PATIENCE, check=True)
    short = told(tmp_path / "tarball").strip()
    assert re.fullmatch("[0-9a-f]{7,40}", short) and told(ROOT).startswith(short)


def test_compat_version_is_told(start):
    """By "version" and by stats."""
    with start("--compat-version", "1.5.22").client() as client:
        assert client.ask(b"version\r\n") == b"VERSION 1.5.22\r\n"
        assert client.stats()["version"] == "1.5.22"


INCOMPLETE = [b"", b" ", b"get", b"gets ", b"gat", b"set", b"set a", b"set a 0 0", b"cas a 0 0", b"incr", b"decr a", b"touch a", b"delete", b"verbosity", b"mg", b"ms",
              b"md ", b"ma"]


@pytest.mark.parametrize("version, error, shutdown", [("1.6.39", b"ERROR", b"ERROR"), ("1.6.40", b"CLIENT_ERROR bad command line format", b"SERVER_ERROR")])
def test_compat_version_chooses_answers(start, version, error, shutdown):
    """Where memcached's answers have changed, they are those of that version."""
    with start("--compat-version", version).client() as client:
        for line in INCOMPLETE:
            assert client.ask(line + b"\r\n") == error + b"\r\n", line
        assert client.ask(b"shutdown\r\n") == shutdown + b": shutdown not enabled\r\n"
        assert client.ask(b"nonsense\r\n") == b"ERROR\r\n"


@pytest.mark.parametrize("version, first", [("1.6.42", b""), ("1.6.43", b"OK\r\n")])
def test_dumps_begin_with_ok_from_a_version_on(start, version, first):
    """Both forms of a dump, also where there is nothing to show."""
    with start("--compat-version", version).client() as client:
        for form, line, end in [(b"metadump", b"key=a ", b"END\r\n"), (b"mgdump", b"mg a\r\n", b"EN\r\n")]:
            command = b"lru_crawler " + form + b" all\r\n"
            assert client.all(command) == first + end
            client.set(b"a", b"1")
            answer = client.all(command)
            assert answer.startswith(first + line) and answer.endswith(end), answer
            assert client.ask(b"delete a\r\n") == b"DELETED\r\n"


def test_background_tells_what_goes_wrong(dram_daemon):
    """With -d, too, an error at the start is seen and is the exit code."""
    done = run(*USER, "-d", "-l", "127.0.0.1", "-p", str(dram_daemon.port))
    assert done.returncode == 71
    assert "failed to listen" in done.stderr


def test_an_address_may_have_a_protocol_of_its_own():
    """proto[ascii]: and proto[binary]: hold for one address; without them the first byte chooses."""
    ports = [free_port() for _ in range(3)]
    addresses = f"proto[ascii]:tag_tools_:127.0.0.1:{ports[0]},proto[binary]:127.0.0.1:{ports[1]},127.0.0.1:{ports[2]}"
    noop = b"\x80\x0a" + bytes(22)
    with Daemon(["-l", addresses], port=ports[2], listen=False) as daemon:
        until(daemon.answers, "an answer")
        for port, text, binary in [(ports[0], True, False), (ports[1], False, True), (ports[2], True, True)]:
            with Client(port) as client:
                client.send(b"mn\r\n" + bytes(24))
                assert (client.reader.read(4) == b"MN\r\n") == text, port
            with Client(port) as client:
                client.send(noop + b"\r\n")
                assert (client.reader.read(2) == b"\x81\x0a") == binary, port


def test_a_wrong_word_before_an_address_is_named():
    """The start fails with memcached's words."""
    done = run(*USER, "-l", "proto[ascii]:tag__:127.0.0.1")
    assert done.returncode == 71, done
    assert "Listener tags must be between 1 and 8 characters" in done.stderr
    done = run(*USER, "-l", "mtls:127.0.0.1")
    assert "'mtls' option is valid only when SSL is enabled" in done.stderr


def test_several_addresses():
    """-l may name several addresses, with ports of their own."""
    ports = [free_port(), free_port()]
    with Daemon(["-l", f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}"], port=ports[0], listen=False) as daemon:
        until(daemon.answers, "an answer")
        with Client(ports[1]) as client:
            assert client.ask(b"version\r\n").startswith(b"VERSION")


def test_connection_limit(start):
    """Beyond -c a connection is told so and closed; when one ends there is room again."""
    daemon = start("-c", "5")
    clients = [daemon.client()]
    until(lambda: clients[0].count("curr_connections", b"") == 1, "the end of the connection that start tried")
    clients += [daemon.client() for _ in range(4)]
    for client in clients:
        assert client.ask(b"version\r\n").startswith(b"VERSION")
    with daemon.client() as one_more:
        assert one_more.line() == b"ERROR Too many open connections\r\n"
        assert one_more.ends()
    assert clients[0].count("rejected_connections", b"") == 1
    clients.pop().close()
    until(lambda: clients[0].count("curr_connections", b"") == 4, "the connection's end")
    with daemon.client() as again:
        assert again.ask(b"version\r\n").startswith(b"VERSION")
    for client in clients:
        client.close()


def test_turns(start):
    """A pipeline of more than -R commands gives way, and is counted."""
    with start("-R", "5", "-t", "1").client() as client:
        answer = client.all(b"set a 0 0 1\r\nx\r\n" * 50)
        assert answer == b"STORED\r\n" * 50
        assert client.count("conn_yields", b"") >= 9


def test_item_size_limit(start):
    """-I moves the limit of values."""
    with start("-I", "8m", "-m", "64").client() as client:
        value = b"x" * 4_000_000
        assert client.set(b"big", value) == b"STORED\r\n"
        assert client.get(b"big")[0][2] == value
    with start("-I", "2k").client() as client:
        assert client.set(b"big", b"x" * 2000) == b"SERVER_ERROR object too large for cache\r\n"


def test_verbosity(start):
    """verbosity moves the log level."""
    with start().client() as client:
        assert client.ask(b"verbosity 1\r\n") == b"OK\r\n"
        assert client.stats(b"settings")["verbosity"] == "1"
