# SPDX-License-Identifier: BSD-3-Clause
"""flashield-dump and flashield-load: objects move between our daemon and memcached with keys, values, flags and expiry; what is
hot comes first; damaged files are told; the commands of packaging/doc/migrating.md work as they stand there."""
import os
import pathlib
import re
import shlex
import struct
import subprocess

import pytest

from helpers import PATIENCE, ROOT, fill_turn, flashield_command, until

BUILD = pathlib.Path(flashield_command()).resolve().parent
LONG = 400 * 24 * 3600  # beyond the 30 days up to which a time is relative

pytestmark = pytest.mark.skipif(not all((BUILD / f"flashield-{tool}").exists() for tool in ("dump", "load")), reason="tools are not built")


def run(tool, *options, **keywords):
    keywords = {"capture_output": True, "timeout": PATIENCE, "check": False, **keywords}
    return subprocess.run([str(BUILD / f"flashield-{tool}"), *map(str, options)], **keywords)


def address(daemon):
    return f"127.0.0.1:{daemon.port}"


def dump(daemon, path, *options):
    done = run("dump", "--server", address(daemon), "--output", path, *options)
    assert done.returncode == 0, done.stderr
    return done


def load(daemon, path, *options, code=0):
    done = run("load", "--server", address(daemon), *options, path)
    assert done.returncode == code, done.stderr
    return done


def count(done, name):
    return int(re.search(rf"^{name} +(\d[\d ]*)", done.stdout.decode(), re.M).group(1).replace(" ", ""))


@pytest.fixture(params=["flashield", "memcached"])
def source(request, start):
    """A server of each kind."""
    if request.param == "memcached":
        return start("-m", "64", "-U", "0", program=request.getfixturevalue("memcached").program)
    return start("-m", "64")


@pytest.fixture(params=["flashield", "memcached"])
def sink(request, start):
    if request.param == "memcached":
        return start("-m", "64", "-U", "0", program=request.getfixturevalue("memcached").program)
    return start("-m", "64")


def test_objects_come_over_whole(source, sink, tmp_path):
    """Keys of all bytes, empty and large values, flags, no expiry, a near and a far one."""
    large = bytes(range(256)) * 2000
    with source.client() as client:
        client.set(b"plain", b"value")
        client.set(b"percent%20/", b"", flags=4294967295)
        client.set(b"k" * 250, large, flags=7, exptime=LONG + int(client.stats()["time"]))
        client.set(b"soon", b"line\r\nEN\r\n", exptime=100000)
        assert client.ask(b"ms AAEgCg== 3 b F5\r\nbin\r\n") == b"HD\r\n"
    dump(source, tmp_path / "warm", "--rate", 0)
    assert count(load(sink, tmp_path / "warm"), "stored") == 5
    with sink.client() as client:
        assert client.get(b"plain", b"percent%20/", b"k" * 250, b"soon") == [
            (b"plain", 0, b"value", None), (b"percent%20/", 4294967295, b"", None), (b"k" * 250, 7, large, None),
            (b"soon", 0, b"line\r\nEN\r\n", None)]
        assert client.ask(b"mg AAEgCg== b f s\r\n") == b"HD f5 s3\r\n"
        left = {key: int(client.ask(b"mg %s t\r\n" % key).split(b"t")[1]) for key in (b"plain", b"soon", b"k" * 250)}
    assert left[b"plain"] == -1
    assert 100000 - 5 * PATIENCE < left[b"soon"] <= 100001
    assert LONG - 5 * PATIENCE < left[b"k" * 250] <= LONG + 1


def test_what_the_server_has_stays(start, tmp_path):
    """Nothing newer is overwritten, unless it is asked for; a longest time to live holds for all."""
    ours = start("-m", "64")
    with ours.client() as client:
        client.set(b"a", b"old")
        client.set(b"b", b"old")
        dump(ours, tmp_path / "warm")
        client.set(b"a", b"new")
        client.ask(b"delete b\r\n")
        done = load(ours, tmp_path / "warm")
        assert (count(done, "stored"), count(done, "kept")) == (1, 1)
        assert [value for _, _, value, _ in client.get(b"a", b"b")] == [b"new", b"old"]
        load(ours, tmp_path / "warm", "--overwrite", "--max-ttl", "1d")
        assert [value for _, _, value, _ in client.get(b"a", b"b")] == [b"old", b"old"]
        assert 0 < int(client.ask(b"mg a t\r\n").split(b"t")[1]) <= 86400


def test_the_hottest_come_first(source, start, tmp_path):
    """Of 200 objects 20 were read: they are the first 20 of a dump, by number and by bytes; the pace is kept."""
    with source.client() as client:
        for n in range(200):
            client.set(b"key-%03d" % n, b"v" * 100)
        read = {b"key-%03d" % n for n in range(0, 200, 10)}
        for key in read:
            client.get(key)
    for options, sure in [(["--limit", 20], read), (["--limit", 5], None), (["--limit-size", 107 * 20], read)]:
        dump(source, tmp_path / "warm", *options, "--rate", 1000)
        other = start("-m", "64")
        stored = count(load(other, tmp_path / "warm"), "stored")
        with other.client() as client:
            found = {key for key, *_ in client.get(*(b"key-%03d" % n for n in range(200)))}
        assert len(found) == stored
        assert found == sure if sure else found < read and stored == 5


def test_objects_on_flash_are_dumped_too(start, tmp_path, flash_options):
    """A node with flash fills one without."""
    ours, other = start(*flash_options), start("-m", "256")
    with ours.client() as client:
        for _ in range(3):
            fill_turn(client)
        until(lambda: client.count("flash_items") > 100, "objects on flash")
    dump(ours, tmp_path / "warm", "--rate", 0)
    assert count(load(other, tmp_path / "warm", "--rate", 0), "stored") > 1000
    assert int(other.stats()["curr_items"]) > 1000


def test_an_expired_object_and_a_refused_one(start, tmp_path):
    """An object that has expired since is left out; one that is too large is told, with the server's words, and the exit status is 1."""
    ours, small = start("-m", "64"), start("-m", "64", "-I", "64k")
    with ours.client() as client:
        client.set(b"large", b"x" * 200000)
        client.set(b"short", b"x", exptime=100)
    dump(ours, tmp_path / "warm")
    done = load(small, tmp_path / "warm", code=1)
    assert (count(done, "refused"), count(done, "stored")) == (1, 1)
    for told in done, load(small, tmp_path / "warm", "--quiet", code=1):
        assert b"has refused 1 object, the first one by SERVER_ERROR object too large for cache\n" in told.stderr


def test_a_pipe_between_two_servers(start):
    """Standard output and standard input."""
    ours, other = start("-m", "64"), start("-m", "64")
    with ours.client() as client:
        client.set(b"a", b"x")
    dumped = run("dump", "--server", address(ours), "--output", "-")
    assert dumped.returncode == 0, dumped.stderr
    done = run("load", "--server", address(other), "-", input=dumped.stdout)
    assert done.returncode == 0, done.stderr
    with other.client() as client:
        assert client.get(b"a")


def test_a_damaged_file_is_loaded_up_to_the_damage(start, tmp_path):
    """The second part is hit: its offset is told, and the objects of the first are there. A file that is none is refused."""
    ours, other = start("-m", "64"), start("-m", "64")
    with ours.client() as client:
        for n in range(12):
            client.set(b"key-%02d" % n, b"v" * 200000)
    dump(ours, tmp_path / "warm")
    data = (tmp_path / "warm").read_bytes()
    second = 32 + 32 + struct.unpack_from("<I", data, 32 + 12)[0]
    assert data[second:second + 4] == b"PART"
    for name, bad, words in [("flipped", data[:second + 100] + bytes([data[second + 100] ^ 1]) + data[second + 101:], f"offset {second}:"),
                             ("cut", data[:second + 100], f"cut off at offset {second + 100}"),
                             ("longer", data + b"x", f"offset {len(data)}: bytes follow the end")]:
        (tmp_path / name).write_bytes(bad)
        verified = run("load", "--verify", tmp_path / name)
        assert verified.returncode == 1 and words in verified.stderr.decode()
        done = load(other, tmp_path / name, "--overwrite", code=1)
        assert words in done.stderr.decode()
        assert count(done, "stored") == (12 if name == "longer" else struct.unpack_from("<I", data, 32 + 8)[0])
    (tmp_path / "other").write_bytes(b"time_ms,app,op,key,key_size,value_size,ttl_s\n")
    assert b"no file of flashield-dump" in load(other, tmp_path / "other", code=2).stderr
    assert run("load", "--verify", tmp_path / "warm").returncode == 0


def test_a_refused_listing_is_told_in_the_server_s_words(start, tmp_path):
    """-X"""
    ours = start("-X")
    done = run("dump", "--server", address(ours), "--output", tmp_path / "warm")
    assert done.returncode == 2 and b"ERROR metadump not allowed" in done.stderr
    assert not (tmp_path / "warm").exists()


def test_the_file_is_its_owner_s_alone(start, tmp_path):
    """It holds clients' data."""
    dump(start(), tmp_path / "warm")
    assert os.stat(tmp_path / "warm").st_mode & 0o777 == 0o600


def test_the_commands_of_the_guide(source, start, tmp_path):
    """Each command of the page runs as it stands there, in order; only hosts stand for two servers here."""
    other = start("-m", "64")
    with source.client() as client:
        for n in range(100):
            client.set(b"key-%d" % n, b"value")
    text = (ROOT / "packaging" / "doc" / "migrating.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    (flashield-(?:dump|load).*)$", text, re.M)
    assert len(commands) >= 3
    for command in commands:
        command = command.replace("old:11211", address(source)).replace("new:11211", address(other))
        assert " | ssh" not in command
        done = subprocess.run(["bash", "-o", "pipefail", "-c", f"PATH={shlex.quote(str(BUILD))}:$PATH; {command}"], cwd=tmp_path,
                              capture_output=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, (command, done.stderr)
    assert other.stats()["curr_items"] == "100"
