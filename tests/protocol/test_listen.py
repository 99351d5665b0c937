# SPDX-License-Identifier: BSD-3-Clause
"""Where the daemon listens: addresses and ports, what it says when it can't, protocols, the list of connections."""
import os
import signal
import socket
import stat
import subprocess

import pytest

from helpers import PATIENCE, Client, Daemon, flashield_command, free_port, until

USER = ["-u", "nobody"] if os.geteuid() == 0 else []


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="there is no ::1")


class Client6(Client):
    """Of the IPv6 loopback."""

    def __init__(self, port):
        self.socket = socket.create_connection(("::1", port), PATIENCE)
        self.reader = self.socket.makefile("rb")


def run(*options):
    return subprocess.run([flashield_command(), *USER, *options], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)


@pytest.fixture
def serve(start, open_folder, monkeypatch):
    """serve("-p", "-1", ...) -> the daemon and its port file's lines, once it serves."""
    path = open_folder / "ports"
    monkeypatch.setenv("MEMCACHED_PORT_FILENAME", str(path))

    def serve_one(*options, program=None):
        daemon = start(*options, listen=False, program=program)
        until(lambda: path.exists() or daemon.process.poll() is not None, "the port file")
        assert daemon.process.poll() is None
        lines = path.read_text().splitlines()
        path.unlink()
        return daemon, lines

    return serve_one


def port_of(line):
    return int(line.rsplit(" ", 1)[1])


def version_at(client):
    with client:
        return client.ask(b"version\r\n").startswith(b"VERSION")


# ---- what can't be

BAD = {
    "no-port": ("127.0.0.1:abc", 'Invalid port number: "abc"'),
    "empty-port": ("127.0.0.1:", 'Invalid port number: ""'),
    "port-too-large": ("127.0.0.1:70000", 'Invalid port number: "70000"'),
    "port-too-large-by-one": ("192.0.2.1:65536", 'Invalid port number: "65536"'),
    "last-port": ("192.0.2.1:65535", "Cannot assign requested address"),  # the port itself is taken
    "no-bracket": ("[::1", 'Invalid IPV6 address: "[::1"'),
    "no-address-of-ours": ("192.0.2.1", "Cannot assign requested address"),
    "one-of-two": ("127.0.0.1,192.0.2.1", "Cannot assign requested address"),
    "no-name": ("no-such-host.invalid", "getaddrinfo()"),
    "notls-without-tls": ("notls:127.0.0.1", "'notls' option is valid only when SSL is enabled"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_address(name):
    """An address that can't be: memcached's words, and its exit code 71."""
    addresses, cause = BAD[name]
    done = run("-l", addresses, "-p", str(free_port()))
    assert done.returncode == 71
    assert f"failed to listen on one of interface(s) {addresses}: " in done.stderr
    assert cause in done.stderr


@pytest.mark.parametrize("name", ["no-address-of-ours", "one-of-two", "notls-without-tls", "no-port"])
def test_bad_address_as_memcached(memcached, name):
    """memcached fails on these too, with the same exit code and the same start of the line."""
    addresses, _ = BAD[name]
    done = subprocess.run([memcached.program, *USER, "-l", addresses, "-p", str(free_port())], capture_output=True,
                          text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 71
    assert f"failed to listen on one of interface(s) {addresses}: " in done.stderr


def test_taken_tcp_port(dram_daemon):
    """A port that is taken: the reason, and who has it."""
    done = run("-l", "127.0.0.1", "-p", str(dram_daemon.port))
    assert done.returncode == 71
    assert "failed to listen on one of interface(s) 127.0.0.1: Address already in use: " in done.stderr
    assert f"TCP 127.0.0.1:{dram_daemon.port} is held by process {dram_daemon.process.pid} (" in done.stderr


def test_taken_udp_port():
    """So it is with a UDP port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        done = run("-l", "127.0.0.1", "-p", str(free_port()), "-U", str(port))
    assert done.returncode == 71
    assert f"UDP 127.0.0.1:{port} is held by process {os.getpid()} (" in done.stderr


def test_second_daemon_on_the_udp_port(serve):
    """The sockets of one daemon share a port, but no other daemon's."""
    _, lines = serve("-l", "127.0.0.1", "-p", "0", "-U", str(free_port()))
    done = run("-l", "127.0.0.1", "-p", "0", "-U", str(port_of(lines[0])))
    assert done.returncode == 71
    assert "Address already in use" in done.stderr


def test_nothing_to_listen_on():
    """Both ports 0: the options are wrong, and another start would not mend that."""
    done = run("-p", "0")
    assert done.returncode == 64
    assert "nothing to listen on" in done.stderr


def test_unix_socket_that_is_served(open_folder):
    """A second daemon is told who has it, and the first one goes on."""
    path = open_folder / "socket"
    with Daemon(["-s", str(path)], listen=False) as first:
        until(lambda: connects(path), "an answer")  # (the socket is there before anybody listens on it)
        done = run("-s", str(path))
        assert done.returncode == 71
        assert (f"failed to listen on UNIX socket: {path}: Address already in use: it is held by process {first.process.pid} "
                "(flashield), user ") in done.stderr
        assert connects(path)


def test_unix_socket_of_a_daemon_that_does_not_listen_yet(open_folder):
    """A start with a large flash takes a while. A second daemon leaves its socket alone."""
    path = open_folder / "socket"
    with socket.socket(socket.AF_UNIX) as starting:
        starting.bind(str(path))
        done = run("-s", str(path))
        assert done.returncode == 71
        assert f"{path}: Address already in use: it is held by process {os.getpid()} (" in done.stderr
        starting.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_unix_socket_of_the_next_daemon_stays(open_folder):
    """Who ends takes no socket away that leads to another by now."""
    path = open_folder / "socket"
    with Daemon(["-s", str(path)], listen=False) as first:
        until(lambda: connects(path), "an answer")
        path.unlink()
        with Daemon(["-s", str(path)], listen=False):
            until(lambda: connects(path), "the second's answer")
            assert first.stop() == 0
            assert connects(path)


@pytest.mark.parametrize("make", [lambda path: path / "no-folder" / "socket", lambda path: path / "file"])
def test_unix_socket_that_cannot_be(open_folder, make):
    """In a folder that isn't there, or in place of a file: 71, and the file stays."""
    (open_folder / "file").write_text("precious")
    done = run("-s", str(make(open_folder)))
    assert done.returncode == 71
    assert f"failed to listen on UNIX socket: {make(open_folder)}: " in done.stderr
    assert (open_folder / "file").read_text() == "precious"


def test_port_file_that_cannot_be_written(start, monkeypatch):
    """It serves nevertheless."""
    monkeypatch.setenv("MEMCACHED_PORT_FILENAME", "/nonexistent/ports")
    with start().client() as client:
        assert client.ask(b"version\r\n").startswith(b"VERSION")


# ---- addresses

def test_any_port(serve):
    """-p -1: the port is told by the port file, in memcached's form."""
    daemon, lines = serve("-l", "127.0.0.1", "-p", "-1")
    assert len(lines) == 1 and lines[0].startswith("TCP INET: ")
    assert version_at(Client(port_of(lines[0])))
    assert daemon.process.poll() is None


def test_several_addresses(serve):
    """Commas, repetition, and ports of their own; -p is for those without; a name."""
    ports = [free_port() for _ in range(4)]
    _, lines = serve("-l", f"127.0.0.1:{ports[0]},127.0.0.1", "-l", f"127.0.0.1:{ports[1]}",
                     "-l", f"localhost:{ports[2]}", "-p", str(ports[3]))
    assert [line for line in lines if line.startswith("TCP INET: ")] == \
        [f"TCP INET: {port}" for port in (ports[0], ports[3], ports[1], ports[2])]
    for port in ports:
        assert version_at(Client(port))


def test_an_address_twice(serve):
    """Given again, it is one listener."""
    port = free_port()
    _, lines = serve("-l", f"127.0.0.1:{port}", "-l", f"127.0.0.1:{port}")
    assert lines == [f"TCP INET: {port}"]


def test_udp_has_the_ports_of_the_list(serve):
    """A port within -l is UDP's too; -U is for addresses without. -p 0 keeps TCP off."""
    own, other = free_port(), free_port()
    _, lines = serve("-l", f"127.0.0.1:{own},127.0.0.1", "-p", "0", "-U", str(other))
    assert lines == [f"UDP INET: {own}", f"UDP INET: {other}"]


@needs_ipv6
def test_ipv6(serve):
    """In brackets with a port, and bare."""
    port = free_port()
    _, lines = serve("-l", f"[::1]:{port}")
    assert lines == [f"TCP INET6: {port}"]
    assert version_at(Client6(port))
    _, lines = serve("-l", "::1", "-p", "-1")
    assert version_at(Client6(port_of(lines[0])))


@pytest.mark.parametrize("mask", ["700", "0770", "777"])
def test_unix_socket(open_folder, mask):
    """-s with -a: the mode, the user whom memcached makes it for, and no network beside."""
    path = open_folder / "socket"
    with Daemon(["-s", str(path), "-a", mask, "-l", "127.0.0.1", "-p", str(free_port())], listen=False) as daemon:
        until(path.is_socket, "the socket")
        until(lambda: connects(path), "an answer")
        assert stat.S_IMODE(path.stat().st_mode) == int(mask, 8)
        assert path.stat().st_uid == os.stat(f"/proc/{daemon.process.pid}").st_uid
        with Client(0, str(path)) as client:
            addresses = [value for name, value in client.stats(b"conns").items() if name.endswith(":addr")]
        assert set(addresses) == {f"unix:{path}"}
        assert daemon.stop() == 0
    assert not path.exists()


def connects(path):
    try:
        return version_at(Client(0, str(path)))
    except OSError:
        return False


def test_unix_socket_left_behind(open_folder):
    """A socket that a killed daemon has left is replaced."""
    path = open_folder / "socket"
    first = Daemon(["-s", str(path), "-a", "777"], listen=False).start()
    until(lambda: path.is_socket() and connects(path), "an answer")
    first.process.kill()
    first.process.wait()
    assert path.is_socket()
    with Daemon(["-s", str(path), "-a", "777"], listen=False):
        until(lambda: connects(path), "an answer")


# ---- protocols

BINARY_VERSION = b"\x80\x0b" + bytes(22)
FIRST_BYTES = [b"version\r\n", BINARY_VERSION, b"\x81" + bytes(23), b"\x80", b"\r\n", b"x", b"\x81" * 50 + b"\r\n",
               b"version\n" + BINARY_VERSION, BINARY_VERSION + b"version\r\n"]


def answer_to(port, data):
    """All that comes until the server closes, after the client has said that it sends no more."""
    with Client(port) as client:
        client.send(data)
        try:
            client.socket.shutdown(socket.SHUT_WR)
            return client.reader.read()
        except OSError:  # closed with bytes that nobody has read
            return b""


@pytest.mark.parametrize("protocol", ["binary", "ascii", "auto"])
def test_protocol_of_the_listener(serve, memcached, protocol):
    """-B: what a connection's first bytes get is what memcached answers."""
    options = ("-l", "127.0.0.1", "-p", "-1", "-B", protocol)
    ours, theirs = (port_of(serve(*options, program=program)[1][0]) for program in (None, memcached.program))
    answers = [answer_to(ours, data) for data in FIRST_BYTES]
    assert answers == [answer_to(theirs, data) for data in FIRST_BYTES]
    assert any(answer.startswith(b"VERSION") for answer in answers) == (protocol != "binary")
    assert any(answer.startswith(b"\x81\x0b") for answer in answers) == (protocol != "ascii")


# ---- stats conns

def rows_of(daemon_stats):
    """{descriptor: {name: value}} of "stats conns"."""
    conns = {}
    for name, value in daemon_stats.items():
        number, row = name.split(":")
        conns.setdefault(int(number), {})[row] = value
    return conns


def test_connections_are_listed(start):
    """Listeners, UDP sockets of each worker and connections, with memcached's names."""
    daemon = start("-t", "2", "-U", str(free_port()))
    with daemon.client() as client, daemon.client() as other:
        other.send(b"set half 0 0 10\r\nhal")
        local = "tcp:127.0.0.1:%d" % other.socket.getsockname()[1]
        found = until(lambda: [conn for conn in rows_of(client.stats(b"conns")).values()
                               if conn["addr"] == local and conn["state"] == "conn_nread"], "the other's state")
        assert found[0]["listen_addr"] == f"tcp:127.0.0.1:{daemon.port}"
        conns = rows_of(client.stats(b"conns"))
        listener = [conn for conn in conns.values() if conn["addr"] == f"tcp:127.0.0.1:{daemon.port}"]
        assert [conn["state"] for conn in listener] == ["conn_listening"]
        assert len([conn for conn in conns.values() if conn.get("UDP") == "UDP" and conn["state"] == "conn_read"]) == 2
        assert all(int(conn["secs_since_last_cmd"]) >= 0 for conn in conns.values())
        other.close()
        until(lambda: local not in [conn["addr"] for conn in rows_of(client.stats(b"conns")).values()], "its end")


def test_row_names_as_memcached(start, memcached):
    """For each kind of connection the same rows in the same order."""
    shapes = []
    for program in None, memcached.program:
        daemon = start("-t", "1", "-U", str(free_port()), program=program)
        with daemon.client() as client:
            shapes.append({tuple(conn) for conn in rows_of(client.stats(b"conns")).values()})
    assert shapes[0] == shapes[1]


BEGUN = {b"": "conn_new_cmd", b"get a": "conn_read", b"get a\r\n": "conn_read", b"set a 0 0 10\r\nabc": "conn_nread", b"ms a 10\r\nabc": "conn_nread",
         b"\x80\x00": "conn_read", b"\x80\x00\0\1" + b"\0" * 7 + b"\1" + b"\0" * 12: "conn_read",
         b"\x80\x01\0\1\x08\0\0\0\0\0\0\x14" + b"\0" * 12 + b"e" * 8 + b"kval": "conn_nread"}


def test_states_as_memcached(start, memcached):
    """A connection that waits, one whose value is on its way, a watcher, and the one that asks."""
    for program in None, memcached.program:
        daemon = start("-t", "1", program=program)
        clients = {data: daemon.client() for data in BEGUN}
        for data, client in clients.items():
            client.send(data)
        watcher = daemon.client()
        assert watcher.ask(b"watch\r\n") == b"OK\r\n"
        address = {"tcp:127.0.0.1:%d" % client.socket.getsockname()[1]: BEGUN[data] for data, client in clients.items()}
        address["tcp:127.0.0.1:%d" % watcher.socket.getsockname()[1]] = "conn_watch"
        with daemon.client() as asking:
            address["tcp:127.0.0.1:%d" % asking.socket.getsockname()[1]] = "conn_parse_cmd"

            def shown(client=asking):
                return {conn["addr"]: conn["state"] for conn in rows_of(client.stats(b"conns")).values() if "listen_addr" in conn}

            until(lambda: shown() == address, "the states of all")
        for client in (*clients.values(), watcher):
            client.close()


def test_a_udp_port_alone_is_the_tcp_port_too(serve, memcached):
    """-U without -p; and -U -1 takes any free port."""
    for program in None, memcached.program:
        port = free_port()
        found = {}
        for options in (f"-U {port}", "-U -1", f"-U -1 -p {port}", f"-U {port} -p -1"):
            daemon, lines = serve("-l", "127.0.0.1", *options.split(), program=program)
            found[options] = {line.split()[0]: port_of(line) for line in lines}
            if program is None:
                with Client(found[options]["TCP"]) as client:
                    assert client.stats(b"settings")["udpport"] == str(found[options]["UDP"])
            assert daemon.stop() == 0
        assert all(len(ports) == 2 for ports in found.values())
        assert found[f"-U {port}"] == {"TCP": port, "UDP": port}
        assert found[f"-U -1 -p {port}"]["TCP"] == port != found[f"-U -1 -p {port}"]["UDP"]
        assert found[f"-U {port} -p -1"]["UDP"] == port != found[f"-U {port} -p -1"]["TCP"]
        assert 11211 not in found["-U -1"].values()


def test_counts_as_memcached(start, memcached):
    """Listening sockets count among the connections, one of them excepted."""
    names = "curr_connections", "total_connections", "rejected_connections", "max_connections"
    counts = []
    for program in None, memcached.program:
        daemon = start("-t", "2", "-U", str(free_port()), program=program)
        with daemon.client() as client, daemon.client() as other:
            other.ask(b"version\r\n")  # it is counted by now, and stays
            before = until(lambda ask=client: settled(ask.stats()), "the end of earlier connections")
            with daemon.client() as third:
                third.ask(b"version\r\n")
                after = client.stats()
        counts.append([int(after[name]) - (int(before[name]) if name == "total_connections" else 0) for name in names])
    assert counts[0] == counts[1] == [5, 1, 0, 1024]


def settled(stats):
    """Two clients, one TCP and two UDP sockets, less one."""
    return stats if int(stats["curr_connections"]) == 4 else None


def test_listed_while_they_come_and_go(start):
    """The list is walked by one thread while others open and close connections."""
    daemon = start("-t", "4")
    with daemon.client() as client:
        for _ in range(50):
            others = [daemon.client() for _ in range(20)]
            client.send(b"stats conns\r\n")
            for other in others:
                other.close()
            while client.line() != b"END\r\n":
                pass


# ---- signals

@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT])
def test_stop(serve, memcached, number, capfd):
    """Exit code 0, as memcached's; USR1 in its words. Clients are closed."""
    for program in None, memcached.program:
        daemon, lines = serve("-l", "127.0.0.1", "-p", "-1", program=program)
        with Client(port_of(lines[0])) as client:
            assert client.ask(b"version\r\n").startswith(b"VERSION")
            assert daemon.stop(number) == 0
            assert client.ends()
        assert ("Gracefully stopping" in capfd.readouterr().err) == (number == signal.SIGUSR1)


def test_hangup_is_no_end(start):
    """Without anything to reload, HUP changes nothing."""
    daemon = start()
    with daemon.client() as client:
        for _ in range(3):
            daemon.process.send_signal(signal.SIGHUP)
            assert client.ask(b"version\r\n").startswith(b"VERSION")


@pytest.mark.parametrize("command", [b"shutdown\r\n", b"shutdown graceful\r\n"])
def test_shutdown_command(start, command):
    """It ends the daemon, with exit code 0."""
    daemon = start("-A")
    with daemon.client() as client, daemon.client() as idle:
        client.send(command)
        assert client.ends()
        assert idle.ends()
    assert daemon.process.wait(PATIENCE) == 0
