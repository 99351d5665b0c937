# SPDX-License-Identifier: BSD-3-Clause
"""stats as monitoring agents read them: by their names, and by what each of them does with a line."""
import re

import pytest

from binary import BinaryClient
from helpers import Kind

KINDS = [Kind(b"a value")]

PROMETHEUS = """version uptime time get_hits get_misses delete_hits delete_misses incr_hits incr_misses decr_hits decr_misses
    cas_hits cas_misses cas_badval touch_hits touch_misses cmd_flush cmd_set rusage_user rusage_system bytes limit_maxbytes
    curr_items total_items bytes_read bytes_written curr_connections total_connections rejected_connections conn_yields
    listen_disabled_num evictions reclaimed store_too_large store_no_memory lru_crawler_starts direct_reclaims
    crawler_items_checked crawler_reclaimed moves_to_cold moves_to_warm moves_within_lru accepting_conns
    unexpected_napi_ids round_robin_fallback""".split()
PROMETHEUS_EXTSTORE = """compact_lost compact_rescues compact_skipped page_allocs page_evictions page_reclaims pages_free
    pages_used objects_evicted objects_read objects_written objects_used bytes_evicted bytes_written bytes_read bytes_used
    bytes_fragmented limit_maxbytes io_queue""".split()
PROMETHEUS_ITEMS = """number age number_hot number_warm number_cold age_hot age_warm mem_requested hits_to_hot hits_to_warm
    hits_to_cold hits_to_temp evicted evicted_nonzero evicted_time evicted_unfetched expired_unfetched outofmemory
    tailrepairs reclaimed crawler_reclaimed crawler_items_checked lrutail_reflocked moves_to_cold moves_to_warm
    moves_within_lru direct_reclaims""".split()
PROMETHEUS_SLABS = """get_hits delete_hits incr_hits decr_hits cas_hits touch_hits cas_badval cmd_set chunk_size
    chunks_per_page total_pages total_chunks used_chunks free_chunks free_chunks_end""".split()
DATADOG = """total_items curr_items limit_maxbytes uptime bytes curr_connections max_connections connection_structures threads
    pointer_size rusage_user rusage_system cmd_get cmd_set cmd_flush get_hits get_misses delete_misses delete_hits
    evictions bytes_read bytes_written cas_misses cas_hits cas_badval total_connections listen_disabled_num""".split()
COLLECTD = """rusage_user rusage_system threads curr_items uptime bytes limit_maxbytes curr_connections
    listen_disabled_num total_connections incr_hits incr_misses decr_hits decr_misses get_hits get_misses evictions
    delete_hits delete_misses bytes_read bytes_written cmd_get cmd_set cmd_flush cmd_touch""".split()
TELEGRAF = """get_hits get_misses evictions limit_maxbytes bytes uptime curr_items total_items curr_connections
    total_connections connection_structures cmd_get cmd_set delete_hits delete_misses incr_hits incr_misses decr_hits
    decr_misses cas_hits cas_misses bytes_read bytes_written threads conn_yields""".split()
MUNIN = """bytes bytes_read bytes_written cmd_get cmd_set connection_structures curr_connections curr_items get_hits
    get_misses limit_maxbytes rusage_system rusage_user total_connections total_items version""".split()
ADMIN = """accepting_conns cmd_flush cmd_touch touch_hits touch_misses evicted_unfetched expired_unfetched reclaimed
    hash_bytes hash_is_expanding hash_power_level slab_reassign_running slabs_moved""".split()
ADMIN_SETTINGS = """maxbytes maxconns tcpport udpport inter evictions domain_socket umask growth_factor chunk_size num_threads
    detail_enabled reqs_per_event cas_enabled tcp_backlog auth_enabled_sasl oldest""".split()
REPORTS = [b"", b" settings", b" items", b" slabs", b" latency", b" apps"]


def lines(client, report=b""):
    """All lines of a report, END included."""
    client.send(b"stats" + report + b"\r\n")
    found = [client.line()]
    while found[-1] != b"END\r\n":
        found.append(client.line())
    return found


@pytest.fixture
def used(placed):
    """A client of a daemon in which each size class has been asked for something."""
    client = placed.client
    for number in range(40):
        client.set(b"exported-%d" % number, b"x" * (25 * number))
        client.get(b"exported-%d" % number, b"not-exported-%d" % number)
    return client


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.decode() or "general")
def test_telegraf_takes_each_line(used, report):
    """Three words in each line before END; what it knows is a whole number."""
    rows = {}
    for line in lines(used, report)[:-1]:
        words = line.rstrip(b"\r\n").split(b" ", 2)
        assert len(words) == 3 and words[0] == b"STAT" and line.endswith(b"\r\n"), line
        rows[words[1].decode()] = words[2]
    assert report or all(rows[name].isdigit() for name in TELEGRAF)


def test_prometheus_scrapes(used):
    """memcached_exporter: one value that isn't a number, or a time without one dot, fails the whole scrape."""
    rows = used.stats()
    for name in PROMETHEUS[1:]:
        assert float(rows[name]) >= 0, name
    for name in ("rusage_user", "rusage_system"):
        seconds, microseconds = rows[name].split(".")
        assert seconds.isdigit() and microseconds.isdigit()
    assert int(rows["cmd_set"]) >= int(rows["cas_misses"]) + int(rows["cas_hits"]) + int(rows["cas_badval"])
    if "extstore_limit_maxbytes" in rows:
        assert all(float(rows["extstore_" + name]) >= 0 for name in PROMETHEUS_EXTSTORE)
    assert "proxy_backend_total" not in rows


def test_prometheus_scrapes_settings(used):
    """The crawler's settings are read where lru_crawler is yes."""
    rows = used.stats(b"settings")
    assert int(rows["maxconns"]) > 0 and rows["lru_crawler"] in ("yes", "no")
    for name in "lru_crawler_sleep lru_crawler_tocrawl hot_lru_pct warm_lru_pct hot_max_factor warm_max_factor".split():
        assert float(rows[name]) >= 0, name
    assert rows["lru_maintainer_thread"] in ("yes", "no")


def test_prometheus_scrapes_items_and_slabs(used):
    """items:CLASS:name and CLASS:name; a class that isn't a number fails the scrape."""
    items = {}
    for name, value in used.stats(b"items").items():
        _, number, what = re.fullmatch(r"(items):(\d+):(\w+)", name).groups()
        items.setdefault(int(number), {})[what] = float(value)
    slabs = {}
    for name, value in used.stats(b"slabs").items():
        if ":" in name:
            number, what = name.split(":")
            slabs.setdefault(int(number), {})[what] = float(value)
        else:
            assert name in ("active_slabs", "total_malloced") and value.isdigit()
    assert len(items) > 3 and set(items) <= set(slabs)
    assert all(not set(PROMETHEUS_ITEMS) - set(rows) for rows in items.values())
    assert all(not set(PROMETHEUS_SLABS) - set(rows) for rows in slabs.values())
    assert all("mem_requested" in rows for rows in items.values())


def test_memory_of_an_empty_cache_is_a_page(start):
    """memcached keeps its first page, also when all objects are deleted."""
    with start("-m", "8").client() as client:
        assert client.count("total_malloced", b"slabs") == 0
        assert client.set(b"key", b"value") == b"STORED\r\n"
        assert client.ask(b"delete key\r\n") == b"DELETED\r\n"
        assert client.count("total_malloced", b"slabs") == 1 << 20


def test_datadog_reads_binary_stats(used, placed):
    """By the binary protocol: numbers, a version, and items and slabs where it is told to."""
    with BinaryClient(placed.daemon.port) as client:
        rows = client.rows()
        assert all(float(rows[name]) >= 0 for name in DATADOG) and rows["version"]
        assert set(used.stats(b"slabs")) == set(client.rows(b"slabs"))
        assert client.rows(b"items") and client.rows(b"settings")


def test_collectd_reads_lines(used):
    """It takes lines of exactly three words, and cmd_ whatever follows."""
    fields = [line.split() for line in lines(used) if len(line.split()) == 3]
    rows = {name.decode(): value for _, name, value in fields}
    assert all(float(rows[name]) >= 0 for name in COLLECTD)
    assert all(rows[name].isdigit() for name in rows if name.startswith("cmd_"))


def test_munin_reads_lines(used):
    """Its expression, and the version that it shows as a graph's title."""
    found = dict(re.fullmatch(rb"STAT\s(\w+)\s(\S+)\s*", line).groups() for line in lines(used)[:-1])
    assert all(re.match(rb"\d+(\.\d+)*", found[name.encode()]) for name in MUNIN)


def test_php_memcached_admin(used):
    """What its pages show beside the above, up to the keys of a class."""
    assert not set(ADMIN) - set(used.stats()) and not set(ADMIN_SETTINGS) - set(used.stats(b"settings"))
    for number in {name.split(":")[1] for name in used.stats(b"items")}:
        for line in lines(used, b" cachedump %s 10" % number.encode())[:-1]:
            assert re.fullmatch(rb"ITEM \S+ \[\d+ b; \d+ s\]\r\n", line)
