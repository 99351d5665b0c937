# SPDX-License-Identifier: BSD-3-Clause
"""python-memcached: use_python_memcached.py HOST:PORT..."""
import sys

import memcache

from checks import Checks

checks = Checks(f"python-memcached, {len(sys.argv) - 1} servers")
client = memcache.Client(sys.argv[1:], cache_cas=True)

with checks.part("refusals"):
    checks.same("get of nothing", client.get("nothing"), None)
    checks.same("delete of nothing", client.delete("nothing", noreply=False), 1)  # it counts NOT_FOUND as done
    checks.same("replace of nothing", client.replace("nothing", "x"), False)
    checks.same("append to nothing", client.append("nothing", "x"), False)
    checks.same("incr of nothing", client.incr("nothing"), None)
    checks.same("touch of nothing", client.touch("nothing", 9), 0)
    checks.raises("blank in a key", memcache.Client.MemcachedKeyCharacterError, client.set, "a b", 1)
    checks.raises("long key", memcache.Client.MemcachedKeyLengthError, client.set, "k" * 251, 1)
    checks.same("too large for the client", client.set("large", "x" * 1100000), 0)
    big = memcache.Client(sys.argv[1:], server_max_value_length=9000000)
    checks.same("too large for the server", big.set("large", "x" * 3000000), False)
    checks.same("alive after too large", big.set("after", "x") and big.get("after"), "x")

with checks.part("values"):
    values = {"str": "text", "unicode": "\u00fcml\u00e4ut \u20ac", "bytes": bytes(range(256)), "int": 1 << 70, "negative": -7,
              "bool": True, "float": 1.5, "list": [1, "two", None], "dict": {"a": [1]}, "empty": "",
              "crlf": "\r\nEND\r\n", "large": "L" * 500000, "kl\u00fcssel": "unicode key", "largest": b"M" * 1000000}
    for name, value in values.items():
        checks.true(f"set {name}", client.set(name, value))
    for name, value in values.items():
        checks.same(f"get {name}", client.get(name), value)
    checks.true("compressed", client.set("packed", "z" * 300000, min_compress_len=100))
    checks.same("unpacked", client.get("packed"), "z" * 300000)

with checks.part("storage"):
    client.delete("s")
    checks.true("add", client.add("s", "1"))
    checks.same("add again", client.add("s", "2"), False)
    checks.true("replace", client.replace("s", "3"))
    checks.true("append", client.append("s", "4"))
    checks.true("prepend", client.prepend("s", "0"))
    checks.same("after append", client.get("s"), "034")
    checks.same("gets", client.gets("s"), "034")
    checks.true("cas", client.cas("s", "new"))
    client.gets("s")
    memcache.Client(sys.argv[1:]).set("s", "by another")
    checks.same("cas after another's set", client.cas("s", "lost"), False)
    checks.same("another's", client.get("s"), "by another")
    checks.true("delete", client.delete("s"))
    checks.same("after delete", client.get("s"), None)

with checks.part("counters"):
    client.set("n", "10")
    checks.same("incr", client.incr("n"), 11)
    checks.same("incr by", client.incr("n", 89), 100)
    checks.same("decr", client.decr("n"), 99)
    checks.same("not below zero", client.decr("n", 1000), 0)
    client.set("n", str((1 << 64) - 1))
    checks.same("wraps", client.incr("n", 2), 1)

with checks.part("multi"):
    many = {f"many-{i}": f"value {i} " * (i % 50) for i in range(300)}
    checks.same("set_multi", client.set_multi(many), [])
    checks.same("get_multi", client.get_multi(list(many) + ["nothing"]), many)
    checks.same("by hash", client.set((4, "hashed"), "x") and client.get((4, "hashed")), "x")
    checks.true("delete_multi", client.delete_multi(list(many)))
    checks.same("after delete_multi", client.get_multi(list(many)), {})

with checks.part("expiry and noreply"):
    client.set("soon", "x", time=1)
    client.set("touched", "x", time=1000)
    client.set("later", "x", time=1000)
    checks.true("touch", client.touch("touched", 1))
    checks.becomes("expires", lambda: client.get("soon"), None)
    checks.becomes("touched expires", lambda: client.get("touched"), None)
    client.set("quiet", "1", noreply=True)
    checks.becomes("noreply set", lambda: client.get("quiet"), "1")
    client.incr("quiet", 5, noreply=True)
    checks.becomes("noreply incr", lambda: client.get("quiet"), "6")
    client.delete("quiet", noreply=True)
    checks.becomes("noreply delete", lambda: client.get("quiet"), None)
    client.disconnect_all()
    checks.same("reconnected", client.get("later"), "x")

with checks.part("stats"):
    for _, report in client.get_stats():
        checks.true("stats", {"pid", "version", "cmd_get", "curr_items"} <= set(report), report)
    for _, report in client.get_stats("settings"):
        checks.true("settings", {"maxbytes", "maxconns", "num_threads"} <= set(report), report)

with checks.part("flush"):
    client.flush_all()
    checks.same("nothing left", client.get("later"), None)
    checks.same("set after flush", client.set("later", "y") and client.get("later"), "y")

checks.done()
