# SPDX-License-Identifier: BSD-3-Clause
"""Resident memory stays within 1.1 x -m + 24 MiB, whatever sizes come one after the other."""
import pytest

from helpers import flashield_command, in_time


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def flood(client, name, value_bytes, total_bytes):
    value = b"x" * value_bytes
    number = 0
    while number * value_bytes < total_bytes:
        client.send(b"".join(b"set %s%08d 0 0 %d noreply\r\n%s\r\n" % (name, number + i, value_bytes, value)
                             for i in range(200)))
        number += 200
    client.send(b"version\r\n")
    assert client.line().startswith(b"VERSION")


@pytest.mark.clock
@pytest.mark.skipif("san" in flashield_command(), reason="a sanitizer's shadow memory is resident too")
@pytest.mark.parametrize("flash", [False, True], ids=["dram", "flash"])
def test_a_shift_of_sizes_keeps_the_limit(start, tmp_path, flash):
    """100 B, then 1 KiB, then 100 B, each several times the memory: the peak is within the target."""
    options = ["--flash-path", str(tmp_path / "flash"), "--flash-size", "128m"] if flash else []
    daemon = start("-m", "64", "-t", "2", *options)
    with daemon.client() as client:
        for name, value_bytes in ((b"a", 100), (b"b", 1024), (b"c", 100)):
            flood(client, name, value_bytes, 160 << 20)
    peak = peak_mib(daemon.process.pid)
    in_time(peak <= 1.1 * 64 + 24, f"{peak:.1f} MiB are resident")
