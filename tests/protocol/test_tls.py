# SPDX-License-Identifier: BSD-3-Clause
"""TLS: what is refused at the start and at a handshake, versions, client certificates, bytes in both
directions, certificates that are replaced."""
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile

import pytest

import metrics
from helpers import PATIENCE, Client, Daemon, Kind, Placer, flashield_command, free_port, until

USER = ["-u", "nobody"] if os.geteuid() == 0 else []
MIB = 1 << 20
FLASH_KIND = Kind(b"the value of %key" * 30, copies=300)


def openssl(folder, *words):
    return subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


class Authority:
    """A folder with an authority's certificate, ca.pem, and those it has signed."""

    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder)
        openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
                "-days", "2", "-subj", f"/CN={name}")

    def sign(self, name):
        openssl(self.folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out",
                f"{name}.csr", "-subj", f"/CN={name}")
        openssl(self.folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-out", f"{name}.pem", "-days", "2")
        for path in self.folder.iterdir():
            path.chmod(0o644)

    def path(self, name):
        return str(self.folder / name)


@pytest.fixture(scope="module")
def folders():
    """Makes folders that the daemon may read as the user it has become."""
    with contextlib.ExitStack() as stack:
        def make():
            path = stack.enter_context(tempfile.TemporaryDirectory())
            os.chmod(path, 0o755)
            return path

        yield make


@pytest.fixture(scope="module")
def authority(folders):
    made = Authority(folders(), "authority")
    made.sign("server")
    made.sign("client")
    openssl(made.folder, "rsa", "-in", "server.key", "-outform", "der", "-out", "server-key.der")
    (made.folder / "junk.pem").write_text("junk\n")
    return made


@pytest.fixture(scope="module")
def stranger(folders):
    made = Authority(folders(), "stranger")
    made.sign("client")
    return made


def tls_options(authority, **more):
    settings = {"ssl_chain_cert": authority.path("server.pem"), "ssl_key": authority.path("server.key"), **more}
    return ["-Z", "-o", ",".join(name if value is True else f"{name}={value}" for name, value in settings.items()
                                 if value is not None)]


def context_of(authority, version=None, certificate=None):
    """A client that knows the authority. certificate: its own, as (authority, name)."""
    context = ssl.create_default_context(cafile=authority.path("ca.pem"))
    context.check_hostname = False
    if version:
        context.minimum_version = context.maximum_version = version
    if certificate:
        signer, name = certificate
        context.load_cert_chain(signer.path(f"{name}.pem"), signer.path(f"{name}.key"))
    return context


class TlsClient(Client):
    def __init__(self, port, context):
        plain = socket.create_connection(("127.0.0.1", port), PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain)
        self.reader = self.socket.makefile("rb")


class TlsDaemon(Daemon):
    def __init__(self, options, context, **keywords):
        super().__init__(options, **keywords)
        self.context = context

    def client(self, context=None):
        return TlsClient(self.port, context or self.context)


@pytest.fixture
def serve(authority):
    """Starts daemons with TLS, ended with the test: serve(options..., **ssl_settings)."""
    with contextlib.ExitStack() as stack:
        def start(*options, context=None, **settings):
            return stack.enter_context(TlsDaemon([*tls_options(authority, **settings), *options],
                                                 context or context_of(authority)))

        yield start


@pytest.fixture(scope="module")
def shared(authority):
    with TlsDaemon(["-m", "128", "-I", "32m", "-t", "2", *tls_options(authority)], context_of(authority)) as daemon:
        yield daemon


# ---- what is refused at the start ----------------------------------------------------------------


@pytest.mark.parametrize("settings, text", [
    ({"ssl_chain_cert": None}, "Error loading the certificate chain: "),
    ({"ssl_chain_cert": "/nonexistent.pem"},
     "Error loading the certificate chain: /nonexistent.pem : error:80000002:system library::No such file or directory"),
    ({"ssl_chain_cert": "junk.pem"}, "junk.pem : error:0480006C:PEM routines::no start line"),
    ({"ssl_key": "/nonexistent.key"},
     "Error loading the key: /nonexistent.key : error:80000002:system library::No such file or directory"),
    ({"ssl_key": "client.key"}, "client.key : error:05800074:x509 certificate routines::key values mismatch"),
    ({"ssl_key": None}, "Error loading the key: "),
    ({"ssl_keyformat": "5"}, "server.key : error:0A00007C:SSL routines::bad ssl filetype"),
    ({"ssl_ca_cert": "/nonexistent.pem"}, "Error loading the CA certificate: /nonexistent.pem : "),
    ({"ssl_ca_cert": "junk.pem"}, "junk.pem : error:05800088:x509 certificate routines::no certificate or crl found"),
    ({"ssl_ciphers": "nonsense"}, "Error setting the provided cipher(s): nonsense"),
])
def test_unusable_settings_end_the_start(authority, settings, text):
    """Files and ciphers that can't be used: memcached's words and its exit code."""
    settings = {name: authority.path(value) if value and "." in value and value[0] != "/" else value
                for name, value in settings.items()}
    done = subprocess.run([flashield_command(), *USER, "-l", "127.0.0.1", "-p", str(free_port()),
                           *tls_options(authority, **settings)], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 64
    assert text in done.stderr


# ---- what is refused at the handshake ------------------------------------------------------------


def refused(daemon, context):
    return refused_at(daemon.port, context)


def refused_at(port, context):
    """Does the daemon end the handshake, or (TLS 1.3) the connection right after it?"""
    try:
        with TlsClient(port, context) as client:
            return client.ask(b"version\r\n") == b""
    except (ssl.SSLError, ConnectionError):
        return True


def handshake_errors(daemon, context=None):
    with daemon.client(context) as client:
        return int(client.stats()["ssl_handshake_errors"])


def test_plain_bytes_on_a_tls_port(shared):
    """Who speaks no TLS is not answered; the connection ends and is counted."""
    before = handshake_errors(shared)
    with Client(shared.port) as client:
        client.send(b"version\r\n")
        assert client.ends()
    until(lambda: handshake_errors(shared) == before + 1, "the handshake to be counted")


def test_errors_of_tls_are_told_and_counted(serve):
    """Before the end of the handshake as after it, "watch connevents" has a line; those after it have a counter of their own."""
    daemon = serve()
    with daemon.client() as watcher, daemon.client() as broken:
        assert watcher.ask(b"watch connevents\r\n") == b"OK\r\n"
        with Client(daemon.port) as stranger:
            stranger.send(b"version\r\n")
            assert stranger.ends()
        assert broken.ask(b"mn\r\n") == b"MN\r\n"
        os.write(broken.socket.fileno(), b"no record of TLS")
        lines = []
        while len(lines) < 2:
            line = watcher.line()
            assert line, "the watcher was closed"
            lines += [line] if b"type=conntlserr" in line else []
        assert all(re.search(rb" fd=\d+ msg=error:0A\S+:SSL routines::", line) for line in lines)
    with daemon.client() as client:
        rows = client.stats()
        assert (rows["ssl_handshake_errors"], rows["ssl_proto_errors"]) == ("1", "1")


@pytest.mark.parametrize("hello", [b"", b"\x16\x03\x01", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 99])
def test_client_that_goes_during_the_handshake(shared, hello):
    """A connection closed at any point of the handshake is counted, and nothing else happens."""
    before = handshake_errors(shared)
    with Client(shared.port) as client:
        client.send(hello)
    until(lambda: handshake_errors(shared) == before + 1, "the handshake to be counted")


def test_a_handshake_that_stalls(serve):
    """It counts as idle (-o idle_timeout), however little the client sends now and then."""
    daemon = serve("-o", "idle_timeout=1")
    with Client(daemon.port) as client:
        client.send(b"\x16")
        assert client.ends()

    def kicks():
        with contextlib.suppress(ConnectionError): # it is idle too where the machine stops for a second
            return int(daemon.stats()["idle_kicks"])
    assert until(kicks, "a report with the connection that was closed")


def test_client_that_resets(shared):
    """As above, by a reset in the middle of an answer."""
    with shared.client() as client:
        assert client.set(b"reset", b"x" * MIB) == b"STORED\r\n"
        client.send(b"get reset\r\n" * 50)
        client.line()
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with shared.client() as client:
        assert client.ask(b"mn\r\n") == b"MN\r\n"


def test_older_than_the_oldest_version(serve, authority):
    """ssl_min_version=3: who can TLS 1.2 only is refused."""
    daemon = serve(ssl_min_version=3)
    assert refused(daemon, context_of(authority, ssl.TLSVersion.TLSv1_2))
    assert not refused(daemon, context_of(authority, ssl.TLSVersion.TLSv1_3))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("mode, without", [(2, True), (3, True), (1, False)])
def test_client_certificates(serve, authority, stranger, version, mode, without):
    """Modes 2 and 3 want a certificate of the authority's, 1 takes none as well; a stranger's is refused by all."""
    good = context_of(authority, version, (authority, "client"))
    daemon = serve(context=good, ssl_verify_mode=mode, ssl_ca_cert=authority.path("ca.pem"))
    assert refused(daemon, context_of(authority, version)) == without
    assert refused(daemon, context_of(authority, version, (stranger, "client")))
    assert handshake_errors(daemon, good) == 1 + without
    with daemon.client() as client:
        assert client.set(b"key", b"value") == b"STORED\r\n"


def test_mode_0_asks_for_no_certificate(serve, authority, stranger):
    """The default: a stranger's certificate is not looked at."""
    daemon = serve()
    assert not refused(daemon, context_of(authority, None, (stranger, "client")))


def test_a_listener_may_have_a_verification_of_its_own(authority, stranger):
    """mtls: asks for a certificate that is known, btls: for none, whatever -o ssl_verify_mode says."""
    plain, verified, open_to_all = (free_port() for _ in range(3))
    addresses = f"notls:127.0.0.1:{plain},mtls:127.0.0.1:{verified},btls:127.0.0.1:{open_to_all}"
    for mode in [0, 2]:
        options = tls_options(authority, ssl_ca_cert=authority.path("ca.pem"), ssl_verify_mode=mode)
        with Daemon(["-l", addresses, *options], listen=False, port=plain) as daemon:
            until(daemon.answers, "the plain port")
            with TlsClient(verified, context_of(authority, None, (authority, "client"))) as client:
                assert client.set(b"key", b"value") == b"STORED\r\n"
            for certificate in [None, (stranger, "client")]:
                context = context_of(authority, None, certificate)
                assert refused_at(verified, context)
                with TlsClient(open_to_all, context) as client:
                    assert client.get(b"key") == [(b"key", 0, b"value", None)]


def test_ciphers(serve, authority):
    """Only the ciphers of the list are there for TLS 1.2."""
    daemon = serve(ssl_ciphers="ECDHE-RSA-AES128-GCM-SHA256")
    context = context_of(authority, ssl.TLSVersion.TLSv1_2)
    with daemon.client(context) as client:
        assert client.socket.cipher()[0] == "ECDHE-RSA-AES128-GCM-SHA256"
    context.set_ciphers("ECDHE-RSA-AES256-GCM-SHA384")
    assert refused(daemon, context)


# ---- what works ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(shared, authority, version):
    """TLS 1.2 and 1.3 are both spoken."""
    with shared.client(context_of(authority, version)) as client:
        assert client.set(b"version", b"value") == b"STORED\r\n"
        assert client.get(b"version") == [(b"version", 0, b"value", None)]


@pytest.mark.parametrize("settings", [{"ssl_key": "server-key.der", "ssl_keyformat": 2},
                                      {"ssl_session_cache": True}, {"ssl_kernel_tls": True},
                                      {"ssl_wbuf_size": 1}])
def test_settings(serve, authority, settings):
    """A key in DER, the session cache, the kernel's TLS where it has it, a small buffer: values come back."""
    settings = {name: authority.path(value) if name == "ssl_key" else value for name, value in settings.items()}
    daemon = serve("-I", "8m", **settings)
    value = random.Random(7).randbytes(4 * MIB)
    with daemon.client() as client:
        assert client.set(b"big", value) == b"STORED\r\n"
        for i in range(100):
            assert client.set(b"small-%d" % i, b"%d" % i * 100) == b"STORED\r\n"
        assert client.get(b"big", *(b"small-%d" % i for i in range(100)))[0][2] == value


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed(serve, authority, version):
    """A client resumes its session, also one with a certificate."""
    daemon = serve(context=context_of(authority, None, (authority, "client")), ssl_session_cache=True,
                   ssl_verify_mode=2, ssl_ca_cert=authority.path("ca.pem"))
    context = context_of(authority, version, (authority, "client"))
    with daemon.client(context) as client:
        assert client.ask(b"mn\r\n") == b"MN\r\n" # TLS 1.3 tickets come after the handshake
        session = client.socket.session
    plain = socket.create_connection(("127.0.0.1", daemon.port), PATIENCE)
    with context.wrap_socket(plain, session=session) as resumed:
        resumed.sendall(b"mn\r\n")
        assert resumed.recv(10) == b"MN\r\n"
        assert resumed.session_reused
    with daemon.client(context) as client:
        assert int(client.stats()["ssl_new_sessions"]) > 0


def test_notls_listener_and_unix_socket_are_plain(authority, open_folder):
    """After notls: an address is plain in spite of -Z, as is a UNIX socket."""
    plain_port, tls_port = free_port(), free_port()
    daemon = Daemon(["-l", f"notls:127.0.0.1:{plain_port}", "-l", f"127.0.0.1:{tls_port}", *tls_options(authority)],
                    listen=False)
    daemon.start()
    daemon.port = plain_port
    until(daemon.answers, "the plain port")
    with TlsClient(tls_port, context_of(authority)) as client, daemon.client() as plain:
        assert plain.set(b"key", b"value") == b"STORED\r\n"
        assert client.get(b"key") == [(b"key", 0, b"value", None)]
    assert daemon.stop() == 0
    path = str(open_folder / "socket")
    with Daemon(["-s", path, *tls_options(authority)], listen=False):
        until(lambda: os.path.exists(path), "the socket")

        def answer():
            with contextlib.suppress(ConnectionError), Client(0, path) as client:
                return client.ask(b"mn\r\n")

        assert until(answer, "an answer") == b"MN\r\n"


def test_half_closed(shared):
    """Who ends his side after the last command gets all answers."""
    with shared.client() as client:
        client.send(b"mn\r\n" * 1000)
        socket.socket.shutdown(client.socket, socket.SHUT_WR) # SSLSocket's own would drop TLS
        assert client.reader.read() == b"MN\r\n" * 1000


def test_large_values_both_ways(shared):
    """20 MB in and out, byte for byte, beside small commands of another connection."""
    value = random.Random(1).randbytes(20 * MIB)
    with shared.client() as client, shared.client() as other:
        client.send(b"set large 0 0 %d\r\n" % len(value) + value[:-1])
        assert other.ask(b"mn\r\n") == b"MN\r\n"
        client.send(value[-1:] + b"\r\n")
        assert client.line() == b"STORED\r\n"
        client.send(b"get large\r\n")
        assert client.line() == b"VALUE large 0 %d\r\n" % len(value)
        assert other.ask(b"mn\r\n") == b"MN\r\n"
        assert client.reader.read(len(value)) == value
        assert client.reader.read(7) == b"\r\nEND\r\n"


def test_a_reader_that_is_late(shared):
    """Answers that the socket doesn't take wait, and come complete and in order."""
    value = random.Random(2).randbytes(300000)
    with shared.client() as client:
        assert client.set(b"late", value) == b"STORED\r\n"
        client.send(b"get late\r\nmn\r\n" * 60)
        with shared.client() as other: # by its answer the daemon has come round
            assert other.ask(b"mn\r\n") == b"MN\r\n"
        for _ in range(60):
            assert client.values() == [(b"late", 0, value, None)]
            assert client.line() == b"MN\r\n"


@pytest.mark.parametrize("seed", range(4))
def test_pipelines_cut_at_odd_places(shared, seed):
    """Commands and values over records and segments of any size."""
    chance = random.Random(seed)
    stream, expected = b"", []
    with shared.client() as client:
        for i in range(300):
            key, value = b"odd-%d-%d" % (seed, i), chance.randbytes(chance.choice([0, 1, 100, 1024, 5000, 40000]))
            stream += b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (key, len(value), value, key)
            expected.append((key, value))
        answer = b"".join(b"STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value)
                          for key, value in expected)
        received = b""
        client.socket.setblocking(False)
        while stream or len(received) < len(answer):
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if stream:
                    stream = stream[client.socket.send(stream[:chance.randint(1, 70000)]):]
            try:
                received += client.socket.recv(chance.randint(1, 70000))
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
        assert received == answer


class Records:
    """A client that chooses where records begin, and sends several in one segment."""

    def __init__(self, port, context):
        self.plain = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.arrived, self.leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.arrived, self.leaving)
        self.until_done(self.tls.do_handshake)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.plain.close()

    def until_done(self, call, *arguments):
        """The call's result, with what it wants to send and to receive."""
        while True:
            try:
                result = call(*arguments)
            except ssl.SSLWantReadError:
                self.flush()
                got = self.plain.recv(65536)
                if got:
                    self.arrived.write(got)
                else:
                    self.arrived.write_eof()
            else:
                self.flush()
                return result

    def flush(self):
        self.plain.sendall(self.leaving.read())

    def send(self, *records):
        for record in records:
            assert self.tls.write(record) == len(record)
        self.flush()

    def expect(self, answer):
        received = b""
        while len(received) < len(answer):
            got = self.until_done(self.tls.read, len(answer) - len(received))
            assert got, received[-100:]
            received += got
        assert received == answer


BUFFER = 16384
HELD_BACK = b"mn\r\nm"  # the last byte waits in the buffer for the rest of its command
TOGETHER = {
    "commands": [b"mn\r\n", b"mn\r\n"],
    "many": [b"mn\r\n"] * 200,
    "a-command-cut": [b"mn\r\nm", b"n\r\nmn\r\n"],
    "a-value-cut": [b"ms cut 10\r\n01234", b"56789\r", b"\nmn\r\n"],
    "a-value-alone": [b"ms alone 5\r\n", b"01234", b"\r\nmn\r\n"],
    "more-than-the-buffer": [b"mn\r\n" * (BUFFER // 4), b"mn\r\n" * (BUFFER // 4)],
}


@pytest.mark.parametrize("name", TOGETHER)
def test_records_that_arrive_together(shared, authority, name):
    """What one read has brought in is all served, though nothing more arrives."""
    stream = b"".join(TOGETHER[name])
    with Records(shared.port, context_of(authority)) as client:
        client.send(*TOGETHER[name])
        client.expect(b"HD\r\n" * stream.count(b"ms ") + b"MN\r\n" * stream.count(b"mn\r\n"))


def test_a_record_that_fills_what_is_left_of_the_buffer(shared, authority):
    """The buffer has room for all but the end of the first record: that end and the next record are served too."""
    with Records(shared.port, context_of(authority)) as client:
        client.send(HELD_BACK)
        client.expect(b"MN\r\n")
        client.send(b"n\r\n" + b"mn\r\n" * ((BUFFER - len(HELD_BACK)) // 4), b"mn\r\n")
        client.expect(b"MN\r\n" * (2 + (BUFFER - len(HELD_BACK)) // 4))


def test_the_end_of_tls_arrives_with_a_command(shared, authority):
    """The command is answered, and the connection closed, though the client leaves its TCP open."""
    with Records(shared.port, context_of(authority)) as client:
        client.tls.write(b"mn\r\n")
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.unwrap()  # close_notify leaves with the command
        client.flush()
        client.expect(b"MN\r\n")
        while client.plain.recv(65536):
            pass


def test_many_connections(serve):
    """200 connections at a time, each with its own answers."""
    daemon = serve("-t", "2")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(daemon.client()) for _ in range(200)]
        for i, client in enumerate(clients):
            client.send(b"set c%d 0 0 4\r\n%04d\r\nget c%d\r\n" % (i, i, i))
        for i, client in enumerate(clients):
            assert client.line() == b"STORED\r\n"
            assert client.values() == [(b"c%d" % i, 0, b"%04d" % i, None)]


def test_objects_on_flash(authority, flash_options):
    """Values that flash reads bring go out over TLS like any others."""
    with TlsDaemon([*flash_options, *tls_options(authority)], context_of(authority)) as daemon:
        placer = Placer(daemon, "flash", [FLASH_KIND])
        try:
            keys = placer.put_many(FLASH_KIND, 3)
            assert [(key, value) for key, _, value, _ in placer.client.get(*keys)] == \
                [(key, FLASH_KIND.value(key)) for key in keys]
        finally:
            placer.client.close()


# ---- certificates that are replaced --------------------------------------------------------------


@pytest.fixture
def replaceable(folders, authority):
    """A folder with the server's files, and a daemon that uses them."""
    folder = pathlib.Path(folders())
    for name in ("server.pem", "server.key"):
        shutil.copy(authority.path(name), folder / name)
    with TlsDaemon(tls_options(authority, ssl_chain_cert=folder / "server.pem", ssl_key=folder / "server.key"),
                   context_of(authority)) as daemon:
        yield folder, daemon


def subject(client):
    return client.socket.getpeercert()["subject"][0][0][1]


def test_refresh_with_broken_files(replaceable, authority):
    """Files that can't be used: an error, and the old certificate stays."""
    folder, daemon = replaceable
    with daemon.client() as client:
        (folder / "server.pem").write_text("junk\n")
        assert client.ask(b"refresh_certs\r\n").startswith(b"Error loading the certificate chain: ")
        shutil.copy(authority.path("client.pem"), folder / "server.pem")
        assert b"Error loading the key: " in client.ask(b"refresh_certs\r\n")
        (folder / "server.pem").unlink()
        assert b"No such file or directory" in client.ask(b"refresh_certs\r\n")
        assert client.ask(b"mn\r\n") == b"MN\r\n"
    with daemon.client() as client:
        assert subject(client) == "server"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start with a key that the daemon's user can't read")
def test_a_key_that_only_root_can_read(folders, authority):
    """The start says that the next renewal will fail. It does, and the metrics say so; the expiry is that of the file."""
    folder = pathlib.Path(folders())
    for name in ("server.pem", "server.key"):
        shutil.copy(authority.path(name), folder / name)
    (folder / "server.key").chmod(0o600)
    port, log = free_port(), folder / "log"
    with TlsDaemon(["--metrics-listen", f"127.0.0.1:{port}",
                    *tls_options(authority, ssl_chain_cert=folder / "server.pem", ssl_key=folder / "server.key")],
                   context_of(authority), stderr=log.open("w")) as daemon:
        warned = [line for line in log.read_text().splitlines() if "will need a restart" in line]
        assert len(warned) == 1 and f"can't read {folder}/server.key (Permission denied)" in warned[0]
        found = metrics.scrape(port)
        expiry = ssl.cert_time_to_seconds(openssl(folder, "x509", "-noout", "-enddate", "-in", "server.pem").split("=")[1].strip())
        assert metrics.value(found, "certificate_expiry_timestamp_seconds") == expiry
        assert metrics.value(found, "certificate_renewal_successful") == 1
        for failures in 1, 2:
            with daemon.client() as client:
                assert b"Error loading the key: " in client.ask(b"refresh_certs\r\n")
            found = metrics.scrape(port)
            assert metrics.value(found, "certificate_renewal_successful") == 0
            assert metrics.value(found, "certificate_renewal_failures_total") == failures
        (folder / "server.key").chmod(0o644)
        with daemon.client() as client:
            assert client.ask(b"refresh_certs\r\n") == b"OK\r\n"
        assert metrics.value(metrics.scrape(port), "certificate_renewal_successful") == 1


def test_refresh(replaceable, authority):
    """New connections see the new certificate, those that are open go on."""
    folder, daemon = replaceable
    with daemon.client() as old:
        shutil.copy(authority.path("client.pem"), folder / "server.pem")
        shutil.copy(authority.path("client.key"), folder / "server.key")
        assert old.ask(b"refresh_certs\r\n") == b"OK\r\n"
        with daemon.client() as new:
            assert subject(new) == "client"
            assert new.ask(b"mn\r\n") == b"MN\r\n"
        assert old.ask(b"mn\r\n") == b"MN\r\n"


def test_relative_names_hold_in_the_background(folders, authority):
    """With -d the daemon leaves its folder. Certificates, keys and users that have relative names are read again all the same."""
    folder = pathlib.Path(folders())
    for name in ("server.pem", "server.key", "ca.pem"):
        shutil.copy(authority.path(name), folder / name)
    (folder / "users").write_text("user:old\n")
    folder.chmod(0o777)
    port = free_port()
    started = subprocess.run([os.path.abspath(flashield_command()), *USER, "-d", "-P", "pid", "--log-file", "log",
                              "--metrics-listen=off", "-l", "127.0.0.1", "-p", str(port), "-Y", "users",
                              "-Z", "-o", "ssl_chain_cert=server.pem,ssl_key=server.key,ssl_ca_cert=ca.pem"],
                             cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert started.returncode == 0, started.stderr
    pid = int((folder / "pid").read_text())
    try:
        for name in ("pem", "key"):
            shutil.copy(authority.path(f"client.{name}"), folder / f"server.{name}")
        (folder / "users").write_text("user:new\n")
        os.kill(pid, signal.SIGHUP)
        lines = until(lambda: read_again(folder / "log"), "the reload")
        assert not [line for line in lines if "stay as they were" in line], lines
        with TlsClient(port, context_of(authority)) as client:
            assert subject(client) == "client"
            assert client.ask(b"set u 0 0 8\r\nuser new\r\n") == b"STORED\r\n"
    finally:
        os.kill(pid, signal.SIGTERM)
    until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the process's end")


def read_again(log):
    """The log's lines, once the last thing that a reload reads has its line."""
    lines = log.read_text().splitlines()
    return lines if any("certificates and keys" in line for line in lines) else None


def test_refresh_while_clients_come(replaceable):
    """A hundred refreshes among a hundred new connections."""
    _, daemon = replaceable
    with daemon.client() as admin:
        for _ in range(100):
            admin.send(b"refresh_certs\r\n")
            with daemon.client() as client:
                assert client.ask(b"mn\r\n") == b"MN\r\n"
            assert admin.line() == b"OK\r\n"
