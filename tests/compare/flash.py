# SPDX-License-Identifier: BSD-3-Clause
"""Sessions with ours in DRAM and with ours whose objects are put on flash between the steps: the same bytes must come
back, wherever an object lies."""
import random
import re

import seconds
import talk
from helpers import Daemon, as_memcached
from pair import Difference, Found, is_late
from parts import LOOK, LOOK_SHORT
from session import Keys, Session

# Nothing is lost here. -M evicts nothing and reclaims nothing; a read may take as long as a busy drive needs; and a set clears the slot of
# another key only where a filter is wrong: with filters of 16 bits "innocent_drops" stays near 0.
OPTIONS = ["-m", "12", "-M", "--flash-size", "640m", "--segment-size", "2m", "--flash-object-size", "2048", "--filter-bits", "16",
           "--flash-read-timeout", "2m", "-t", "2"]
MOST_LOST = 0.1  # objects, as expected from what the filters are like
MOST_STEPS = 4
# Whether an object has been read is known when its read from flash has ended: not to the next command of a pipeline.
READ = re.compile(rb" h[01]| fetch=\w+")


def apart(session):
    """[(step, place before it?, is it a look?)]. The last looks at the keys are steps of their own."""
    steps = list(session.steps)
    for look in (LOOK, LOOK_SHORT):
        if steps[-1].endswith(look) and steps[-1] != look:
            steps[-1:] = [steps[-1][:-len(look)], look]
            break
    looks = steps.pop().splitlines(keepends=True)
    return [(step, number > 0, False) for number, step in enumerate(steps)] + \
        [(look, number == 0, True) for number, look in enumerate(looks)]


def suitable(session):
    return not session.binary and not seconds.is_short(session) and len(session.steps) <= MOST_STEPS and len(session.steps[0]) > 0 and \
        all(len(step) < 60000 and b"\0" not in step for step in session.steps) and LOOK_SHORT[:10] in session.steps[-1]


class Run:
    """The sessions on both daemons, step by step, and the ids that each has seen."""

    def __init__(self, daemons, sessions):
        self.daemons, self.sessions = daemons, sessions
        self.keys = [Keys() for _ in sessions]
        self.steps = [apart(session) for session in sessions]
        self.cas = [[0, 0] for _ in sessions]
        self.ends = [["", ""] for _ in sessions]
        self.answers = [[b"", b""] for _ in sessions]

    def step(self, number):
        running = [i for i, steps in enumerate(self.steps) if number < len(steps)]
        if any(self.steps[i][number][1] for i in running):
            self.daemons[1].place_all()
        made = [Session("", self.steps[i][number][0]) for i in running]

        def settled(at, outcomes):
            ours, theirs = (shown(*talk.plain(made[at], outcome)) for outcome in outcomes)
            return ours == theirs

        found = talk.run_sessions(self.daemons, made, [self.keys[i] for i in running], settled,
                                  ids=[self.cas[i] for i in running])
        for i, outcomes in zip(running, found):
            for place, outcome in enumerate(outcomes):
                ids = [int(a or b) for a, b in talk.TEXT_CAS.findall(outcome.answer)]
                self.cas[i][place] = next((cas for cas in reversed(ids) if cas), self.cas[i][place])
                self.ends[i][place] += outcome.end + " "
                self.answers[i][place] += outcome.answer if self.steps[i][number][2] else READ.sub(b" -", outcome.answer)

    def all(self):
        for number in range(max(len(steps) for steps in self.steps)):
            self.step(number)

    def plain(self, i, place):
        end, answer = talk.plain(self.sessions[i], talk.Outcome(self.ends[i][place], self.answers[i][place]))
        return end, seconds.without(answer)


def shown(end, answer):
    return end, READ.sub(b" -", seconds.without(answer))


def compare(groups, seed, count, folder, policy, **more):
    """(sessions, what was found, how many hits came from flash)."""
    candidates = [session for sessions in groups.values() for session in sessions if suitable(session)]
    sessions = random.Random(seed).sample(candidates, min(count, len(candidates)))
    like, found = as_memcached(), Found()
    with Daemon(["-m", "64", *like], **more) as dram, \
            Daemon([*OPTIONS, *policy, *like, "--flash-path", str(folder / "flash")], driven=True, **more) as flash:
        before = flash.stats(b"flash")
        run = Run((dram, flash), sessions)
        run.all()
        after = flash.stats(b"flash")
        assert float(after["innocent_drops"]) < MOST_LOST, after["innocent_drops"]
        for i, session in enumerate(sessions):
            outcomes = run.plain(i, 0), run.plain(i, 1)
            if outcomes[0] != outcomes[1]:
                (found.late if is_late(*outcomes) else found.different).append(Difference(session, *outcomes))
        return len(sessions), found, int(after["flash_hits"]) - int(before["flash_hits"])
