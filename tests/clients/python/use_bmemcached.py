# SPDX-License-Identifier: BSD-3-Clause
"""python-binary-memcached: use_bmemcached.py HOST:PORT... [--user U --password P] [--ca FILE]"""
import argparse
import ssl

import bmemcached
from bmemcached.exceptions import MemcachedException

from checks import Checks

parser = argparse.ArgumentParser()
parser.add_argument("servers", nargs="+")
parser.add_argument("--user")
parser.add_argument("--password")
parser.add_argument("--ca")
arguments = parser.parse_args()
checks = Checks(f"python-binary-memcached{' SASL' if arguments.user else ''}{' TLS' if arguments.ca else ''}")
context = ssl.create_default_context(cafile=arguments.ca) if arguments.ca else None
if context:
    context.check_hostname = False


def connect(kind=bmemcached.Client, user=arguments.user, password=arguments.password, **more):
    return kind(arguments.servers, user, password, tls_context=context, socket_timeout=20, **more)


if arguments.user:
    with checks.part("authentication"):
        checks.raises("wrong password", MemcachedException, connect(password="wrong").get, "x")
        checks.raises("unknown user", MemcachedException, connect(user="nobody").get, "x")
        checks.raises("no password", MemcachedException, connect(user=None, password=None).get, "x")
        checks.raises("set without a password", MemcachedException, connect(user=None, password=None).set, "x", "y")

client = connect()

with checks.part("refusals"):
    checks.same("get of nothing", client.get("nothing"), None)
    checks.same("default", client.get("nothing", default="else"), "else")
    checks.same("gets of nothing", client.gets("nothing"), (None, None))
    checks.same("delete of nothing", client.delete("nothing"), True)  # it counts KEY_NOT_FOUND as done
    checks.same("replace of nothing", client.replace("nothing", 1), False)
    client.set("word", "abc")
    checks.raises("incr of a word", MemcachedException, client.incr, "word", 1)
    checks.raises("too large", MemcachedException, client.set, "large", bytes(range(256)) * 8000, compress_level=0)
    checks.same("alive after too large", client.set("after", "x") and client.get("after"), "x")
    checks.raises("long key", MemcachedException, client.set, "k" * 251, "x")
    checks.becomes("alive after a long key", lambda: client.get("after"), "x")  # it is disconnected, and connects again

with checks.part("values"):
    values = {"str": "text", "unicode": "\u00fcml\u00e4ut \u20ac", "bytes": bytes(range(256)), "int": 12345, "negative": -7,
              "bool": True, "float": 1.5, "list": [1, "two", None], "dict": {"a": [1]}, "empty": "",
              "crlf": "\r\nEND\r\n", "large": "L" * 500000, "kl\u00fcssel": "unicode key"}
    for name, value in values.items():
        checks.same(f"set {name}", client.set(name, value), True)
    for name, value in values.items():
        checks.same(f"get {name}", client.get(name), value)
    checks.same("get_multi", client.get_multi(list(values) + ["nothing"]), values)
    checks.same("largest", client.set("largest", bytes(range(256)) * 3900, compress_level=0), True)
    checks.same("largest back", client.get("largest"), bytes(range(256)) * 3900)

with checks.part("storage"):
    client.delete("s")
    checks.same("add", client.add("s", "1"), True)
    checks.same("add again", client.add("s", "2"), False)
    checks.same("replace", client.replace("s", "3"), True)
    value, cas = client.gets("s")
    checks.same("gets", value, "3")
    checks.true("a cas id", cas > 0, cas)
    checks.same("cas", client.cas("s", "4", cas), True)
    checks.same("stale cas", client.cas("s", "5", cas), False)
    checks.same("after cas", client.get("s"), "4")
    checks.same("delete with a stale cas", client.delete("s", cas=cas), False)
    checks.same("get with cas", client.get("s", get_cas=True)[0], "4")
    checks.same("delete with its cas", client.delete("s", cas=client.gets("s")[1]), True)
    checks.same("after delete", client.get("s"), None)

with checks.part("counters"):
    client.delete("n")
    checks.same("incr makes it", client.incr("n", 5, default=100), 100)
    checks.same("incr", client.incr("n", 5), 105)
    checks.same("decr", client.decr("n", 6), 99)
    checks.same("not below zero", client.decr("n", 1000), 0)
    client.set("text", "41")
    checks.same("incr of digits", client.incr("text", 1), 42)
    checks.same("decr makes it", client.delete("d") and client.decr("d", 5, default=7), 7)

with checks.part("multi"):
    many = {f"many-{i}": f"value {i} " * (i % 50) for i in range(300)}
    checks.same("set_multi", client.set_multi(many), [])
    checks.same("get_multi of many", client.get_multi(list(many)), many)
    checks.same("with cas", len(client.get_multi(list(many), get_cas=True)), 300)
    stale = {("many-1", 1): "lost"}
    checks.same("set_multi with a stale cas", client.set_multi(stale), [("many-1", 0)])
    checks.same("delete_multi", client.delete_multi(list(many)), True)
    checks.same("after delete_multi", client.get_multi(list(many)), {})

with checks.part("expiry"):
    client.set("soon", "x", time=1)
    client.set("later", "x", time=1000)
    client.delete("counter")
    client.incr("counter", 1, default=1, time=1)
    checks.becomes("expires", lambda: client.get("soon"), None)
    checks.becomes("a counter expires", lambda: client.get("counter"), None)
    checks.same("another lives", client.get("later"), "x")

with checks.part("connections"):
    client.disconnect_all()
    checks.same("reconnected", client.get("later"), "x")
    spread = connect(bmemcached.DistributedClient)
    spread.set("spread", "d")
    checks.same("distributed", spread.get("spread"), "d")
    checks.same("distributed multi", spread.get_multi(["spread", "nothing"]), {"spread": "d"})

with checks.part("stats"):
    for report in client.stats().values():
        # Datadog's check reads these through this client, and needs numbers.
        for name in ("total_items curr_items limit_maxbytes uptime bytes curr_connections max_connections "
                     "connection_structures threads pointer_size cmd_get cmd_set cmd_flush get_hits get_misses "
                     "delete_misses delete_hits evictions bytes_read bytes_written cas_misses cas_hits cas_badval "
                     "total_connections listen_disabled_num").split():
            value = report.get(name, b"")
            checks.true(f"stats {name}", str(value, "ascii") .isdigit() if isinstance(value, bytes) else
                        str(value).isdigit(), repr(value))
        for name in ("rusage_user", "rusage_system"):
            checks.true(f"stats {name}", float(report[name]) >= 0)
        checks.true("stats version", report["version"])
    for kind in ("settings", "items", "slabs"):
        checks.true(f"stats {kind}", all(client.stats(kind).values()), client.stats(kind))

with checks.part("flush"):
    checks.same("flush_all", client.flush_all(), True)
    checks.same("nothing left", client.get("later"), None)
    checks.same("set after flush", client.set("later", "y") and client.get("later"), "y")

checks.done()
