# SPDX-License-Identifier: BSD-3-Clause
"""What tests/mutants says of a fault by the outcome of its test: a test that was skipped has neither found the fault nor missed it."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

import changes  # noqa: E402 (it needs the path above)
import random_faults  # noqa: E402
import run  # noqa: E402
from mutants import Mutant  # noqa: E402

# What the program of a fault's test prints, in the words of cmocka.
PASSES, SKIPS, FAILS = "ok 1 - one", "not ok 1 # SKIP one", "not ok 1 - one"
MAKEFILE = "build/debug/tests/base/test_x:\n\tmkdir -p $(@D)\n\tcp program.sh $@\nbuild/debug/flashield:\n\ttrue\n"
CASES = """
import pytest


def test_skipped():
    pytest.skip("no program")


def test_passes():
    pass
"""


@pytest.fixture
def copy(tmp_path):
    """A tree with a source, and with a Makefile whose test is a program that outcome_of_program() writes."""
    (tmp_path / "source.c").write_text("int one = 1;\n")
    (tmp_path / "Makefile").write_text(MAKEFILE)
    protocol = tmp_path / "tests" / "protocol"
    protocol.mkdir(parents=True)
    (protocol / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return str(tmp_path)


def outcome_of(copy, test):
    """The outcome, after which the source is as it was."""
    outcome, line = run.try_out(copy, Mutant("a-fault", "One is two.", test, [("source.c", "one = 1;", "one = 2;")]), 60, 1)
    assert pathlib.Path(copy, "source.c").read_text() == "int one = 1;\n"
    return outcome, line.split()[0]


def outcome_of_program(copy, *lines, code=0):
    program = pathlib.Path(copy, "program.sh")
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines) + f"exit {code}\n")
    program.chmod(0o755)
    return outcome_of(copy, "debug base/test_x")


def test_a_program_whose_cases_were_all_skipped_says_nothing(copy):
    assert outcome_of_program(copy, SKIPS, SKIPS) == ("skipped", "SKIPPED")


def test_a_program_with_a_case_that_passed_lets_the_fault_survive(copy):
    assert outcome_of_program(copy, SKIPS, PASSES) == ("failed", "SURVIVED")


def test_a_program_without_a_word_lets_the_fault_survive(copy):
    assert outcome_of_program(copy) == ("failed", "SURVIVED")


@pytest.mark.parametrize("lines", [[FAILS], [SKIPS, FAILS], [SKIPS]])
def test_a_program_that_fails_has_found_the_fault(copy, lines):
    assert outcome_of_program(copy, *lines, code=1) == ("passed", "killed")


def test_a_test_of_the_protocol_that_was_skipped_says_nothing(copy):
    assert outcome_of(copy, "debug protocol test_cases.py::test_skipped") == ("skipped", "SKIPPED")


@pytest.mark.parametrize("test", ["test_cases.py::test_passes", "test_cases.py"])
def test_a_test_of_the_protocol_that_passed_lets_the_fault_survive(copy, test):
    assert outcome_of(copy, f"debug protocol {test}") == ("failed", "SURVIVED")


def test_a_fault_that_does_not_build_has_failed(copy):
    assert outcome_of(copy, "debug base/test_unknown") == ("failed", "FAILED")


@pytest.mark.parametrize("test, programs", [
    ("asan protocol test_dump.py::test_x", ["", "-dump", "-load"]),
    ("asan protocol test_inspect.py", ["", "-inspect"]),
    ("asan protocol test_stats.py", [""]),
])
def test_a_test_has_the_programs_without_which_it_is_skipped(test, programs):
    assert run.targets_of(test) == {("asan", f"build/asan/flashield{name}") for name in programs}


@pytest.mark.parametrize("outcomes, last, code", [
    (["passed", "skipped"], ["1 skipped", "1 passed, 0 failed"], 0),
    (["passed", "skipped", "failed"], ["1 skipped", "1 passed, 1 failed"], 1),
    (["passed"], ["1 passed, 0 failed"], 0),
])
def test_skipped_faults_are_counted_apart(outcomes, last, code, capsys):
    assert run.end(run.told((outcome, f"a line: {outcome}") for outcome in outcomes)) == code
    assert capsys.readouterr().out.splitlines() == [f"a line: {outcome}" for outcome in outcomes] + last


@pytest.mark.parametrize("output, known", [("s\n1 skipped in 0.01s\n", None), ("s.\n1 passed, 1 skipped in 0.01s\n", (0.5, set()))])
def test_random_faults_leave_out_a_test_that_is_skipped(output, known, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(random_faults, "COPY", str(tmp_path))
    monkeypatch.setattr(random_faults, "run_test", lambda *_: (0, output, 0.5))
    assert random_faults.Without(30).learn("debug protocol test_x.py") == known
    assert ("left out: debug protocol test_x.py is skipped" in capsys.readouterr().out) == (known is None)


def swaps(line):
    """What is swapped in the line of a function, and is not left out."""
    text = f"int f(void)\n{{\n{line}\n}}\n"
    left_out = changes.equal_ones(text)
    return [change.says for change in changes.changes(text) if "became" in change.says and change.offset not in left_out and
            change.says[0] in "<>"]


@pytest.mark.parametrize("line", [
    "\tleast = one < other ? one : other;",
    "\treturn MOST(memory) < over ? MOST(memory) : over;",
    "\tmost = 2 * one > other ? 2 * one : other;",
    "\tleft = all > part / 2 ? all - part / 2 : 0;",
    "\tif (over > MOST(memory))\n\t\tover = MOST(memory);",
])
def test_a_swap_that_gives_the_same_for_equals_is_left_out(line):
    assert swaps(line) == []


@pytest.mark.parametrize("line, says", [
    ("\tleast = one < other ? one : third;", "< became <="),
    ("\tmost = 2 * one > other ? one : other;", "> became >="),
    ("\tleft = all > part ? all - part / 2 : 0;", "> became >="),
    ("\tif (over > MOST(memory))\n\t\tover = LEAST(memory);", "> became >="),
    ("\tif (one < other)\n\t\treturn;", "< became <="),
])
def test_a_swap_that_tells_is_made(line, says):
    assert swaps(line) == [says]
