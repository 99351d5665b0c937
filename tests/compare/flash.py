# SPDX-License-Identifier: BSD-3-Clause
"""Sessions with ours in DRAM and with ours whose objects are pushed to flash between the steps: the same bytes must come
back, wherever an object lies."""
import pathlib
import random
import re
import sys

import talk
from helpers import Daemon, as_memcached
from pair import Difference
from parts import LOOK, LOOK_SHORT
from session import Keys, Session

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
from place import Filler  # (sets other objects until the cleaner has written those before them to flash)

OPTIONS = ["-m", "12", "-M", "--flash-size", "640m", "--segment-size", "2m", "--flash-object-size", "2048", "--admission", "all", "-t", "2"]
MOST_STEPS = 4
ROUNDS = 4  # an object on flash may be lost: what differs is run again

PASSING = re.compile(rb"(?<= )(t|l|la=|exp=-?)\d+")  # seconds go by while objects are pushed
# Whether an object has been read is known when its read from flash has ended: not to the next command of a pipeline.
READ = re.compile(rb" h[01]| fetch=\w+")


def apart(session):
    """[(step, push before it?)]. The last looks at the keys are steps of their own."""
    steps = list(session.steps)
    for look in (LOOK, LOOK_SHORT):
        if steps[-1].endswith(look) and steps[-1] != look:
            steps[-1:] = [steps[-1][:-len(look)], look]
            break
    looks = steps.pop().splitlines(keepends=True)
    return [(step, number > 0, False) for number, step in enumerate(steps)] + \
        [(look, number == 0, True) for number, look in enumerate(looks)]


def suitable(session):
    return not session.binary and len(session.steps) <= MOST_STEPS and len(session.steps[0]) > 0 and \
        all(len(step) < 60000 and b"\0" not in step for step in session.steps) and LOOK_SHORT[:10] in session.steps[-1]


class Run:
    """One daemon, the sessions' keys and the ids that each has seen."""

    def __init__(self, daemon, sessions, keys, push=None):
        self.daemon, self.sessions, self.keys, self.push = daemon, sessions, keys, push
        self.steps = [apart(session) for session in sessions]
        self.cas = [0] * len(sessions)
        self.ends = ["" for _ in sessions]
        self.answers = [b"" for _ in sessions]

    def step(self, number):
        running = [i for i, steps in enumerate(self.steps) if number < len(steps)]
        if self.push and any(self.steps[i][number][1] for i in running):
            self.push()
        made = [Session("", lambda keys, _cas, i=i: keys.fill(self.steps[i][number][0], self.cas[i])) for i in running]
        for i, outcome in zip(running, talk.run_sessions(self.daemon.port, made, [self.keys[i] for i in running])):
            ids = [int(a or b) for a, b in talk.TEXT_CAS.findall(outcome.answer)]
            self.cas[i] = next((cas for cas in reversed(ids) if cas), self.cas[i])
            self.ends[i] += outcome.end + " "
            self.answers[i] += outcome.answer if self.steps[i][number][2] else READ.sub(b" -", outcome.answer)

    def all(self):
        for number in range(max(len(steps) for steps in self.steps)):
            self.step(number)

    def plain(self, i):
        end, answer = talk.plain(self.sessions[i], talk.Outcome(self.ends[i], self.answers[i]))
        return end, PASSING.sub(rb"\1-", answer)


def reads(daemon):
    return int(daemon.stats(b"flash")["flash_hits"])


def compare(groups, seed, count, folder, **more):
    """(sessions, differences, how many hits came from flash)."""
    candidates = [session for sessions in groups.values() for session in sessions if suitable(session)]
    left = random.Random(seed).sample(candidates, min(count, len(candidates)))
    total, different, like = len(left), [], as_memcached()
    with Daemon(["-m", "64", *like], **more) as dram, Daemon([*OPTIONS, *like, "--flash-path", str(folder / "flash")], **more) as flash:
        filler = Filler(flash.port, False)
        before = reads(flash)
        for _ in range(ROUNDS):
            keys = [Keys() for _ in left]
            runs = Run(dram, left, keys), Run(flash, left, keys, filler.settle)
            for run in runs:
                run.all()
            different = [Difference(session, runs[0].plain(i), runs[1].plain(i)) for i, session in enumerate(left)
                         if runs[0].plain(i) != runs[1].plain(i)]
            left = [found.session for found in different]
            if not left:
                break
        return total, different, reads(flash) - before
