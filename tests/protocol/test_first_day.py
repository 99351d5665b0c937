# SPDX-License-Identifier: BSD-3-Clause
"""packaging/doc/first-day.md prints what happens: each command below "Now" is run, and its output compared with the page's.

A section runs in network, process and mount namespaces of its own, so that it may have the ports that the page names. In a block, lines
that begin with "$ " are commands; what follows is their output, where … stands for any text, and alone for any lines. The first "cat" of
a file makes it, with what the page shows. Times, and numbers of processes, are any.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from helpers import PATIENCE, ROOT, flashield_command, memcached_command
from test_tls import openssl

PAGE = ROOT / "packaging" / "doc" / "first-day.md"
ENTER = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash"]
MARK = "=== the next command ==="
TIME = re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z\b")
# Before a command may connect: memcached -d comes back before it listens.
LISTENS = "until (exec 3<>/dev/tcp/127.0.0.1/11211) 2>/dev/null; do :; done"

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root has ports of its own, and keys that the daemon can't read"),
    pytest.mark.skipif(not shutil.which("curl") or not shutil.which("ip") or not shutil.which(memcached_command()), reason="curl, ip or memcached is not installed")]


def sections():
    """{number: [(command, [lines of its output])]} of the blocks that are run."""
    found, number, block = {}, None, None
    for line in PAGE.read_text().splitlines():
        if heading := re.match(r"## (\d+)\. ", line):
            number = int(heading[1])
        elif line == "```console":
            block = found.setdefault(number, [])
        elif line == "```":
            block = None
        elif block is not None and line.startswith("$ "):
            block.append((line[2:], []))
        elif block is not None:
            block[-1][1].append(line)
    return found


SECTIONS = sections()


def pattern(lines):
    """What the output has to match as a whole."""
    return "".join(r"(?:.*\n)*" if line == "…" else ".*".join(re.escape(part) for part in TIME.sub("TIME", line).split("…")) + r"\n"
                   for line in lines)


def makes_file(command, folder):
    """The file that this command shows for the first time."""
    words = command.split()
    return folder / words[1] if words[0] == "cat" and words[1] in ("cache.conf", "users", "password", "scrapers") else None


def prepare(folder):
    """Programs by the names that the page calls them, and a certificate for localhost whose key is root's."""
    programs = folder.parent / "programs"
    programs.mkdir()
    daemon = pathlib.Path(flashield_command()).absolute()
    (programs / "flashield").write_text(f'#!/bin/sh\nexec {shlex.quote(str(daemon))} -u nobody "$@"\n')
    (programs / "flashield").chmod(0o755)
    (programs / "flashield-top").symlink_to(daemon.parent / "flashield-top")
    (programs / "memcached").symlink_to(shutil.which(memcached_command()))
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.pem", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    shutil.copy(folder / "server.key", folder / "metrics.key")
    (folder / "metrics.key").chmod(0o644)
    (folder / "server.key").chmod(0o600)
    return programs


def script(commands, folder):
    lines = ["ip link set lo up", "last=0"]
    for command, output in commands:
        if made := makes_file(command, folder):
            made.write_text("\n".join(output) + "\n")
            made.chmod(0o644)
        if command == "cat log":  # it is written after the daemon has gone into the background
            last_words = output[-1].partition(" ")[2]  # behind the time
            lines.append(f"until grep -qF {shlex.quote(last_words)} log; do sleep 0.05; done")
        if output[:1] == ["ready"]:  # which it becomes once it listens
            lines.append(f"until {command} | grep -qx ready; do sleep 0.05; done")
        lines += [f"(exit $last); {command}", "last=$?", f"echo {shlex.quote(MARK)}"]
        if command.startswith("memcached "):
            lines.append(LISTENS)
    return "\n".join(lines)


@pytest.mark.parametrize("number", range(1, 11))
def test_what_the_page_shows(number, open_folder):
    """Of this section."""
    folder = open_folder / "here"
    folder.mkdir()
    folder.chmod(0o777)
    programs, commands = prepare(folder), SECTIONS[number]
    done = subprocess.run([*ENTER, "-c", script(commands, folder)], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False,
                          env=dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}"))
    if "unshare" in done.stdout and MARK not in done.stdout:
        pytest.skip(f"no namespaces here: {done.stdout}")
    printed = done.stdout.split(MARK + "\n")
    assert len(printed) == len(commands) + 1, done.stdout
    for (command, lines), output in zip(commands, printed):
        assert re.fullmatch(pattern(lines), TIME.sub("TIME", output)), f"$ {command}\n{output}"
