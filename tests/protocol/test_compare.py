# SPDX-License-Identifier: BSD-3-Clause
"""Scripted sessions are answered byte for byte as memcached answers them, of the version that is there."""
import shutil
import subprocess

import pytest

from sessions import SESSIONS


def answer(daemon, session):
    with daemon.client() as client:
        return client.all(session.replace(b"%k", b"k" * 250).replace(b"%K", b"k" * 251))


def name(session):
    return ascii(session[:40])[2:-1]


@pytest.mark.parametrize("session", SESSIONS, ids=name)
def test_same_answer_as_memcached(twin, memcached, session):
    """The same bytes come back. A thread of memcached's that holds an item makes decr store a new one, with a new id: such a session
    may be asked again."""
    ours, theirs, tries = answer(twin, session), answer(memcached, session), 19 if b"decr n" in session else 0
    while theirs != ours and tries > 0:
        theirs, tries = answer(memcached, session), tries - 1
    assert ours == theirs


@pytest.mark.parametrize("options", [[], ["-C"], pytest.param(["-M", "-m", "2", "-I", "512k"], marks=pytest.mark.slots("the frugal one goes with no -M"))], ids=" ".join)
def test_same_answers_with_options(start, memcached, options):
    """-C shows and compares no ids; -M refuses to store when memory is out."""
    session = b"set a 0 0 1\r\nx\r\ncas a 0 0 1 0\r\ny\r\nget a\r\n"
    if "-C" in options:
        session += b"gets a\r\ncas a 0 0 1 5\r\nz\r\nget a\r\n"
    if "-M" in options:
        big = b"x" * 400000
        session += b"".join(b"set k%d 0 0 400000 noreply\r\n%s\r\n" % (i, big) for i in range(10))
        session += b"set k9 0 0 400000\r\n" + big + b"\r\n"
    theirs = start(*options, "-U", "0", program=memcached.program)
    assert answer(start(*options), session) == answer(theirs, session)


@pytest.mark.parametrize("line", [b"x" * 2100, b"set " + b"x" * 3000, b" " * 2500], ids=name)
def test_endless_line_closes(twin, memcached, line):
    """More than 2048 bytes without a line end, and not a multiget: the connection is closed."""
    for daemon in (twin, memcached):
        with daemon.client() as client:
            client.send(line)
            assert client.ends()


def test_memccapable_passes(start, flash_options):
    """The conformance test of libmemcached has nothing to say, with flash and without. It wants an error for words too many behind
    a delete, which memcached ignores since 1.6.40."""
    if not shutil.which("memccapable"):
        pytest.skip("memccapable (libmemcached-tools) is not installed")
    for options in ([], flash_options):
        daemon = start(*options, "--compat-version", "1.6.39")
        done = subprocess.run(["memccapable", "-a", "-h", "127.0.0.1", "-p", str(daemon.port)],
                              capture_output=True, text=True, timeout=120, check=False)
        assert "All tests passed" in done.stdout, done.stdout + done.stderr
