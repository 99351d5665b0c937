# SPDX-License-Identifier: BSD-3-Clause
"""flashield-bench device end to end: what it refuses, what it writes, and the drive's counters.

The drive is a smartctl in a folder of the test's, which counts what the kernel has written of it.
"""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FLASHIELD_BUILD", ROOT / "build"))
BENCH = BUILD / "flashield-bench"

pytestmark = pytest.mark.skipif(not BENCH.exists(), reason=f"{BENCH} is not built")

MIB = 1 << 20


def has_direct_io(folder):
    try:
        os.close(os.open(folder / "probe", os.O_WRONLY | os.O_CREAT | os.O_DIRECT))
        return True
    except OSError:
        return False


def has_drive(folder):
    """Is there one device below, or is it a file system without any (tmpfs, overlay)?"""
    number = os.stat(folder).st_dev
    return os.path.exists(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")


@pytest.fixture
def folder(tmp_path):
    if not has_direct_io(tmp_path):
        pytest.skip("no O_DIRECT here")
    return tmp_path


def bench(*options, path=None):
    """What it prints comes in lines of any length: they are joined."""
    environment = dict(os.environ)
    if path:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    done = subprocess.run([BENCH, "device", "--daemon", "/bin/true", "--dir", "/tmp", "--quiet", *options],
                          capture_output=True, text=True, timeout=120, check=False, env=environment)
    done.stdout = " ".join(done.stdout.split())
    return done


def fake_smartctl(folder, body):
    """A smartctl that runs `body`, a shell script."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "smartctl").write_text(f"#!/bin/sh\n{body}\n")
    (bin_folder / "smartctl").chmod(0o755)
    return bin_folder


def cells(figures):
    """(row, column) -> samples, of the study device."""
    rows = figures["studies"]["device"]["rows"]
    return {(row, column): samples for row, columns in rows.items() for column, samples in columns.items()}


@pytest.mark.parametrize("options,named", [
    ([], "--path"),
    (["--path", "/nowhere/at/all", "--size", "4m"], "/nowhere/at/all"),
    (["--path", "/dev/null", "--overwrite"], "neither a file nor a block device"),
    (["--path", "x", "--utilisation", "2"], "--utilisation"),
])
def test_bad_usage_names_the_option_and_exits_2(options, named):
    done = bench(*options)
    assert done.returncode == 2
    assert named in done.stderr


def test_a_file_that_exists_is_kept(folder):
    kept = folder / "kept"
    kept.write_text("treasure")
    done = bench("--path", str(kept), "--size", "4m")
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert kept.read_text() == "treasure"


def test_a_file_is_overwritten_when_told_and_stays(folder):
    target = folder / "target"
    target.write_bytes(bytes(4 * MIB))
    done = bench("--path", str(target), "--total", "2m", "--overwrite", path=fake_smartctl(folder, "exit 1"))
    assert done.returncode == 0, done.stderr
    data = target.read_bytes()
    assert len(data) == 4 * MIB
    assert data[:3 * MIB].count(bytes(4096)) == 0  # 90 % in whole MiB
    assert data[3 * MIB:] == bytes(MIB)


def test_each_pattern_and_unit_that_fits_is_measured(folder):
    result = folder / "figures.json"
    done = bench("--path", str(folder / "new"), "--size", "10m", "--total", "2m", "--json", str(result),
                 path=fake_smartctl(folder, "exit 1"))
    assert done.returncode == 0, done.stderr
    rows = {row for row, column in cells(json.loads(result.read_text())) if column == "mb_s"}
    assert rows == {f"{pattern}, {unit} MiB" for pattern in ("sequential", "random") for unit in (1, 2, 4, 8)}
    assert not (folder / "new").exists()
    assert "reports no write counters" in done.stdout
    assert "16 MiB and more" in done.stdout


def test_a_drive_that_counts_the_host_alone_is_told_so(folder):
    if not has_drive(folder):
        pytest.skip("no drive below")
    body = """echo '{"smartctl": {"exit_status": 0}, "model_name": "A drive", "logical_block_size": 512,
        "ata_smart_attributes": {"table":
        [{"id": 241, "name": "Total_LBAs_Written", "raw": {"value": 7}}]}}'"""
    done = bench("--path", str(folder / "new"), "--size", "2m", "--total", "1m",
                 path=fake_smartctl(folder, body))
    assert done.returncode == 0, done.stderr
    assert "A drive" in done.stdout
    assert "reports no NAND write counters" in done.stdout


def test_amplification_by_the_drives_counters(folder):
    """Each reading finds 100 GiB more written by the host and 250 GiB more on NAND."""
    if not has_drive(folder):
        pytest.skip("no drive below")
    count = folder / "count"
    count.write_text("0\n")
    body = f"""read n < {count}; n=$((n + 1)); echo $n > {count}
        cat << END
        {{"smartctl": {{"exit_status": 0}}, "model_name": "A drive", "ata_smart_attributes": {{"table": [
        {{"id": 241, "name": "Host_Writes_GiB", "raw": {{"value": $((n * 100))}}}},
        {{"id": 233, "name": "Flash_Writes_GiB", "raw": {{"value": $((n * 250))}}}}]}}}}
END"""
    result = folder / "figures.json"
    done = bench("--path", str(folder / "new"), "--size", "2m", "--total", "1m", "--json", str(result),
                 path=fake_smartctl(folder, body))
    assert done.returncode == 0, done.stderr
    found = cells(json.loads(result.read_text()))
    assert found["sequential, 1 MiB", "dlwa"] == [2.5]
    assert found["random, 1 MiB", "dlwa"] == [2.5]
    assert "steps of 1.00 GiB" in done.stdout
