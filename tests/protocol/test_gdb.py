# SPDX-License-Identifier: BSD-3-Clause
"""tools/gdb/flashield.py shows items, slots and lookups of a daemon that runs."""
import pathlib
import re
import shutil
import subprocess

import pytest

from helpers import Kind, flashield_command, is_frugal

SCRIPT = pathlib.Path(__file__).parents[2] / "tools" / "gdb" / "flashield.py"
KINDS = [Kind(b"a value to be seen", flags=77)]

pytestmark = [pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is missing"),
              pytest.mark.skipif("san" in flashield_command(), reason="a sanitizer's heap would be dumped")]


def gdb(daemon, *commands):
    """What the commands print. Skips where a process may not be attached to."""
    arguments = [word for command in (f"source {SCRIPT}", *commands) for word in ("-ex", command)]
    done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(daemon.process.pid), *arguments], timeout=120, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if "ptrace: Operation not permitted" in done.stderr:
        pytest.skip("no process may be attached to here")
    if "extended state" in done.stdout + done.stderr:
        pytest.skip("gdb can call no function on this processor")
    return done.stdout, done.stderr


def test_a_key_that_is_not_there(flash_daemon):
    """fs-lookup tells of a key that it is in neither tier."""
    out, errors = gdb(flash_daemon, "fs-lookup nobody-has-set-this")
    assert "not in DRAM" in out, errors
    assert "slots with its tag: 0" in out, errors


def test_commands_without_arguments_tell_their_use(flash_daemon):
    """A command that lacks its argument says what it takes."""
    out, errors = gdb(flash_daemon, "fs-item", "fs-slot", "fs-lookup", "fs-slot 9 0")
    for use in ("fs-item EXPRESSION", "fs-slot VALUE", "fs-lookup KEY", "live tables are ["):
        assert use in errors, out


def test_a_core_with_the_heap(start, tmp_path):
    """fs-lookup finds an object in a core that was made with the heap, where nothing can be called."""
    daemon = start("-m", "4")
    with daemon.client() as client:
        assert client.set(b"kept", b"in a core") == b"STORED\r\n"
    core = tmp_path / "core"
    _, errors = gdb(daemon, "set dump-excluded-mappings on", "set use-coredump-filter off", f"gcore {core}")
    shown = subprocess.run(["gdb", "-nx", "-batch", "-ex", f"source {SCRIPT}", "-ex", "fs-lookup kept", flashield_command(),
                            str(core)], timeout=120, check=False, capture_output=True, text=True)
    assert '"in a core"' in shown.stdout, errors + shown.stderr


def test_lookup_item_and_slot(placed):
    """fs-lookup finds an object where it lies; fs-item and fs-slot show the same again."""
    key = placed.put(KINDS[0]).decode()
    out, errors = gdb(placed.daemon, f"fs-lookup {key}")
    assert f'key "{key}"' in out, errors
    if placed.where == "dram":
        assert "a value to be seen" in out and "client flags 77" in out and "linked" in out, errors
        address = re.search(r"item (0x[0-9a-f]+):", out).group(1)
        out, errors = gdb(placed.daemon, f"fs-item (struct item *){address}", f"fs-item {address}")
        assert out.count("a value to be seen") == 2, errors
    else:
        assert "not in DRAM" in out, errors
        if is_frugal():  # a small object has no slot
            return
        table, bucket, way, slot = re.search(r"table (\d), bucket (\d+), way (\d+): (0x[0-9a-f]+) .*live", out).groups()
        out, errors = gdb(placed.daemon, f"fs-slot {slot}", f"fs-slot {table} {bucket}")
        assert re.search(rf"^ +{way} {slot} segment", out, re.MULTILINE), errors
        assert re.search(rf"^{slot} segment \d+ \(sequence \d+\), tag 0x", out, re.MULTILINE), errors
