# SPDX-License-Identifier: BSD-3-Clause
"""The outcomes of tests as tools/testrun counts them: what is wrong counts at once, what is late is tried once more, and a broken
machine says so."""
import errno
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from testrun import lines, machine, process, pytests, steps, tally  # noqa: E402 (it needs the path above)


def load_runner():
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "tools" / "run-tests.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load_runner()


@pytest.fixture(autouse=True)
def no_record(monkeypatch):
    monkeypatch.delenv("TEST_RECORD", raising=False)
    monkeypatch.delenv("TEST_UNTIL", raising=False)


@pytest.fixture
def whole_machine(monkeypatch):
    """However full this one is."""
    monkeypatch.setattr(machine, "out_of_space", lambda: None)
    monkeypatch.setattr(machine, "killed_for_memory", lambda: 0)


class Script:
    """A step that does one thing at its first run, the next at its second."""

    def __init__(self, *runs):
        self.runs = list(runs)

    def __call__(self):
        self.runs.pop(0)()


def late_then(*outcomes):
    """A test that is late, and what it is when it is tried again."""
    script = Script(*outcomes)
    return lambda: tally.late("a test", script)


def wrong():
    tally.failed("a test", "1 is not 2")


def late():
    tally.late("a test", wrong)


def run(step, kind="own"):
    """Returns the exit code and the Whole of a run with this step alone."""
    whole = tally.Whole()
    runner.run_step(steps.Step("a step", step, kind=kind), whole)
    whole.try_again()
    return whole.end(), whole


def last_lines(capsys, count):
    return capsys.readouterr().out.splitlines()[-count:]


def test_wrong_counts_at_its_first_appearance(whole_machine, capsys):
    script = Script(wrong, tally.passed)
    code, whole = run(script)
    assert code == 1 and len(script.runs) == 1 and whole.failures == ["a test"]
    assert last_lines(capsys, 1) == ["0 passed, 1 failed"]


def test_late_twice_is_a_failure(whole_machine, capsys):
    code, whole = run(late_then(late))
    assert code == 1 and whole.failures == ["a test: late twice"]


def test_late_and_then_wrong_is_a_failure(whole_machine):
    code, whole = run(late_then(wrong))
    assert code == 1 and whole.failures == ["a test: late, then wrong"]


def test_late_and_then_without_a_result_is_a_failure(whole_machine):
    code, _ = run(late_then(lambda: None))
    assert code == 1


def test_late_that_passes_alone_passes_and_is_named(whole_machine, capsys):
    code, whole = run(late_then(tally.passed))
    assert code == 0 and whole.tardy == ["a test"]
    assert last_lines(capsys, 4) == ["late, and passed alone:", "  a test", "own tests: 1 passed, 0 failed", "1 passed, 0 failed"]


@pytest.mark.parametrize("earlier", [0, 1])
def test_more_than_ten_late_are_failures_and_none_is_tried_again(whole_machine, earlier):
    whole = tally.Whole()
    whole.tardy = ["of the run before"] * earlier
    again = []
    runner.run_step(steps.Step("a step", lambda: [tally.late(f"{n}", lambda: again.append(1)) for n in range(tally.LATE_MOST + 1 - earlier)]), whole)
    whole.try_again()
    assert whole.end() == 1 and not again and len(whole.failures) == tally.LATE_MOST + 1 - earlier


def test_ten_late_are_tried_again(whole_machine):
    code, whole = run(lambda: [tally.late(f"{n}", tally.passed) for n in range(tally.LATE_MOST)])
    assert code == 0 and len(whole.tardy) == tally.LATE_MOST


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.ENOMEM])
def test_a_step_of_a_broken_machine_is_repeated_once(whole_machine, error, capsys):
    def out_of_it():
        raise OSError(error, "out of it")

    code, whole = run(Script(out_of_it, tally.passed))
    assert code == 0 and not whole.failures
    assert f"BROKEN MACHINE in the first attempt of a step: {os.strerror(error)}" in capsys.readouterr().out


def test_a_run_on_a_broken_machine_says_nothing(whole_machine, capsys):
    again = Script(lambda: tally.broken("no mirror"), lambda: tally.broken("no mirror"))
    code, whole = run(again)
    assert code == tally.BROKEN_MACHINE and not again.runs
    assert last_lines(capsys, 6)[-4:-2] == ["the machine was broken, so this run says nothing:", "  a step: no mirror"]
    runner.run_step(steps.Step("the next", wrong), whole)
    assert "the next: not run, as the machine is broken" in capsys.readouterr().out


def test_a_full_disk_is_a_broken_machine_and_names_the_step(monkeypatch, capsys):
    monkeypatch.setattr(machine, "SPACE_LEAST", 1 << 62)
    code, whole = run(wrong)
    assert code == tally.BROKEN_MACHINE
    assert whole.broken[0].startswith("a step: no space in /")


def test_space_that_was_out_for_a_moment_is_seen(monkeypatch):
    state = iter([None, "no space in /x"])
    monkeypatch.setattr(machine, "out_of_space", lambda: next(state, None))
    with machine.Watch() as watch:
        watch.looker.join()
    assert watch.why == "no space in /x"


def test_a_process_that_the_kernel_killed_for_memory_is_seen(monkeypatch):
    counts = iter([3, 4])
    monkeypatch.setattr(machine, "out_of_space", lambda: None)
    monkeypatch.setattr(machine, "killed_for_memory", lambda: next(counts))
    with machine.Watch() as watch:
        pass
    assert watch.why


def test_a_full_disk_under_a_good_step_is_no_matter(monkeypatch):
    monkeypatch.setattr(machine, "out_of_space", lambda: "no space in /x")
    assert run(tally.passed)[0] == 0


def test_an_error_of_a_step_is_wrong(whole_machine):
    def bad():
        raise ValueError("of the runner")

    code, whole = run(bad)
    assert code == 1 and whole.failures == ["a step: the step itself failed"]


def test_own_tests_others_assertions_and_inputs_are_counted_apart(whole_machine, capsys):
    whole = tally.Whole()
    for kind, count in (("own", 2), ("others", 30), ("inputs", 400)):
        runner.run_step(steps.Step(kind, lambda n=count: tally.passed(n), kind=kind), whole)
    assert whole.end() == 0
    assert last_lines(capsys, 4) == ["own tests: 2 passed, 0 failed", "other people's assertions: 30 passed, 0 failed",
                                     "fuzz inputs: 400 passed, 0 failed", "432 passed, 0 failed"]


def test_the_last_line_is_the_sum_of_two_runs(whole_machine, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TEST_RECORD", str(tmp_path / "record"))
    assert run(wrong)[0] == 1
    code, whole = run(tally.passed)
    assert code == 1 and whole.failures == ["a test"]
    assert last_lines(capsys, 1) == ["1 passed, 1 failed"]


def counted(output, code=1, pattern=lines.LINE, again=None):
    return tally.collect("a program", lambda: lines.count("a program", code, output, again, pattern))


def test_lines_of_a_program():
    results = counted("PASS one\nFAIL two\n  seen: 1\nskip three: no reason\nBROKEN four: the port is taken\n")
    assert results.passed == 1 and list(results.wrong) == ["two (a program)"] and results.skipped == 1
    assert results.broken == ["four: the port is taken (a program)"]


def test_a_late_line_is_tried_again_by_its_own_command(capsys):
    commands = []
    results = counted("LATE one\n  99.2 % came\n  again: tests/x.py --seed 3 one\n", again=commands.append)
    assert not results.wrong
    results.late[0].again()
    assert commands == ["tests/x.py --seed 3 one"]


def test_a_late_line_without_a_command_is_wrong():
    assert counted("LATE one\n").wrong


def test_a_program_without_a_line_is_wrong():
    assert counted("Traceback\n").wrong
    assert counted("", code=0).wrong


def test_a_program_that_fails_without_a_line_that_fails_is_wrong():
    assert counted("PASS one\n", code=139).wrong


def test_assertions_of_others_are_counted_by_their_number():
    results = counted("PASS a: passed 10 failed 0\nFAIL b: passed 3 failed 2, of 5\n", pattern=lines.COUNTED_LINE)
    assert results.passed == 13 and results.wrong["b (a program)"] == 2


CASES = """
import pathlib
import subprocess
import time


class Late(AssertionError):
    pass


class Broken(AssertionError):
    pass


def test_good():
    pass


def test_wrong():
    assert 1 == 2


def test_late():
    first = pathlib.Path(__file__).with_suffix(".once")
    if not first.exists():
        first.touch()
        raise Late("waited for nothing")


def test_hangs():
    subprocess.run(["sleep", "1000"], timeout=0.01, check=True)


def test_names_lateness():
    assert "Late: waited" == ""


def test_broken():
    raise Broken("a stranger has the port")
"""


@pytest.fixture
def cases(monkeypatch):
    """A file of tests with each outcome; the folder below which paths of a report are."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "test_cases.py"
        path.write_text(CASES)
        (pathlib.Path(folder) / "pytest.ini").write_text("[pytest]\n")
        monkeypatch.chdir(folder)
        yield "test_cases.py"


def test_outcomes_of_pytest(cases):
    step = pytests.Pytest("cases", 100, 0)
    results = tally.collect("cases", lambda: step.run(cases))
    assert results.passed == 1
    assert sorted(results.wrong) == ["test_cases.test_names_lateness (cases)", "test_cases.test_wrong (cases)"]
    assert sorted(one.name for one in results.late) == ["test_cases.test_hangs (cases)", "test_cases.test_late (cases)"]
    assert len(results.broken) == 1 and "a stranger has the port" in results.broken[0]
    late_ones = {one.name: tally.collect(one.name, one.again) for one in results.late}
    assert late_ones["test_cases.test_late (cases)"].passed == 1
    assert late_ones["test_cases.test_hangs (cases)"].late


def test_a_hanging_command_is_ended_with_its_children():
    code, output = process.run(["sh", "-c", "sleep 1000 & wait"], 0.1)
    assert code == 124 and "its bound for a hang" in output


def test_each_step_is_in_one_set_and_has_a_kind():
    assert len(steps.NAMES) == len(set(steps.NAMES))
    assert {step.kind for lane in steps.LANES for step in lane} <= set(tally.KINDS)


def test_make_tells_what_the_tests_would_run_and_runs_none():
    told = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True,
                          env={"PATH": "/nonexistent:/usr/bin:/bin"}).stdout
    assert "tools/run-tests.py gate" in told and "passed," not in told
