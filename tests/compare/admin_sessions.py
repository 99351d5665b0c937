# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the text commands that name no key. What they change is the daemon's, so they run one after the other, and each
puts back what it has changed."""
import itertools

import tables
from meta_sessions import shown
from parts import EXTRA, LINE_ENDS, LINE_STARTS, LOOK_SHORT, NUMBERS
from session import Session

REALS = [b"0", b"0.5", b"1.5", b"-1", b"x", b"1x", b"nan", b"inf", b"1e3", b".5", b"0x10", b"", b"99999999999999999999"]
INTEGERS = [number for number in NUMBERS if b"\0" not in number]


def flush_all():
    """A flush that lies ahead is called off by the next one."""
    delays = [number for number in INTEGERS if number != b"010"]
    for words in [b"", *delays, b"noreply", b"100 noreply", b"0 noreply", b"x noreply", b"0 0", b"0 0 0", b"0 noreply x", b"noreply x",
                  b"noreply noreply", b"-1 noreply"]:
        yield b"set %k 0 0 1\r\nx\r\nflush_all " + words + b"\r\n" + LOOK_SHORT, b"flush_all\r\n"


def verbosity():
    for words in [b"", *[number for number in INTEGERS if number not in (b"2", b"010")], b"0 noreply", b"x noreply", b"noreply", b"0 0", b"0 0 0",
                  b"0 x noreply", b"noreply noreply"]:
        yield b"verbosity " + words + b"\r\n", b"verbosity 0\r\n"


def version():
    for words in (b"", b" x", b" " + b"x " * 40, b"x"):
        yield b"version" + words + b"\r\n", b""


def stats():
    for words in (b"other", b"noreply", b"reset", b"reset x", b"resetx", b"sizes", b"sizes x", b"sizes_enable", b"sizes_disable", b"detail",
                  b"detail x", b"detail on", b"detail off", b"detail dump", b"detail on x", b"detail\tdump", b"cachedump", b"cachedump 1",
                  b"cachedump x 1", b"cachedump 1 x", b"cachedump 0 1", b"cachedump 63 1",
                  b"cachedump 9999 0", b"cachedump -1 0", b"cachedump 4294967297 1", b"items x", b"Items",
                  b"extstore", b"proxy", b"threads", b"malloc", b"maps", b"slabs\t", b"x" * 300):
        yield b"stats " + words + b"\r\n", b"stats detail off\r\n"
    yield b"stats detail on\r\nset %k:a 0 0 1\r\nx\r\nget %k:a %k:b\r\ndelete %k:a\r\nget x\r\nstats detail dump\r\n", b"stats detail off\r\n"


def quit_():
    for line in (b"quit", b"quit x", b" quit ", b"quit noreply", b"quitx", b"QUIT", b"quit\t"):
        yield b"get %k\r\n" + line + b"\r\nget %k\r\n", b""


def shutdown():
    for words in (b"", b" x", b" graceful", b" graceful x", b" x y z", b" noreply", b"x"):
        yield b"shutdown" + words + b"\r\n", b""


def cache_memlimit():
    for words in [b"", *[number for number in INTEGERS if len(number) < 12 and not number.isdigit() or number in
                         (b"0", b"1", b"2", b"4294967295", b"4294967296", b"18446744073709551615", b"18446744073709551616")],
                  b"7", b"8", b"64", b"64 noreply", b"7 noreply", b"x noreply", b"64 x", b"64 x y", b"64 noreply x", b"noreply", b"64m"]:
        yield b"cache_memlimit " + words + b"\r\n", b"cache_memlimit 64\r\n"


def watch():
    for words in (b"x", b"x fetchers", b"fetchers x", b"fetcher", b"FETCHERS", b"noreply", b"evictions x"):
        yield b"watch " + words + b"\r\n", b""
    for words in (b"", b" evictions", b" fetchers", b" mutations", b" evictions mutations", b" fetchers fetchers"):
        yield b"watch" + words + b"\r\n", None


def lru_crawler():
    for words in (b"", b"x", b"enable", b"enable x", b"disable x", b"x y", b"metadump", b"metadump x", b"metadump 0", b"metadump -1",
                  b"metadump 999", b"metadump 1,x", b"metadump all x", b"mgdump x", b"mgdump", b"crawl", b"crawl x", b"crawl 0",
                  b"crawl 1,999", b"crawl ,", b"crawl 1x", b"tocrawl", b"sleep", b"sleep x y", b"enable noreply"):
        yield b"lru_crawler " + words + b"\r\n", b""
    for word, number in itertools.product((b"sleep", b"tocrawl"), INTEGERS):
        yield b"lru_crawler " + word + b" " + number + b"\r\n", b"lru_crawler sleep 100\r\nlru_crawler tocrawl 0\r\n"
    # memcached's crawler ends some time after it was told so: it is asked again at the end alone. Until then it refuses a
    # metadump behind another command.
    for word in (b"crawl all", b"mgdump hash", b"sleep 1", b"disable"):
        yield b"lru_crawler disable\r\nlru_crawler " + word + b"\r\n", b""


def lru():
    for words in (b"", b"x", b"noreply", b"x " * 21 + b"noreply", b"x " * 22 + b"noreply", b"tune", b"tune 1 2 3", b"tune 1 2 3 4 5", b"tune 40 41 1 1", b"tune 81 0 1 1", b"tune 40 40 1 1", b"tune x 1 1 1",
                  b"tune 1 x 1 1", b"tune 10 20 0 1", b"tune 10 20 1 0", b"tune -1 1 1 1", b"mode", b"mode x", b"mode flat", b"mode segmented",
                  b"mode flat x", b"temp_ttl", b"temp_ttl x", b"temp_ttl 0", b"temp_ttl -1", b"temp_ttl 61", b"temp_ttl 61 x", b"tune noreply"):
        yield b"lru " + words + b"\r\n", b""
    for place, real in itertools.product((3, 4), REALS):
        words = [b"tune", b"10", b"20", b"1", b"1"]
        words[place] = real
        yield b"lru " + b" ".join(words) + b"\r\n", b"lru tune 20 40 0.2 2.0\r\n"


def slabs():
    for words in (b"", b"x", b"reassign", b"reassign 1", b"reassign 1 2", b"reassign 1 1", b"reassign x 2", b"reassign 1 x", b"reassign 1 2 3",
                  b"reassign -1 2", b"reassign 999 1", b"reassign 1 2 noreply", b"automove", b"automove x", b"automove 0 x", b"automove ratio",
                  b"automove ratio x", b"automove ratio 0.5 x", b"automove noreply", b"automove 1 noreply"):
        yield b"slabs " + words + b"\r\n", b"slabs automove 0\r\n"
    for number in INTEGERS:
        yield b"slabs automove " + number + b"\r\n", b"slabs automove 0\r\n"
    for real in REALS:
        yield b"slabs automove ratio " + real + b"\r\n", b"slabs automove ratio 0.8\r\n"


def extstore():
    for words in (b"", b"x", b"x 1", b"item_size", b"item_size 512", b"item_size x", b"free_memchunks 1 1", b"free_memchunks 1", b"max_frag 0.5",
                  b"max_frag", b"recache_rate 1 2", b"low_ttl 5 noreply"):
        yield b"extstore " + words + b"\r\n", b""


def refresh_certs():
    for words in (b"", b" x", b" noreply"):
        yield b"refresh_certs" + words + b"\r\n", b""


def flash_move():
    for words in (b"", b" x", b" /nonexistent/flash 1 2", b" cancel"):  # off by default, and then no command
        yield b"flash_move" + words + b"\r\n", b""


BY_ID = {"FLUSH_ALL": flush_all, "VERBOSITY": verbosity, "VERSION": version, "STATS": stats, "QUIT": quit_, "SHUTDOWN": shutdown,
         "CACHE_MEMLIMIT": cache_memlimit, "WATCH": watch, "LRU_CRAWLER": lru_crawler, "LRU": lru, "SLABS": slabs, "EXTSTORE": extstore,
         "REFRESH_CERTS": refresh_certs, "FLASH_MOVE": flash_move}


def no_commands():
    """Lines that begin with no command's name."""
    for line in (b"", b" ", b"nonsense", b"nonsense noreply", b"GET %k", b"\x01\x02", b"get\t%k", b"x" * 2000, b"-", b"0", b"\xff\xfe", b"get,%k",
                 b"set%k 0 0 1", b"GET / HTTP/1.1", b"POST / HTTP/1.0", b"x HTTP/", b"get / HTTP/1.1", b"getgetget", b"flush_allx", b"bget"):
        yield line + b"\r\n", b""
    for start, end in itertools.product((b"", *LINE_STARTS), LINE_ENDS):
        if b"\0" not in start + end:
            yield start + b"nonsense" + end, b""


def groups():
    commands = [command for command in tables.text_commands() if command.shape in ("DELAY", "LEVEL", "WORDS")]
    assert {command.id for command in commands} == set(BY_ID), f"no sessions for {set(BY_ID) ^ {command.id for command in commands}}"
    found = {}
    for command in commands:
        name = command.name
        pairs = list(BY_ID[command.id]())
        if command.id not in ("WATCH", "FLUSH_ALL"):
            pairs += [(name + b" " + extra + b"\r\n", b"") for extra in EXTRA if b"\0" not in extra and (command.id, extra) != ("VERBOSITY", b"1")]
            pairs += [(name + end, b"") for end in LINE_ENDS if b"\0" not in end and command.id != "STATS"]
        # After a watch the connection is the watcher's: nothing more is asked on it.
        found[f"admin {name.decode()}"] = [Session(f"{name.decode()} {number} {shown(line)}", line, *([undo] if undo else []))
                                           for number, (line, undo) in enumerate(pairs)]
    found["admin no command"] = [Session(f"no command {number} {shown(line)}", line) for number, (line, _) in enumerate(no_commands())]
    return found
