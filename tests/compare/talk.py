# SPDX-License-Identifier: BSD-3-Clause
"""Runs sessions, many at a time, each on a connection of its own, and collects what comes back.

Behind each step goes a question whose answer nothing else can be. When it comes the step is over; when the connection
ends instead, it was closed; and when nothing comes and the daemon rests (rest.py), it waits for something that the session
hasn't sent. A session runs on all daemons at once, and ends as "waiting" where all wait at the same place; where they don't,
whoever waits has more time on the same connection.
"""
import itertools
import re
import select
import selectors
import socket
import struct
import time

from rest import rest
from session import Outcome

WIDTH = 48  # sessions at a time
QUIET_SECONDS = 0.3  # then it is asked whether the daemons rest; a read from flash comes sooner
PATIENCE = 20.0  # seconds for who waits where another has answered
READ_BYTES = 1 << 18

HEADER = struct.Struct(">BBHBBHIIQ")
BINARY_VERSION = 0x0b

TEXT_CAS = re.compile(rb"^VALUE \S+ \d+ \d+ (\d+)\r$| c(?:as=)?(\d+)", re.MULTILINE)

# A time that was given as seconds since 1970 is so many seconds away; the daemons' seconds don't begin together.
FAR = re.compile(rb"( t| exp=-?)\d{8,}")

# Each byte of them is a letter or a mark of print: no line ends in a packet that is taken for text.
marks = (int.from_bytes(letters, "big") for letters in itertools.product(range(0x21, 0x7f), repeat=4))


def packets(data):
    """The whole packets at the start of data, and what is left."""
    found, at = [], 0
    while len(data) - at >= HEADER.size:
        body = HEADER.unpack_from(data, at)[6]
        if len(data) - at < HEADER.size + body:
            break
        found.append(data[at:at + HEADER.size + body])
        at += HEADER.size + body
    return found, data[at:]


class Talk:
    """One session with one daemon."""

    def __init__(self, daemon, session, keys, cas):
        self.daemon, self.session, self.keys, self.cas = daemon, session, keys, cas
        self.step, self.answer, self.received = 0, b"", b""
        self.end = None
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect(("127.0.0.1", daemon.port))
        self.socket.setblocking(False)
        self.begin_step()

    def begin_step(self):
        data = self.session.step(self.step, self.keys, self.cas)
        self.mark = next(marks)
        if self.session.binary:
            question = HEADER.pack(0x80, BINARY_VERSION, 0, 0, 0, 0, 0, self.mark, 0)
        else:
            question = b"mg a-mark O%d\r\n" % self.mark
        self.pieces = self.session.pieces(data + question)
        self.received = b""

    def send(self):
        try:
            sent = self.socket.send(self.pieces[0])
        except (BrokenPipeError, ConnectionResetError):
            self.pieces = []
            return
        self.pieces[0] = self.pieces[0][sent:]
        if not self.pieces[0]:
            del self.pieces[0]

    def complete(self):
        """The step's answer when the question behind it is answered, else None."""
        if not self.session.binary:
            tail = b"EN O%d\r\n" % self.mark
            return self.received[:-len(tail)] if self.received.endswith(tail) else None
        whole, rest = packets(self.received)
        if rest or not whole:
            return None
        fields = HEADER.unpack_from(whole[-1])
        if fields[1] != BINARY_VERSION or fields[7] != self.mark:
            return None
        return self.received[:-len(whole[-1])]

    def see_cas(self, answer):
        if self.session.binary:
            ids = [HEADER.unpack_from(packet)[8] for packet in packets(answer)[0]]
        else:
            ids = [int(a or b) for a, b in TEXT_CAS.findall(answer)]
        self.cas = next((cas for cas in reversed(ids) if cas), self.cas)

    def receive(self):
        try:
            data = self.socket.recv(READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            self.finish("closed")
            return
        self.received += data
        answer = self.complete()
        if answer is None:
            return
        self.see_cas(answer)
        self.answer += answer
        self.received = b""
        self.step += 1
        if self.step == len(self.session.steps):
            self.finish("open")
        else:
            self.begin_step()

    def must_read(self):
        """Has something come that wasn't read yet?"""
        return bool(select.select([self.socket], [], [], 0)[0])

    def finish(self, end):
        self.end = end
        self.answer += self.received
        self.received = b""
        self.socket.close()

    def outcome(self):
        """As it would be if nothing more came."""
        return Outcome(self.end or "waiting", self.answer + self.received)


class Group:
    """A session, running on each of the daemons."""

    def __init__(self, number, talks, settled):
        self.number, self.talks, self.settled = number, talks, settled
        self.last = time.monotonic()  # when something happened
        self.asked = False  # whether it is settled, since then; and it isn't

    def outcomes(self):
        return [talk.outcome() for talk in self.talks]

    def happened(self):
        self.last, self.asked = time.monotonic(), False

    def is_over(self, now):
        """Have all ended, or may those that wait be left to wait?"""
        if all(talk.end for talk in self.talks):
            return True
        if now - self.last > PATIENCE:
            return True
        if now - self.last <= QUIET_SECONDS or self.asked:
            return False
        if not self.settled(self.number, self.outcomes()):
            self.asked = True
            return False
        talks = [talk for talk in self.talks if not talk.end]
        return rest([talk.daemon.process.pid for talk in talks], [talk.socket for talk in talks]) and \
            not any(talk.must_read() for talk in talks)


def serve(selector, key, events):
    """One connection's turn."""
    talk, group = key.data
    group.happened()
    if events & selectors.EVENT_WRITE and talk.pieces:
        talk.send()
    if events & selectors.EVENT_READ:
        descriptor = key.fileobj
        selector.unregister(descriptor)
        talk.receive()
        if not talk.end:
            selector.register(descriptor, selectors.EVENT_READ | selectors.EVENT_WRITE, key.data)
    elif not talk.pieces:
        selector.modify(key.fileobj, selectors.EVENT_READ, key.data)


def run_sessions(daemons, sessions, keys, settled, width=WIDTH, ids=None):
    """For each session its outcomes, one of each daemon. settled: do these outcomes tell all, so that nobody need wait longer?
    ids: those that each session has seen last, one of each daemon."""
    found, waiting, active = [None] * len(sessions), iter(range(len(sessions))), set()
    with selectors.DefaultSelector() as selector:
        def begin():
            number = next(waiting, None)
            if number is not None:
                group = Group(number, [Talk(daemon, sessions[number], keys[number], id_) for daemon, id_ in
                                       zip(daemons, ids[number] if ids else [0] * len(daemons))], settled)
                active.add(group)
                for talk in group.talks:
                    selector.register(talk.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, (talk, group))

        for _ in range(width):
            begin()
        while active:
            for key, events in selector.select(QUIET_SECONDS / 4):
                serve(selector, key, events)
            now = time.monotonic()
            for group in [group for group in active if group.is_over(now)]:
                for talk in group.talks:
                    if not talk.end:
                        selector.unregister(talk.socket)
                        talk.finish("waiting")
                found[group.number] = group.outcomes()
                active.remove(group)
                begin()
    return found


# ---- comparing -------------------------------------------------------------------------------------

def plain(session, outcome):
    """Ids are numbered in the order in which they appear; the size class of an item is each daemon's own."""
    ids = {}

    def number(value):
        return b"0" if value == b"0" else b"#%d" % ids.setdefault(value, len(ids) + 1)

    if session.binary:
        shown = []
        whole, rest = packets(outcome.answer)
        for packet in whole:
            fields = HEADER.unpack_from(packet)
            shown.append((fields[:8], number(b"%d" % fields[8]), packet[HEADER.size:]))
        return outcome.end, shown, rest

    def replace(match):
        text, start = match.group(0), match.start(0)
        group = 1 if match.group(1) else 2
        head = text[:match.start(group) - start]
        return head + number(match.group(group)) + text[match.end(group) - start:]

    answer = TEXT_CAS.sub(replace, outcome.answer)
    answer = FAR.sub(rb"\1-", answer)
    return outcome.end, re.sub(rb"( cls=)\d+ size=\d+", rb"\1-", answer)
