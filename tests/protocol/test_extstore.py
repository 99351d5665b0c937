# SPDX-License-Identifier: BSD-3-Clause
"""A flash file that memcached's extstore has left: -o ext_path takes it over, as memcached overwrites it; --flash-path refuses it."""
import itertools
import os
import pathlib
import shutil
import subprocess

import pytest

from helpers import PATIENCE, ROOT, flashield_command, free_port, memcached_command, until

MIB = 1 << 20
USER = ["-u", "nobody"] if os.geteuid() == 0 else []
# That of Debian, or the one that is compared with, and the newest where it has been built (tests/upstream).
MEMCACHEDS = [memcached_command(), *map(str, (pathlib.Path(ROOT) / "build" / "upstream").glob("memcached-*/memcached"))]


@pytest.fixture(params=MEMCACHEDS)
def left(request, start, open_folder, monkeypatch):
    """The path of a file in which a memcached has objects; memcached still runs."""
    if not shutil.which(request.param):
        pytest.skip("memcached is not installed")
    monkeypatch.setenv("MEMCACHED_BIN", request.param)
    path = open_folder / "ext"
    daemon = start("-m", "64", "-U", "0", "-o", f"ext_page_size=16,ext_path={path}:128m,ext_item_size=128,ext_item_age=0",
                   program=request.param)
    with daemon.client() as client:
        for round_ in itertools.count():
            client.all(b"".join(b"set key-%d-%d 0 0 1000 noreply\r\n%s\r\n" % (round_, n, b"v" * 1000) for n in range(10000)))
            # In blocks of the file, that is: a write buffer has some MiB.
            if path.stat().st_blocks * 512 > MIB:
                break
            assert round_ < 100
    return path, daemon


def start_fails(*options):
    done = subprocess.run([flashield_command(), *USER, "-l", "127.0.0.1", "-p", str(free_port()), "--metrics-listen=off", *options],
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stderr


def test_flash_path_refuses_it_and_says_what_to_do(left):
    path, memcached = left
    assert memcached.stop() == 0
    before = path.stat()
    code, text = start_fails("--flash-path", str(path), "--flash-size", "64m")
    assert code == 71
    assert f"{path} holds what memcached's extstore has left, and stays untouched; to use it, name it by -o ext_path={path}:SIZE" in text
    assert start_fails("--flash-path", str(path), "--flash-size", "64m", "--check-config")[0] == 71
    assert start_fails("-o", f"ext_path={path}:64m", "--check-config") == (0, "")
    # The last word on the path counts.
    assert start_fails("-o", f"ext_path={path}x:64m", "--flash-path", str(path))[0] == 71
    after = path.stat()
    assert (after.st_size, after.st_blocks, after.st_mtime_ns) == (before.st_size, before.st_blocks, before.st_mtime_ns)


def test_ext_path_takes_it_over_unless_memcached_runs(left, start, open_folder):
    path, memcached = left
    options = ["-m", "64", "-o", f"ext_path={path}:64m"]
    assert start_fails(*options) == (71, f"flash-path {path}: in use by another process or reader\n")
    assert memcached.stop() == 0
    log = open_folder / "log"
    with log.open("w") as opened:
        daemon = start(*options, stderr=opened)
    assert f"{path} is what memcached's extstore has left: it is emptied, as memcached does at its start\n" in log.read_text()
    with daemon.client() as client:
        until(lambda: client.stats(b"flash")["flash_allocation"] == "complete", "the file")
        assert client.count("flash_bytes") == 64 * MIB == path.stat().st_size
        assert client.get(b"key-0-0") == []
        assert client.set(b"key", b"value") == b"STORED\r\n"
    assert daemon.stop() == 0
    # It is a cache of ours from now on, whoever names it.
    with log.open("w") as opened:
        assert start(*options, stderr=opened).stop() == 0
        assert start("-m", "64", "--flash-path", str(path), "--flash-size", "64m", stderr=opened).stop() == 0
    assert "extstore has left" not in log.read_text()
    # And memcached takes it back.
    assert start("-m", "64", "-U", "0", "-o", f"ext_path={path}:128m", program=memcached.program).stop() == 0


def test_ext_path_leaves_what_is_neither_s(open_folder):
    """memcached would overwrite it."""
    path = open_folder / "ext"
    for text in "letters", "\0" * 4096 + "an image of a file system":
        path.write_text(text)
        code, said = start_fails("-o", f"ext_path={path}:64m")
        assert code == 71 and "holds something that is not a flashield cache, and stays untouched" in said
        assert start_fails("-o", f"ext_path={path}:64m", "--check-config")[0] == 71
        assert path.read_text() == text
