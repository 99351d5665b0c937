# SPDX-License-Identifier: BSD-3-Clause
"""Sessions in datagrams: each step is one request behind a frame's header; what comes back, frame by frame."""
import collections
import random
import re
import select
import socket
import struct
import subprocess
import time

import intended
import seconds
import talk
from helpers import Daemon, as_memcached, free_port, memcached_command, memcached_release
from pair import Difference, Found
from parts import LOOK, LOOK_SHORT
from rest import rest
from session import Keys, Session

FRAME = struct.Struct(">HHHH")  # request, number of the datagram, how many there are, reserved
AT_ONCE = 64
QUIET_SECONDS = 0.2  # then what has no answer gets none, if both have answered the same
PAUSE_SECONDS = 0.01

SHORT = re.compile(" block | bytes | length ")  # what is sent of a value may be less than was said
STORES = re.compile(rb"(?:set|add|replace|append|prepend|cas|ms) ")


def commands(data):
    """Lines, those that a value follows with it."""
    lines = data.splitlines(keepends=True)
    while lines:
        count = 2 if STORES.match(lines[0]) and len(lines) > 1 else 1
        yield b"".join(lines[:count])
        del lines[:count]


def apart(session):
    """A command in each datagram, but for what is tried: that is sent as it is."""
    steps = list(session.steps)
    for look in (LOOK, LOOK_SHORT):
        if steps[-1].endswith(look):
            steps[-1:] = [steps[-1][:-len(look)], *commands(look)]
            break
    made = [*commands(steps[0]), *steps[1:]] if len(session.steps) > 1 else steps
    return Session(session.name, *[step for step in made if step])


def says_too_much(step):
    """Does a storage command speak of a longer value than comes? (The length may not be where it should.)"""
    head, _, rest = step.partition(b"\n")
    return STORES.match(head) and any(int(word) > len(rest) for word in head.split()[2:] if re.fullmatch(rb"\d{3,9}", word))


def suitable(session):
    """A datagram is a request of its own: what is sent of a value is not gone on with in the next."""
    return not session.binary and not seconds.is_short(session) and not SHORT.search(session.name) and len(session.steps) > 1 and \
        all(isinstance(step, bytes) and len(step) < 1200 for step in session.steps) and \
        not any(says_too_much(step.replace(b"%d", b"1000000")) for step in apart(session).steps)


class Asker:
    """A socket, what was asked on it and the frames that have come back for each."""

    def __init__(self, port, process):
        self.process = process  # of the daemon
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.frames = collections.defaultdict(list)

    def send(self, number, data):
        self.socket.send(FRAME.pack(number, 0, 1, 0) + data)

    def is_whole(self, number):
        """memcached may answer again: there is nothing by which to know the last message."""
        frames = self.frames[number]
        return bool(frames) and len(frames) >= frames[0][1]

    def receive(self):
        request, number, total, reserved = FRAME.unpack_from(data := self.socket.recv(65536))
        self.frames[request].append((number, total, reserved, data[FRAME.size:]))

    def answer(self, number):
        """Frames may come in any order, and memcached may answer nothing with a message of nothing."""
        return sorted(frame for frame in self.frames[number] if frame[3])


def readable(askers, patience=0.0):
    return select.select([asker.socket for asker in askers], [], [], patience)[0]


def listen(askers, numbers, settled):
    """Until nothing more comes: the daemons rest, for a while when something isn't answered, and with much patience while an answer of
    one differs from the other's."""
    processes = [asker.process for asker in askers]
    waited_from = time.monotonic()
    while True:
        ready = readable(askers, PAUSE_SECONDS)
        for asker in askers:
            if asker.socket in ready:
                asker.receive()
        if ready:
            waited_from = time.monotonic()
            continue
        waited = time.monotonic() - waited_from
        if waited > talk.PATIENCE:
            return
        whole = all(asker.is_whole(number) for asker in askers for number in numbers)
        if (whole or waited > QUIET_SECONDS) and all(map(settled, numbers)) and rest(processes, []) and not readable(askers):
            return


def ask(daemons, datagrams, settled):
    """Of each datagram the frames that came back from each of the (port, process). settled(number, both answers): must nothing more
    come?"""
    askers = [Asker(*daemon) for daemon in daemons]
    for start in range(0, len(datagrams), AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, len(datagrams)))
        for number in numbers:
            for asker, data in zip(askers, datagrams[number]):
                asker.send(number, data)
        listen(askers, numbers, lambda number: settled(number, [asker.answer(number) for asker in askers]))
    for asker in askers:
        asker.socket.close()
    return [[asker.answer(number) for asker in askers] for number in range(len(datagrams))]


class Run:
    """All sessions with both, a step of each at a time."""

    def __init__(self, daemons, sessions):
        self.daemons, self.sessions = daemons, sessions
        self.keys = [Keys() for _ in sessions]
        self.answers = [[b"", b""] for _ in sessions]
        self.shapes = [[(), ()] for _ in sessions]
        self.cas = [[0, 0] for _ in sessions]

    def plain(self, i, place, frames=()):
        """How many datagrams answered each step, and what was in them; these frames, too."""
        answer = self.answers[i][place] + b"".join(frame[3] for frame in frames)
        shape = (*self.shapes[i][place], tuple(frame[:3] for frame in frames)) if frames != () else self.shapes[i][place]
        return shape, "", seconds.without(talk.plain(self.sessions[i], talk.Outcome("", answer))[1])

    def step(self, number):
        asked = [i for i, session in enumerate(self.sessions) if number < len(session.steps)]

        def settled(at, frames):
            i = asked[at]
            ours, theirs = (self.plain(i, place, found) for place, found in enumerate(frames))
            return ours == theirs or excuse(self.sessions[i], ours, theirs) is not None

        found = ask(self.daemons, [[self.sessions[i].step(number, self.keys[i], cas) for cas in self.cas[i]] for i in asked], settled)
        for i, both in zip(asked, found):
            for place, frames in enumerate(both):
                answer = b"".join(frame[3] for frame in frames)
                ids = [int(a or b) for a, b in talk.TEXT_CAS.findall(answer)]
                self.cas[i][place] = next((cas for cas in reversed(ids) if cas), self.cas[i][place])
                self.answers[i][place] += answer
                self.shapes[i][place] += (tuple(frame[:3] for frame in frames),)


def excuse(session, ours, theirs):
    return intended.reason(session, ours[1:], theirs[1:], memcached_release()) or intended.in_datagrams(ours, theirs)


def is_late(ours, theirs):
    """Has one of them answered nothing but what the other has, and less of it?"""
    few, many = sorted((collections.Counter(sum(outcome[0], ())) for outcome in (ours, theirs)), key=lambda frames: frames.total())
    return few != many and not few - many


def compare(groups, seed, count):
    """(sessions, what was found, excused)."""
    candidates = [session for group, sessions in groups.items() if group.startswith(("text", "meta")) for session in sessions
                  if suitable(session)]
    sessions = [apart(session) for session in random.Random(seed).sample(candidates, min(count, len(candidates)))]
    excuses, found, ports = collections.Counter(), Found(), (free_port(), free_port())
    quiet = subprocess.DEVNULL
    with Daemon(["-m", "64", "-U", str(ports[0]), *as_memcached()], stderr=quiet) as ours, \
            Daemon(["-m", "64", "-U", str(ports[1])], program=memcached_command(), stderr=quiet) as theirs:
        run = Run([(port, daemon.process.pid) for port, daemon in zip(ports, (ours, theirs))], sessions)
        for number in range(max(len(session.steps) for session in sessions)):
            run.step(number)
        for i, session in enumerate(sessions):
            outcomes = [run.plain(i, place) for place in range(2)]
            entry = excuse(session, *outcomes) if outcomes[0] != outcomes[1] else None
            if entry:
                excuses[entry.name] += 1
            elif outcomes[0] != outcomes[1]:
                (found.late if is_late(*outcomes) else found.different).append(Difference(session, *outcomes))
    return len(sessions), found, excuses
