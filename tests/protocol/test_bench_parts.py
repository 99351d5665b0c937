# SPDX-License-Identifier: BSD-3-Clause
"""The parts of flashield-bench by themselves: figures, servers, the drive's counters, callgrind's file, the model of
the index, and what the study device may write to."""
import json
import math
import os
import socket
import sys
import types
import zlib

import pytest

from helpers import ROOT, memcached_command

sys.path.insert(0, os.path.join(ROOT, "tools", "bench"))

import flashield_bench  # noqa: E402
import server as servers  # noqa: E402
import smart  # noqa: E402
from figures import NAN, WIDTH, Figures, number_text  # noqa: E402
from flash_fill import longest_run  # noqa: E402
from load import Hist, step_most  # noqa: E402
from study import STUDIES  # noqa: E402
from study_device import Refused, Target, Writer  # noqa: E402
from study_engine import Model  # noqa: E402
from study_instructions import Profile, per_operation  # noqa: E402

def test_every_study_has_its_place_in_the_order():
    assert sorted(flashield_bench.ORDER) == sorted(STUDIES)


# ---- figures ---------------------------------------------------------------------------------


def figures_of(rows, columns=None):
    figures = Figures()
    for column, (head, decimals) in (columns or {}).items():
        figures.column(column, head, decimals)
    for row, cells in rows.items():
        for column, samples in cells.items():
            for sample in samples:
                figures.add("study", row, column, sample)
    return figures


def test_the_median_is_of_the_samples_that_are_numbers():
    figures = figures_of({"odd": {"x": [3, 1, 2]}, "even": {"x": [4, 1, 2, 3]}, "holes": {"x": [NAN, 7, NAN]},
                          "none": {"x": [NAN]}})
    assert [figures.median("study", row, "x") for row in ("odd", "even", "holes")] == [2, 2.5, 7]
    for study, row, column in (("study", "none", "x"), ("study", "odd", "y"), ("other", "odd", "x")):
        assert math.isnan(figures.median(study, row, column))


def test_a_ratio_goes_round_by_round():
    """The machine slows down from round to round: the ratio of the medians would be 1."""
    figures = figures_of({"ours": {"x": [1, 4, 16]}, "theirs": {"x": [2, 8, 4]}, "short": {"x": [1]},
                          "zero": {"x": [0, 0, 0]}})
    assert figures.ratio("study", "ours", "theirs", "x") == 0.5
    assert figures.ratio("study", "ours", "short", "x") == 1
    assert math.isnan(figures.ratio("study", "ours", "zero", "x"))
    assert math.isnan(figures.ratio("study", "ours", "nobody", "x"))


@pytest.mark.parametrize("value,text", [(0.00123456, "0.00123"), (0.98765, "0.988"), (12.3456, "12.3"), (9999, "9999"),
                                        (201345, "201k"), (NAN, "-"), (0, "0"), (15e9, "15.0G")])
def test_numbers_have_three_digits(value, text):
    assert number_text(value) == text


def test_a_column_s_decimals_and_its_head_in_two_lines():
    figures = figures_of({"r": {"a": [1], "f": [12.3456]}}, {"f": ("head of f", 1)})
    assert figures.study_text("study")[-3:] == ["      head", "   a  of f", "r  1  12.3"]


def test_no_line_is_wider_than_the_table_or_ends_in_blanks():
    words = "word " * 100
    figures = figures_of({"a row with a name of some length": {f"column_{i}_us": [1234.5 * i] for i in range(30)},
                          "another": {f"column_{i}_us": [1e-4 * i] for i in range(30)}})
    figures.study("study").update(title="title", explanation=words)
    figures.note("study", words)
    figures.note("study", words)
    lines = figures.study_text("study")
    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)
    assert any("column_29_us" in line for line in lines)
    assert figures.study("study")["notes"] == [words]


def test_rows_without_a_common_column_stand_apart():
    figures = figures_of({"get": {"cpu": [1]}, "fill": {"bytes": [2]}, "set": {"cpu": [3]}})
    assert "\n".join(figures.study_text("study")[2:]) == (
        "\n     cpu\nget    1\nset    3\n\n      bytes\nfill      2")


def test_nothing_is_printed_of_a_study_that_did_not_run():
    assert Figures().study_text("study") == Figures().targets_text() == []


def test_verdicts():
    figures = Figures()
    for measure, value, limit in (("at the limit", 0.9, {"at_most": 0.9}), ("above it", 0.99, {"at_most": 0.9}),
                                  ("enough", 96, {"at_least": 95}), ("too few", 76, {"at_least": 95}),
                                  ("unknown", NAN, {"at_least": 95}), ("none at all", 1, {"at_most": 0}),
                                  ("beside", 126, {})):
        figures.target(measure, value, "x", **limit)
    lines = [line.split("  ")[-1] if limit else line.split()[-2] for line, limit in
             zip(figures.targets_text()[4:], [1, 1, 1, 1, 1, 1, 0], strict=True)]
    assert lines == ["reached", "missed by 10 %", "reached", "missed by 20 %", "not measured", "missed", "126"]
    assert "<= 0.900 x  reached" in figures.targets_text()[4]


def test_changes_beyond_both_spreads_are_marked():
    base = figures_of({"clear": {"x": [10, 11, 12]}, "noisy": {"x": [10, 11, 30]}, "single": {"x": [10]},
                       "gone": {"x": [10]}})
    now = figures_of({"clear": {"x": [20, 22, 23], "new_column": [10]}, "noisy": {"x": [20, 22, 23]},
                      "single": {"x": [20]}, "new": {"x": [10]}})
    text = "\n".join(now.comparison_text(base))
    assert "1 of 3 figures" in text
    assert "*+100%" in text
    assert "noisy   before      11\n" in text
    assert "        change   +100%\nsingle " in text
    assert "gone" not in text and "new" not in text


def test_the_file_gives_all_samples_back(tmp_path):
    figures = figures_of({"row": {"x": [1.25, NAN, 3], "y": [1e-12]}}, {"x": ("us CPU/op", 2)})
    figures.about["machine"] = 'a "quoted" one'
    figures.study("study").update(title="title", explanation="explanation")
    figures.note("study", "a note")
    figures.target("a target", 1, "x", at_least=2)
    figures.target("beside", NAN, "B")
    path = tmp_path / "run.json"
    figures.write_json(path)
    assert json.loads(path.read_text())["studies"]["study"]["rows"]["row"]["x"] == [1.25, None, 3]
    read = Figures.read_json(path)
    assert read.median("study", "row", "x") == 2.125
    assert read.ratio("study", "row", "row", "x") == 1  # the second sample's NaN stands where it stood
    assert (read.study_text("study"), read.targets_text(), read.about) == (
        figures.study_text("study"), figures.targets_text(), figures.about)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 3}', '{"format": "other"}',
                                  '{"format": "flashield-bench 1", "about": 1}'])
def test_foreign_files_are_refused(tmp_path, text):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="run.json"):
        Figures.read_json(path)


def test_a_file_that_cannot_be_written_is_told():
    for path in ("/nowhere/at/all.json", "/dev/full"):
        with pytest.raises(OSError):
            figures_of({"row": {"x": [1]}}).write_json(path)


def test_latencies_are_those_of_the_worker_s_steps():
    assert [step_most(bucket) for bucket in (0, 63, 64, 65, 128)] == [0, 63, 64, 65, 129]
    hist = Hist({"max": 129, "steps": [[10, 98], [128, 2]]})
    assert (hist.us(0.5), hist.us(0.98), hist.us(0.99), hist.us(1)) == (0.01, 0.01, 0.129, 0.129)
    assert hist.merge(hist).steps == {10: 196, 128: 4}
    assert math.isnan(Hist().us(0.5))


def test_the_longest_run_of_cycles_on_flash():
    assert longest_run([0, 1, 1, 0.5, 1, 1, 1, 0]) == (4, 3)
    assert longest_run([1, 1, 0, 1, 1]) == (3, 2)  # the later one of equals
    assert longest_run([0.5, 0]) == (0, 0)


# ---- servers ---------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path):
    options = types.SimpleNamespace(daemon="/nowhere/flashield", memcached=memcached_command(), dir=str(tmp_path),
                                    slowdrive="/nowhere/slowdrive.so", server_cpu=-1)
    return types.SimpleNamespace(options=options, figures=Figures())


def left(bench):
    return os.listdir(bench.options.dir)


def started(bench, kind=servers.MEMCACHED, **spec):
    try:
        return servers.Server(bench, kind, memory_mb=64, **spec)
    except servers.NotFound:
        pytest.skip("memcached is not installed")


def test_a_program_that_is_not_there_is_told(bench):
    with pytest.raises(servers.NotFound, match="/nowhere/flashield"):
        servers.Server(bench, servers.FLASHIELD, memory_mb=64, flash_bytes=1 << 20)
    assert left(bench) == []


@pytest.mark.parametrize("line,told", [("echo no, thank you; exit 3", "status 3"), ("kill -9 $$", "signal 9")])
def test_a_program_that_ends_before_it_listens_is_told(bench, tmp_path_factory, capfd, line, told):
    program = tmp_path_factory.mktemp("program") / "memcached"
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
    bench.options.memcached = str(program)
    with pytest.raises(servers.Trouble, match=told):
        servers.Server(bench, servers.MEMCACHED, memory_mb=64)
    assert "exit" not in line or "no, thank you" in capfd.readouterr().err
    assert left(bench) == []


def test_a_server_that_ignores_its_slow_drive_is_told(bench):
    """The loader warns and goes on without the library."""
    with pytest.raises(servers.Trouble, match="not in effect|can't start"):
        started(bench, servers.EXTSTORE, flash_bytes=128 << 20, slow_drive=True)
    assert left(bench) == []


def test_a_memcached_is_started_asked_and_stopped(bench):
    server = started(bench, servers.EXTSTORE, flash_bytes=256 << 20)
    assert sorted(name.rpartition(".")[2] for name in left(bench)) == ["flash", "log"]
    assert "ext_path=" in bench.figures.about["extstore -t 1 -m 64 with flash"]
    assert server.alive()
    assert server.stat("", "pid") == server.pid
    assert server.stat("settings", "maxbytes") == 64 << 20
    assert server.stat("", "extstore_limit_maxbytes") == 256 << 20
    assert math.isnan(server.stat("", "no such figure")) and math.isnan(server.stat("nonsense", "pid"))
    used = server.cpu_seconds()
    server.drop_cache()
    server.stats()
    assert server.cpu_seconds() > used > 0
    assert 1 < server.resident_mib() <= server.peak_mib()
    server.stop()
    assert not server.alive()
    assert left(bench) == []


def test_a_server_that_died_does_not_stop_cleanly(bench):
    server = started(bench)
    server.process.kill()
    server.process.wait()
    assert math.isnan(server.stat("", "pid"))
    with pytest.raises(servers.Trouble, match="signal 9"):
        server.stop()
    assert left(bench) == []


def test_a_watchdog_knows_its_food():
    watchdog = servers.Watchdog(f"flashield-bench-test-{os.getpid()}", 3)
    assert watchdog.environment[1] == "WATCHDOG_USEC=3000000"
    name = watchdog.environment[0].removeprefix("NOTIFY_SOCKET=@")
    watchdog.fed -= 1000
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"STATUS=fed by WATCHDOG=1\nNO_WATCHDOG=1", "\0" + name)
        assert watchdog.unfed_seconds() >= 1000
        sender.sendto(b"STATUS=well\nWATCHDOG=1", "\0" + name)
        sender.sendto(b"STATUS=well", "\0" + name)
    assert watchdog.unfed_seconds() < 1000
    watchdog.socket.close()


def test_the_drive_s_control_file_has_its_layout(tmp_path):
    drive = servers.Drive(tmp_path / "control")
    drive.reads.per_second, drive.writes.hang = 7, True
    words = memoryview((tmp_path / "control").read_bytes()).cast("Q")
    assert (len(words), words[0], words[2], words[15]) == (22, servers.Drive.MAGIC, 7, 1)
    drive.release()
    assert drive.reads.per_second == drive.writes.hang == 0


# ---- a drive's counters ----------------------------------------------------------------------


def ata(**attributes):
    rows = [{"id": 241, "name": name, "raw": {"value": value}} for name, values in attributes.items()
            for value in (values if isinstance(values, list) else [values])]
    return parsed({"model_name": "SSD", "logical_block_size": 512, "ata_smart_attributes": {"table": rows}})


def parsed(root):
    counters = smart.Counters()
    smart.add_smartctl(counters, json.dumps({"smartctl": {"exit_status": 0}} | root))
    return counters


@pytest.mark.parametrize("text", ["", "[]", "{", "smartctl 7.3 2022-02-28", "{} {}"])
def test_no_json_object_is_refused(text):
    with pytest.raises(smart.Untold):
        smart.add_smartctl(smart.Counters(), text)
    assert not smart.add_ocp(smart.Counters(), text)


def test_a_drive_that_could_not_be_asked_says_why():
    with pytest.raises(smart.Untold, match="Permission denied"):
        parsed({"smartctl": {"exit_status": 2, "messages": [{"string": "Permission denied"}]}})


def test_values_that_are_no_counts_are_left_out():
    counters = parsed({"smartctl": {"exit_status": 4}, "model_name": 7, "ata_smart_attributes": {"table": [
        None, 3, {"id": 241}, {"name": "Total_LBAs_Written"}, {"name": "Total_LBAs_Written", "raw": {"value": "many"}},
        {"name": "NAND_Writes_1GiB", "raw": {"value": -5}}, {"name": ["no text"], "raw": {"value": 1}}]}})
    assert math.isnan(counters.host) and math.isnan(counters.nand)
    assert counters.model == ""


@pytest.mark.parametrize("before,after,expected", [
    # The paper's drive: the host's writes are told twice and counted once.
    ({"Host_Writes_32MiB": [6400, 6400], "NAND_Writes_1GiB": 300},
     {"Host_Writes_32MiB": [9600, 9600], "NAND_Writes_1GiB": 1100}, 8),
    ({"NAND_GB_Written_TLC": 100, "NAND_GB_Written_SLC": 200, "Host_Writes_GiB": 50},
     {"NAND_GB_Written_TLC": 120, "NAND_GB_Written_SLC": 210, "Host_Writes_GiB": 60}, 3),
    ({"Total_LBAs_Written": 5000, "Host_Program_Page_Count": 100, "FTL_Program_Page_Count": 1000},
     {"Total_LBAs_Written": 6000, "Host_Program_Page_Count": 200, "FTL_Program_Page_Count": 1050}, 1.5),
])
def test_amplification_by_attributes(before, after, expected):
    assert smart.amplification(ata(**before), ata(**after)) == pytest.approx(expected)
    assert ata(**after).counts_nand()
    assert math.isnan(smart.amplification(ata(**after), ata(**after)))  # nothing moved


def test_a_drive_that_counts_the_host_alone_has_no_amplification():
    before, after = ata(Total_LBAs_Written=1000), ata(Total_LBAs_Written=3000, Media_Wearout_Indicator=99)
    assert after.host - before.host == 2000 * 512
    assert not after.counts_nand()
    assert math.isnan(smart.amplification(before, after))


def test_nvme_counts_the_host_and_the_open_compute_log_the_nand():
    before, after = (parsed({"nvme_smart_health_information_log": {"data_units_written": units}})
                     for units in (1000, 3000))
    assert not after.counts_nand()
    assert smart.add_ocp(before, '{"Physical media units written": {"hi": 0, "lo": 512000000}}')
    assert smart.add_ocp(after, '{"physical_media_units_written": 1792000000}')
    assert smart.amplification(before, after) == 1.25
    assert not smart.add_ocp(after, '{"Physical media units read": {"hi": 0, "lo": 1}}')
    assert not smart.add_ocp(after, '{"Physical media units written": {"hi": 0}}')


def test_the_drive_below_is_found(tmp_path):
    devices = tmp_path / "devices"
    for folder in ("nvme0n1/slaves", "nvme0n1/nvme0n1p2", "sda/slaves", "dm-0/slaves/nvme0n1p2", "dm-1/slaves/dm-0",
                   "md0/slaves/sda", "md0/slaves/nvme0n1p2"):
        (devices / folder).mkdir(parents=True)
    (devices / "nvme0n1/nvme0n1p2/partition").touch()
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "class/block").mkdir(parents=True)
    for name, device in (("259:0", "nvme0n1"), ("259:2", "nvme0n1/nvme0n1p2"), ("8:0", "sda"), ("252:1", "dm-1"),
                         ("9:0", "md0")):
        (tmp_path / "dev/block" / name).symlink_to(devices / device)
    for device in ("nvme0n1/nvme0n1p2", "dm-0", "sda"):
        (tmp_path / "class/block" / os.path.basename(device)).symlink_to(devices / device)
    for (major, minor), drive in {(0, 41): None, (9, 0): None, (8, 0): "sda", (259, 0): "nvme0n1",
                                  (259, 2): "nvme0n1", (252, 1): "nvme0n1"}.items():
        assert smart.find_drive(os.makedev(major, minor), str(tmp_path)) == drive


# ---- what may be overwritten -----------------------------------------------------------------

MIB = 1 << 20


@pytest.fixture
def folder(tmp_path):
    try:
        os.close(os.open(tmp_path / "probe", os.O_WRONLY | os.O_CREAT | os.O_DIRECT))
    except OSError:
        pytest.skip("no O_DIRECT here")
    return tmp_path


@pytest.mark.parametrize("path,named", [("/dev/null", "neither a file nor a block device"), ("/tmp", "neither a file"),
                                        ("/nowhere/at/all", "No such file")])
def test_no_target_is_refused(path, named):
    with pytest.raises(Refused, match=named):
        Target(path, MIB, True)


def test_a_new_file_is_never_left_behind(folder):
    with pytest.raises(Refused, match="free"):
        Target(folder / "huge", 1 << 50, False)
    target = Target(folder / "new", MIB, False)
    assert target.bytes == MIB
    assert os.listdir(folder) == ["probe"]
    os.close(target.fd)


def write(folder, drawn, unit, span, total):
    """What a job makes of a file of 3 MiB of zeros, and how much it wrote."""
    path = folder / "target"
    path.write_bytes(bytes(3 * MIB))
    target = Target(path, None, True)
    writer = Writer(target, 5)
    writer.job(drawn, unit, span, total)
    os.close(target.fd)
    assert writer.seconds > 0
    return path.read_bytes(), writer.written


def test_sequential_writes_cover_the_used_space_alone(folder):
    """5 units of 64 pages in a space of 3.5 of them: three, then two again."""
    unit = 64 * 4096
    data, written = write(folder, False, unit, 224 * 4096, 4 * unit + 1)
    assert written == 5 * unit
    assert all(any(data[at:at + 4096]) for at in range(0, 3 * unit, 4096))
    assert not any(data[3 * unit:])


def test_random_writes_take_whole_regions_of_the_used_space(folder):
    """64 draws of 64 regions meet 40.6 of them on average, with a deviation of 2.6."""
    unit = 8 * 4096
    data, _ = write(folder, True, unit, 64 * unit, 64 * unit)
    pages = [sum(any(data[at:at + 4096]) for at in range(region, region + unit, 4096))
             for region in range(0, 64 * unit, unit)]
    assert set(pages) == {0, 8}
    assert 25 <= pages.count(8) <= 56
    assert not any(data[64 * unit:])


def test_data_can_neither_be_compressed_nor_deduplicated(folder):
    data, _ = write(folder, False, MIB, 3 * MIB, 3 * MIB)
    assert len(zlib.compress(data)) > 0.999 * len(data)
    pages = {data[at:at + 4096] for at in range(0, 3 * MIB, 4096)}
    assert len(pages) == 768


# ---- callgrind's file ------------------------------------------------------------------------

PROFILE = """# callgrind format
events: Ir
summary: 1060

ob=(1) /usr/bin/server
fl=(1) server.c
fn=(1) main
10 20
cfn=(2) serve
calls=4 30
+2 1000
* 10

fn=(2)
30 300
cob=(2) /usr/lib/library.so.1
cfn=(3) 0x00000000000012f0
calls=4 0
31 600
cfn=(4) 0x0000000000000042
calls=1 0
-1 100

ob=(2)
fn=(3)
0 600

ob=(1)
fn=(4)
0 100
fn=(9) main
7 30
totals: 1060
"""


@pytest.mark.parametrize("text", ["", "events: Ir\nfn=(1) main\n0 5\n", "0 5\ntotals: 5\n",
                                  "fn=(1) main\n5\ntotals: 5\n", "fn=main\n0 5\ntotals: 5\n",
                                  "fn=(1\n0 5\ntotals: 5\n", "fn=(7)\n0 5\ntotals: 5\n",
                                  "ob=(3)\nfn=(1) main\n0 5\ntotals: 5\n"])
def test_no_profile_is_refused(text):
    with pytest.raises(ValueError):
        Profile(text.splitlines())


def test_costs_are_those_of_the_function_itself():
    profile = Profile(PROFILE.splitlines())
    assert profile.total == 1060
    assert profile.costs == {"main": 60, "serve": 300, "library.so.1 0x00000000000012f0": 600,
                             "server 0x0000000000000042": 100}  # a static function of the same name is added


def test_a_difference_is_per_operation_and_in_order_of_cost():
    less = Profile(["fn=(5) serve", "0 100", "fn=(6) gone", "0 7", "totals: 107"])
    total, costs = per_operation(Profile(PROFILE.splitlines()), less, 10)
    assert total == pytest.approx(95.3)
    assert costs == [("library.so.1 0x00000000000012f0", 60), ("serve", 20), ("server 0x0000000000000042", 10),
                     ("main", 6)]


# ---- the index's model -----------------------------------------------------------------------


def test_a_model_of_less_than_two_sizes_says_nothing():
    for points in ([], [(1000, 5)], [(1000, 5), (1000, 7)]):
        assert math.isnan(Model(points).predict(1000))


def test_a_model_finds_its_line():
    model = Model([(1 << shift, 40 + 3 * shift) for shift in range(20, 28)])
    assert model.slope == pytest.approx(3)
    assert model.predict(1 << 32) == pytest.approx(136)
