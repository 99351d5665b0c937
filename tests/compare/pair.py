# SPDX-License-Identifier: BSD-3-Clause
"""Runs sessions on both daemons and compares: what came back, how the connection ended, and what stats have counted.

The first difference counts. A run says nothing, and is made again, in one case alone: a second of one of the two daemons began in
it (their "uptime" tells), and nothing differs but what seconds decide (seconds.py). An answer of ours that memcached gives, too, when
memcached alone is asked again, is right, and so is our count of stored objects that it counts: what a thread of memcached's holds
decides whether an incr or a decr keeps its item, or stores another."""
import collections
import re

import binary
import intended
import seconds
import talk
from helpers import memcached_release
from session import Keys, Session

BATCH = 400  # sessions between two looks at the counters
SHORT_BATCH = 40  # of those that seconds decide, so that none begins meanwhile
TRIES = 20  # until no second begins while one session runs

# All that memcached's stats show is compared, but for what says nothing of the commands: the process, its memory,
# connections, threads of its own. What expires or is evicted is found by whoever comes first.
NOT_COMPARED = re.compile(
    r"pid|uptime|time|version|libevent|pointer_size|rusage_.*|(curr|total|max|rejected)_connections|connection_structures|"
    r"response_obj_.*|read_buf_.*|bytes.*|limit_maxbytes|hash_.*|conn_yields|slab.*|log_.*|lru.*|moves_.*|crawler_.*|direct_reclaims|"
    r"reclaimed|(expired|evicted)_(unfetched|active)|evictions|time_in_listen_disabled_us|listen_disabled_num|accepting_conns|threads|"
    r"reserved_fds|unexpected_napi_ids|round_robin_fallback|curr_items|malloc_fails|extstore_.*")

STEM = re.compile(rb"(?:\b|(?<=\bk))w[0-9a-f]{6}")  # of a run's keys; k: a flag of the meta commands
TWO_WAYS = "memcached's two answers"
STORES = "total_items"

Difference = collections.namedtuple("Difference", "session ours theirs")

# An expired object may be freed by who looks for such ones, and then its get is a plain miss. These count that. An object of a key that
# sessions share may have been freed before this one began.
FREED = "reclaimed", "crawler_reclaimed"
# A word that is no key of the session's own, where a command that writes has its keys.
SHARED = re.compile(rb"^[ \t\v\r]*(?:(?:set|add|replace|append|prepend|cas|incr|decr|touch|delete|m[sdag])[ \t\v\r]+|gats?[ \t\v\r]+\S+[ \t\v\r]+(?:\S+[ \t\v\r]+)*?)"
                    rb"[^\s%]+(?=[ \t\v\r\n])", re.MULTILINE)
RESETS = re.compile(rb"stats reset|\breset")
FLUSHES = {binary.FLUSH, binary.FLUSHQ}


class Counted:
    """What the counters of both have grown by, and whether a second has begun meanwhile."""

    def __init__(self, ours, theirs, began, freed=(0, 0)):
        self.ours, self.theirs, self.began = ours, theirs, began
        self.names = [name for name in theirs if ours[name] != theirs[name]]  # of those that differ
        if "get_expired" in self.names and -freed[0] <= ours["get_expired"] - theirs["get_expired"] <= freed[1]:
            self.names.remove("get_expired")


class Found:
    """What is told of a group of sessions."""

    def __init__(self):
        self.different, self.late = [], []
        self.excused = 0
        self.repeated = 0  # as a second began

    def add(self, other):
        self.different += other.different
        self.late += other.late
        self.excused += other.excused
        self.repeated += other.repeated


def is_late(ours, theirs):
    """Does one wait, with the beginning of what the other has answered?"""
    short, whole = (ours, theirs) if ours[0] == "waiting" else (theirs, ours)
    return short[0] == "waiting" != whole[0] and whole[1][:len(short[1])] == short[1]


class Pair:
    """Our daemon and memcached. Sessions that are excused are counted by the entry that does."""

    def __init__(self, ours, theirs, width=talk.WIDTH, counters=True, falsify=lambda session, answer: answer):
        self.daemons = ours, theirs
        self.width = width  # sessions at a time
        self.has_counters = counters
        self.falsify = falsify  # changes what ours has answered the first time
        self.excused = collections.Counter()
        self.counters = None
        self.freed = [0, 0]  # expired objects, since the daemons' start
        self.release = memcached_release()

    def outcomes(self, sessions):
        """Of each session the plain outcomes of both."""
        def settled(number, outcomes):
            ours, theirs = (talk.plain(sessions[number], outcome) for outcome in outcomes)
            return ours == theirs or intended.reason(sessions[number], ours, theirs, self.release) is not None

        found = talk.run_sessions(self.daemons, sessions, [Keys() for _ in sessions], settled, self.width)
        return [tuple(talk.plain(session, outcome) for outcome in outcomes) for session, outcomes in zip(sessions, found)]

    def counted(self, from_zero=False, shared=False):
        """What has been added since the last time, by sessions that share keys with those before. Who can't be asked may have begun a
        second."""
        if not self.has_counters:
            return Counted({}, {}, True)
        now = [{name: int(value) for name, value in daemon.stats().items() if re.fullmatch(r"\d+", value)} for daemon in self.daemons]
        names = [name for name in now[1] if not NOT_COMPARED.fullmatch(name)]
        assert len(names) >= 25, names
        before, self.counters = self.counters, now
        if before is None:
            return None
        from_zero = from_zero and all(any(new[name] < old[name] for name in names if name in old) for old, new in zip(before, now))
        grown = [{name: new.get(name, -1) - (0 if from_zero else old.get(name, 0)) for name in names} for old, new in zip(before, now)]
        freed = [sum(max(0, new[name] - old[name]) for name in FREED if name in old) for old, new in zip(before, now)]
        self.freed = [sum(pair) for pair in zip(self.freed, freed)]
        return Counted(*grown, any(old["uptime"] != new["uptime"] for old, new in zip(before, now)), self.freed if shared else freed)

    def run(self, sessions):
        """(outcomes, what was counted meanwhile)."""
        self.counted()
        outcomes = self.outcomes(sessions)
        return outcomes, self.counted(from_zero=resets(sessions[0]), shared=shares(sessions[0]))

    def excuse(self, session, ours, theirs):
        entry = intended.reason(session, ours, theirs, self.release)
        if entry:
            self.excused[entry.name] += 1
        return entry

    def memcached_gives(self, session, ours):
        """Does memcached give the answer that ours gave, keys apart? Ours isn't asked again."""
        if session.binary:
            return False
        for _ in range(TRIES):
            ((outcome,),) = talk.run_sessions([self.daemons[1]], [session], [Keys()], lambda *_: True, 1)
            end, answer = talk.plain(session, outcome)
            if end == ours[0] and STEM.sub(b"w", answer) == STEM.sub(b"w", ours[1]):
                print(f"  {session.name}: memcached gives two answers, ours is one of them")
                self.excused[TWO_WAYS] += 1
                return True
        return False

    def memcached_counts(self, sessions, counted):
        """Is what ours stored the least that memcached stores when it is asked again and again, and nothing else uneven? By chance it
        stores more, never fewer. Ours isn't asked again."""
        ours, theirs = counted.ours.get(STORES), counted.theirs.get(STORES)
        if counted.names != [STORES] or ours > theirs:
            return False
        memcached = self.daemons[1]
        stored = [theirs]
        while len(stored) <= TRIES and min(stored) >= ours:
            before = int(memcached.stats()[STORES])
            talk.run_sessions([memcached], sessions, [Keys() for _ in sessions], lambda *_: True, self.width)
            stored.append(int(memcached.stats()[STORES]) - before)
        if min(stored) != ours:
            return False
        print(f"  {group_name(sessions)}: memcached stores {ours} to {max(stored)} objects, ours {ours}")
        self.excused[TWO_WAYS] += 1
        return True

    def alone(self, session, found):
        """A session in whose first run a second began, until none does."""
        found.repeated += 1
        for _ in range(TRIES):
            ((ours, theirs),), counted = self.run([session])
            if ours == theirs or self.has_counters and not counted.began:
                break
        if ours != theirs:
            (found.late if counted.began and self.has_counters else found.different).append(Difference(session, ours, theirs))

    def judge(self, sessions, outcomes, began, found):
        """Adds what differs. Returns the sessions whose answers were the same."""
        same = []
        for session, (ours, theirs) in zip(sessions, outcomes):
            ours = self.falsify(session, ours)
            if ours == theirs:
                same.append(session)
            elif self.excuse(session, ours, theirs):
                found.excused += 1
            elif began and seconds.decide(session, ours, theirs):
                self.alone(session, found)
            elif is_late(ours, theirs):
                found.late.append(Difference(session, ours, theirs))
            elif self.memcached_gives(session, ours):
                found.excused += 1
            else:
                found.different.append(Difference(session, ours, theirs))
        return same

    def who_counts(self, sessions):
        """(sessions that alone count otherwise, how many did and are excused)."""
        different, excused = [], 0
        for session in sessions:
            for _ in range(TRIES):
                ((ours, theirs),), counted = self.run([session])
                if not (counted.began and seconds.is_short(session)):
                    break
            if counted.names:
                if self.excuse(session, ours, theirs) or self.memcached_counts([session], counted):
                    excused += 1
                else:
                    different.append(uneven(session, counted))
        return different, excused

    def batch(self, sessions):
        found = Found()
        outcomes, counted = self.run(sessions)
        same = self.judge(sessions, outcomes, counted.began, found)
        if not same:
            return found
        if len(same) < len(sessions) or counted.began and any(map(seconds.is_short, sessions)):
            # Who is excused counts otherwise too, and so does an object that has expired for one of the two.
            for _ in range(TRIES):
                if not counted.names:
                    break
                _, counted = self.run(same)
                if not (counted.began and any(map(seconds.is_short, same))):
                    break
        if counted.names and not self.memcached_counts(same, counted):
            different, excused = self.who_counts(same)
            seconds_decide = counted.began and any(map(seconds.is_short, same))  # each time: of these each session alone tells
            if not different and not excused and not seconds_decide:
                found.different.append(uneven(Session(group_name(same)), counted))
            found.different += different
        return found

    def compare(self, sessions):
        """Those that may be excused run apart, and so do those that seconds decide: so the counters of all others are compared the
        first time. Last are those behind which others' objects aren't what they were, or are each daemon's own."""
        found, apart = Found(), collections.defaultdict(list)
        for session in sessions:
            excused = intended.may_excuse(session, self.release)
            last = flushes(session) or shares(session) and excused
            size = 1 if last or resets(session) or shares(session) else SHORT_BATCH if seconds.is_short(session) else BATCH
            apart[last, size, size > 1 and excused].append(session)
        for (_, size, _), part in sorted(apart.items(), key=lambda item: item[0]):
            for start in range(0, len(part), size):
                found.add(self.batch(part[start:start + size]))
        return found


def group_name(sessions):
    return sessions[0].name if len(sessions) == 1 else f"{len(sessions)} sessions, {sessions[0].name} ... {sessions[-1].name}"


def uneven(session, counted):
    return Difference(session, *({name: grown[name] for name in counted.names} for grown in (counted.ours, counted.theirs)))


def shares(session):
    """Does it write to a key that others name too? Then nothing runs beside it."""
    return not session.binary and SHARED.search(session.text()) is not None


def resets(session):
    """Does it set counters to zero? Then it counts from there, and nothing beside it."""
    return RESETS.search(session.text()) is not None


def flushes(session):
    """Does it flush what others have stored?"""
    text = session.text()
    return text[1] in FLUSHES if session.binary else b"flush_all" in text
