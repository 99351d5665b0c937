# SPDX-License-Identifier: BSD-3-Clause
"""Runs sessions on both daemons and compares: what came back, how the connection ended, and what stats have counted."""
import collections
import re

import intended
import talk
from helpers import memcached_release
from session import Keys

BATCH = 400  # sessions between two looks at the counters
# A second may begin on one of the two; and who was slow gets more time.
PATIENCE = (0.3, 0.3, 1.0, 2.0, 4.0, 10.0, 20.0)

# All that memcached's stats show is compared, but for what says nothing of the commands: the process, its memory,
# connections, threads of its own. What expires or is evicted is found by whoever comes first.
NOT_COMPARED = re.compile(
    r"pid|uptime|time|version|libevent|pointer_size|rusage_.*|(curr|total|max|rejected)_connections|connection_structures|"
    r"response_obj_.*|read_buf_.*|bytes.*|limit_maxbytes|hash_.*|conn_yields|slab.*|log_.*|lru.*|moves_.*|crawler_.*|direct_reclaims|"
    r"reclaimed|(expired|evicted)_(unfetched|active)|evictions|time_in_listen_disabled_us|listen_disabled_num|accepting_conns|threads|"
    r"reserved_fds|unexpected_napi_ids|round_robin_fallback|curr_items|malloc_fails|extstore_.*")

Difference = collections.namedtuple("Difference", "session ours theirs")


class Pair:
    """Our daemon and memcached. Sessions that are excused are counted by the entry that does."""

    def __init__(self, ours, theirs, width=talk.WIDTH):
        self.daemons = ours, theirs
        self.width = width  # sessions at a time
        self.excused = collections.Counter()
        self.counters = None
        self.release = memcached_release()

    def outcomes(self, sessions, patience=PATIENCE[0]):
        keys = [Keys() for _ in sessions]
        return [talk.run_sessions(daemon.port, sessions, keys, patience, self.width) for daemon in self.daemons]

    def counted(self):
        """What stats show now, of memcached's names, and what has been added since the last time."""
        now = []
        for daemon in self.daemons:
            now.append({name: int(value) for name, value in daemon.stats().items() if re.fullmatch(r"\d+", value)})
        names = [name for name in now[1] if not NOT_COMPARED.fullmatch(name)]
        assert len(names) >= 25, names
        before, self.counters = self.counters, now
        if before is None:
            return None
        return tuple({name: new.get(name, -1) - old.get(name, 0) for name in names} for old, new in zip(before, now))

    def excuse(self, session, ours, theirs):
        entry = intended.reason(session, ours, theirs, self.release)
        if entry:
            self.excused[entry.name] += 1
        return entry

    def again(self, session):
        """None, or how a session differs that did the first time. What may be excused is not asked as patiently."""
        for patience in PATIENCE:
            ours, theirs = (talk.plain(session, outcomes[0]) for outcomes in self.outcomes([session], patience))
            if ours == theirs:
                return None
            if intended.reason(session, ours, theirs, self.release):
                break
        return Difference(session, ours, theirs)

    def compare_counters(self, sessions):
        """Which of the sessions has counted otherwise? Those that are excused for their answers aren't asked."""
        different = []
        for session in sessions:
            for _ in PATIENCE:
                self.counted()
                outcomes = [talk.plain(session, found[0]) for found in self.outcomes([session])]
                ours, theirs = self.counted()
                if ours == theirs or self.excuse(session, *outcomes):
                    break
            else:
                names = [name for name in theirs if ours[name] != theirs[name]]
                different.append(Difference(session, {n: ours[n] for n in names}, {n: theirs[n] for n in names}))
        return different

    def same_counters(self, sessions):
        self.counted()
        self.outcomes(sessions)
        ours, theirs = self.counted()
        return ours == theirs

    def compare(self, sessions, counters=True):
        """(differences, excused)."""
        different, excused = [], 0
        for start in range(0, len(sessions), BATCH):
            batch = sessions[start:start + BATCH]
            if counters:
                self.counted()
            found = self.outcomes(batch)
            counted = self.counted() if counters else (None, None)
            plain = []
            for session, one, other in zip(batch, *found):
                ours, theirs = talk.plain(session, one), talk.plain(session, other)
                if ours != theirs and self.excuse(session, ours, theirs):
                    excused += 1
                    continue
                plain.append(session)
                again = self.again(session) if ours != theirs else None
                if again and self.excuse(*again):
                    excused += 1
                elif again:
                    different.append(again)
            if counted[0] != counted[1] and not self.same_counters(plain):
                different += self.compare_counters(plain)
        return different, excused
