# SPDX-License-Identifier: BSD-3-Clause
"""--seccomp=on: the daemon works whole under the filter. What the filter refuses is tests/unit/server/test_seccomp.c's."""
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

import pytest

from helpers import PATIENCE, ROOT, free_port, until

# Of each way that the daemon has to make system calls the tests that make most of them.
CHOSEN = """
test_admin.py::test_a_dump_lists_an_object_wherever_it_lies[flash-metadump] test_auth.py::test_hup_reads_the_users_again
test_process.py::test_background_and_pid_file test_process.py::test_unix_socket test_reload.py::test_under_load
test_stream.py::test_multiget_of_a_hundred_keys[flash] test_tls.py::test_refresh test_udp.py::test_many_on_flash
""".split()

sanitized = pytest.mark.skipif("san" in os.environ.get("FLASHIELD_BIN", ""), reason="off under a sanitizer")


def mode_of(daemon):
    text = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return re.search(r"^Seccomp:\t(\d)$", text, re.MULTILINE).group(1)


def test_it_is_off_by_default(start):
    """No filter of ours: as many as the test itself is under."""
    own = re.search(r"^Seccomp:\t(\d)$", pathlib.Path("/proc/self/status").read_text(), re.MULTILINE).group(1)
    assert mode_of(start()) == own


@sanitized
def test_every_thread_is_under_it(start, flash_options):
    """Workers, cleaner, trainer, watch and dump, and the main thread."""
    daemon = start("--seccomp=on", *flash_options)
    tasks = list(pathlib.Path(f"/proc/{daemon.process.pid}/task").iterdir())
    assert len(tasks) >= 6
    for task in tasks:
        assert "Seccomp:\t2\n" in (task / "status").read_text()


@sanitized
def test_figures_over_http(start):
    """/metrics answers under it."""
    port = free_port()
    daemon = start("--seccomp=on", f"--metrics-listen=127.0.0.1:{port}")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        assert b"flashield_" in answer.read()
    with daemon.client() as client:
        assert client.ask(b"version\r\n").startswith(b"VERSION")


@sanitized
@pytest.mark.skipif(os.getuid() != 0, reason="only root gives its rights away")
def test_the_account_of_memory(start, flash_options):
    """A process that has given its rights away asks the kernel for its pages in another way."""
    daemon = start("--seccomp=on", "-u", "nobody", *flash_options)
    with daemon.client() as client:
        assert int(client.stats(b"memory")["resident"]) > 0
        assert client.ask(b"version\r\n").startswith(b"VERSION")


@sanitized
def test_shutdown(start):
    """A client may end it, and the end is a clean one."""
    daemon = start("--seccomp=on", "-A")
    with daemon.client() as client:
        client.send(b"shutdown\r\n")
        assert client.ends()
    assert until(lambda: daemon.process.poll() is not None, "the end")
    assert daemon.process.returncode == 0


@sanitized
def test_everything_works_under_it():
    """Other tests, with the option."""
    names = [str(ROOT / "tests" / "protocol" / name) for name in CHOSEN]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"FLASHIELD_FLAGS": "--seccomp=on"})
    assert done.returncode == 0, done.stdout[-5000:]
    assert " failed" not in done.stdout and " passed" in done.stdout
