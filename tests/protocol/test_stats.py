# SPDX-License-Identifier: BSD-3-Clause
"""The reports behind stats, with memcached's names and meanings."""
import mmap
import pathlib
import re
import subprocess

import pytest

from helpers import Kind, fill_turn, flashield_command, until

TABLES = pathlib.Path(__file__).parents[2] / "base" / "metrics"
PLAIN = Kind(b"a value of some length")
KINDS = [PLAIN]

FLASH_NAMES = """flash_items flash_ghosts flash_live_bytes flash_hits flash_reads flash_reads_on_hit
    flash_reads_on_miss flash_pages_read flash_bytes_written flash_bytes_read app_bytes_written clwa clwa_5m clwa_1h clwa_1d
    flash_write_limit flash_write_budget_used segments_total
    segments_used segment_fill index_slots index_load index_bytes index_drops filter_bytes
    dram_bytes_per_flash_item innocent_drops flash_read_errors flash_checksum_errors""".split()

EXPORTED = """version uptime time get_hits get_misses delete_hits delete_misses incr_hits incr_misses decr_hits
    decr_misses cas_hits cas_misses cas_badval touch_hits touch_misses cmd_get cmd_flush cmd_set cmd_touch rusage_user
    rusage_system bytes limit_maxbytes curr_items total_items bytes_read bytes_written curr_connections max_connections
    total_connections rejected_connections conn_yields listen_disabled_num evictions reclaimed store_too_large
    store_no_memory direct_reclaims crawler_items_checked crawler_reclaimed accepting_conns threads pid libevent
    pointer_size connection_structures hash_power_level hash_bytes hash_is_expanding expired_unfetched
    evicted_unfetched time_in_listen_disabled_us""".split()

SETTINGS = """maxbytes maxconns tcpport udpport inter verbosity evictions domain_socket umask num_threads cas_enabled
    tcp_backlog item_size_max detail_enabled reqs_per_event flush_enabled""".split()


def test_general_report_has_what_exporters_read(client):
    """The names of memcached's that exporters read are there, once each."""
    client.send(b"stats\r\n")
    names = []
    while (line := client.line()) != b"END\r\n":
        names.append(line.decode().split(" ")[1])
    assert len(names) == len(set(names))
    assert not set(EXPORTED) - set(names)


def test_values_are_numbers(client):
    """All but versions and a reason parse as numbers; times have one dot."""
    rows = client.stats()
    for name in ("version", "libevent", "slab_reassign_last_busy_status"):
        rows.pop(name)
    for name, value in rows.items():
        assert re.fullmatch(r"\d+(\.\d{6})?", value), name
    assert "." in rows["rusage_user"]


def test_power_of_the_hash_table(client):
    """hash_power_level is the binary logarithm of what there is room for in hash_bytes, of which a part is for other things."""
    rows = client.stats()
    assert 2 ** int(rows["hash_power_level"]) <= int(rows["hash_bytes"]) // 8 < 2 ** (int(rows["hash_power_level"]) + 2)


def test_version_is_memcacheds(client):
    """Clients parse it; ours is in a report of ours."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", client.stats(b"flash")["flashield_version"])
    assert client.stats()["version"] == client.ask(b"version\r\n").decode().split()[1] == "1.6.45"


def test_settings(client, dram_daemon):
    """memcached's settings, and every option of ours."""
    rows = client.stats(b"settings")
    assert not set(SETTINGS) - set(rows)
    assert rows["maxbytes"] == str(64 << 20) and rows["tcpport"] == str(dram_daemon.port)
    assert rows["flashiness_threshold"] == "1"


def test_settings_have_each_option_of_ours(client):
    """Those with a value. memcached's have its names, and most of them a letter."""
    shown = subprocess.run([flashield_command(), "--help"], check=True, capture_output=True, text=True).stdout
    names = {name.replace("-", "_") for name in re.findall(r"^      --([a-z0-9-]+)=", shown, re.M)}
    assert len(names) > 40 and names - set(client.stats(b"settings")) == {"config"}


def test_active_slabs_are_those_with_objects(start):
    """As many as have rows."""
    with start().client() as client:
        for count, size in enumerate((10, 100, 1000, 10000), 1):
            client.set(b"key-%d" % size, b"x" * size)
            rows = client.stats(b"slabs")
            assert int(rows["active_slabs"]) == len({name.split(":")[0] for name in rows if ":" in name}) == count


def test_slabs_have_as_many_chunks_as_objects(start):
    """None is free, and pages are as many as the objects would fill."""
    with start().client() as client:
        for i in range(3):
            client.set(b"key-%d" % i, b"x" * 1000)
        rows = {name.partition(":")[2]: int(value) for name, value in client.stats(b"slabs").items() if ":" in name}
        assert {rows[name] for name in ("total_chunks", "used_chunks", "cmd_set")} == {3}
        assert (rows["total_pages"], rows["free_chunks"], rows["free_chunks_end"], rows["get_hits"]) == (1, 0, 0, 0)
        assert rows["chunk_size"] * rows["chunks_per_page"] <= 1 << 20


def test_flash_report_is_complete(placed):
    """The names are there with flash and without."""
    assert not set(FLASH_NAMES) - set(placed.client.stats(b"flash"))


def described(table, kind, report):
    """Names in a table of base/metrics, of rows or counters of that report."""
    with open(TABLES / f"{table}.def", encoding="utf-8") as opened:
        rows = re.findall(rf"^{kind}\((\w+), (\w+),", opened.read(), re.M)
    return [second if kind == "ROW" else first for first, second in rows if report in (first, second)]


@pytest.mark.parametrize("report", ["flash", "classifier", "memory", "segments"])
def test_each_row_that_is_described_is_given(placed, report):
    """Nothing that the reference names is left out, with flash or without. Of rows the order is the table's too."""
    given, rows = list(placed.client.stats(report.encode())), described("rows", "ROW", report.upper())
    assert len(rows) > 2 and [name for name in given if name in rows] == rows
    assert not set(described("counters", "COUNTER", report.upper())) - set(given)


def test_each_row_of_an_application_is_given(start):
    daemon = start("--app-delimiter", ":")
    with daemon.client() as client:
        client.ask(b"set shop:k 0 0 1\r\nx\r\n")
        given = set(client.stats(b"apps"))
    assert not {f"shop:{name}" for name in described("rows", "ROW", "APPS") if name != "apps"} - given


def test_parts_of_memory_are_no_more_than_there_is(start):
    """No part is counted twice, and none that another has is in "other"."""
    with start("-m", "16").client() as client:
        client.send(b"".join(b"set %d 0 0 500 noreply\r\n%s\r\n" % (n, b"x" * 500) for n in range(20000)))
        client.ask(b"mn\r\n")
        rows = {name: int(value) for name, value in client.stats(b"memory").items()}
    assert rows["items"] > 8 << 20 and rows["sum"] < 1.5 * rows["resident"]
    assert rows["other"] < rows["items"]


def test_read_unit(start, flash_options):
    """Reads begin and end at the drive's blocks, or at pages where the operator wants that."""
    units = []
    for unit in "block", "page":
        daemon = start(*flash_options, "--flash-read-unit", unit)
        with daemon.client() as client:
            units.append(client.count("flash_read_unit"))
        daemon.stop()
    assert units[1] == mmap.PAGESIZE and units[0] in (512, 4096)


def test_classifier_report(placed):
    """It says which model is in use, why, and what it weighs."""
    rows = placed.client.stats(b"classifier")
    assert rows["model"] == "none" and rows["reason"]
    assert not {"precision", "recall", "weight_reads", "weight_mean_gap", "samples_taken", "threshold"} - set(rows)


def test_segments_report(placed):
    """Totals of the segments."""
    rows = placed.client.stats(b"segments")
    assert (rows["segments_total"] == "0") == (placed.where == "dram")


@pytest.mark.parametrize("command, name", [
    (b"get %s\r\n", "get_hits"), (b"get none\r\n", "get_misses"), (b"delete none\r\n", "delete_misses"),
    (b"incr none 1\r\n", "incr_misses"), (b"decr none 1\r\n", "decr_misses"), (b"touch none 0\r\n", "touch_misses"),
    (b"cas none 0 0 1 1\r\nx\r\n", "cas_misses"), (b"touch %s 0\r\n", "touch_hits"), (b"delete %s\r\n", "delete_hits"),
    (b"set none-%s 0 0 1\r\nx\r\n", "cmd_set"), (b"gat 0 %s\r\n", "cmd_touch")], ids=lambda value: str(value))
def test_a_command_counts_once(placed, command, name):
    """Each command moves its counter by one, wherever its object lies."""
    key = placed.put(PLAIN)
    before = placed.client.count(name, b"")
    placed.client.all(command.replace(b"%s", key))
    assert placed.client.count(name, b"") == before + 1


def test_flash_counts_in_curr_items(placed):
    """curr_items covers both tiers."""
    placed.put(PLAIN)
    rows, flash = placed.client.stats(), placed.client.stats(b"flash")
    assert int(rows["curr_items"]) >= int(flash["flash_items"]) + (placed.where == "dram")


def test_reset(start):
    """stats reset starts the counters anew."""
    with start().client() as client:
        client.get(b"none")
        assert client.count("get_misses", b"") == 1
        assert client.ask(b"stats reset\r\n") == b"RESET\r\n"
        assert client.count("get_misses", b"") == 0


def test_windows_of_writes(start, flash_options):
    """Shortly after the start all of them are of the time since then, and stats reset doesn't touch them."""
    with start(*flash_options, "--flash-write-limit", "1g").client() as client:
        assert {client.stats(b"flash")[f"clwa_{name}"] for name in ("5m", "1h", "1d")} == {"nan"}
        until(lambda: fill_turn(client) or client.count("segments_written") > 2, "segments that were written")
        client.ask(b"stats reset\r\n")
        rows = client.stats(b"flash")
        assert rows["flash_write_limit"] == str(1 << 30) and float(rows["flash_write_budget_used"]) > 0
        assert float(rows["clwa_5m"]) > 0 and rows["clwa_5m"] == rows["clwa_1h"] == rows["clwa_1d"]


@pytest.mark.parametrize("report", [b"items", b"slabs", b"conns", b"sizes"])
def test_reports_of_slabs_end(client, report):
    """Reports on what is not here are empty, but well-formed."""
    client.stats(report)


def test_segments_stand_for_pages_of_extstore(start, flash_options, client):
    """stats extstore has four rows for each segment, as memcached has for each page; nothing without flash."""
    assert client.stats(b"extstore") == {}
    with start(*flash_options).client() as flash:
        def pages():
            found = {}
            for name, value in flash.stats(b"extstore").items():
                number, field = name.split(":")
                found.setdefault(int(number), {})[field] = int(value)
            return found

        def agree():
            """The cleaner may write a segment between two reports."""
            fill_turn(flash)
            found, whole = pages(), flash.stats()
            used = [page for page in found.values() if page["version"] > 0]
            return len(used) == int(whole["extstore_pages_used"]) > 0 and sum(page["bytes"] for page in used) > 0

        until(agree, "segments in use")
        found = pages()
        assert sorted(found) == list(range(int(flash.stats(b"segments")["segments_total"])))
        assert all(list(page) == ["version", "bytes", "bucket", "free_bucket"] for page in found.values())


CRAWLER = ["lru_crawler_running", "lru_crawler_starts"]


@pytest.mark.parametrize("options, command, shown", [([], b"disable", False), (["-o", "no_lru_crawler"], b"enable", True)], ids=["off", "on"])
def test_rows_of_the_crawler_come_and_go_with_it(start, options, command, shown):
    """They are there while it is switched on, by an option or by a command."""
    with start(*options).client() as client:
        assert [name in client.stats() for name in CRAWLER] == [not shown] * 2
        assert client.ask(b"lru_crawler " + command + b"\r\n") == b"OK\r\n"
        assert [name in client.stats() for name in CRAWLER] == [shown] * 2
