# SPDX-License-Identifier: BSD-3-Clause
"""flashield-tracegen end to end: files, formats, determinism, and what it prints."""
import gzip
import os
import subprocess

import pytest

from helpers import PATIENCE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
TRACEGEN = os.path.join(BUILD, "flashield-tracegen")

pytestmark = pytest.mark.skipif(not os.path.exists(TRACEGEN), reason=f"{TRACEGEN} is not built")


def tracegen(*options, check=True):
    return subprocess.run([TRACEGEN, *options], capture_output=True, text=True, timeout=PATIENCE, check=check)


@pytest.mark.parametrize("options,named", [
    ([], "--output"),
    (["--output", "-", "--scale", "0"], "--scale"),
    (["--output", "-", "--scale", "2"], "--scale"),
    (["--output", "-", "--scale", "1/0"], "--scale"),
    (["--output", "-", "--apps", "1,4"], "--apps"),
    (["--output", "-", "--apps", ""], "--apps"),
    (["--output", "-", "--requests", "12"], "--requests"),
    (["--output", "-", "--duration", "1 week"], "--duration"),
    (["--output", "-", "--format", "csv"], "flashield, memcachier"),
    (["--output", "-", "more"], "more"),
    (["--output", "/nowhere/at/all.csv", "--requests", "1k"], "/nowhere/at/all.csv"),
])
def test_bad_usage_names_the_option_and_exits_2(options, named):
    done = tracegen(*options, check=False)
    assert done.returncode == 2
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_same_seed_gives_the_same_file(tmp_path):
    names = [str(tmp_path / name) for name in ("a.csv.gz", "b.csv.gz", "c.csv.gz")]
    for name, seed in zip(names, ("4", "4", "5")):
        tracegen("--output", name, "--requests", "20k", "--seed", seed, "--quiet")
    texts = [gzip.open(name).read() for name in names]
    assert texts[0] == texts[1] != texts[2]


def rows_of(text):
    return [line.split(",") for line in text.splitlines()]


def test_flashield_rows(tmp_path):
    done = tracegen("--output", "-", "--requests", "30k", "--quiet")
    rows = rows_of(done.stdout)
    assert rows[0] == ["time_ms", "app", "op", "key", "key_size", "value_size", "ttl_s"]
    last_ms, next_key = 0, 0
    for time_ms, _app, op, key, key_size, value_size, ttl in rows[1:]:
        assert int(time_ms) >= last_ms
        last_ms = int(time_ms)
        assert op in ("get", "set", "delete")
        assert int(key) <= next_key
        next_key = max(next_key, int(key) + 1)
        assert 16 <= int(key_size) <= 80
        assert int(value_size) == -1 if op == "delete" else op == "get" or int(value_size) > 0
        assert ttl == "0"
    assert last_ms <= 604800000
    assert 29000 <= len(rows) <= 31000


def test_memcachier_rows_follow_misses_with_sets(tmp_path):
    done = tracegen("--output", "-", "--requests", "30k", "--format", "memcachier", "--apps", "1,23", "--quiet")
    rows = rows_of(done.stdout)
    gets = [row for row in rows if row[2] == "1"]
    misses = [row for row in gets if row[6] == "0"]
    assert {row[1] for row in rows} == {"1", "23"}
    assert misses and all(row[4] == "-1" for row in misses)
    assert all(int(row[4]) > 0 for row in gets if row[6] == "1")
    sets = {(row[0], row[5]) for row in rows if row[2] == "2"}
    assert sum((row[0], row[5]) in sets for row in misses) > 0.8 * len(misses)


def test_the_duration_scales(tmp_path):
    done = tracegen("--output", "-", "--requests", "5k", "--duration", "10m", "--quiet")
    times = [int(row[0]) for row in rows_of(done.stdout)[1:]]
    assert 300000 < max(times) <= 600000


def test_it_says_what_it_reached_and_what_it_missed(tmp_path):
    done = tracegen("--output", str(tmp_path / "t.csv"), "--requests", "100k")
    for part in ("published", "unread writes", "mean object", "objects below 1 KB", "missed by", "alpha"):
        assert part in done.stdout
    assert "100 0" in done.stdout
