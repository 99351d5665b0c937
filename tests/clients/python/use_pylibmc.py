# SPDX-License-Identifier: BSD-3-Clause
"""pylibmc (libmemcached): use_pylibmc.py HOST:PORT... [--binary] [--user U --password P]. With three servers, ketama."""
import argparse
import datetime

import pylibmc

from checks import Checks

parser = argparse.ArgumentParser()
parser.add_argument("servers", nargs="+")
parser.add_argument("--binary", action="store_true")
parser.add_argument("--user")
parser.add_argument("--password")
arguments = parser.parse_args()
checks = Checks(f"pylibmc {'binary' if arguments.binary else 'text'}, {len(arguments.servers)} servers")
behaviors = {"cas": True, "tcp_nodelay": True, "_poll_timeout": 120000}
if len(arguments.servers) > 1:
    behaviors["ketama"] = True


def connect(**more):
    return pylibmc.Client(arguments.servers, binary=arguments.binary, username=arguments.user,
                          password=arguments.password, behaviors={**behaviors, **more})


client = connect()

with checks.part("refusals"):
    checks.same("get of nothing", client.get("nothing"), None)
    checks.same("get of nothing, default", client.get("nothing", "else"), "else")
    checks.raises("subscript of nothing", KeyError, lambda: client["nothing"])
    checks.same("delete of nothing", client.delete("nothing"), False)
    if arguments.binary:
        checks.raises("replace of nothing", pylibmc.NotFound, client.replace, "nothing", 1)
    else:
        checks.same("replace of nothing", client.replace("nothing", 1), False)
    checks.same("append to nothing", client.append("nothing", "x"), False)
    checks.same("prepend to nothing", client.prepend("nothing", "x"), False)
    checks.raises("incr of nothing", pylibmc.NotFound, client.incr, "nothing")
    checks.raises("decr of nothing", pylibmc.NotFound, client.decr, "nothing")
    checks.raises("too large", pylibmc.Error, client.set, "large", b"x" * 1500000)
    checks.same("alive after too large", client.set("after", "x"), True)
    checks.raises("long key", Exception, client.set, "k" * 251, "x")
    client.set("word", "abc")
    checks.raises("incr of a word", pylibmc.Error, client.incr, "word")
    checks.same("word untouched", client.get("word"), "abc")

with checks.part("values"):
    values = {"str": "text", "unicode": "\u00fcml\u00e4ut \u20ac", "bytes": bytes(range(256)), "int": 12345, "negative": -7,
              "none": None, "float": 1.5, "list": [1, "two", None], "dict": {"a": [1]}, "empty": "",
              "time": datetime.datetime(2020, 1, 2), "crlf": b"\r\nEND\r\nget x\r\n", "large": b"L" * 500000,
              "largest": b"M" * 1000000}
    for name, value in values.items():
        checks.same(f"set {name}", client.set(name, value), True)
    for name, value in values.items():
        checks.same(f"get {name}", client.get(name, "nothing"), value)
    checks.same("again", client.get("dict"), {"a": [1]})
    checks.same("longest key", client.set("k" * 250, "long") and client.get("k" * 250), "long")
    checks.same("compressed", client.set("packed", "z" * 100000, min_compress_len=100) and client.get("packed"), "z" * 100000)

with checks.part("storage"):
    client.delete("s")
    checks.same("add", client.add("s", "1"), True)
    checks.same("add again", client.add("s", "2"), False)
    checks.same("replace", client.replace("s", "3"), True)
    checks.same("append", client.append("s", "4"), True)
    checks.same("prepend", client.prepend("s", "0"), True)
    checks.same("after append", client.get("s"), "034")
    checks.same("delete", client.delete("s"), True)
    checks.same("after delete", client.get("s"), None)

with checks.part("counters"):
    client.set("n", 10)
    checks.same("incr", client.incr("n"), 11)
    checks.same("incr by", client.incr("n", 89), 100)
    checks.same("decr", client.decr("n"), 99)
    checks.same("decr by", client.decr("n", 50), 49)
    checks.same("not below zero", client.decr("n", 1000), 0)
    client.set("n", 1 << 40)
    checks.same("large incr", client.incr("n", 1), (1 << 40) + 1)

with checks.part("cas"):
    client.set("c", "old")
    value, cas = client.gets("c")
    checks.same("gets", value, "old")
    checks.same("cas", client.cas("c", "new", cas), True)
    checks.same("stale cas", client.cas("c", "newer", cas), False)
    checks.same("after cas", client.get("c"), "new")
    checks.raises("cas of nothing", pylibmc.NotFound, client.cas, "no-c", "x", cas)

with checks.part("multi"):
    many = {f"many-{i}": f"value {i} " * (i % 50) for i in range(300)}
    checks.same("set_multi", client.set_multi(many), [])
    checks.same("get_multi", client.get_multi(list(many) + ["nothing"]), many)
    checks.same("get_multi prefix", client.get_multi([str(i) for i in range(9)], key_prefix="many-"),
                {str(i): many[f"many-{i}"] for i in range(9)})
    checks.same("incr_multi", client.set_multi({"i1": 1, "i2": 2}) or client.incr_multi(["i1", "i2"], delta=5), None)
    checks.same("after incr_multi", client.get_multi(["i1", "i2"]), {"i1": 6, "i2": 7})
    checks.same("delete_multi", client.delete_multi(list(many)), True)
    checks.same("after delete_multi", client.get_multi(list(many)), {})

with checks.part("expiry"):
    client.set("soon", "x", time=1)
    client.set("later", "x", time=1000)
    client.set("touched", "x", time=1000)
    checks.same("touch", client.touch("touched", 1), True)
    checks.same("touch of nothing", client.touch("nothing", 1), False)
    checks.becomes("expires", lambda: client.get("soon"), None)
    checks.becomes("touched expires", lambda: client.get("touched"), None)
    checks.same("another lives", client.get("later"), "x")

with checks.part("behaviours"):
    fast = connect(_noreply=True)
    fast.set("quiet", "1")
    checks.becomes("noreply set", lambda: client.get("quiet"), "1")
    fast.delete("quiet")
    checks.becomes("noreply delete", lambda: client.get("quiet"), None)
    buffered = connect(no_block=True, num_replicas=0)
    for i in range(50):
        buffered.set(f"buffered-{i}", i)
    checks.same("not blocking", buffered.get_multi([f"buffered-{i}" for i in range(50)]),
                {f"buffered-{i}": i for i in range(50)})
    pool = pylibmc.ClientPool(client, 4)
    with pool.reserve() as one, pool.reserve() as other:
        one.set("pooled", "p")
        checks.same("pool", other.get("pooled"), "p")
    client.disconnect_all()
    checks.same("reconnected", client.get("later"), "x")
    checks.same("hash of keys", client.hash("a") == client.hash("a"), True)

with checks.part("stats"):
    found = client.get_stats()
    checks.same("a report per server", len(found), len(arguments.servers))
    for _, report in found:
        report = {k.decode() if isinstance(k, bytes) else k: v for k, v in report.items()}
        for name in ("pid", "uptime", "version", "curr_items", "cmd_get", "get_hits", "bytes", "limit_maxbytes"):
            checks.true(f"stats {name}", name in report)
    used = [int({k if isinstance(k, str) else k.decode(): v for k, v in r.items()}["cmd_set"]) for _, r in found]
    checks.true("every server was used", all(used), used)
    checks.true("stats settings", client.get_stats("settings"))

with checks.part("flush"):
    checks.same("flush_all", client.flush_all(), True)
    checks.same("nothing left", client.get("later"), None)
    checks.same("set after flush", client.set("later", "y") and client.get("later"), "y")

checks.done()
