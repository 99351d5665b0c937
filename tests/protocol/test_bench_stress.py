# SPDX-License-Identifier: BSD-3-Clause
"""flashield-bench stress: the studies under an emulated drive. No time is judged."""
import json
import os
import subprocess

import pytest

from helpers import ROOT, flashield_command

BUILD = os.environ.get("FLASHIELD_BUILD", os.path.join(ROOT, "build"))
BENCH = os.path.join(BUILD, "flashield-bench")

pytestmark = [
    pytest.mark.skipif(not os.path.exists(BENCH), reason=f"{BENCH} is not built"),
    pytest.mark.skipif(os.path.realpath(os.path.dirname(flashield_command())) != os.path.realpath(BUILD),
                       reason="the daemon is not the one that was built with flashield-bench"),
]


def bench(folder, *options):
    path = folder / "figures.json"
    done = subprocess.run([BENCH, "--daemon", flashield_command(), "--memcached", "/nowhere/memcached", "--dir", folder,
                           "--rounds", "1", "--quiet", "--json", path, *options],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert [entry.name for entry in folder.iterdir()] == ["figures.json"], "files are left behind"
    return json.loads(path.read_text())


def test_without_the_emulated_drive_studies_say_so(tmp_path):
    studies = ["stress_overload", "stress_hang", "stress_clwa", "stress_hot", "stress_index"]
    run = bench(tmp_path, "--slowdrive", "/nowhere/slowdrive.so", *studies)
    for study in studies:
        assert run["studies"][study]["notes"] == ["The emulated drive (/nowhere/slowdrive.so) is not here."]


def test_a_hot_object_s_reads_are_those_of_the_drive(tmp_path):
    if not os.path.exists(os.path.join(BUILD, "slowdrive.so")):
        pytest.skip("slowdrive.so is not built")
    study = bench(tmp_path, "--scale", "0.02", "stress_hot")["studies"]["stress_hot"]
    if "No keys of flashield -t 1 lie on its flash: not measured." in study["notes"]:
        pytest.skip("the flash was not filled in time")
    for drive in ("fast drive", "1 ms drive"):
        row = study["rows"][f"flashield, {drive}"]
        assert row["hot_gets"] == [20000]
        assert 1 <= row["hot_reads"][0] <= 200
    assert any("/nowhere/memcached" in note for note in study["notes"])
