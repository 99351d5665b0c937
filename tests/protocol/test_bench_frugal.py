# SPDX-License-Identifier: BSD-3-Clause
"""flashield-bench frugal end to end, small and without memcached: what each index takes, and how it reads. No time is judged."""
import json
import os
import subprocess

import pytest

from helpers import ROOT, flashield_command

BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
BENCH = os.path.join(BUILD, "flashield-bench")
SLOTS, ALL, CHAINS = "slots", "frugal, all", ["frugal, 25 %", "frugal, 10 %"]
FRUGAL = [ALL, *CHAINS]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not os.path.exists(BENCH), reason=f"{BENCH} is not built"),
    pytest.mark.skipif(os.path.realpath(os.path.dirname(flashield_command())) != os.path.realpath(BUILD),
                       reason="the daemon is not the one that was built with flashield-bench"),
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frugal")
    path = folder / "figures.json"
    done = subprocess.run([BENCH, "frugal", "--daemon", flashield_command(), "--memcached", "/nowhere/memcached", "--dir", folder,
                           "--scale", "0.05", "--rounds", "1", "--quiet", "--json", path],
                          capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    assert [entry.name for entry in folder.iterdir()] == ["figures.json"], "files are left behind"
    return {row: {column: samples[0] for column, samples in cells.items()}
            for row, cells in json.loads(path.read_text())["studies"]["frugal"]["rows"].items()}


def test_the_frugal_index_takes_less_memory_the_fewer_columns_it_holds(rows):
    """On so small a flash parts that don't grow with it count most, so that slots may take less."""
    assert rows[f"held {SLOTS}"]["dram_bytes"] > 0
    for name in FRUGAL:
        held = rows[f"held {name}"]
        parts = sum(held[f"{part}_bytes"] for part in ("column", "prefilter", "kill", "rest"))
        assert parts == pytest.approx(held["dram_bytes"], rel=1e-6)
        assert (held["chain_columns"] > 0) == (name in CHAINS)
    for name in CHAINS:
        assert rows[f"held {name}"]["column_bytes"] < rows[f"held {ALL}"]["column_bytes"]


def per_get(rows, kind, name, column, cases=("c1", "c16", "c50")):
    """A column's mean over the gets of the cases: in a load as short as these, one connection makes a few dozen gets."""
    of_cases = [rows[f"{kind} {case} {name}"] for case in cases]
    return sum(row[column] * row["ops_s"] for row in of_cases) / sum(row["ops_s"] for row in of_cases)


def test_a_chain_costs_a_second_read_and_writes(rows):
    for name in (SLOTS, ALL):
        assert 0.9 < per_get(rows, "get", name, "reads") < 1.1
    for name in CHAINS:
        assert 1.3 < per_get(rows, "get", name, "reads") < 2.2
    for name in [SLOTS, *FRUGAL]:
        assert rows[f"held {name}"]["written_byte"] > 1
        assert (rows[f"held {name}"]["chain_percent"] > 0) == (name in CHAINS)


def test_keys_that_lie_on_flash_are_asked_for_and_absent_ones(rows):
    for name in [SLOTS, *FRUGAL]:
        assert per_get(rows, "get", name, "hit_percent") > 50 and per_get(rows, "get", name, "flash_percent") > 80
        assert per_get(rows, "absent", name, "reads") < 0.5 * per_get(rows, "get", name, "reads")
        assert rows[f"get mget c4 {name}"]["flash_percent"] > 80
        assert rows[f"absent mget c4 {name}"]["reads"] < 0.5 * rows[f"get mget c4 {name}"]["reads"]
        for case in ("c1", "c50"):
            assert rows[f"set {case} {name}"]["cpu_us"] > 0


def test_the_ratios_are_over_slots(rows):
    for name in FRUGAL:
        for row in ("get c50", "absent c1", "set c50"):
            ours, slots = rows[f"{row} {name}"], rows[f"{row} {SLOTS}"]
            assert ours["ops_over_slots"] == pytest.approx(ours["ops_s"] / slots["ops_s"], rel=1e-6)
            assert ours["cpu_over_slots"] == pytest.approx(ours["cpu_us"] / slots["cpu_us"], rel=1e-6)
    assert not any("extstore" in row for row in rows)
