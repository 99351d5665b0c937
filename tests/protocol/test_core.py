# SPDX-License-Identifier: BSD-3-Clause
"""Core dumps hold what a backtrace needs, and no memory of what clients have stored.

Registers are in a core whatever the memory is: wide ones may hold the last bytes that were copied. A key may be on a
stack while a command or a log line is under way. So the memory of idle threads is what is searched.
"""
import mmap
import os
import pathlib
import shutil
import signal
import struct
import subprocess

import pytest

from helpers import PATIENCE, Client, fill_turn, flashield_command, free_port, on_flash, until
from test_tls import TlsClient, authority, context_of, folders, tls_options  # noqa: F401 (fixtures)

MARK = b"a-secret-that-a-client-has-stored"
KEY_MARK = b"a-secret-key-"
VALUE = (MARK + b" ") * 20
OPTIONS = ["-r", "-t", "2", "-m", "4", "--segment-size", "65536", "--flash-size", "16m", "--admission", "all",
           "--metrics-listen=off"]

pytestmark = pytest.mark.skipif("san" in os.environ.get("FLASHIELD_BIN", ""), reason="a sanitizer's heap is dumped")
needs_gdb = pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is not installed")


def dump_by_gcore(process, folder):
    """As an operator takes one of a daemon that goes on."""
    done = subprocess.run(["gcore", "-o", str(folder / "core"), str(process.pid)], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    path = folder / f"core.{process.pid}"
    assert path.exists(), done.stderr
    assert process.poll() is None
    process.terminate()
    assert process.wait(PATIENCE) == 0
    return path


def dump_by_abort(process, folder):
    """As the kernel writes one."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if "/" in pattern or pattern.startswith("|"):
        pytest.skip(f"cores go elsewhere: {pattern}")
    process.send_signal(signal.SIGABRT)
    assert process.wait(PATIENCE) == -signal.SIGABRT
    cores = [path for path in folder.iterdir() if path.name.startswith(pattern.split("%")[0])]
    assert len(cores) == 1, list(folder.iterdir())
    return cores[0]


def start_daemon(folder, *options):
    """With the folder as its own, as the kernel writes cores there."""
    port, user = free_port(), ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen([flashield_command(), *OPTIONS, *user, "--flash-path", str(folder / "flash"), "-l",
                                "127.0.0.1", "-p", str(port), *options], cwd=folder)
    return process, port


def connect(process, make):
    assert process.poll() is None
    try:
        return make()
    except OSError:
        return None


def leave_secrets(open_client, flash=True):
    """Values in DRAM, on flash, sent in part, and asked for but not read. The clients, which stay open."""
    writer, slow, half = (open_client() for _ in range(3))
    keys = [KEY_MARK + b"%d" % number for number in range(200)]
    for key in keys:
        assert writer.set(key, VALUE) == b"STORED\r\n"
    assert writer.get(*keys[:100])
    found = None
    while flash and not found:
        fill_turn(writer)
        found = next((key for key in keys if on_flash(writer, key)), None)
        for key in keys[:100]:
            writer.set(key, VALUE)
    assert writer.set(b"in-memory", VALUE * 100) == b"STORED\r\n"
    assert any(b"key=" + KEY_MARK in line for line in writer.all(b"stats hotkeys 100\r\n").split(b"STAT "))
    slow.send(b"get in-memory\r\n" * 100)
    half.send(b"set half 0 0 100000\r\n" + VALUE * 50)
    assert writer.ask(b"mn\r\n") == b"MN\r\n"
    return writer, slow, half


def memory_of(core):
    """(offset, length) in the file of each piece of memory: ELF's program headers of type LOAD."""
    offset, = struct.unpack_from("<Q", core, 32)
    size, count = struct.unpack_from("<HH", core, 54)
    for at in range(offset, offset + size * count, size):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", core, at)
        if kind == 1:
            yield start, length


def holds(path, text):
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as core:
        return any(core.find(text, start, start + length) >= 0 for start, length in memory_of(core))


def check(core):
    assert not holds(core, MARK)
    assert not holds(core, KEY_MARK)
    assert holds(core, b"--admission\0all\0")  # the command line: the search finds what is there


@pytest.mark.parametrize("dump", [pytest.param(dump_by_gcore, marks=needs_gdb), dump_by_abort])
def test_nothing_stored_is_in_a_core(open_folder, dump):
    """Neither values nor keys; gdb finds all threads and main()."""
    process, port = start_daemon(open_folder)
    try:
        clients = leave_secrets(lambda: until(lambda: connect(process, lambda: Client(port)), "a connection"))
        core = dump(process, open_folder)
        for client in clients:
            client.close()
    finally:
        process.kill()
        process.wait()
    check(core)
    if shutil.which("gdb"):
        shown = subprocess.run(["gdb", "-batch", "-nx", "-ex", "thread apply all bt", flashield_command(), str(core)],
                               capture_output=True, text=True, timeout=PATIENCE * 2, check=False).stdout
        assert " main (" in shown and " net_serve (" in shown
        assert shown.count("\nThread ") >= 6


@needs_gdb
def test_nothing_decrypted_is_in_a_core(open_folder, authority):  # noqa: F811 (a fixture)
    """With TLS too, whose library has buffers of its own; nor is the key."""
    process, port = start_daemon(open_folder, *tls_options(authority))
    try:
        context = context_of(authority)
        clients = leave_secrets(lambda: until(lambda: connect(process, lambda: TlsClient(port, context)), "a connection"),
                                flash=False)
        core = dump_by_gcore(process, open_folder)
        for client in clients:
            client.close()
    finally:
        process.kill()
        process.wait()
    check(core)
