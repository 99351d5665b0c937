# SPDX-License-Identifier: BSD-3-Clause
"""libmemcached's command line tools: libmemcached_tools.py HOST:PORT [--binary]"""
import argparse
import os
import re
import subprocess
import tempfile

from checks import Checks

parser = argparse.ArgumentParser()
parser.add_argument("server")
parser.add_argument("--binary", action="store_true")
arguments = parser.parse_args()
checks = Checks(f"libmemcached tools {'binary' if arguments.binary else 'text'}")
binary = ["--binary"] if arguments.binary else []


def run(tool, *words, protocol=True):
    result = subprocess.run([tool, f"--servers={arguments.server}", *(binary if protocol else []), *words],
                            capture_output=True, timeout=300, check=False)
    if result.returncode and re.search(b"TIMEOUT|CONNECTION FAILURE", result.stderr):  # libmemcached waits for five seconds
        raise TimeoutError(f"{tool} timed out: {result.stderr}")
    return result.returncode, result.stdout, result.stderr


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    files = {"small": b"one line\n", "empty": b"", "bytes": bytes(range(256)) * 10, "large": b"0123456789" * 50000}
    for name, content in files.items():
        with open(name, "wb") as opened:
            opened.write(content)

    run("memcflush")
    with checks.part("refusals"):
        checks.true("memcat of nothing", run("memccat", "nothing")[0] != 0)
        checks.true("memexist of nothing", run("memcexist", "nothing")[0] != 0)
        checks.true("memrm of nothing", run("memcrm", "nothing")[0] != 0)
        checks.true("memtouch of nothing", run("memctouch", "--expire=10", "nothing")[0] != 0)

    with checks.part("memping"):
        checks.same("memping", run("memcping", protocol=False)[0], 0)

    with checks.part("memcp and memcat"):
        for name, content in files.items():
            checks.same(f"memcp {name}", run("memccp", name)[0], 0)
            code, out, _ = run("memccat", name)
            checks.same(f"memcat {name}", (code, out), (0, content + b"\n"))
        checks.same("memcp with flags and expiry", run("memccp", "--flags=77", "--expire=1000", "small")[0], 0)
        code, out, _ = run("memccat", "--flags", "small")
        checks.true("memcat tells the flags", b"77" in out, out)
        checks.same("memcp --add of what is there", run("memccp", "--add", "small")[0] != 0, True)
        checks.same("memcp --replace", run("memccp", "--replace", "small")[0], 0)
        code, out, _ = run("memccat", "--file=copy", "bytes")
        with open("copy", "rb") as opened:
            checks.same("memcat into a file", opened.read(), files["bytes"])

    with checks.part("memexist, memtouch, memrm"):
        checks.same("memexist", run("memcexist", "small")[0], 0)
        checks.same("memtouch", run("memctouch", "--expire=1000", "small")[0], 0)
        checks.same("memrm", run("memcrm", "small")[0], 0)
        checks.true("memexist after memrm", run("memcexist", "small")[0] != 0)
        checks.same("memtouch into the past", run("memctouch", "--expire=1", "bytes")[0], 0)
        checks.becomes("it expires", lambda: run("memcexist", "bytes")[0] != 0, True)

    with checks.part("memstat"):
        code, out, _ = run("memcstat")
        checks.same("memstat", code, 0)
        for name in (b"pid", b"uptime", b"cmd_get", b"curr_items", b"limit_maxbytes", b"version"):
            checks.true(f"memstat {name}", name in out)
        code, out, _ = run("memcstat", "settings")
        checks.true("memstat settings", code == 0 and b"maxconns" in out, out[:200])
        code, out, error = run("memcstat", "--server-version")
        checks.true("memstat --server-version", code == 0 and b" 1." in out + error, out + error)
        code, out, _ = run("memcstat", "--analyze", protocol=False)
        checks.true("memstat --analyze", code == 0 and b"Number of Servers Analyzed" in out, out[:200])

    if not arguments.binary:
        with checks.part("memdump"):
            code, out, error = run("memcdump", protocol=False)
            others = set(out.decode().split()) - set(files)
            checks.true("memdump", code == 0 and not others, (others, error[:200]))

    with checks.part("memslap"):
        for test in ("set", "get", "mget"):
            code, out, error = run("memcslap", f"--test={test}", "--concurrency=2", "--execute-number=200",
                                   *(["--initial-load=200"] if test != "set" else []))
            checks.true(f"memslap {test}", code == 0, (out[-300:], error[-300:]))
    with checks.part("memaslap"):
        code, out, error = run("memcaslap", "--threads=2", "--concurrency=8", "--execute_number=4000", "--fixed_size=200",
                               "--verify=1.0")
        checks.true("memaslap ends", code == 0, (out[-300:], error[-300:]))
        report = out.decode(errors="replace")
        checks.true("memaslap verifies", "verify_failed: 0" in report and "get_misses: 0" in report, report[-800:])

    with checks.part("memflush"):
        checks.same("memflush", run("memcflush")[0], 0)
        checks.true("nothing left", run("memcexist", "large")[0] != 0)

checks.done()
