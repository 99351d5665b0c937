# SPDX-License-Identifier: BSD-3-Clause
"""A daemon is known by what it listens to, resolved: two that share a state directory have nothing of each other, and one whose
options have changed brings back nothing that the run between has changed."""
import subprocess

import pytest

from conftest import FLASH
from helpers import Client, Daemon, free_port, until

KEY = b"key"


class Runs:
    """Daemons with one state directory; reach: the arguments of Client by which each is reached."""

    def __init__(self, folder):
        self.options = ["-m", "16", "--state-dir", str(folder)]

    def run(self, *listen, reach, folder=None, more=()):
        return Run([*self.options, *more, *listen], reach, folder)


class Run:
    def __init__(self, options, reach, folder):
        self.daemon = Daemon(options, listen=False)
        self.reach = reach
        self.process = subprocess.Popen(self.daemon.command(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
        until(self.serves, "the daemon to serve")

    def client(self):
        return Client(**self.reach)

    def serves(self):
        assert self.process.poll() is None
        try:
            with self.client() as client:
                return client.ask(b"mn\r\n") == b"MN\r\n"
        except OSError:
            return False

    def loaded(self):
        with self.client() as client:
            until(lambda: client.stats(b"flash")["dram_loading"] == "0", "the end of loading")
            return client.stats(b"flash")["dram_start"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait() == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


def set_key(run, value):
    with run.client() as client:
        assert client.set(KEY, value) == b"STORED\r\n"


def get_key(run):
    with run.client() as client:
        found = client.get(KEY)
        return found[0][2] if found else None


@pytest.fixture
def runs(open_folder):
    return Runs(open_folder)


# ---- two daemons ----------------------------------------------------------------------------------


def test_ports_within_listen_tell_daemons_apart(runs):
    one, other = free_port(), free_port()
    with runs.run("-l", f"127.0.0.1:{one}", reach={"port": one}) as first:
        set_key(first, b"first")
    with runs.run("-l", f"127.0.0.1:{other}", reach={"port": other}) as second:
        assert "another daemon" in second.loaded()
        assert get_key(second) is None


def test_addresses_tell_daemons_apart(runs):
    """A port at two addresses: each has its own, though the file of saved objects is the last one's."""
    port = free_port()
    with runs.run("-l", "127.0.0.2", "-p", str(port), reach={"port": port, "address": "127.0.0.2"}) as first:
        set_key(first, b"first")
        with runs.run("-l", "127.0.0.1", "-p", str(port), reach={"port": port}) as second:
            assert get_key(second) is None
            set_key(second, b"second")
    with runs.run("-l", "127.0.0.1", "-p", str(port), reach={"port": port}) as second:
        assert get_key(second) in (None, b"second")


def test_sockets_in_two_folders_are_two_daemons(runs, open_folder):
    folders = [open_folder / "a", open_folder / "b"]
    for folder in folders:
        folder.mkdir()
        folder.chmod(0o777)
    with runs.run("-s", "sock", reach={"port": 0, "path": str(folders[0] / "sock")}, folder=folders[0]) as first:
        set_key(first, b"first")
    with runs.run("-s", "sock", reach={"port": 0, "path": str(folders[1] / "sock")}, folder=folders[1]) as second:
        assert "another daemon" in second.loaded()
        assert get_key(second) is None


# ---- one daemon -----------------------------------------------------------------------------------


def test_the_same_addresses_in_other_words_are_the_same_daemon(runs):
    port = free_port()
    with runs.run("-l", f"127.0.0.1:{port},127.0.0.2:{port}", reach={"port": port}) as first:
        set_key(first, b"value")
    with runs.run("-l", "127.0.0.2", "-l", "127.0.0.1", "-p", str(port), reach={"port": port}) as again:
        assert again.loaded() == "warm"
        assert get_key(again) == b"value"


def test_the_same_socket_from_another_folder_is_the_same_daemon(runs, open_folder):
    path = open_folder / "sock"
    with runs.run("-s", "sock", reach={"port": 0, "path": str(path)}, folder=open_folder) as first:
        set_key(first, b"value")
    with runs.run("-s", str(path), reach={"port": 0, "path": str(path)}) as again:
        assert again.loaded() == "warm"
        assert get_key(again) == b"value"


def test_fewer_addresses_have_what_the_others_have_left(runs):
    """All clients of this run have reached the one before. What has come meanwhile to fewer of them is not for all."""
    port = free_port()
    both = ["-l", "127.0.0.1,127.0.0.2", "-p", str(port)]
    with runs.run(*both, reach={"port": port}) as first:
        set_key(first, b"value")
    with runs.run("-l", "127.0.0.1", "-p", str(port), reach={"port": port}) as fewer:
        assert fewer.loaded() == "warm"
        assert get_key(fewer) == b"value"
    with runs.run(*both, reach={"port": port}) as more:
        assert "another daemon" in more.loaded()
        assert get_key(more) is None


@pytest.mark.parametrize("place", ["dram", "flash"])
def test_a_run_at_fewer_addresses_makes_stale_what_was_saved(runs, open_folder, place):
    port = free_port()
    both = ["-l", "127.0.0.1,127.0.0.2", "-p", str(port)]
    more = ["--flash-path", str(open_folder / "flash"), *FLASH] if place == "flash" else []
    with runs.run(*both, reach={"port": port}, more=more) as first:
        set_key(first, b"old")
    between = runs.run("-l", "127.0.0.1", "-p", str(port), reach={"port": port})
    set_key(between, b"new")
    between.kill()
    with runs.run(*both, reach={"port": port}, more=more) as again:
        again.loaded()
        assert get_key(again) is None
