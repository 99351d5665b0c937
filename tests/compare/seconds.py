# SPDX-License-Identifier: BSD-3-Clause
"""What seconds decide. Those of two daemons don't begin together, so that one shows a time that is a second less, and an object that
lives for seconds has expired there."""
import re

# Times in answers: left to live, since the last access, of memcached's "me" too.
SHOWN = re.compile(rb"(?<= )(t|l|la=|exp=-?)\d+")

# Where a session's text says how long something lives, or a flush waits. A binary one has it in its extras.
GIVEN = re.compile(rb"^[ \t\v\r]*(?:set|add|replace|append|prepend|cas)\s+\S+\s+\S+\s+(\S+)|^[ \t\v\r]*touch\s+\S+\s+(\S+)|^[ \t\v\r]*gats?\s+(\S+)|"
                   rb"(?<= )[TNR]([^ \n]+)|^flush_all\s+(\S+)", re.MULTILINE)
LENIENT = re.compile(rb"[\s+]*0*(\d+)")
SHORT_SECONDS = 10


def without(answer):
    return SHOWN.sub(rb"\1-", answer)


def is_short(session):
    """Does something in it live for so few seconds that it may be gone when it is asked for?"""
    if session.binary:
        return "exptime 1" in session.name.split(", ")
    for found in GIVEN.findall(session.text()):
        seconds = LENIENT.match(b"".join(found))
        if seconds and 0 < int(seconds.group(1)) <= SHORT_SECONDS:
            return True
    return False


def decide(session, ours, theirs):
    """May outcomes differ for no other reason than that a second began?"""
    return is_short(session) or not session.binary and ours[0] == theirs[0] and without(ours[1]) == without(theirs[1])
