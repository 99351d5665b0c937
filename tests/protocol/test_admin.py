# SPDX-License-Identifier: BSD-3-Clause
"""The text commands that administer: lists of all objects, limits, the crawler, shutdown."""
import shutil
import urllib.parse

import pytest

from helpers import PATIENCE, Daemon, Kind, fill, fill_turn, memcached_command, memcached_release, until

PLAIN = Kind(b"a value of some length")
KINDS = [PLAIN]

ANSWERS = [
    (b"lru_crawler", b"ERROR\r\n"),
    (b"lru_crawler metadump", b"ERROR\r\n"),
    (b"lru_crawler metadump 9999", b"BADCLASS invalid class id\r\n"),
    (b"lru_crawler metadump 1,x", b"BADCLASS invalid class id\r\n"),
    (b"lru_crawler metadump " + b"1," * 900 + b"x", b"BADCLASS invalid class id\r\n"),
    (b"lru_crawler crawl", b"ERROR\r\n"),
    (b"lru_crawler crawl x", b"BADCLASS invalid class id\r\n"),
    (b"lru_crawler crawl all x", b"ERROR\r\n"),
    (b"lru_crawler enable x", b"ERROR\r\n"),
    (b"lru_crawler enable", b"ERROR failed to start lru crawler thread\r\n"),
    (b"lru_crawler sleep", b"ERROR\r\n"),
    (b"lru_crawler sleep x", b"CLIENT_ERROR bad command line format\r\n"),
    (b"lru_crawler sleep -1", b"CLIENT_ERROR bad command line format\r\n"),
    (b"lru_crawler sleep 10000000", b"CLIENT_ERROR sleep must be one second or less\r\n"),
    (b"lru_crawler sleep 100", b"OK\r\n"),
    (b"lru_crawler tocrawl x", b"CLIENT_ERROR bad command line format\r\n"),
    (b"lru_crawler tocrawl 0", b"OK\r\n"),
    (b"lru", b"ERROR\r\n"),
    (b"lru tune 10 25", b"ERROR\r\n"),
    (b"lru tune 60 60 0.1 2.0", b"ERROR hot and warm pcts must not exceed 80\r\n"),
    (b"lru tune 10 25 0 2.0", b"ERROR hot/warm age factors must be greater than 0\r\n"),
    (b"lru tune 10 25 0.1 2.0", b"OK\r\n"),
    (b"slabs", b"ERROR\r\n"),
    (b"slabs reassign 1", b"ERROR\r\n"),
    (b"slabs reassign 1 2", b"CLIENT_ERROR slab reassignment disabled\r\n"),
    (b"slabs automove x", b"CLIENT_ERROR bad command line format\r\n"),
    (b"slabs automove 3", b"ERROR\r\n"),
    (b"slabs automove 1", b"OK\r\n"),
    (b"slabs automove ratio", b"ERROR\r\n"),
    (b"slabs automove ratio 0.5", b"OK\r\n"),
    (b"extstore", b"ERROR\r\n"),
    (b"extstore foo 1", b"ERROR\r\n"),
    (b"extstore item_size x", b"ERROR\r\n"),
    (b"extstore recache_rate -5", b"ERROR\r\n"),
    (b"extstore max_frag x", b"ERROR\r\n"),
    (b"extstore free_memchunks 10000 2", b"ERROR\r\n"),
    (b"extstore item_size 100", b"OK\r\n"),
    (b"extstore drop_unread 1", b"OK\r\n"),
    (b"cache_memlimit", b"ERROR\r\n"),
    (b"cache_memlimit x", b"ERROR\r\n"),
    (b"cache_memlimit -1", b"ERROR\r\n"),
    (b"cache_memlimit 64 1 2", b"ERROR\r\n"),
    (b"cache_memlimit 7", b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"),
    (b"cache_memlimit 99999999999", b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n"),
    (b"shutdown", b"ERROR: shutdown not enabled\r\n"),
    (b"refresh_certs", b"Error TLS not enabled\r\n"),
    (b"watch nothing", b"ERROR\r\n"),
    (b"watch fetchers nothing", b"ERROR\r\n"),
    (b"stats cachedump", b"CLIENT_ERROR bad command line\r\n"),
    (b"stats cachedump 1", b"CLIENT_ERROR bad command line\r\n"),
    (b"stats cachedump x 0", b"CLIENT_ERROR bad command line format\r\n"),
    (b"stats cachedump 1 x", b"CLIENT_ERROR bad command line format\r\n"),
    (b"stats cachedump 9999 0", b"CLIENT_ERROR Illegal slab id\r\n"),
    (b"stats detail", b"CLIENT_ERROR usage: stats detail on|off|dump\r\n"),
    (b"stats detail x", b"CLIENT_ERROR usage: stats detail on|off|dump\r\n"),
    (b"stats nothing", b"ERROR\r\n"),
]
# From 1.6.40 on.
CHANGED = {
    b"cache_memlimit 64 1 2": b"OK\r\n",
    b"cache_memlimit 99999999999": b"ERROR\r\n",
    b"shutdown": b"SERVER_ERROR: shutdown not enabled\r\n",
}


@pytest.fixture(scope="module")
def old_client():
    with Daemon(["-m", "64", "--compat-version", "1.6.39"]) as daemon, daemon.client() as opened:
        yield opened


@pytest.mark.parametrize("command, answer", ANSWERS, ids=lambda value: value.decode()[:40])
def test_answers(client, command, answer):
    """Each command's answer, wrong ones first; the connection goes on."""
    assert client.all(command + b"\r\n") == CHANGED.get(command, answer)


@pytest.mark.parametrize("command, answer", ANSWERS, ids=lambda value: value.decode()[:40])
def test_answers_of_an_older_release(old_client, command, answer):
    """With --compat-version."""
    assert old_client.all(command + b"\r\n") == answer


# What memcached answers otherwise, with its slabs and extstore at work.
MEANINGLESS = {b"slabs reassign 1 2", b"extstore free_memchunks 10000 2", b"lru_crawler enable"}


@pytest.fixture(scope="module")
def memcached():
    if not shutil.which(memcached_command()):
        pytest.skip("no memcached here")
    with Daemon(["-m", "64"], program=memcached_command()) as daemon:
        yield daemon


@pytest.mark.parametrize("command, answer", ANSWERS, ids=lambda value: value.decode()[:40])
def test_memcached_answers_likewise(memcached, command, answer):
    """The answers above are memcached's own, but for what it has and we have not."""
    if command in MEANINGLESS:
        pytest.skip("memcached has slabs to move, and an LRU crawler that is off")
    with memcached.client() as client:
        assert client.all(command + b"\r\n") == (CHANGED.get(command, answer) if memcached_release() >= 40 else answer)


def dumped(client, kind=b"metadump", classes=b"all"):
    """The rows of a dump, by key."""
    client.send(b"lru_crawler %s %s\r\n" % (kind, classes))
    rows = {}
    assert client.line() == b"OK\r\n"
    while (line := client.line()) not in (b"END\r\n", b"EN\r\n"):
        if kind == b"mgdump":
            rows[line.split()[1]] = line.split()[2:]
            continue
        words = dict(word.split("=", 1) for word in line.decode().split())
        rows[urllib.parse.unquote_to_bytes(words.pop("key"))] = words
    return rows


@pytest.mark.parametrize("kind", [b"metadump", b"mgdump"])
def test_a_dump_lists_an_object_wherever_it_lies(placed, kind):
    """An object in DRAM or on flash is in the list; the connection goes on after it."""
    key = placed.put(PLAIN)
    with placed.daemon.client() as client:
        assert key in dumped(client, kind)
        assert client.get(key)[0][2] == PLAIN.value(key)
        assert key in dumped(client, kind)


def test_a_dump_tells_expiry_fetch_and_cas(start):
    """The fields of a row; keys are escaped."""
    with start().client() as client:
        client.set(b"a/b%c", b"x", flags=4294967295, exptime=1000)
        client.set(b"read", b"x")
        client.get(b"read")
        cas = client.get(b"read", command=b"gets")[0][3]
        now = int(client.stats()["time"])
        rows = dumped(client)
    assert set(rows) == {b"a/b%c", b"read"}
    assert abs(int(rows[b"a/b%c"]["exp"]) - now - 1000) <= 2
    assert rows[b"a/b%c"]["flags"] == "4294967295" and rows[b"read"]["flags"] == "0"
    assert rows[b"read"]["exp"] == "-1" and rows[b"read"]["cas"] == str(cas)
    assert rows[b"read"]["fetch"] == "yes" and rows[b"a/b%c"]["fetch"] == "no"
    assert set(rows[b"read"]) == {"exp", "la", "cas", "fetch", "cls", "size", "flags"}


@pytest.mark.parametrize("options", [[], ["-C"]], ids=" ".join)
def test_a_dump_and_me_agree(start, options):
    """Class and size of an object, with client flags, marks and large values too."""
    with start(*options).client() as client:
        for n, size in enumerate((0, 5, 6, 7, 8, 500, 100000)):
            client.set(b"set-%d" % n, b"x" * size, flags=n % 2)
        client.ask(b"ms meta 3\r\nabc\r\n")
        client.ask(b"md meta I\r\n")
        client.ask(b"mg made N100\r\n")
        rows = dumped(client)
        assert len(rows) == 9
        for key, row in rows.items():
            words = dict(word.split("=") for word in client.ask(b"me " + key + b"\r\n").decode().split()[2:])
            assert (words["cls"], words["size"]) == (row["cls"], row["size"])


def test_a_dump_of_a_class_lists_that_alone(start):
    """Classes are those of "stats items"."""
    with start().client() as client:
        client.set(b"small", b"x")
        client.set(b"large", b"x" * 5000)
        rows = dumped(client)
        small, large = rows[b"small"]["cls"].encode(), rows[b"large"]["cls"].encode()
        assert small != large
        assert set(dumped(client, classes=small)) == {b"small"}
        assert set(dumped(client, classes=small + b"," + large)) == {b"small", b"large"}
        assert f"items:{large.decode()}:number" in client.stats(b"items")


def test_a_dump_skips_what_is_gone(start):
    """Expired, deleted and flushed objects are not listed."""
    with start().client() as client:
        client.set(b"expired", b"x", exptime=-1)
        client.set(b"deleted", b"x")
        client.ask(b"delete deleted\r\n")
        client.set(b"there", b"x")
        assert set(dumped(client)) == {b"there"}
        client.ask(b"flush_all\r\n")
        assert not dumped(client)


def test_a_dump_of_a_full_flash_lists_as_many_as_stats_count(start, tmp_path):
    """Every object in both tiers is listed once while nothing changes."""
    daemon = start("-m", "4", "--flash-path", str(tmp_path / "flash"), "--flash-size", "16m", "--segment-size", "65536",
                   "--admission", "all")
    with daemon.client() as client:
        for _ in range(3):
            fill_turn(client)
        until(lambda: int(client.stats(b"flash")["flash_items"]) > 1000, "objects on flash")
        settled = -1
        while settled != (settled := client.count("segments_written")):
            fill(client, 0)
        rows = dumped(client)
        assert len(rows) >= 0.95 * int(client.stats()["curr_items"])


def test_a_dump_whose_client_goes_away_lets_the_next_one_in(start):
    """A client that closes in the middle ends its dump."""
    daemon = start("-m", "64")
    with daemon.client() as client:
        fill(client, 20 << 20)
        going = daemon.client()
        going.send(b"lru_crawler metadump all\r\n")
        going.line()
        busy = client.ask(b"lru_crawler metadump 9999\r\n")
        assert busy == b"BADCLASS invalid class id\r\n"
        going.close()
        until(lambda: client.all(b"lru_crawler metadump 1\r\n").endswith(b"END\r\n"), "a dump that may begin")


def test_a_command_after_a_dump_that_was_asked_for_in_pieces(start):
    """What was seen of the dump's line before it was complete says nothing about the next line."""
    daemon = start("-t", "1")
    with daemon.client() as client, daemon.client() as other:
        client.send(b"lru_crawler metadump al")
        assert other.ask(b"mn\r\n") == b"MN\r\n" # by now the piece was looked at, too
        client.send(b"l\r\n")
        assert (client.line(), client.line()) == (b"OK\r\n", b"END\r\n")
        assert client.ask(b"mn\r\n") == b"MN\r\n"


def test_dumps_can_be_forbidden(start):
    """-X"""
    with start("-X").client() as client:
        assert client.ask(b"lru_crawler metadump all\r\n") == b"ERROR metadump not allowed\r\n"
        assert client.ask(b"lru_crawler mgdump all\r\n") == b"ERROR key dump not allowed\r\n"
        assert client.ask(b"stats cachedump 1 0\r\n") == b"CLIENT_ERROR stats cachedump not allowed\r\n"
        assert client.ask(b"stats detail on\r\n") == b"CLIENT_ERROR stats detail not allowed\r\n"
    with start("-X", "--compat-version", "1.6.36").client() as client:
        assert client.ask(b"stats detail on\r\n") == b"OK\r\n"


@pytest.mark.parametrize("command, name", [(b"lru_crawler metadump all", b"metadump"), (b"lru_crawler mgdump all", b"mgdump"),
                                           (b"watch fetchers", b"watch")], ids=lambda value: value.decode())
def test_what_lends_a_connection_comes_first_in_a_pipeline(start, command, name):
    """Behind other answers it is an error, and the commands after it are answered."""
    with start().client() as client:
        for before, answers in ((b"verbosity 0\r\n", [b"OK\r\n"]), (b"mn\r\nget a\r\n", [b"MN\r\n", b"END\r\n"])):
            client.send(before + command + b"\r\nmn\r\n")
            wanted = [*answers, b"ERROR cannot pipeline other commands before %s\r\n" % name, b"MN\r\n"]
            assert [client.line() for _ in wanted] == wanted


@pytest.mark.parametrize("command, last", [(b"lru_crawler metadump all", b"END\r\n"), (b"lru_crawler mgdump all", b"EN\r\n")],
                         ids=lambda value: value.decode())
def test_a_pipeline_ends_at_mn(start, command, last):
    """What lends a connection may follow it in the same packet."""
    with start().client() as client:
        client.send(b"set a 0 0 1\r\nx\r\nget a\r\nmn\r\n" + command + b"\r\n")
        assert [client.line() for _ in range(6)] == [b"STORED\r\n", b"VALUE a 0 1\r\n", b"x\r\n", b"END\r\n", b"MN\r\n", b"OK\r\n"]
        assert client.line().lstrip(b"mgkey= ").startswith(b"a")
        client.send(b"mn\r\nwatch evictions\r\n")
        assert [client.line() for _ in range(3)] == [last, b"MN\r\n", b"OK\r\n"]


@pytest.mark.parametrize("version, last", [("1.6.38", b"0\n"), ("1.6.39", b"0 \n")])
def test_the_end_of_a_line_of_a_dump(start, version, last):
    """A blank is there where memcached has one."""
    with start("--compat-version", version).client() as client:
        client.set(b"a", b"x")
        client.send(b"lru_crawler metadump all\r\n")
        assert client.line().endswith(b" flags=" + last)
        assert client.line() == b"END\r\n"


def test_settings_of_slabs_are_kept(start):
    """There are no slabs: what is set shows in "stats settings" alone."""
    with start().client() as client:
        for line in (b"slabs automove window 2", b"slabs automove window 1801"):
            assert client.ask(line + b"\r\n") == b"CLIENT_ERROR automove window too low or too high\r\n"
        assert client.ask(b"slabs automove window x\r\n") == b"CLIENT_ERROR bad command line format\r\n"
        assert client.ask(b"slabs automove freeratio\r\n") == b"ERROR\r\n"
        assert client.ask(b"slabs automove window 20\r\n") == client.ask(b"slabs automove freeratio 0.5\r\n") == b"OK\r\n"
        rows = client.stats(b"settings")
        assert (rows["slab_automove_window"], float(rows["slab_automove_freeratio"])) == ("20", 0.5)


def test_the_crawler_can_be_switched_off(start):
    """Without it nothing is crawled or dumped, and it comes back."""
    with start().client() as client:
        assert client.ask(b"lru_crawler disable\r\n") == b"OK\r\n"
        assert client.ask(b"lru_crawler crawl all\r\n") == b"CLIENT_ERROR lru crawler disabled\r\n"
        assert client.ask(b"lru_crawler metadump all\r\n") == b"CLIENT_ERROR lru crawler disabled\r\n"
        assert client.ask(b"lru_crawler enable\r\n") == b"OK\r\n"
        assert client.all(b"lru_crawler metadump all\r\n") == b"OK\r\nEND\r\n"


def test_a_crawl_frees_what_is_expired(start):
    """What is asked for is done, and counted."""
    with start().client() as client:
        for n in range(50):
            client.set(b"key-%d" % n, b"x", exptime=1)
        reclaimed = lambda: client.ask(b"lru_crawler crawl all\r\n") and client.count("crawler_reclaimed", b"") >= 50
        until(reclaimed, "expired objects to be freed")
        assert client.stats()["curr_items"] == "0"
        assert client.count("lru_crawler_starts", b"") > 0


def test_less_memory_evicts(start):
    """cache_memlimit acts, both ways, and shows in stats."""
    daemon = start("-m", "64")
    with daemon.client() as client:
        fill(client, 40 << 20)
        before = int(client.stats()["bytes"])
        assert client.ask(b"cache_memlimit 16\r\n") == b"OK\r\n"
        assert client.stats()["limit_maxbytes"] == client.stats(b"settings")["maxbytes"] == str(16 << 20)
        until(lambda: int(client.stats()["bytes"]) < 16 << 20 < before, "evictions down to the new limit")
        assert client.all(b"cache_memlimit 48 noreply\r\n") == b""
        fill(client, 40 << 20)
        assert int(client.stats()["bytes"]) > 16 << 20


def test_flush_all_can_be_forbidden(start):
    """-F"""
    with start("-F").client() as client:
        client.set(b"key", b"x")
        assert client.ask(b"flush_all\r\n") == b"CLIENT_ERROR flush_all not allowed\r\n"
        assert client.all(b"flush_all noreply\r\n") == b""
        assert client.get(b"key")


@pytest.mark.parametrize("command", [b"shutdown", b"shutdown graceful"])
def test_shutdown_ends_the_daemon(start, command):
    """With -A, as a signal does; what was asked before is answered."""
    daemon = start("-A")
    with daemon.client() as client:
        assert client.all(b"shutdown now\r\n") == b"CLIENT_ERROR invalid shutdown mode\r\n"
        client.send(b"set key 0 0 1\r\nx\r\n" + command + b"\r\n")
        assert client.line() == b"STORED\r\n"
        assert client.ends()
    assert daemon.process.wait(PATIENCE) == 0


def test_cachedump_lists_a_class(start):
    """ITEM lines, as many as asked for."""
    with start().client() as client:
        for n in range(5):
            client.set(b"key-%d" % n, b"abc", exptime=1000 if n == 0 else 0)
        number = next(iter(dumped(client).values()))["cls"].encode()
        lines = client.all(b"stats cachedump %s 0\r\n" % number).splitlines()
        assert len(lines) == 6 and lines[-1] == b"END"
        assert sum(line.endswith(b"[3 b; 0 s]") for line in lines) == 4
        lines = client.all(b"stats cachedump %s 2\r\n" % number).splitlines()
        assert len(lines) == 3 and all(line.startswith(b"ITEM key-") for line in lines[:2])


def test_sizes_are_counted_once_enabled(start):
    """memcached's answers before 1.6.25, END included where it has it; since then an option alone enables them."""
    with start().client() as client:
        assert client.ask(b"stats sizes_enable\r\n") == client.ask(b"stats sizes_disable\r\n") == b"ERROR\r\n"
    with start("--compat-version", "1.6.24").client() as client:
        client.set(b"key", b"x" * 100)
        assert client.all(b"stats sizes\r\n") == b"STAT sizes_status disabled\r\nEND\r\n"
        assert client.all(b"stats sizes_enable\r\n") == b"STAT sizes_status enabled\r\n"
        assert sum(int(count) for count in client.stats(b"sizes").values()) == 1
        assert client.all(b"stats sizes_disable\r\n") == b"STAT sizes_status disabled\r\n"


def test_detail_counts_by_prefix(start):
    """On, counted, dumped, off."""
    with start().client() as client:
        client.set(b"a:0", b"x")
        assert client.all(b"stats detail dump\r\n") == b"END\r\n"
        assert client.ask(b"stats detail on\r\n") == b"OK\r\n"
        client.set(b"a:1", b"x")
        client.get(b"a:1", b"a:2", b"none", b"b:1")
        client.ask(b"delete b:1\r\n")
        assert client.all(b"stats detail dump\r\n") == (b"PREFIX a get 2 hit 1 set 1 del 0\r\n"
                                                        b"PREFIX b get 1 hit 0 set 0 del 1\r\nEND\r\n")
        assert client.ask(b"stats detail off\r\n") == b"OK\r\n"
        client.get(b"a:1")
        assert b"PREFIX a get 2 " in client.all(b"stats detail dump\r\n")


def test_detail_has_its_own_delimiter(start):
    """-D switches it on, too."""
    with start("-D", "/").client() as client:
        client.set(b"a/b:c", b"x")
        assert client.all(b"stats detail dump\r\n") == b"PREFIX a get 0 hit 0 set 1 del 0\r\nEND\r\n"


def test_apps_are_counted_by_prefix(placed):
    """Gets, hits and what came from flash."""
    with placed.daemon.client() as client:
        name = b"app-" + placed.where.encode()
        client.set(name + b":1", b"abc")
        client.get(name + b":1", name + b":2")
        rows = client.stats(b"apps")
    key = name.decode()
    assert rows[key + ":get_count"] == "2" and rows[key + ":get_hits"] == "1" and rows[key + ":set_count"] == "1"
    assert rows[key + ":value_bytes_read"] == "3" and rows[key + ":bytes_written"] == str(len(name) + 2 + 3)
    assert rows[key + ":get_misses"] == "1"


def test_apps_tell_hits_by_tier(placed):
    """An object that lies on flash is a flash hit of its application, and no DRAM hit."""
    def hits(tier):
        rows = placed.client.stats(b"apps")
        return sum(int(value) for name, value in rows.items() if name.endswith(f":{tier}_hits"))
    key = placed.put(PLAIN)
    before = hits("dram"), hits("flash")
    assert placed.client.get(key)
    expected = (0, 1) if placed.where == "flash" else (1, 0)
    assert (hits("dram") - before[0], hits("flash") - before[1]) == expected


def test_more_apps_than_have_rows_share_one(start):
    """64 of them, and the rest."""
    with start().client() as client:
        for n in range(100):
            client.set(b"app%d:k" % n, b"x")
        rows = client.stats(b"apps")
    assert rows["apps"] == "64" and rows["(none):set_count"] == "36"


def test_the_words_of_settings_follow_the_commands(start):
    """What was tuned is shown."""
    with start().client() as client:
        client.ask(b"lru tune 11 22 0.3 4.0\r\n")
        client.ask(b"lru_crawler tocrawl 77\r\n")
        client.ask(b"slabs automove 2\r\n")
        rows = client.stats(b"settings")
    assert (rows["hot_lru_pct"], rows["warm_lru_pct"], rows["hot_max_factor"]) == ("11", "22", "0.30")
    assert (rows["lru_crawler_tocrawl"], rows["slab_automove"]) == ("77", "2")
