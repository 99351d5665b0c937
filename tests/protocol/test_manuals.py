# SPDX-License-Identifier: BSD-3-Clause
"""The manual page of each tool has the options that the tool has. (Those of the daemon are generated: make check.)"""
import pathlib
import re
import subprocess

import pytest

from helpers import ROOT, flashield_command

TOOLS = ["admin", "bench", "dump", "inspect", "load", "record", "replay", "sim", "top", "tracegen"]


def options_of_help(text):
    return set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text))


def options_of_page(text):
    return set(re.findall(r"(?m)^\.It .*?Fl (?:\w , Fl )?\\-([a-z-]+)", text))


def test_what_is_looked_for_is_found():
    assert options_of_help("  -j, --threads N  that read\n  --help  --version") == {"threads", "help", "version"}
    assert options_of_page(".It Fl j , Fl \\-threads Ar N\n.It Ic dump Fl \\-key Ar K\n") == {"threads", "key"}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_page_has_the_options_of_its_tool(tool):
    program = pathlib.Path(flashield_command()).parent / f"flashield-{tool}"
    shown = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    page = (ROOT / "packaging" / "man" / f"flashield-{tool}.1").read_text(encoding="utf-8")
    assert options_of_page(page) == options_of_help(shown)
