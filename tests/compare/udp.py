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
import talk
from flash import PASSING
from helpers import Daemon, as_memcached, free_port, memcached_command, memcached_release
from pair import Difference
from parts import LOOK, LOOK_SHORT
from session import Keys, Session

FRAME = struct.Struct(">HHHH")  # request, number of the datagram, how many there are, reserved
AT_ONCE = 64
QUIET_SECONDS = 0.2  # then nothing more comes; what differs is asked again, more patiently
TRIES = 4


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
    return not session.binary and not SHORT.search(session.name) and len(session.steps) > 1 and \
        all(isinstance(step, bytes) and len(step) < 1200 for step in session.steps) and \
        not any(says_too_much(step.replace(b"%d", b"1000000")) for step in apart(session).steps)


def ask(port, datagrams, quiet):
    """The frames that come back for each: sorted, as they may come in any order."""
    frames = collections.defaultdict(list)
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        for start in range(0, len(datagrams), AT_ONCE):
            for number in range(start, min(start + AT_ONCE, len(datagrams))):
                client.send(FRAME.pack(number, 0, 1, 0) + datagrams[number])
            waited_until = time.monotonic() + quiet
            answered = set()
            while time.monotonic() < waited_until:
                if select.select([client], [], [], quiet / 16)[0]:
                    data = client.recv(65536)
                    request, number, total, reserved = FRAME.unpack_from(data)
                    frames[request].append((number, total, reserved, data[FRAME.size:]))
                    if len(frames[request]) >= total:
                        answered.add(request)
                    # memcached may answer again: there is nothing by which to know the last message.
                    all_answered = len(answered) == min(AT_ONCE, len(datagrams) - start)
                    waited_until = time.monotonic() + (quiet / 8 if all_answered else quiet)
    return [sorted(frames[number]) for number in range(len(datagrams))]


def run(port, sessions, keys, quiet):
    """Plain outcomes: how many datagrams answered each step, and what was in them."""
    answers, shapes, cas = [b""] * len(sessions), [()] * len(sessions), [0] * len(sessions)
    for number in range(max(len(session.steps) for session in sessions)):
        asked = [i for i, session in enumerate(sessions) if number < len(session.steps)]
        found = ask(port, [sessions[i].step(number, keys[i], cas[i]) for i in asked], quiet)
        for i, frames in zip(asked, found):
            frames = [frame for frame in frames if frame[3]]  # memcached may answer nothing with a message of nothing
            answer = b"".join(frame[3] for frame in frames)
            ids = [int(a or b) for a, b in talk.TEXT_CAS.findall(answer)]
            cas[i] = next((value for value in reversed(ids) if value), cas[i])
            answers[i] += answer
            shapes[i] += (tuple(frame[:3] for frame in frames),)
    return [(shape, "", PASSING.sub(rb"\1-", talk.plain(session, talk.Outcome("", answer))[1])) for session, shape, answer in zip(sessions, shapes, answers)]


def compare(groups, seed, count):
    """(sessions, differences, excused)."""
    candidates = [session for group, sessions in groups.items() if group.startswith(("text", "meta")) for session in sessions
                  if suitable(session)]
    left = [apart(session) for session in random.Random(seed).sample(candidates, min(count, len(candidates)))]
    total, excuses, different, ports = len(left), collections.Counter(), [], (free_port(), free_port())
    quiet = subprocess.DEVNULL
    with Daemon(["-m", "64", "-U", str(ports[0]), *as_memcached()], stderr=quiet), \
            Daemon(["-m", "64", "-U", str(ports[1])], program=memcached_command(), stderr=quiet):
        for attempt in range(TRIES):
            keys = [Keys() for _ in left]
            outcomes = [run(port, left, keys, QUIET_SECONDS * (attempt + 1)) for port in ports]
            different = []
            for session, ours, theirs in zip(left, *outcomes):
                entry = intended.reason(session, ours[1:], theirs[1:], memcached_release()) or intended.in_datagrams(ours, theirs) if ours != theirs else None
                if entry:
                    excuses[entry.name] += 1
                elif ours != theirs:
                    different.append(Difference(session, ours, theirs))
            left = [found.session for found in different]
            if not left:
                break
    return total, different, excuses
