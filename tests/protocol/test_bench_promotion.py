# SPDX-License-Identifier: BSD-3-Clause
"""flashield-bench promotion end to end, small and without memcached: copies spare reads, and nothing is lost."""
import json
import os
import subprocess

import pytest

from helpers import ROOT, flashield_command

BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
BENCH = os.path.join(BUILD, "flashield-bench")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not os.path.exists(BENCH), reason=f"{BENCH} is not built"),
    pytest.mark.skipif(os.path.realpath(os.path.dirname(flashield_command())) != os.path.realpath(BUILD),
                       reason="the daemon is not the one that was built with flashield-bench"),
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("promotion")
    path = folder / "figures.json"
    done = subprocess.run([BENCH, "promotion", "--daemon", flashield_command(), "--memcached", "/nowhere/memcached", "--dir", folder,
                           "--scale", "0.05", "--rounds", "1", "--quiet", "--json", path],
                          capture_output=True, text=True, timeout=2700, check=False)
    assert done.returncode == 0, done.stderr
    assert [entry.name for entry in folder.iterdir()] == ["figures.json"], "files are left behind"
    return json.loads(path.read_text())["studies"]["promotion"]["rows"]


@pytest.mark.parametrize("size", ["257 B", "2 KiB", "257 B, 10k reads/s", "2 KiB, 10k reads/s"])
def test_every_get_hits_and_a_rule_spares_reads(rows, size):
    off = rows[f"{size} zipf 1.2 off"]
    assert off["hit_percent"][0] > 95 and off["reads_get"][0] > 0.2 and off["copies_percent"] == [0]
    for rule in ("sketch, 0.02", "lru, 0.02", "second, auto"):
        row = rows[f"{size} zipf 1.2 {rule}"]
        assert row["hit_percent"][0] > 95
        assert row["copies_percent"][0] > 0
        assert row["reads_get"][0] < off["reads_get"][0]
        assert row["ops_over_off"][0] == pytest.approx(row["ops_s"][0] / off["ops_s"][0], rel=1e-6)


def test_without_memcached_nothing_is_compared_with_it(rows):
    assert not any("extstore" in row for row in rows)
    assert all("ops_over_ext" not in cells for cells in rows.values())
