# SPDX-License-Identifier: BSD-3-Clause
"""pymemcache: use_pymemcache.py HOST:PORT... [--ca FILE]. Client, PooledClient and HashClient (over all servers)."""
import argparse
import ssl
import threading

from pymemcache import serde
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.client.retrying import RetryingClient
from pymemcache.exceptions import MemcacheClientError, MemcacheIllegalInputError, MemcacheServerError

from checks import Checks, address

parser = argparse.ArgumentParser()
parser.add_argument("servers", nargs="+")
parser.add_argument("--ca")
arguments = parser.parse_args()
checks = Checks(f"pymemcache{' TLS' if arguments.ca else ''}")
common = {"default_noreply": False, "timeout": 20, "connect_timeout": 20}
if arguments.ca:
    common["tls_context"] = ssl.create_default_context(cafile=arguments.ca)
    common["tls_context"].check_hostname = False


def single(kind=Client, **more):
    return kind(address(arguments.servers[0]), **{**common, **more})


def everything(client, name):
    client.flush_all()
    checks.same(f"{name} get of nothing", client.get("nothing"), None)
    checks.same(f"{name} default", client.get("nothing", "else"), "else")
    checks.same(f"{name} delete of nothing", client.delete("nothing"), False)
    checks.same(f"{name} replace of nothing", client.replace("nothing", "x"), False)
    checks.same(f"{name} append to nothing", client.append("nothing", "x"), False)
    checks.same(f"{name} incr of nothing", client.incr("nothing", 1), None)
    checks.same(f"{name} touch of nothing", client.touch("nothing", 10), False)
    checks.same(f"{name} cas of nothing", client.cas("nothing", "x", "123"), None)
    checks.same(f"{name} gets of nothing", client.gets("nothing"), (None, None))
    checks.raises(f"{name} blank in a key", MemcacheIllegalInputError, client.get, "a b")
    checks.raises(f"{name} long key", MemcacheIllegalInputError, client.get, "k" * 251)
    checks.raises(f"{name} cas without a number", MemcacheIllegalInputError, client.cas, "x", "y", "abc")
    client.set("word", "abc")
    checks.raises(f"{name} incr of a word", MemcacheClientError, client.incr, "word", 1)
    checks.raises(f"{name} too large", MemcacheServerError, client.set, "large", b"x" * 3000000)
    checks.same(f"{name} alive after too large", client.get("word"), b"abc")

    for size in (0, 1, 100, 5000, 70000, 500000, 1000000):
        checks.same(f"{name} set of {size}", client.set(f"size-{size}", b"\r\n" * (size // 2) + b"x" * (size % 2)), True)
        checks.same(f"{name} get of {size}", client.get(f"size-{size}"), b"\r\n" * (size // 2) + b"x" * (size % 2))
    client.delete_many(["size-500000", "size-1000000"])

    checks.same(f"{name} add", client.add("s", "1"), True)
    checks.same(f"{name} add again", client.add("s", "2"), False)
    checks.same(f"{name} replace", client.replace("s", "3"), True)
    checks.same(f"{name} append", client.append("s", "4"), True)
    checks.same(f"{name} prepend", client.prepend("s", "0"), True)
    value, cas = client.gets("s")
    checks.same(f"{name} gets", value, b"034")
    checks.same(f"{name} cas", client.cas("s", "new", cas), True)
    checks.same(f"{name} stale cas", client.cas("s", "newer", cas), False)
    checks.same(f"{name} after cas", client.get("s"), b"new")
    checks.same(f"{name} delete", client.delete("s"), True)
    checks.same(f"{name} after delete", client.get("s"), None)

    client.set("n", "10")
    checks.same(f"{name} incr", client.incr("n", 90), 100)
    checks.same(f"{name} decr", client.decr("n", 1), 99)
    checks.same(f"{name} shorter leaves a blank", client.get("n").strip(), b"99")
    checks.same(f"{name} not below zero", client.decr("n", 1000), 0)
    client.set("n", str((1 << 64) - 1))
    checks.same(f"{name} wraps", client.incr("n", 1), 0)

    many = {f"many-{i}": b"%d " % i * (i % 40 + 1) for i in range(300)}
    checks.same(f"{name} set_many", client.set_many(many), [])
    checks.same(f"{name} get_many", client.get_many(list(many) + ["nothing"]), many)
    found = client.gets_many(["many-1", "many-2"])
    checks.same(f"{name} gets_many", {key: value for key, (value, _) in found.items()},
                {key: many[key] for key in ("many-1", "many-2")})
    checks.same(f"{name} delete_many", client.delete_many(list(many)), True)
    checks.same(f"{name} after delete_many", client.get_many(list(many)), {})

    client.set("quiet", "1", noreply=True)
    client.append("quiet", "2", noreply=True)
    client.incr("quiet", 1, noreply=True)
    client.touch("quiet", 1000, noreply=True)
    checks.becomes(f"{name} noreply", lambda: client.get("quiet"), b"13")
    client.delete("quiet", noreply=True)
    checks.becomes(f"{name} noreply delete", lambda: client.get("quiet"), None)

    client.set("soon", "x", expire=1)
    client.set("touched", "x", expire=1000)
    client.set("later", "x", expire=1000)
    checks.same(f"{name} negative expiry", client.set("gone", "x", expire=-1) and client.get("gone"), None)
    checks.same(f"{name} touch", client.touch("touched", 1), True)
    checks.becomes(f"{name} expires", lambda: client.get("soon"), None)
    checks.becomes(f"{name} touched expires", lambda: client.get("touched"), None)
    checks.same(f"{name} another lives", client.get("later"), b"x")
    client.close()
    checks.same(f"{name} reconnected", client.get("later"), b"x")
    checks.true(f"{name} flush_all", client.flush_all() in (True, None))  # HashClient's says nothing
    checks.same(f"{name} nothing left", client.get("later"), None)


for kind in (Client, PooledClient):
    with checks.part(kind.__name__):
        everything(single(kind), kind.__name__)
with checks.part("HashClient"):
    everything(HashClient([address(server) for server in arguments.servers], **common), "HashClient")
with checks.part("HashClient with pools"):
    everything(HashClient([address(server) for server in arguments.servers], use_pooling=True, **common), "pooled HashClient")

with checks.part("serialisers"):
    for name in ("pickle_serde", "compressed_serde"):  # the second since 3.6
        client = single(serde=getattr(serde, name, serde.pickle_serde))
        for value in ("text", "\u00fcml\u00e4ut", b"\0\xff", 7, 1 << 70, {"a": [1, None]}, "long " * 100000):
            client.set("value", value)
            checks.same(f"{name} {str(value)[:10]!r}", client.get("value"), value)

with checks.part("keys"):
    prefixed = single(key_prefix=b"prefix:")
    prefixed.set("p", "1")
    checks.same("prefix", single().get("prefix:p"), b"1")
    checks.same("prefix, many", prefixed.get_many(["p"]), {"p": b"1"})
    unicode = single(allow_unicode_keys=True)
    unicode.set("\u043a\u043b\u044e\u0447", "1")
    checks.same("unicode key", unicode.get("\u043a\u043b\u044e\u0447"), b"1")
    checks.same("unicode keys, many", unicode.get_many(["\u043a\u043b\u044e\u0447", "nothing"]), {"\u043a\u043b\u044e\u0447": b"1"})

with checks.part("administration"):
    client = single()
    checks.true("version", client.version().startswith(b"1."), client.version())
    stats = client.stats()
    for name in (b"pid", b"uptime", b"cmd_get", b"curr_items", b"threads", b"rusage_user"):
        checks.true(f"stats {name}", name in stats)
    checks.true("types", isinstance(stats[b"rusage_user"], float) and isinstance(stats[b"cmd_get"], int))
    checks.true("settings", client.stats("settings")[b"maxconns"])
    checks.true("settings, a flag", client.stats("settings")[b"cas_enabled"] in (True, b"yes"))
    checks.true("items", isinstance(client.stats("items"), dict))
    checks.true("cache_memlimit", client.cache_memlimit(64))
    client.quit()
    checks.true("after quit", client.version())

with checks.part("threads"):
    pool = single(PooledClient, max_pool_size=4)
    pool.set("count", "0")

    def count():
        for _ in range(50):
            pool.incr("count", 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.same("four threads' incr", pool.get("count"), b"200")
    retrying = RetryingClient(single(), attempts=3)
    retrying.set("retry", "1")
    checks.same("retrying client", retrying.get("retry"), b"1")

checks.done()
