# SPDX-License-Identifier: BSD-3-Clause
"""flashield-bench flash end to end, small and without memcached: objects do lie on flash, and reads are counted."""
import json
import os
import subprocess

import pytest

from helpers import ROOT, Late, flashield_command, in_time

BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
BENCH = os.path.join(BUILD, "flashield-bench")

# A sanitizer build's cleaner doesn't keep up with the fill.
pytestmark = [
    pytest.mark.clock,
    pytest.mark.skipif(not os.path.exists(BENCH), reason=f"{BENCH} is not built"),
    pytest.mark.skipif(os.path.realpath(os.path.dirname(flashield_command())) != os.path.realpath(BUILD),
                       reason="the daemon is not the one that was built with flashield-bench"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What a small run printed, its study as JSON."""
    folder = tmp_path_factory.mktemp("flash")
    try:
        os.close(os.open(folder / "probe", os.O_WRONLY | os.O_CREAT | os.O_DIRECT))
    except OSError:
        pytest.skip("no O_DIRECT here")
    os.unlink(folder / "probe")
    path = folder / "figures.json"
    done = subprocess.run([BENCH, "flash", "--daemon", flashield_command(), "--memcached", "/nowhere/memcached",
                           "--dir", folder, "--scale", "0.02", "--rounds", "2", "--quiet", "--json", path],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert [entry.name for entry in folder.iterdir()] == ["figures.json"], "files are left behind"
    return done.stdout, json.loads(path.read_text())["studies"]["flash"]


def rows_of(run, size):
    """A busy machine's cleaner may not have filled the flash in time: then the study says so."""
    if f"{size}: no keys of flashield lie on its flash: not measured." in run[1]["notes"]:
        assert not any(row.startswith(f"{size} c1") for row in run[1]["rows"])
        raise Late("the flash was not filled in time")
    return run[1]["rows"]


CASES = ["c1", "c16", "c50", "mget c4"]


def hits_come_from_where_the_row_says(rows, name):
    flash, dram = rows[f"{name} flashield"], rows[f"{name} flashield DRAM"]
    # 99 where the cleaner has kept up with the fill
    in_time(min(flash["flash_percent"]) >= 75, f"{flash['flash_percent']} per cent of the hits are of the flash")
    assert max(dram["flash_percent"]) == 0
    in_time(min(flash["hit_percent"]) > 0, "no hit")  # a busy machine's drive sheds some, or nearly all of them
    assert min(flash["disk_bytes"]) > 200  # O_DIRECT: no page comes from memory; gets of one object share a read


def reads_are_counted(rows, size, pages, record):
    reads = rows[f"{size} reads flashield"]
    assert 0.5 < reads["reads_per_hit"][0] < 1.05  # below 1: gets of one object share a read
    assert 0 <= reads["reads_per_miss"][0] < 0.05
    assert pages <= reads["pages"][0] < pages + 0.2
    assert record < reads["read_bytes"][0] <= 4096 * (pages + 0.2)
    for raw in rows[f"{size} c1 raw reads"]["read_bytes"]:
        assert raw % 512 == 0 and 512 <= raw <= 4096 * pages


def the_formula_is_of_the_round_s_own_terms(rows, name):
    terms = zip(*(rows[f"{name} {who}"]["cpu_us"] for who in ("flashield", "flashield DRAM", "raw reads")))
    for (ours, dram, raw), share in zip(terms, rows[name]["cpu_share"], strict=True):
        assert share == pytest.approx(ours / (dram + 1.3 * raw), rel=1e-6)


@pytest.mark.parametrize("size,pages,record", [("257 B", 1, 319), ("4 KB", 2, 4158)])
def test_rows_are_what_was_measured(run, size, pages, record):
    """One test for each size, as a run that is late is late in all of it."""
    rows = rows_of(run, size)
    reads_are_counted(rows, size, pages, record)
    for case in CASES:
        the_formula_is_of_the_round_s_own_terms(rows, f"{size} {case}")
        hits_come_from_where_the_row_says(rows, f"{size} {case}")


def test_without_memcached_nothing_is_compared_with(run):
    assert any("/nowhere/memcached" in note for note in run[1]["notes"])
    assert not any("extstore" in row for row in run[1]["rows"])
    assert "flash hits per second, c50, against extstore" in run[0]
