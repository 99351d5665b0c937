# SPDX-License-Identifier: BSD-3-Clause
"""The image's entry point: what it does with each kind of command, and the lists of arguments by which charts and people start memcached's
image. Each list starts the daemon as the image's user does, and it serves with the limits that the list names.

A list is as its source has it, but for two things. A flash has megabytes in place of its gigabytes, as its file is written in full.
The paths of the source's volumes lie below a folder of the test. (The image itself is the matter of tests/package.)
"""
import os
import pathlib
import re
import resource
import shutil
import subprocess

import pytest

from helpers import PATIENCE, ROOT, Daemon, flashield_command

ENTRY = pathlib.Path(ROOT) / "packaging" / "entrypoint.sh"
USER = ["setpriv", "--reuid=11211", "--regid=11211", "--clear-groups"] if os.geteuid() == 0 else []
MIB = 1 << 20

# Where it is from: (the words, the environment).
LISTS = {
    # production/helm/loki, templates/memcached/_memcached-statefulset.tpl and values.yaml of grafana/loki (memcached 1.6.35)
    "Loki's chart, chunks": (["-m 8192", "--extended=modern,track_sizes", "-I 5m", "-c 16384", "-v", "-u 11211"], {}),
    "Loki's chart, results": (["-m 1024", "--extended=modern,track_sizes", "-I 5m", "-c 16384", "-v", "-u 11211"], {}),
    "Loki's chart, chunks on a volume of 10G": (
        ["-m 8192", "--extended=modern,track_sizes,ext_path=/data/file:9G,ext_wbuf_size=16", "-I 5m", "-c 16384", "-v", "-u 11211"], {}),
    "Loki's chart, chunks on a volume of 94Gi, with options": (
        ["-m 8192", "--extended=modern,track_sizes,ext_path=/data/file:84G,ext_wbuf_size=16,ext_threads=10,ext_max_sleep=10000,"
         "slab_automove_freeratio=0.10,ext_recache_rate=0", "-I 5m", "-c 16384", "-v", "-u 11211", "-t 4", "-A"], {}),
    # mimir-distributed, templates/memcached/_memcached-statefulset.tpl and values.yaml of grafana/mimir (memcached 1.6.19)
    "Mimir's chart, chunks": (["-m 8192", "--extended=modern", "-I 1m", "-c 16384", "-v", "-u 11211"], {}),
    "Mimir's chart, index": (["-m 2048", "--extended=modern", "-I 5m", "-c 16384", "-v", "-u 11211"], {}),
    "Mimir's chart, metadata": (["-m 512", "--extended=modern", "-I 1m", "-c 16384", "-v", "-u 11211"], {}),
    "Mimir's chart, admin": (["-m 64", "--extended=modern", "-I 1m", "-c 16384", "-v", "-u 11211"], {}),
    # memcached/memcached.libsonnet of grafana/jsonnet-libs, with the values of operations/mimir/memcached.libsonnet
    "Grafana's jsonnet library": (["-m 1024", "-I 1m", "-c 1024", "-v"], {}),
    "Grafana's jsonnet library, Mimir's chunks": (["-m 6144", "-I 1m", "-c 16384", "-v", "--extended=track_sizes"], {}),
    "Grafana's jsonnet library, Mimir's frontend": (["-m 1024", "-I 5m", "-c 1024", "-v"], {}),
    # bitnami/memcached 5 to 7 of bitnami/charts, and what its image, of bitnami/containers, makes of them (memcached 1.6.6 to 1.6.45)
    "Bitnami's chart": ([], {"MEMCACHED_PORT_NUMBER": "11211"}),
    "Bitnami's chart, a state on a volume": (["/run.sh", "--memory-file=/cache-state/memory_file"], {"MEMCACHED_PORT_NUMBER": "11211"}),
    "Bitnami's chart 5, a state on a volume": (["/run.sh", "-e/cache-state/memory_file"], {}),
    "Bitnami's image with its variables": (
        ["/opt/bitnami/scripts/memcached/run.sh"],
        {"MEMCACHED_PORT_NUMBER": "11211", "MEMCACHED_CACHE_SIZE": "128", "MEMCACHED_MAX_CONNECTIONS": "2000", "MEMCACHED_THREADS": "4",
         "MEMCACHED_MAX_ITEM_SIZE": "8388608", "MEMCACHED_EXTRA_FLAGS": "-R 40 -o modern"}),
    # gitea/helm-chart 2 to 8, whose cache is bitnami/memcached 4.2.20 to 6
    "Gitea's chart": (["/run.sh"], {}),
    "Gitea's chart, with what its values suggest": (["/run.sh", "-m 128", "-I 2m", "-vv"], {}),
    # docker-library/memcached: the image's own command, those of its page, and those of memcached's page on Loki (memcached 1.6.45)
    "memcached's image": (["memcached"], {}),
    "memcached's image, by its page": (["memcached", "-m", "64"], {}),
    "memcached's image, options alone": (["-m", "64", "-c", "2048", "-I", "2m", "-vv"], {}),
    "memcached's image, long options": (["memcached", "--memory-limit=4096", "--max-item-size=2m", "--conn-limit=1024"], {}),
}
UNITS = {"": 1, "k": 1 << 10, "m": MIB}


def asked(words, letter, name, variable, default):
    """The value that a list gives an option."""
    line, environment = words
    text = " ".join(line)
    found = re.search(rf"(?:^| )-{letter} (\w+)|--{name}=(\w+)", text)
    return next((value for value in found.groups() if value), default) if found else environment.get(variable, default)


def in_bytes(text):
    number, unit = re.fullmatch(r"(\d+)([km]?)", text).groups()
    return int(number) * UNITS[unit]


@pytest.fixture
def entry(open_folder):
    """The entry point, in a folder for programs; its state belongs into a folder that isn't there."""
    programs = open_folder / "programs"
    programs.mkdir()
    shutil.copy(ENTRY, programs / "entrypoint.sh")
    keep_state_in(programs / "entrypoint.sh", "/nowhere")
    return programs / "entrypoint.sh"


def keep_state_in(entry, folder):
    text, count = re.subn(r"(?m)^state=.*$", f"state={folder}", entry.read_text(encoding="utf-8"))
    assert count == 1
    entry.write_text(text, encoding="utf-8")


def run(entry, *words, **environment):
    """What it runs, with a daemon that prints its arguments."""
    daemon = entry.parent / "flashield"
    daemon.write_text('#!/bin/sh\necho flashield "$@"\n', encoding="utf-8")
    daemon.chmod(0o755)
    return subprocess.run([entry, *words], capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env=dict(os.environ, PATH=f"{entry.parent}:{os.environ['PATH']}", **environment))


def test_another_command_is_run_as_it_is(entry):
    assert run(entry, "bash", "-c", "echo $0 $1", "-m", "64").stdout == "-m 64\n"
    assert run(entry, "false").returncode == 1
    assert run(entry, "/nowhere/run.sh").returncode == 127


def test_a_password_without_effect_ends_the_start(entry):
    """A cache that everybody may read would be worse."""
    done = run(entry, "/run.sh", MEMCACHED_PASSWORD="secret")
    assert (done.returncode, done.stdout) == (64, "") and "--auth-file" in done.stderr


def test_options_and_names_start_the_daemon(entry, open_folder):
    for words in (["-m", "64"], ["memcached", "-m", "64"], ["flashield", "-m", "64"]):
        done = run(entry, *words)
        assert done.stdout == "flashield -m 64\n"
        assert done.stderr == "nothing outlives a stop: /nowhere can't be written\n"
    keep_state_in(entry, open_folder)
    done = run(entry, "memcached", "-m 64")
    assert (done.stdout, done.stderr) == (f"flashield --state-dir {open_folder} -m 64\n", "")


def test_without_a_word_it_has_a_flash_where_it_may_write(entry, open_folder):
    assert "--flash" not in run(entry).stdout
    keep_state_in(entry, open_folder)
    words = run(entry).stdout.split()
    assert words[:3] == ["flashield", "--state-dir", str(open_folder)]
    assert words[words.index("--flash-path") + 1] == f"{open_folder}/flash"
    assert "--flash-min-free" in words and "0.0.0.0" in words


class Contained(Daemon):
    """The daemon as the image's entry point starts it, and its user."""

    def __init__(self, entry, words, environment, log):
        super().__init__(words, environment=dict(os.environ, PATH=f"{entry.parent}:{os.environ['PATH']}", **environment), stderr=log)
        self.entry = entry
        # What follows has the last word, on the ports alone. Without a word of its own the list stands for the defaults.
        self.options = [*(words or ["memcached"]), "--metrics-listen=off"]

    def command(self):
        return [*USER, str(self.entry), *self.options, "-l", "127.0.0.1", "-p", str(self.port)]


@pytest.mark.parametrize("source", LISTS)
def test_it_starts_and_serves(entry, open_folder, source):
    words, environment = LISTS[source]
    most = asked(LISTS[source], "c", "conn-limit", "MEMCACHED_MAX_CONNECTIONS", "1024")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < int(most) + 100:
        pytest.skip(f"this machine allows fewer open files than {most} connections need")
    given = [re.sub(r"(/data|/cache-state)/", f"{open_folder}/", re.sub(r"(:\d+)G\b", r"\1m", word)) for word in words]
    shutil.copy(flashield_command(), entry.parent / "flashield")
    log = open_folder / "log"
    with log.open("w") as opened, Contained(entry, given, environment, opened) as daemon, daemon.client() as client:
        settings = client.stats(b"settings")
        memory = int(asked(LISTS[source], "m", "memory-limit", "MEMCACHED_CACHE_SIZE", "64"))
        largest = in_bytes(asked(LISTS[source], "I", "max-item-size", "MEMCACHED_MAX_ITEM_SIZE", "1m"))
        assert int(settings["maxbytes"]) == memory * MIB
        assert settings["item_size_max"] == str(largest)
        assert settings["maxconns"] == most
        assert settings["num_threads"] == asked(LISTS[source], "t", "threads", "MEMCACHED_THREADS", "4")
        value = bytes(largest - 4096)
        assert client.set(b"key", value) == b"STORED\r\n"
        assert client.get(b"key") == [(b"key", 0, value, None)]
        flash = re.search(r"ext_path=/data/file:(\d+)G", " ".join(words))
        assert int(client.stats().get("extstore_limit_maxbytes", 0)) == (int(flash[1]) * MIB if flash else 0)
    text = log.read_text(encoding="utf-8")
    assert "error" not in text and "Unknown" not in text, text
