# SPDX-License-Identifier: BSD-3-Clause
"""Nothing but logging in is possible before it: -Y in the text protocol, -S in the binary one. What is answered is
compared with memcached, a line or packet at a time: it loses answers when it is sent several at once."""
import hashlib
import hmac
import shutil
import signal
import socket
import subprocess

import pytest

import binary as b
from binary import BinaryClient
from helpers import PATIENCE, Daemon, flashield_command, free_port, memcached_command, until

USERS = "user:secret\ncolons:a:b\nlong:%s\nutf:p\u00e4ss\ncarriage:return\r\n" % ("x" * 200)


def write(path, text):
    path.write_bytes(text.encode())
    path.chmod(0o644)


@pytest.fixture
def users(open_folder):
    path = open_folder / "users"
    write(path, USERS)
    return path


def login(token, rest=b""):
    return b"set k 0 0 %d%s\r\n%s\r\n" % (len(token), rest, token)


def ask_each(client, lines):
    answers = []
    for line in lines:
        client.send(line)
        answers.append(client.line())
        if not answers[-1]:
            break
    return answers


# ---- text -------------------------------------------------------------------------------------------------------------

REFUSED = [b"get a\r\n", b"gets a\r\n", b"version\r\n", b"quit\r\n", b"mn\r\n", b"mg a v\r\n", b"stats\r\n", b"flush_all\r\n", b"shutdown\r\n",
           b"watch\r\n", b"lru_crawler metadump all\r\n", b"\r\n", b"x\r\n", b"GET / HTTP/1.1\r\n", b"set\r\n", b"set a\r\n",
           b"set a 0 0\r\n", b"set a 0 0 x\r\n", b"set a 0 0 -1\r\n", b"SET a 0 0 11\r\n", b"add a 0 0 11\r\n", b"settings a 0 0 11\r\n",
           b"delete a noreply\r\n", b"get " + b"a " * 1500 + b"\r\n", b"\x80\x0a" + bytes(21) + b"\n"]
WRONG = [b"user wrong", b"user secre", b"user secrets", b"use rsecret", b"user:secret x", b"usersecret x", b"nobody secret", b"User secret",
         b"colons a", b"carriage return\r", b"user", b"user ", b" secret", b"", b" ", b"user:secret", b"user\tsecret", b"user\0secret",
         b"\0", b"user \0secret", b"long " + b"x" * 199, b"user " + b"s" * 5000]
RIGHT = [b"user secret", b"user  secret", b" user secret", b"user secret ", b"user secret more", b"user secret\0", b"user secret\0more",
         b"colons a:b", b"long " + b"x" * 200, "utf p\u00e4ss".encode(), b"carriage return", b"user secret" + b" " * 100]
RIGHT_LINES = [b"set a x y 11\r\nuser secret\r\n", b"set a 0 0 11\nuser secret\r\n", b" set  a 0 0 11 \r\nuser secret\r\n",
               b"set " + b"k" * 251 + b" 0 0 11\r\nuser secret\r\n", login(b"user secret", b" noreply"), login(b"user secret", b" x y z"),
               b"set a 4294967296 0 11\r\nuser secret\r\n"]
AFTER = [b"version\r\n", login(b"user wrong"), b"get k\r\n"]


def test_nothing_is_possible_before_logging_in(start, users, memcached):
    """Every line is answered as memcached answers it, and none does anything."""
    ours, theirs = start("-Y", str(users), "-A"), start("-Y", str(users), "-A", program=memcached.program)
    for lines in [[line] for line in REFUSED] + [[login(token), b"version\r\n"] for token in WRONG]:
        with ours.client() as client, theirs.client() as other:
            got = ask_each(client, lines)
            assert got == ask_each(other, lines), lines
            assert all(answer.startswith(b"CLIENT_ERROR ") for answer in got), lines
    assert ours.process.poll() is None, "shutdown was refused"


def test_who_logs_in_may_do_all(start, users, memcached):
    """The right words are answered with STORED, and commands are commands from then on."""
    ours, theirs = start("-Y", str(users)), start("-Y", str(users), program=memcached.program)
    for line in [login(token) for token in RIGHT] + RIGHT_LINES:
        with ours.client() as client, theirs.client() as other:
            got = ask_each(client, [line, *AFTER])
            assert got == ask_each(other, [line, *AFTER]), line
            assert got[0] == b"STORED\r\n" and got[1].startswith(b"VERSION ")


def test_each_of_a_pipeline_is_answered(start, users):
    """An attempt that fails, another that doesn't, and commands, sent at once."""
    with start("-Y", str(users)).client() as client:
        client.send(b"version\r\n" + login(b"user wrong") + login(b"user secret") + b"mn\r\n")
        assert [client.line() for _ in range(4)] == [b"CLIENT_ERROR unauthenticated\r\n", b"CLIENT_ERROR authentication failure\r\n",
                                                     b"STORED\r\n", b"MN\r\n"]


def test_a_login_may_come_in_pieces(start, users):
    """Byte by byte, as a slow network brings it."""
    with start("-Y", str(users)).client() as client:
        for byte in login(b"user secret"):
            client.send(bytes([byte]))
        assert client.line() == b"STORED\r\n"


def test_a_token_without_line_end(start, users, memcached):
    """What doesn't end in a line end is no token."""
    for daemon in (start("-Y", str(users)), start("-Y", str(users), program=memcached.program)):
        with daemon.client() as client:
            assert client.ask(b"set a 0 0 11\r\nuser secretXX") == b"CLIENT_ERROR bad command line termination\r\n"
            assert client.ask(b"version\r\n") == b"CLIENT_ERROR unauthenticated\r\n"


LONG_LOGINS = [b"set a 0 0 2000000\r\n", b"set a 0 0 2147483647\r\n", b"set a 0 0 99999999999999999999\r\n"]


@pytest.mark.parametrize("line", LONG_LOGINS, ids=lambda line: ascii(line[:24]))
def test_a_token_that_is_too_long(start, users, line):
    """It is refused at its first line; before 1.6.40 that closed the connection. (2147483647 ends memcached 1.6.18.)"""
    with start("-Y", str(users)).client() as client:
        assert client.ask(line) == b"CLIENT_ERROR auth token too long\r\n"
        assert client.ask(login(b"user secret")) == b"STORED\r\n"
    with start("-Y", str(users), "--compat-version", "1.6.39").client() as client:
        client.send(line)
        assert client.ends()


@pytest.mark.parametrize("line", [b"mn\r\n", b"\r\n", b"get a\n"], ids=ascii)
def test_short_lines_of_strangers(start, users, line):
    """Since 1.6.40 they close the connection."""
    with start("-Y", str(users)).client() as client:
        client.send(line)
        assert client.ends()
    with start("-Y", str(users), "--compat-version", "1.6.39").client() as client:
        assert client.ask(line) == b"CLIENT_ERROR unauthenticated\r\n"


def test_a_password_with_blanks(start, open_folder):
    """Since 1.6.40 it is all that follows the user's name."""
    users = open_folder / "blanks"
    users.write_text("user:my secret\n")
    for version, answer in (("1.6.40", b"STORED\r\n"), ("1.6.39", b"CLIENT_ERROR authentication failure\r\n")):
        with start("-Y", str(users), "--compat-version", version).client() as client:
            assert client.ask(login(b"user my secret")) == answer


def test_an_empty_password(start, open_folder):
    """It is one, as in memcached: since 1.6.40 its login ends in the blank behind the name, before that nobody can send one."""
    users = open_folder / "empty"
    users.write_text("user:\nother:secret\n")
    for version, answer in (("1.6.40", b"STORED\r\n"), ("1.6.39", b"CLIENT_ERROR bad authentication token format\r\n")):
        daemon = start("-Y", str(users), "--compat-version", version)
        for token in b"user x", b"user  ", b"other ", b" ", b"user":
            with daemon.client() as client:
                assert client.ask(login(token)).startswith(b"CLIENT_ERROR"), token
        with daemon.client() as client:
            assert client.ask(login(b"user ")) == answer


@pytest.mark.parametrize("line", [b"x" * 20000, b"get " + b"a " * 20000], ids=lambda line: ascii(line[:24]))
def test_strangers_get_little_memory(start, users, line):
    """Of who has not logged in, no more than a buffer is kept."""
    daemon = start("-Y", str(users))
    with daemon.client() as client:
        try:
            client.send(line)
        except OSError:
            pass
        assert client.ends()
    assert daemon.process.poll() is None


def test_attempts_are_counted(start, users):
    """auth_cmds and auth_errors."""
    with start("-Y", str(users)).client() as client:
        for token in (b"user wrong", b"no", b"user secret"):
            client.ask(login(token))
        rows = client.stats()
        assert (rows["auth_cmds"], rows["auth_errors"]) == ("2", "1")


def logs_in(daemon, token):
    with daemon.client() as client:
        return client.ask(login(token)) == b"STORED\r\n"


def test_hup_reads_the_users_again(start, users):
    """New users may, old ones may not; who is in stays in. A file that is wrong changes nothing."""
    daemon = start("-Y", str(users))
    with daemon.client() as inside:
        assert inside.ask(login(b"user secret")) == b"STORED\r\n"
        write(users, "user:changed\nnew:one\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: logs_in(daemon, b"new one"), "the new users")
        assert not logs_in(daemon, b"user secret") and not logs_in(daemon, b"colons a:b")
        write(users, "user:broken\nnew\n")
        daemon.process.send_signal(signal.SIGHUP)
        write(users.parent / "next", "next:one\n")
        assert logs_in(daemon, b"user changed") and not logs_in(daemon, b"user broken")
        users.unlink()
        daemon.process.send_signal(signal.SIGHUP)
        assert logs_in(daemon, b"new one")
        (users.parent / "next").rename(users)
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: logs_in(daemon, b"next one"), "the users after these")
        assert inside.ask(b"version\r\n").startswith(b"VERSION")


@pytest.mark.parametrize("text", [None, "nocolon", "user", "\n", "a:b\n\nc:d\n", "# a comment\na:b\n"], ids=ascii)
def test_a_bad_file_ends_the_start(memcached, open_folder, text):
    """With memcached's words and exit code; and ours say which line it is."""
    path = open_folder / "users"
    if text is not None:
        write(path, text)
    told = []
    for program in (flashield_command(), memcached_command()):
        command = Daemon(["-Y", str(path)], program=program, port=-1).command()
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        told.append((done.returncode, done.stderr))
    (code, ours), (their_code, theirs) = told
    assert code == their_code == 1
    assert ours.split(" (line ")[0].strip() == (theirs if text is not None else theirs.rsplit(": ", 1)[0]).strip()
    assert "secret" not in ours


# ---- SASL -------------------------------------------------------------------------------------------------------------

@pytest.fixture
def sasl(open_folder, monkeypatch):
    """A folder with a configuration and a database that knows "user" with "secret", for daemons started from here on."""
    program = shutil.which("saslpasswd2", path="/usr/sbin:/usr/bin")
    if not program:
        pytest.skip("saslpasswd2 (sasl2-bin) is not installed")
    database = open_folder / "sasldb"
    subprocess.run([program, "-p", "-c", "-a", "memcached", "-u", socket.gethostname(), "-f", str(database), "user"],
                   input="secret", text=True, check=True)
    database.chmod(0o644)
    write(open_folder / "memcached.conf", f"mech_list: plain cram-md5\nlog_level: 7\nsasldb_path: {database}\n")
    monkeypatch.setenv("SASL_CONF_PATH", str(open_folder))
    return open_folder


def auth(mechanism=b"PLAIN", data=b"\0user\0secret", **more):
    return b.packet(b.SASL_AUTH, mechanism, data, **more)


SET, GET = b.store(b.SET, b"key", b"value"), b.packet(b.GET, b"key")
SASL_SESSIONS = {
    **{f"opcode {opcode:#x} before": [b.packet(opcode)] for opcode in range(256)},
    "get before": [GET], "set before": [SET], "getq before": [b.packet(b.GETQ, b"key")], "unknown before": [b.packet(0x60, b"k", b"v")],
    "version before": [b.packet(b.VERSION), b.packet(b.VERSION)], "key beyond the body": [b.packet(b.GET, b"k", body=0)],
    "another magic": [b.packet(b.NOOP, magic=0x81)], "text": [b"get a\r\n" * 8],
    "list": [b.packet(b.SASL_LIST)], "list with a key": [b.packet(b.SASL_LIST, b"k")],
    "list with extras": [b.packet(b.SASL_LIST, extras=b"1234")], "list with a value": [b.packet(b.SASL_LIST, value=b"1234")],
    "no such mechanism": [auth(b"NOPE"), SET], "mechanism that is not in the list": [auth(b"SCRAM-SHA-1", b"n,,n=user,r=x"), SET],
    "wrong password": [auth(data=b"\0user\0wrong"), SET], "wrong user": [auth(data=b"\0nobody\0secret"), SET],
    "for somebody else": [auth(data=b"other\0user\0secret"), SET], "malformed": [auth(data=b"xx"), SET],
    "password of 400": [auth(data=b"\0user\0" + b"x" * 400), SET], "of 60000": [auth(data=b"\0user\0" + b"x" * 60000), SET],
    "of 300000": [auth(data=b"x" * 300000), SET], "of 1100000": [auth(data=b"x" * 1100000), SET],
    "no mechanism": [auth(b"")], "mechanism of 32": [auth(b"P" * 32), SET], "mechanism of 33": [auth(b"P" * 33), SET],
    "mechanism of 250": [auth(b"P" * 250), SET], "mechanism of 251": [auth(b"P" * 251), SET], "auth with extras": [auth(extras=b"1234")],
    "step first": [b.packet(b.SASL_STEP, b"PLAIN", b"\0user\0secret"), SET],
    "right": [auth(cas=5, opaque=6), SET, GET, b.packet(b.VERSION), b.packet(b.STAT, b"nothing"), b.packet(b.QUIT)],
    "with realm": [auth(data=b"\0user@%s\0secret" % socket.gethostname().encode()), SET],
    "wrong, then right": [auth(data=b"\0user\0wrong"), auth(), SET], "right, then wrong": [auth(), SET, auth(data=b"\0user\0wrong"), SET],
    "right, then list": [auth(), b.packet(b.SASL_LIST), SET],
    "right, then a step": [auth(), b.packet(b.SASL_STEP, b"PLAIN", b"\0user\0secret"), SET],
    "in two steps": [auth(data=b""), b.packet(b.SASL_STEP, b"PLAIN", b"\0user\0secret"), SET],
    "in two steps, wrong": [auth(data=b""), b.packet(b.SASL_STEP, b"PLAIN", b"\0user\0wrong"), SET],
    "a command between the steps": [auth(data=b""), SET],
    "cram-md5, wrong": [auth(b"CRAM-MD5", b""), b.packet(b.SASL_STEP, b"CRAM-MD5", b"user 00000000000000000000000000000000"), SET],
}


def run(daemon, packets):
    """Answers, each after its packet. Challenges are random, and ids count what was ever stored."""
    answers = []
    with BinaryClient(daemon.port) as client:
        for data in packets:
            try:
                client.send(data)
            except OSError:
                pass
            answer = client.answer()
            if answer is None:
                return answers + [None]
            challenge = answer.status == b.AUTH_CONTINUE and bool(answer.value)
            answers.append(answer._replace(cas=answer.cas > 0, value=b"<challenge>" if challenge else answer.value))
    return answers


def test_sasl_answers_as_memcached(start, sasl, memcached):
    """What may be asked before, each way to fail, and to succeed."""
    ours, theirs = start("-S"), start("-S", program=memcached.program)
    for name, packets in SASL_SESSIONS.items():
        assert run(ours, packets) == run(theirs, packets), name


def test_who_is_in_may_log_in_again(start, sasl):
    """memcached refuses, as libsasl2 takes no second exchange of one session: ours begins another session."""
    got = run(start("-S"), [auth(), auth(), SET])
    assert [answer.status for answer in got] == [b.OK, b.OK, b.OK]


def test_requests_count_for_the_user_who_logged_in(start, sasl):
    """--app-source=user goes by the name of the exchange."""
    daemon = start("-S", "--app-source", "user")
    with BinaryClient(daemon.port) as client:
        assert [client.ask(data).status for data in (auth(), SET, GET)] == [b.OK, b.OK, b.OK]
        rows = client.rows(b"apps")
        assert sum(int(value) for name, value in rows.items() if name.startswith("user") and name.endswith(":get_hits")) == 1, rows


def test_a_challenge_is_answered(start, sasl):
    """CRAM-MD5: the secret never goes over the wire."""
    with BinaryClient(start("-S").port) as client:
        challenge = client.ask(auth(b"CRAM-MD5", b""))
        assert challenge.status == b.AUTH_CONTINUE and challenge.value.startswith(b"<")
        digest = hmac.new(b"secret", challenge.value, hashlib.md5).hexdigest().encode()
        assert client.ask(b.packet(b.SASL_STEP, b"CRAM-MD5", b"user " + digest)).value == b"Authenticated"
        assert client.ask(SET).status == b.OK
        rows = client.rows()
        assert (rows["auth_cmds"], rows["auth_errors"]) == ("2", "0")


def test_logging_in_byte_by_byte(start, sasl):
    """The packet may come in pieces."""
    with BinaryClient(start("-S").port) as client:
        for byte in auth():
            client.send(bytes([byte]))
        assert client.answer().status == b.OK


def test_many_log_in_at_once(start, sasl):
    """From all workers, wrong and right."""
    daemon = start("-S", "-t", "4")
    clients = [BinaryClient(daemon.port) for _ in range(64)]
    for _ in range(5):
        for number, client in enumerate(clients):
            client.send(auth(data=b"\0user\0secret" if number % 2 else b"\0user\0wrong", opaque=number))
        for number, client in enumerate(clients):
            answer = client.answer()
            assert (answer.opaque, answer.status) == (number, b.OK if number % 2 else b.AUTH_ERROR)
    for client in clients:
        client.close()


def test_secrets_are_not_logged(sasl, users):
    """Not at the highest verbosity, and neither names' passwords nor what strangers said."""
    for options in (["-S"], ["-Y", str(users)]):
        with (sasl / "log").open("wb") as log:
            daemon = Daemon([*options, "-vvv"], port=free_port())
            daemon.process = subprocess.Popen(daemon.command(), stdin=subprocess.DEVNULL, stderr=log)
            try:
                until(daemon.answers, "an answer")
                if "-S" in options:
                    with BinaryClient(daemon.port) as client:
                        client.ask(auth(data=b"\0user\0wr0ng-passw0rd"))
                        assert client.ask(auth()).status == b.OK
                else:
                    with daemon.client() as client:
                        client.ask(login(b"user wr0ng-passw0rd"))
                        assert client.ask(login(b"user secret")) == b"STORED\r\n"
            finally:
                assert daemon.stop() == 0
        text = (sasl / "log").read_text()
        assert text and "secret" not in text and "passw0rd" not in text
