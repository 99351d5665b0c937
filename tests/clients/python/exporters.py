# SPDX-License-Identifier: BSD-3-Clause
"""Reads stats as monitoring agents do, by the names they know: exporters.py HOST:PORT

Prometheus' memcached_exporter (a value that isn't a number makes its scrape fail), collectd, telegraf (a line before
END that isn't "STAT name value" is an error), munin, phpMemcachedAdmin. A report is one check, however many rows and classes it has:
so the counts are memcached's too.
"""
import re
import socket
import sys
import time

from pymemcache.client.base import Client

from checks import Checks, address

checks = Checks("exporters")
connection = socket.create_connection(address(sys.argv[1]), 60)
reader = connection.makefile("rb")
INTEGER = r"\d+"
SECONDS = r"\d+\.\d{6}"
NUMBER = r"\d+(\.\d+)?"
YES_NO = r"yes|no"

PLAIN = {
    INTEGER: """uptime time get_hits get_misses delete_hits delete_misses incr_hits incr_misses decr_hits decr_misses
        cas_hits cas_misses touch_hits touch_misses cas_badval cmd_flush cmd_set cmd_get cmd_touch bytes limit_maxbytes
        curr_items total_items bytes_read bytes_written curr_connections total_connections rejected_connections
        max_connections connection_structures conn_yields listen_disabled_num evictions reclaimed store_too_large
        store_no_memory lru_crawler_starts direct_reclaims crawler_items_checked crawler_reclaimed moves_to_cold moves_to_warm
        moves_within_lru accepting_conns unexpected_napi_ids round_robin_fallback threads pid pointer_size
        evicted_unfetched expired_unfetched hash_bytes hash_is_expanding hash_power_level slab_reassign_running slabs_moved
        """,
    SECONDS: "rusage_user rusage_system",
    r"\d+\.\d+\.\d+.*": "version",
}
SETTINGS = {
    INTEGER: """maxconns maxbytes tcpport udpport umask num_threads chunk_size reqs_per_event tcp_backlog oldest
        item_size_max lru_crawler_sleep lru_crawler_tocrawl hot_lru_pct warm_lru_pct""",
    NUMBER: "hot_max_factor warm_max_factor growth_factor",
    YES_NO: "lru_crawler lru_maintainer_thread cas_enabled auth_enabled_sasl detail_enabled flush_enabled dump_enabled",
    "on|off": "evictions",
    ".*": "inter domain_socket",
}
ITEMS = """number age number_hot number_warm number_cold age_hot age_warm mem_requested hits_to_hot hits_to_warm hits_to_cold
    hits_to_temp evicted evicted_nonzero evicted_time evicted_unfetched expired_unfetched outofmemory tailrepairs reclaimed
    crawler_reclaimed crawler_items_checked lrutail_reflocked moves_to_cold moves_to_warm moves_within_lru direct_reclaims"""
SLABS = """get_hits delete_hits incr_hits decr_hits cas_hits touch_hits cas_badval cmd_set chunk_size chunks_per_page
    total_pages total_chunks used_chunks free_chunks free_chunks_end"""
EXTSTORE = """compact_lost compact_rescues compact_skipped page_allocs page_evictions page_reclaims pages_free pages_used
    objects_evicted objects_read objects_written objects_used bytes_evicted bytes_written bytes_read bytes_used
    bytes_fragmented limit_maxbytes io_queue"""


def stats(report=""):
    connection.sendall(f"stats {report}".rstrip().encode() + b"\r\n")
    rows, others = [], []
    while (line := reader.readline()) != b"END\r\n":
        match = re.fullmatch(rb"STAT (\S+) (.*)\r\n", line)
        if not line.startswith(b"STAT"):
            raise ValueError(f"stats {report}: {line!r}")
        if match:
            rows.append((match.group(1).decode(), match.group(2).decode()))
        else:
            others.append(line)
    checks.same(f"stats {report}: rows that aren't STAT name value", others, [])
    names = [name for name, _ in rows]
    checks.same(f"stats {report}: every name once", sorted(names), sorted(set(names)))
    return dict(rows)


def is_typed(rows, form, name):
    return name in rows and re.fullmatch(form, rows[name])


def typed(report, rows, wanted):
    for form, names in wanted.items():
        for name in names.split():
            checks.true(f"{report} {name}", is_typed(rows, form, name), repr(rows.get(name)))


client = Client(address(sys.argv[1]), default_noreply=False)
client.flush_all()
for i in range(100):
    client.set(f"key-{i}", b"x" * (10 * i))
    client.get(f"key-{i}")
client.get("nothing")
client.incr("nothing", 1)
client.touch("key-1", 100)
client.delete("key-2")
client.cas("key-3", "x", "1")

with checks.part("stats"):
    before = stats()
    typed("stats", before, PLAIN)
    flash = "extstore_limit_maxbytes" in before  # its objects are in no class, but for one that is too large to go there
    checks.same("rows of extstore that are no numbers", [name for name in EXTSTORE.split()
                                                         if flash and not is_typed(before, INTEGER, "extstore_" + name)], [])
    checks.true("limit_maxbytes", int(before["limit_maxbytes"]) >= 1 << 20)
    checks.true("time", abs(int(before["time"]) - int(time.time())) <= 2)
    checks.true("curr_items", int(before["curr_items"]) >= 99)
    checks.true("bytes", int(before["bytes"]) >= 49000, before["bytes"])
    client.set("key-1", "x")
    client.get("key-1")
    client.get("nothing")
    client.delete("nothing")
    client.delete("key-1")
    client.touch("nothing", 1)
    client.cas("nothing", "x", "1")
    client.cas("key-3", "x", "1")
    client.set("n", "1")
    client.incr("n", 1)
    client.decr("n", 1)
    client.incr("nothing", 1)
    client.decr("nothing", 1)
    client.flush_all()
    after = stats()
    for name in """get_hits get_misses touch_misses cas_misses cas_badval incr_hits decr_hits incr_misses decr_misses cmd_flush
                   cmd_touch delete_hits delete_misses""".split():
        counted = int(after[name]) - int(before[name])
        checks.same(f"{name} counts one", counted, 1)
    for name, least in (("cmd_set", 4), ("total_items", 2), ("bytes_read", 200), ("bytes_written", 100)):
        checks.true(f"{name} counts", int(after[name]) - int(before[name]) >= least, (before[name], after[name]))

with checks.part("stats settings"):
    typed("settings", stats("settings"), SETTINGS)

with checks.part("stats items and slabs"):
    for i in range(100):
        client.set(f"key-{i}", b"x" * (10 * i))
    client.set("large", b"x" * 600000)
    items, others = {}, []
    for name, value in stats("items").items():
        match = re.fullmatch(r"items:(\d+):(\w+)", name)
        if match and re.fullmatch(INTEGER, value):
            items.setdefault(match.group(1), set()).add(match.group(2))
        else:
            others.append(f"{name} {value}")
    checks.same("rows that aren't items:CLASS:name and a number", others, [])
    checks.true("classes", len(items) > (0 if flash else 3), items.keys())
    checks.same("items' names that a class lacks", {kind: lacks for kind, names in items.items() if (lacks := set(ITEMS.split()) - names)}, {})
    slabs, totals = {}, {}
    report = stats("slabs")
    checks.same("rows of slabs that are no numbers", [name for name, value in report.items() if not re.fullmatch(INTEGER, value)], [])
    for name, value in report.items():
        kind, _, rest = name.rpartition(":")
        (slabs.setdefault(kind, {}) if kind else totals)[rest] = int(value)
    checks.true("totals", {"active_slabs", "total_malloced"} <= set(totals), totals)
    checks.same("classes that are no numbers", [kind for kind in slabs if not kind.isdigit()], [])
    checks.same("slabs' names that a class lacks", {kind: lacks for kind, row in slabs.items() if (lacks := set(SLABS.split()) - set(row))}, {})
    checks.same("every class of items is a slab class", set(items) - set(slabs), set())
    sizes = [slabs[kind]["chunk_size"] for kind in sorted(slabs, key=int)]
    checks.same("classes rise", sizes, sorted(set(sizes)))
    checks.true("chunks", sum(row["used_chunks"] for row in slabs.values()) >= (1 if flash else 100))

with checks.part("others"):
    for report in ("sizes", "conns"):
        stats(report)
    connection.sendall(b"stats nonsense\r\n")
    checks.same("stats nonsense", reader.readline(), b"ERROR\r\n")

checks.done()
