# SPDX-License-Identifier: BSD-3-Clause
"""stats hotkeys: the keys that are asked for most, in every protocol and on both tiers, as far as the operator lets them be seen."""
import re
import signal

import pytest

from binary import GET, SET, BinaryClient, packet, store
from helpers import Kind, free_port, until
from metrics import scrape

PLAIN = Kind(b"a value of some length")
KINDS = [PLAIN]
MEASURES = ["requests", "bytes", "reads"]
WINDOWS = ["1m", "10m"]
ODD = b"a b\r\n\x00\xff%END\x1b"
ODD_SHOWN = "a%20b%0D%0A%00%FF%25END%1B"


def hotkeys(client, most=b""):
    """{(measure, window): [{key, hash, requests, ...}]}, the hottest first; and the other rows."""
    ranked, others = {}, {}
    for name, value in client.stats(b"hotkeys " + most).items():
        words = name.split(":")
        if words[-1].isdigit():
            found = dict(word.split("=", 1) for word in value.split(" "))
            rows = ranked.setdefault((words[0], words[1]), [])
            assert int(words[2]) == len(rows) + 1, "ranks are in order"
            rows.append(found)
        else:
            others[name] = value
    return ranked, others


def keys_of(client, measure="requests", window="1m"):
    return [row.get("key") for row in hotkeys(client)[0].get((measure, window), [])]


def ask(client, key, times):
    client.all(b"".join(b"get %s\r\n" % key for _ in range(times)))


@pytest.mark.parametrize("words", [b"0", b"101", b"-1", b"1x", b"ten", b"99999999999999999999", b"+5"])
def test_a_count_that_is_none_is_refused(client, words):
    assert client.ask(b"stats hotkeys %s\r\n" % words) == b"CLIENT_ERROR usage: stats hotkeys [1 to 100]\r\n"
    assert client.ask(b"mn\r\n") == b"MN\r\n"


def test_off_counts_nothing(start):
    daemon = start("--hotkeys", "off")
    with daemon.client() as client:
        ask(client, b"key", 5000)
        assert client.stats(b"hotkeys") == {"shown": "off", "sampled_each": "100", "reads_sampled_each": "4"}


@pytest.mark.parametrize("options,shown", [(["--hotkeys", "hashes"], "hashes"), (["-X"], "hashes"), (["-X", "--hotkeys", "off"], "off"),
                                           (["-X", "--hotkeys", "keys"], "hashes"), ([], "keys")])
def test_what_is_shown_of_keys(start, options, shown):
    """Where keys can't be dumped, none is shown here."""
    daemon = start(*options)
    with daemon.client() as client:
        client.set(b"the-key", b"v")
        ask(client, b"the-key", 5000)
        ranked, others = hotkeys(client)
        assert others["shown"] == shown
        assert [row.get("key") for row in ranked.get(("requests", "1m"), [])] == {"keys": ["the-key"], "hashes": [None], "off": []}[shown]
        if shown != "keys":
            assert b"the-key" not in client.all(b"stats hotkeys 100\r\n")


def test_a_reload_forgets_keys(start, open_folder):
    """SIGHUP from keys to hashes and to off and back; -X of the start stays in force."""
    path = open_folder / "flashield.conf"
    path.write_text("hotkeys = keys\n")
    path.chmod(0o644)
    daemon = start("--config", str(path))
    with daemon.client() as client:
        for word, keys in [("keys", ["the-key"]), ("hashes", [None]), ("off", []), ("keys", ["the-key"])]:
            path.write_text(f"hotkeys = {word}\n")
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda: client.stats(b"settings")["hotkeys"] == word, f"hotkeys = {word}")
            ask(client, b"the-key", 20000)
            assert keys_of(client) == keys


def test_the_hottest_come_first(start):
    """By requests and by bytes, with counts near the truth; both windows have the last seconds."""
    daemon = start()
    with daemon.client() as client:
        client.set(b"large", b"v" * 100000)
        client.set(b"small", b"v" * 10)
        for _ in range(20):
            ask(client, b"small", 2000)
            ask(client, b"large", 20)
            ask(client, b"absent", 500)
        for window in WINDOWS:
            assert keys_of(client, "requests", window)[:2] == ["small", "absent"]
            assert keys_of(client, "bytes", window)[:1] == ["large"]
            assert keys_of(client, "reads", window) == []
        ranked, others = hotkeys(client, b"1")
        row, = ranked["requests", "1m"]
        assert 30000 < int(row["requests"]) < 50000 and 300000 < int(row["bytes"]) < 500000 and row["reads"] == "0"
        assert 40000 < int(others["requests:1m:total"]) < 62000
        row, = ranked["bytes", "1m"]
        assert 36e6 < int(row["bytes"]) < 44e6 and 300 < int(row["requests"]) < 500
        assert set(row) == {"key", "hash", "requests", "bytes", "reads", "error", "since"}
        assert int(others["requests:1m:seconds"]) <= int(others["requests:10m:seconds"])
        now = int(client.stats()["time"])
        assert now - 3600 < int(row["since"]) <= now


def test_reads_count_by_key(placed):
    """Keys on flash are hot by reads, those in DRAM aren't. So many in turn that none is still there from the last read."""
    def total():
        return int(hotkeys(placed.client)[1]["reads:10m:total"])
    keys, before = placed.put_many(PLAIN, 40), total()
    read = placed.client.count("flash_reads_on_hit")
    for _ in range(25):
        for key in keys:
            placed.client.get(key)
    read = placed.client.count("flash_reads_on_hit") - read
    if placed.where == "flash":
        assert read > 500 and read / 2 < total() - before < 2 * read
        ranked, _ = hotkeys(placed.client, b"100")
        assert {key.decode() for key in keys} & {row["key"] for row in ranked["reads", "10m"] if int(row["reads"]) >= 4}
    else:
        assert read == 0 and total() == before


def test_keys_of_any_bytes(start):
    """A key of the binary protocol may have line ends and spaces: it is one word of one row."""
    daemon = start()
    with BinaryClient(daemon.port) as binary:
        binary.ask(store(SET, ODD, b"value"))
        for _ in range(3000):
            binary.ask(packet(GET, ODD))
    with daemon.client() as client:
        for _ in range(3000):
            client.ask(b"mg " + b"k" * 250 + b" v\r\n")
        lines = client.all(b"stats hotkeys\r\n").split(b"\r\n")
        assert all(re.fullmatch(rb"STAT \S+ [!-~ ]+|END|", line) for line in lines), lines
        assert sorted(keys_of(client)) == sorted([ODD_SHOWN, "k" * 250])
    with BinaryClient(daemon.port) as binary:
        rows = binary.rows(b"hotkeys")
        assert rows["shown"] == "keys" and rows["requests:1m:1"].startswith("key=")


def test_the_share_in_metrics(start):
    """/metrics has shares without keys."""
    port = free_port()
    with start(f"--metrics-listen=127.0.0.1:{port}").client() as client:
        client.set(b"the-key", b"v" * 100)
        for _ in range(3):
            ask(client, b"the-key", 9000)
        for n in range(100):
            ask(client, b"other-%d" % n, 30)
        shares = {(dict(labels)["by"], dict(labels)["keys"]): share
                  for labels, share in scrape(port)["flashield_hotkeys_share_ratio"].items()}
        assert set(shares) == {(by, keys) for by in ("requests", "bytes") for keys in ("1", "10")}  # nothing was read from flash
        assert 0.7 < shares["requests", "1"] < 1 and shares["bytes", "1"] > 0.99
        assert shares["requests", "1"] <= shares["requests", "10"] <= 1
