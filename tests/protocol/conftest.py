# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the protocol tests: daemons of their own, on free ports, ended by their pid.

    FLASHIELD_BIN   the daemon under test (build/flashield)
    FLASHIELD_FAULTS_BIN one with fault points, for tests that drive it (build/debug/flashield); not needed if the other has some
    FLASHIELD_FLAGS options that every one of them gets (test_seccomp.py's)
    MEMCACHED_BIN   what it is compared with (memcached; its tests are skipped where it is missing)

The helpers are in helpers.py. Tests that say where an object lies take `placed`: they run once with the object in DRAM and
once with it on flash. Tests that are marked `long` or `clock` are run with --long alone. Where FLASHIELD_FLAGS has --index=frugal, tests that
are marked `slots` are skipped, for the reason that the mark gives.
"""
import pathlib
import shutil
import tempfile

import pytest

from helpers import SEGMENT, Daemon, Placer, as_memcached, is_frugal, judged, memcached_command

# A read that a busy machine holds up is no miss.
FLASH = ["--flash-read-timeout", "2m", "--flash-size", "32m", "--segment-size", str(SEGMENT), "--admission", "all", "-m", "4", "-t", "2"]


# Files with tests of the tools. They are chosen by -m tools, and left out by -m "not tools".
TOOLS = {"bench", "bench_device", "bench_flash", "bench_frugal", "bench_parts", "bench_promotion", "bench_stress", "boards", "dump",
         "gdb", "inspect", "record", "replay", "sim", "sim_budget", "sim_live", "sim_paper", "sim_report", "sim_search", "sim_size",
         "sim_train", "tool_access", "top", "tracegen"}


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests that are marked `long` or `clock`, and no others")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: it takes long, so that only `make test-all` runs it, with --long")
    config.addinivalue_line("markers", "clock: it needs real time, and may be late on a busy machine; run like `long`")
    config.addinivalue_line("markers", "tools: it tests a tool (by its file's name)")
    config.addinivalue_line("markers", "slots(reason): it needs an index that has a slot for each object")


def pytest_collection_modifyitems(config, items):
    def is_apart(item):
        return bool(item.get_closest_marker("long") or item.get_closest_marker("clock"))

    for item in items:
        if item.path.stem.removeprefix("test_") in TOOLS:
            item.add_marker("tools")
    wanted = [item for item in items if is_apart(item) == config.getoption("--long")]
    config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
    items[:] = wanted
    for item in items if is_frugal() else []:
        mark = item.get_closest_marker("slots")
        if mark:
            item.add_marker(pytest.mark.skip(reason=f"of the slot index: {mark.args[0]}"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A wait that runs out anywhere is told as Late, and what the machine refuses as Broken."""
    if call.excinfo and judged(call.excinfo.value) is not call.excinfo.value:
        outcome = judged(call.excinfo.value)
        outcome.__cause__ = call.excinfo.value
        call.excinfo = pytest.ExceptionInfo.from_exc_info((type(outcome), outcome, call.excinfo.tb))
    yield


@pytest.fixture(scope="session")
def dram_daemon(tmp_path_factory):
    """A daemon without flash, shared by tests that don't mind others' keys."""
    with Daemon(["-m", "64"]) as daemon:
        yield daemon


@pytest.fixture(scope="session")
def flash_daemon(tmp_path_factory):
    """A daemon with little memory and a small flash file, so that objects move."""
    path = tmp_path_factory.mktemp("flash") / "flash"
    with Daemon(["--flash-path", str(path), *FLASH], driven=True) as daemon:
        yield daemon


@pytest.fixture(params=["dram", "flash"])
def placed(request):
    """A Placer: put(kind) gives an object that lies where the parameter says. The module's KINDS
    are made together, as it takes a turn of the memory to get one of them to flash."""
    daemon = request.getfixturevalue(f"{request.param}_daemon")
    placer = Placer(daemon, request.param, request.module.KINDS)
    yield placer
    placer.client.close()


@pytest.fixture
def start(request):
    """Starts daemons of a test's own: start("-c", "10") -> Daemon. All end with the test. In a test that compares with memcached
    ours answers like that version."""
    daemons, compat = [], as_memcached() if "memcached" in request.fixturenames else []

    def start_one(*options, **keywords):
        daemon = Daemon([*options, *([] if keywords.get("program") else compat)], **keywords)
        daemons.append(daemon)
        return daemon.start()

    yield start_one
    codes = [daemon.stop() for daemon in daemons]
    assert not any(codes), "not a clean end (sanitizers tell here too)"


@pytest.fixture
def flash_options(tmp_path):
    """Options that make a daemon of a test's own like flash_daemon."""
    return ["--flash-path", str(tmp_path / "flash"), *FLASH]


@pytest.fixture
def open_folder():
    """A folder where the daemon may make files as the user it has become."""
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        folder.chmod(0o777)
        yield folder


@pytest.fixture
def client(dram_daemon):
    with dram_daemon.client() as opened:
        yield opened


@pytest.fixture(scope="session")
def twin(memcached):
    """A daemon that answers like this memcached."""
    with Daemon(["-m", "64", *as_memcached()]) as daemon:
        yield daemon


@pytest.fixture(scope="session")
def memcached():
    """Debian's memcached, or the one that MEMCACHED_BIN names."""
    command = memcached_command()
    if not shutil.which(command):
        pytest.skip("memcached is not installed")
    with Daemon(["-m", "64", "-U", "0"], program=command) as daemon:
        yield daemon
