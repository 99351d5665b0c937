# SPDX-License-Identifier: BSD-3-Clause
"""flashield-top on a real pty: what its screen shows beside "stats", in several sizes, against our daemon and memcached,
while servers go and come, and against servers that send garbage."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading

import pytest

from helpers import PATIENCE, SEGMENT, Daemon, Late, breathe, fill, flashield_command, free_port, until

pexpect = pytest.importorskip("pexpect")
pyte = pytest.importorskip("pyte")

TOP = str(pathlib.Path(flashield_command()).resolve().parent / "flashield-top")
FAST = ["--interval", "100ms"]
OTHER_REPORTS = 9  # that are asked for beside the general one
UNITS = {"": 1, "k": 1e3, "M": 1e6, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "B": 1, "%": 0.01}

pytestmark = pytest.mark.skipif(not os.path.exists(TOP), reason=f"{TOP} is not built")


class Screen:
    """flashield-top on a terminal of this size. `with` ends it, and fails if it doesn't end well. What pyte knows
    completely is a Linux console; of others the first picture is right at least, and the bytes are."""

    def __init__(self, *arguments, rows=24, columns=80, term="linux", locale="C.UTF-8", **env):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        env = dict(os.environ, TERM=term, LC_ALL=locale, **env)
        env.pop("LINES", None)
        env.pop("COLUMNS", None)
        self.child = pexpect.spawn(TOP, list(arguments), env=env, dimensions=(rows, columns), timeout=PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if not self.child.closed:
            self.child.send("q")
            self.end()
        if kind is None:
            assert self.child.exitstatus == 0, self.text()

    def end(self):
        until(lambda: self.read() is None, "the end of flashield-top")
        self.child.close()

    def read(self):
        """What has come; None at the end."""
        try:
            data = self.child.read_nonblocking(65536, timeout=0.05)
        except pexpect.TIMEOUT:
            return b""
        except pexpect.EOF:
            return None
        self.raw += data
        self.stream.feed(data)
        return data

    def text(self):
        return "\n".join(self.screen.display)

    def line(self, label):
        """What follows a label at the beginning of a line, or None."""
        found = re.search(rf"^ {re.escape(label)} +(.*)$", self.text(), re.M)
        return found and found.group(1)

    def ratios(self, label):
        """Of the left half of 80 columns."""
        found = re.search(rf"^ {re.escape(label)} +(.{{,32}})", self.text(), re.M)
        return numbers(found.group(1)) if found else None

    def figure(self, label):
        """The same of a label anywhere."""
        found = re.search(rf"(?<!\S){re.escape(label)} +(\S.*)$", self.text(), re.M)
        return found.group(1) if found else ""

    def until(self, condition, what):
        """Reads on until condition() holds; returns what it returned."""
        def step():
            assert self.read() is not None, f"flashield-top ended:\n{self.text()}"
            return condition()
        try:
            return until(step, what)
        except Late as error:
            raise Late(f"{error}\n{self.text()}") from None

    def shows(self, *texts):
        self.until(lambda: all(text in self.text() for text in texts), texts)

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)


def numbers(text):
    """[12300.0, 0.953] of "12.3 k  95.3 %"."""
    return [float(number) * UNITS[unit or ""]
            for number, unit in re.findall(r"(?<![\w.])(\d+(?:\.\d+)?)(?: (k|M|[KMG]iB|B|%)(?!\w))?", text)]


def run(*arguments, timeout=PATIENCE, **env):
    return subprocess.run([TOP, *arguments], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, LC_ALL="C.UTF-8", **env))


def address(daemon):
    return f"127.0.0.1:{daemon.port}"


class Liar:
    """A server that answers each connection's first command with these bytes, and then says no more."""

    def __init__(self, *pieces):
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.pieces = pieces
        self.connections = 0
        self.opened = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
                self.opened.append(connection)
                self.connections += 1
                connection.recv(1000)
                for piece in self.pieces:
                    connection.sendall(piece)
            except OSError:
                if self.listener.fileno() < 0:
                    return

    @property
    def address(self):
        return "127.0.0.1:%d" % self.listener.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # close() alone would leave accept() waiting.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.opened:
            connection.close()


@pytest.fixture(scope="module")
def loaded(flash_daemon):
    """The daemon with objects on flash, of some applications, and hits on both tiers."""
    with flash_daemon.client() as client:
        until(lambda: fill(client, SEGMENT) or client.count("flash_items") > 100, "objects on flash")
        for number in range(50):
            client.set(b"shop:%d" % number, b"v" * 300)
            client.get(b"shop:%d" % number, b"feed:%d" % number)
    return flash_daemon


@pytest.fixture
def load(loaded):
    """Requests without end beside the test."""
    stop = threading.Event()

    def play():
        with loaded.client() as client:
            while not stop.is_set():
                client.all(b"".join(b"get shop:%d\r\nget feed:%d\r\n" % (i, i) for i in range(50)))
                client.set(b"shop:1", b"v" * 300)
                breathe()

    thread = threading.Thread(target=play)
    thread.start()
    yield loaded
    stop.set()
    thread.join()


# --- usage ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options,named", [
    (["--interval", "0"], "--interval"),
    (["--interval", "2h"], "--interval"),
    (["--timeout", "x"], "--timeout"),
    (["--view", "nothing"], "--view"),
    (["--sort", "size"], "--sort"),
    (["--nothing"], "nothing"),
    ([""], "empty"),
    (["127.0.0.1:1"] * 17, "16 servers"),
])
def test_bad_usage_names_the_option_and_exits_2(options, named):
    done = run(*options)
    assert done.returncode == 2
    assert named in done.stderr
    assert not done.stdout


def test_help_and_version():
    for key in ("--once", "--interval", "NO_COLOR", "Exit status", "Keys"):
        assert key in run("--help").stdout
    assert run("--version").stdout.startswith("flashield-top (Flashield) ")


@pytest.mark.parametrize("term", ["no-such-terminal", "dumb", ""])
def test_an_unfit_terminal_is_named(term):
    screen = Screen(*FAST, "127.0.0.1:1", term=term)
    screen.end()
    assert screen.child.exitstatus == 2
    assert f"TERM={term}: ".encode() in screen.raw and b"--once" in screen.raw


@pytest.mark.parametrize("server,why", [
    (None, "Connection refused"),
    ("127.0.0.1:99999", "no port from 1 to 65535"),
    ("127.0.0.1:", "no port from 1 to 65535"),
    ("127.0.0.1:no-such-port", "Servname"),
    ("/no/such/socket", "No such file"),
    ("/" + "s" * 200, "File name too long"),
])
def test_once_without_a_server(server, why):
    done = run("--once", "--interval", "100ms", server or f"127.0.0.1:{free_port()}")
    assert done.returncode == 2
    assert why in done.stderr
    assert not done.stdout


# --- servers that lie --------------------------------------------------------------------------------

@pytest.mark.parametrize("pieces,shown", [
    ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "no memcached server"),
    ([b"\x1b[2J\x1b]0;owned\x07\x9b31m\r\n"], "no memcached server"),
    ([b"STAT pid 1\r\n" * 9000], "a report of more than"),
    ([b"STAT " + b"a" * 100000], "a line of more than"),
    ([b"CLIENT_ERROR unauthenticated\r\n"], "CLIENT_ERROR unauthenticated"),
    ([b"STAT pid 1\r\nEND\r\n" * 30], "more answers than questions"),
    ([], "no answer within"),
])
def test_a_server_that_sends_garbage_is_named_and_tried_again(pieces, shown):
    with Liar(*pieces) as liar, Screen(*FAST, "--timeout", "200ms", liar.address) as screen:
        screen.shows(shown)
        screen.until(lambda: liar.connections > 1, "another connection")
        assert b"owned\x07" not in screen.raw and b"\x9b" not in screen.raw


def test_control_characters_in_names_and_reasons_do_not_reach_the_terminal():
    with Liar(b"STAT pid 1\r\nSTAT uptime 5\r\nSTAT get_hits 3\r\nSTAT version \x1b[31m\r\nEND\r\n",
              b"STAT flash_enabled 1\r\nSTAT flashield_version \x07\x1bc\r\nEND\r\n",
              b"STAT model svm\r\nSTAT reason \x1b]0;owned\x07\r\nEND\r\n",
              b"STAT \x1b[2Jevil\x9b\xff:get_count 5\r\nEND\r\nERROR\r\nERROR\r\n",
              b"STAT requests:1m:1 key=\x1b[2Jhot\x9b requests=5\r\nSTAT requests:1m:total 5\r\nEND\r\n",
              b"STAT 1 at=5 cmd=get key=\x1b[2Jlate\x9b total_us=5\r\nEND\r\n",
              b"STAT \x1b[2Jfull\x9b:dram:objects 5\r\nSTAT (all):dram:size \x1b[2u\x9b=5\r\nEND\r\n",
              b"STAT \x1b[2Jpoor\x9b:dram_bytes 5\r\nEND\r\n") as liar:
        with Screen(*FAST, "--view", "apps", liar.address) as screen:
            screen.shows("?[2Jevil??")
            screen.child.send("3")
            screen.shows("?]0;owned?")
            screen.child.send("7")
            screen.shows("?[2Jhot?")
            screen.child.send("8")
            screen.shows("?[2Jlate?")
            screen.child.send("9")
            screen.shows("?[2Jfull?", "?[2u?")
            screen.child.send("0")
            screen.shows("?[2Jpoor?")
            assert b"\x07" not in screen.raw and b"\x1bc" not in screen.raw and b"\x9b" not in screen.raw


def test_counters_that_go_back_and_numbers_that_are_none():
    rows = b"STAT pid 1\r\nSTAT uptime 5\r\nSTAT get_hits %s\r\nSTAT get_misses 1\r\nSTAT cmd_set -7\r\nSTAT bytes 1e400\r\nEND\r\n"
    refused = b"ERROR\r\n" * OTHER_REPORTS

    class Falling(Liar):
        def serve(self):
            connection, _ = self.listener.accept()
            self.opened.append(connection)
            count = 1000
            while connection.recv(1000):
                count -= 10
                connection.sendall(rows % str(max(count, 1)).encode() + refused)

    with Falling() as liar, Screen(*FAST, liar.address) as screen:
        screen.until(lambda: (screen.line("get") or screen.text()) and "Requests" in screen.text(), "the view")
        screen.until(lambda: re.search(r"set +-", screen.text()), "no sets")
        for _ in range(10):
            screen.read()
            assert not re.search(r"get +\d", screen.text()), "a rate of counters that only go back"


# --- what it shows ------------------------------------------------------------------------------------

def figures(*arguments):
    """--once as a dictionary; a line's first word, or its first two of those with several figures."""
    done = run("--once", "--interval", "100ms", *arguments)
    assert done.returncode == 0, done.stderr
    return dict(line.split(None, 2 if line.startswith(("latency ", "application ", "server ")) else 1)[-2:]
                for line in done.stdout.splitlines())


def test_once_says_what_stats_says(loaded):
    def at_rest():
        """What is shown, and the rows before and after, if the cleaner has written nothing between them."""
        before, shown, after = loaded.stats(b"flash"), figures(address(loaded)), loaded.stats(b"flash")
        return before["flash_bytes_written"] == after["flash_bytes_written"] and (shown, after)

    shown, flash = until(at_rest, "the cleaner to rest")
    general = loaded.stats()
    gets = int(general["get_hits"]) + int(general["get_misses"])
    assert float(shown["hit_ratio"]) == pytest.approx(int(general["get_hits"]) / gets, abs=1e-5)
    assert float(shown["flash_hit_ratio"]) == pytest.approx(int(flash["flash_hits"]) / gets, abs=1e-5)
    assert float(shown["flash_items"]) == int(flash["flash_items"])
    assert float(shown["segments_live"]) == int(flash["segments_used"])
    assert float(shown["index_load"]) == pytest.approx(float(flash["index_load"]), abs=1e-5)
    assert float(shown["memory_limit_bytes"]) == int(general["limit_maxbytes"])
    assert float(shown["clwa"]) == pytest.approx(int(flash["flash_bytes_written"]) / int(flash["app_bytes_written"]), rel=1e-4)
    assert float(shown["gets_per_second"]) == 0
    assert shown["flashield_version"] == flash["flashield_version"]
    assert shown["model_reason"] == loaded.stats(b"classifier")["reason"]
    assert "gets=" + loaded.stats(b"apps")["shop:get_count"] in shown["shop"].split()
    latency = loaded.stats(b"latency")
    assert f"count={latency['set_count']}" in shown["set"].split()


def test_what_is_no_terminal_gets_one_report(loaded):
    done = run("--interval", "100ms", address(loaded))
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert re.search(r"^hit_ratio +0\.\d+$", done.stdout, re.M)


def test_the_screen_says_what_stats_says_under_load(load):
    with Screen(*FAST, address(load)) as screen:
        screen.until(lambda: numbers(screen.line("from DRAM") or "")[1:], "ratios")
        # Half of the gets miss; the other half is in DRAM.
        screen.until(lambda: numbers(screen.line("all"))[0] == pytest.approx(0.5, abs=0.02), "the ratio of now")
        screen.until(lambda: numbers(screen.figure("get"))[0] > 100, "gets")
        general = load.stats()
        total = int(general["get_hits"]) / (int(general["get_hits"]) + int(general["get_misses"]))
        screen.until(lambda: numbers(screen.line("all"))[1] == pytest.approx(total, abs=0.02), "the ratio of all")
        flash = load.stats(b"flash")
        assert numbers(screen.line("flash").partition("items")[0])[-1] == pytest.approx(int(flash["flash_items"]), rel=0.02)
        clwa = int(flash["flash_bytes_written"]) / int(flash["app_bytes_written"])
        screen.until(lambda: float(screen.line("CLWA").split()[-1]) == pytest.approx(clwa, rel=0.05), "CLWA")
        screen.until(lambda: numbers(screen.line("DRAM hit"))[0] > 100, "latencies")
        screen.child.send("r")
        screen.shows("since r")
        screen.until(lambda: numbers(screen.line("all"))[1] == pytest.approx(0.5, abs=0.05), "the ratio since r")


def sorted_by(screen):
    """The column with the mark; None while the screen is being drawn."""
    return next(iter(re.findall(r"(\S+)\*", screen.text())), None)


def test_views_keys_and_sorting(load):
    with Screen(*FAST, address(load)) as screen:
        for key, shown in [("2", "Segments"), ("3", "precision"), ("4", "p99"), ("5", "Applications"), ("6", "Servers"),
                           ("7", "Keys by requests"), ("8", "none was slow"), ("9", "Contents, about"),
                           ("h", "quit"), (" ", "Contents, about"), ("\t", "no application has limits"), ("\t", "Hit ratio"),
                           ("\x1b\t", "no application has limits"), ("1", "Hit ratio"), ("0", "no application has limits"), ("7", "last minute"),
                           ("w", "last 10 minutes"),
                           ("5", "shop")]:
            screen.child.send(key)
            screen.shows(shown)
        # By gets per second shop and feed are equal, by name feed comes first, by hits shop.
        for column, first in [("hits", "shop"), ("DRAM", "shop")]:
            while sorted_by(screen) != column:
                screen.until(lambda: sorted_by(screen), "a column with the mark")
                before = sorted_by(screen)
                screen.child.send("s")
                screen.until(lambda: sorted_by(screen) not in (before, None), f"another column than {before}")
            screen.until(lambda: re.findall(r"^ (shop|feed) ", screen.text(), re.M) == [first, "feed"], f"{first} first")
        screen.child.send("+")
        screen.shows("every 200ms")
        screen.child.send("-")
        screen.shows("every 100ms")
        screen.child.send("p")
        screen.shows("PAUSED")
        screen.child.send("p")
        screen.until(lambda: "PAUSED" not in screen.text(), "going on")


@pytest.mark.parametrize("rows,columns,shown", [
    (24, 80, ["Hit ratio", "Requests", "Memory and flash", "Flash traffic", "Latency", "q quit"]),
    (60, 200, ["Hit ratio", "Segments", "Objects on flash", "Model", "History", "Applications", "shop", "q quit"]),
    (10, 30, ["Hit ratio", "from DRAM", "q quit"]),
    (3, 8, ["Over"]),
])
def test_sizes(load, rows, columns, shown):
    with Screen(*FAST, address(load), rows=rows, columns=columns) as screen:
        screen.shows(*shown)


def test_it_follows_the_terminals_size(load):
    with Screen(*FAST, address(load)) as screen:
        screen.shows("Latency")
        for rows, columns, shown in [(60, 200, "Applications"), (10, 30, "from DRAM"), (2, 2, "1"), (24, 80, "Latency")]:
            screen.resize(rows, columns)
            screen.until(lambda: shown in screen.text(), f"{shown} in {rows} x {columns}")


@pytest.mark.parametrize("options", [
    {"term": "vt100"}, {"locale": "C"}, {"NO_COLOR": "1"}, {"term": "xterm-256color"},
    {"term": "screen", "locale": "C"},
])
def test_plain_terminals(load, options):
    with Screen(*FAST, address(load), **options) as screen:
        screen.until(lambda: b"Hit ratio" in screen.raw and b"Latency" in screen.raw, "the view")
        if options.get("locale") == "C":
            assert not [byte for byte in screen.raw if byte > 0x7f]
        if options.get("NO_COLOR") or options.get("term") == "vt100":
            assert not re.search(rb"\x1b\[(?:\d+;)*[349][0-7]m", screen.raw)
        else:
            assert re.search(rb"\x1b\[(?:\d+;)*3[0-7]m", screen.raw)


def test_ascii_where_it_is_asked_for(load):
    with Screen(*FAST, "--ascii", address(load)) as screen:
        screen.shows("Latency", "###")
        assert not [byte for byte in screen.raw if byte > 0x7f]


def test_a_unix_socket(start, open_folder):
    path = str(open_folder / "socket")
    daemon = start("-m", "8", "-s", path, listen=False)
    until(lambda: os.path.exists(path) and daemon.process.poll() is None, "the socket")
    with Screen(*FAST, path) as screen:
        screen.shows("Hit ratio", path)


def test_memcached_without_flash(start):
    memcached = start("-m", "64", "-U", "0", program="memcached")
    with memcached.client() as client:
        client.set(b"a", b"b")
        client.get(b"a", b"none")
    with Screen(*FAST, address(memcached)) as screen:
        screen.until(lambda: "50.0 %" in (screen.line("all") or ""), "the ratio")
        screen.shows("memcached", "Memory ")
        for text in ("flash", "Segments", "Latency", "Model", "rror"):
            assert text not in re.sub("2 ?Flash|4 ?Latency|3 ?Model", "", screen.text())
        for view, shown in [("3", "History"), ("5", "tells nothing of applications")]:
            screen.child.send(view)
            screen.shows(shown)


def test_memcached_with_extstore(start, open_folder):
    daemon = start("-m", "64", "-U", "0", "-o", f"ext_path={open_folder / 'ext'}:64m", program="memcached")
    with Screen(*FAST, address(daemon)) as screen:
        screen.shows("Memory and flash", "from flash", "64.0 MiB")


# --- servers that go and come ----------------------------------------------------------------------------

def test_a_server_is_killed_and_comes_back():
    daemon = Daemon(["-m", "8"])
    daemon.start()
    with Screen(*FAST, address(daemon)) as screen:
        with daemon.client() as client:
            client.all(b"get a\r\n" * 1000)
        screen.until(lambda: "0.00 %" in (screen.line("all") or ""), "the ratio of 1000 misses")
        daemon.stop(signal.SIGKILL)
        screen.shows("again in")
        screen.until(lambda: re.search(r"get +-", screen.text()), "nothing known of now")
        again = Daemon(["-m", "8"], port=daemon.port)
        with again:
            screen.until(lambda: "again in" not in screen.text() and re.search(r"get +0 ", screen.text()), "the new one")
            # It has had no get: nothing of the one before is left.
            screen.until(lambda: screen.ratios("all") == [], "ratios of nothing")


def test_several_servers_are_summed(start):
    first, second = start("-m", "8"), start("-m", "16")
    with first.client() as one, second.client() as two:
        one.set(b"a", b"b")
        two.set(b"a", b"b")
        one.get(b"a")
        two.get(b"a", b"b", b"c")
    shown = figures(address(first), address(second))
    assert float(shown["hit_ratio"]) == 0.5
    assert float(shown["memory_limit_bytes"]) == 24 << 20
    assert "hit_ratio=1" in shown[address(first)].split()
    with Screen(*FAST, "--view", "servers", address(first), address(second)) as screen:
        screen.shows("all of 2 servers", address(first), address(second))
        screen.child.send("n1")
        screen.until(lambda: "100.0 %" in (screen.line("all") or ""), "the first one's ratio")
        screen.child.send("n")
        screen.until(lambda: "33.3 %" in (screen.line("all") or ""), "the second one's ratio")


@pytest.mark.slots("the frugal one goes with no limits of applications")
def test_limits_of_applications(start):
    """Each limited application has a line in the view, and in what --once prints."""
    daemon = start("-m", "64", "--app-limit", "shop:dram=1m-,scan:dram=-2m,write=5m")
    with daemon.client() as client:
        for number in range(100):
            assert client.set(b"scan:%d" % number, b"v" * 1000) == b"STORED\r\n"
        used = daemon.stats(b"limits")["scan:dram_bytes"]
    lines = {line.split()[1]: dict(word.split("=") for word in line.split()[2:])
             for line in run("--once", "--interval", "100ms", address(daemon)).stdout.splitlines() if line.startswith("limit ")}
    assert set(lines) == {"shop", "scan"}
    assert lines["scan"]["dram_bytes"] == used and lines["scan"]["write_limit"] == str(5 << 20)
    assert lines["shop"]["dram_floor"] == str(1 << 20) and "dram_ceiling" not in lines["shop"]
    with Screen(*FAST, "--view", "limits", address(daemon)) as screen:
        screen.shows("2.00 MiB")
        assert "1.00 MiB" in screen.line("shop")


def test_once_with_one_of_two_servers_gone(start):
    daemon, nobody = start("-m", "8"), f"127.0.0.1:{free_port()}"
    done = run("--once", "--interval", "100ms", nobody, address(daemon))
    assert done.returncode == 1
    assert nobody in done.stderr
    assert re.search(r"^memory_limit_bytes +8388608$", done.stdout, re.M)


@pytest.mark.parametrize("how", ["q", signal.SIGTERM, signal.SIGINT])
def test_it_leaves_the_terminal_as_it_was(dram_daemon, how):
    with Screen(*FAST, address(dram_daemon), term="xterm-256color") as screen:
        screen.shows("Hit ratio")
        if how == "q":
            screen.child.send("q")
        else:
            screen.child.kill(how)
        screen.end()
    assert b"\x1b[?1049h" in screen.raw and screen.raw.rindex(b"\x1b[?1049l") > screen.raw.rindex(b"\x1b[?1049h")


def test_it_ends_with_its_terminal(dram_daemon):
    screen = Screen(*FAST, address(dram_daemon))
    screen.shows("Hit ratio")
    os.close(screen.child.fileno())
    pid = screen.child.pid
    until(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, "the end of flashield-top")
