# SPDX-License-Identifier: BSD-3-Clause
"""memcached-tool of Debian's memcached package: memcached_tool.py HOST:PORT"""
import re
import socket
import subprocess
import sys

from pymemcache.client.base import Client

from checks import Checks, address

TOOL = "/usr/share/memcached/scripts/memcached-tool"
server = sys.argv[1]
checks = Checks("memcached-tool")
client = Client(address(server), default_noreply=False)


def run(*words):
    result = subprocess.run(["perl", TOOL, server, *words], capture_output=True, timeout=300, check=False)
    return result.returncode, result.stdout, result.stderr.decode()


with checks.part("refusals"):
    checks.true("unknown mode", run("nonsense")[0] != 0)
    checks.true("bad limit", run("dump", "0")[0] != 0)

client.flush_all()
objects = {f"key-{i}": b"v%d " % i * (i % 30 + 1) for i in range(200)}
objects["key with\u00fc".replace(" ", "_").encode()] = b"unicode"
objects["crlf"] = b"a\r\nb"
client.set_many(objects, expire=1000)
client.set("forever", "x")

with checks.part("stats"):
    code, out, error = run("stats")
    rows = dict(re.findall(rb"^\s*(\S+)\s+(\S+)\s*$", out, re.M))
    checks.same("exit code", (code, error), (0, ""))
    for name in (b"pid", b"uptime", b"curr_items", b"cmd_set", b"evictions", b"rusage_user", b"version"):
        checks.true(f"stats {name}", name in rows)
    checks.true("curr_items", int(rows[b"curr_items"]) >= 203, rows[b"curr_items"])

with checks.part("settings"):
    code, out, error = run("settings")
    rows = dict(re.findall(rb"^\s*(\S+)\s+(\S+)\s*$", out, re.M))
    checks.same("exit code", (code, error), (0, ""))
    for name in (b"maxbytes", b"maxconns", b"tcpport", b"num_threads", b"item_size_max", b"cas_enabled"):
        checks.true(f"settings {name}", name in rows)

with checks.part("display"):
    flash = b"extstore_limit_maxbytes" in client.stats()  # its objects are in no class, but for one that is too large to go there
    client.set("large", b"x" * 600000)
    for words in ((), ("display",)):
        code, out, error = run(*words)
        checks.same("exit code", (code, error), (0, ""))
        lines = out.decode().splitlines()
        checks.true("head", lines and lines[0].split()[:3] == ["#", "Item_Size", "Max_age"], lines[:1])
        checks.true("classes", len(lines) > 1)
        counts = 0
        others = []
        for line in lines[1:]:
            row = re.match(r"^\s*(\d+)\s+([\d.]+)([BK])\s+(\d+)s\s+(\d+)\s+(\d+)\s+(yes|no)\s+(\d+)\s+(\d+)\s+(\d+)$", line)
            if row:
                counts += int(row.group(6))
            else:
                others.append(line)
        checks.same("lines that tell no class", others, [])
        checks.true("counts", counts >= (1 if flash else 203), counts)

with checks.part("sizes"):
    code, out, error = run("sizes")
    checks.same("exit code", (code, error), (0, ""))
    checks.true("head", b"Size" in out and b"Count" in out, out)

with checks.part("keys"):
    code, out, error = run("keys")
    keys = set(re.findall(rb"^key=(\S+) exp=-?\d+ la=\d+ cas=\d+ fetch=(?:yes|no) cls=\d+ size=\d+(?: flags=\d+ ?)?$", out, re.M))
    checks.true("every line", len(keys) == len([line for line in out.splitlines() if line]), out[:300])
    checks.same("keys that are not listed", [key for i in range(200) if (key := b"key-%d" % i) not in keys], [])
    code, out, error = run("keys", "5")
    checks.same("limit", len(out.split(b"\n")) - 1, 5)

with checks.part("dump"):
    # In the full place thousands of objects lie around the suite's own, and each is asked for by itself.
    few = client.stats()[b"curr_items"] < 1000
    code, out, error = run("dump", *([] if few else ["300"]))
    checks.same("exit code", code, 0)
    checks.true("says so", "Dumping memcache contents" in error, error)
    dumped = {}
    position = 0
    while match := re.match(rb"add (\S+) (\d+) (-?\d+) (\d+)\r\n", out[position:]):
        start = position + match.end()
        length = int(match.group(4))
        dumped[match.group(1)] = (out[start:start + length], int(match.group(3)))
        position = start + length + 2
    checks.same("parsed to its end", position, len(out))
    named = {key if isinstance(key, bytes) else key.encode(): value for key, value in objects.items()}
    checks.same("objects that are not dumped", [key for key, value in named.items() if few and dumped.get(key, (None, 0))[0] != value], [])
    checks.true("some are dumped", dumped)  # of the others some have been deleted meanwhile
    checks.true("expiry is dumped", not few or dumped.get(b"key-1", (b"", 0))[1] > 0)
    client.flush_all()
    with socket.create_connection(address(server), 60) as connection:
        connection.sendall(out + b"quit\r\n")
        with connection.makefile("rb") as reader:
            checks.same("a dump can be loaded again", reader.read(), b"STORED\r\n" * len(dumped))
    checks.true("and is what it was", not few or client.get_many(list(objects)) == objects)

checks.done()
