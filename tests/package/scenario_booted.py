# SPDX-License-Identifier: BSD-3-Clause
"""The package under a systemd that really runs: started, reloaded, killed, upgraded and removed by it."""
import contextlib
import shutil
import socket
import tempfile
import threading

import package
from boot import Booted, CantBoot
from package import CONF
from service import ask

DEB = "/srv/flashield.deb"
UNITS = ("flashield", "flashield@one")
WARM, WARM_PORT = "flashield@warm", 11301
REGION, REGION_PORT = "flashield@region", 11302
FLASH_CONF = """listen = 127.0.0.1
memory-limit = 4m
flash-path = flash
flash-size = 32m
segment-size = 1m
admission = all
metrics-listen = off
"""
KEYS, VALUE = 6000, 900
INSTANCE = "listen = 127.0.0.1\nport = 11300\nmemory-limit = 32m\nmetrics-listen = off\n"


def booted(report, system, folder):
    deb = package.find(folder)
    report.need("package lists are fetched", system.apt("update")[0] == 0)
    needs = f"{package.field(deb, 'Pre-Depends')}, {package.field(deb, 'Depends')}, systemd-sysv".strip(", ")
    code, output = system.apt("satisfy", needs)
    report.need("what it depends on is in Debian", code == 0, output)
    shutil.copy(deb, system.path(DEB))
    try:
        machine = Booted(system)
    except CantBoot as why:
        report.skip("systemd", str(why))
        return
    with machine:
        installed(report, machine)
        instance(report, machine)
        killed(report, machine)
        restarted(report, machine)
        killed_with_a_region(report, machine)
        behind_a_socket(report, machine)
        upgraded(report, machine, deb)
        removed(report, machine)


def answers(machine, port=11211):
    try:
        return ask(machine.system, "version", port=port)[0].startswith("VERSION ")
    except ConnectionRefusedError:
        return False


def installed(report, machine):
    code, output = machine.apt("install", DEB)
    report.need("installs", code == 0, output)
    state = machine.show()
    report.need("the service is active and enabled", state["ActiveState"] == "active" and state["UnitFileState"] == "enabled",
                f"{state}\n{machine.journal()}")
    report.check("and answers as soon as it is", answers(machine), state)
    report.check("its state is a line", bool(state["StatusText"]), state)
    code, output = machine.run("systemctl", "reload", "flashield")
    report.check("reloads", code == 0 and answers(machine), f"{output}\n{machine.journal()}")


def instance(report, machine):
    machine.system.write("/etc/flashield/one.conf", INSTANCE)
    code, output = machine.run("systemctl", "start", "flashield@one")
    report.check("an instance runs beside it", code == 0 and answers(machine, 11300) and answers(machine), output)


def kill(machine, unit="flashield", port=11211):
    """SIGKILL to the unit's daemon. Returns when systemd has started another one, or with what is wrong."""
    before = machine.show(unit)["MainPID"]
    code, output = machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
    try:
        assert code == 0, output
        machine.wait("a restart", lambda: machine.show(unit)["MainPID"] not in (before, "0") and answers(machine, port))
    except AssertionError as why:
        return f"{why}\n{machine.show(unit)}\n{machine.journal()}"
    return None


def killed(report, machine):
    wrong = kill(machine)
    report.check("comes back after SIGKILL", not wrong, wrong)


def connect(machine, port):
    with machine.system.network.entered():
        return socket.create_connection(("127.0.0.1", port), timeout=60)


def value(n):
    return (b"%d-" % n).ljust(VALUE, b"v")


def fill(machine, port):
    with connect(machine, port) as client, client.makefile("rb") as answer:
        for n in range(KEYS):
            client.sendall(b"set k%d 0 0 %d\r\n%s\r\n" % (n, VALUE, value(n)))
            answer.readline()


def read_back(machine, port):
    """(right values, wrong ones)"""
    right = wrong = 0
    with connect(machine, port) as client, client.makefile("rb") as answer:
        for n in range(KEYS):
            client.sendall(b"get k%d\r\n" % n)
            if answer.readline() != b"END\r\n":
                data = answer.read(VALUE + 2)[:-2]
                answer.readline()
                right += data == value(n)
                wrong += data != value(n)
    return right, wrong


def flash_rows(machine, port):
    return dict(line.split(" ", 2)[1:] for line in ask(machine.system, "stats flash", port=port) if line.startswith("STAT "))


def flash_start(machine, port):
    rows = flash_rows(machine, port)
    return rows.get("flash_start", ""), rows


def start_with_flash(report, machine, unit, port, more=""):
    """An instance with flash, and with objects in memory and on flash."""
    machine.system.write(f"/etc/flashield/{unit.partition('@')[2]}.conf", f"port = {port}\n{FLASH_CONF}{more}")
    code, output = machine.run("systemctl", "start", unit)
    report.need(f"{unit}, with flash, runs", code == 0 and answers(machine, port), f"{output}\n{machine.journal()}")
    fill(machine, port)


def restarted(report, machine):
    """What is on flash is there again after "systemctl restart"."""
    start_with_flash(report, machine, WARM, WARM_PORT)
    before, wrong = read_back(machine, WARM_PORT)
    code, output = machine.run("systemctl", "restart", WARM)
    started, rows = flash_start(machine, WARM_PORT)
    report.check("systemctl restart keeps the flash", code == 0 and started.startswith("warm"),
                 f"{output}\n{rows}\n{machine.journal()}")
    after, wrong_after = read_back(machine, WARM_PORT)
    report.check("and its objects", after > 0 and wrong == wrong_after == 0, f"{before} {after} {wrong} {wrong_after}\n{rows}")


def killed_with_a_region(report, machine):
    """With region-dir in the folder that the unit makes, what is on flash outlives a kill. The unit's ExecReload= and
    ExecStartPre= check the configuration while the daemon has the region, and while the next one needs it."""
    start_with_flash(report, machine, REGION, REGION_PORT, "region-dir = /run/flashield/region\n")
    code, output = machine.run("systemctl", "reload", REGION)
    report.check("an instance with a region reloads", code == 0 and answers(machine, REGION_PORT), f"{output}\n{machine.journal()}")
    before, wrong = read_back(machine, REGION_PORT)
    failed = kill(machine, REGION, REGION_PORT)
    report.need("it comes back after SIGKILL", not failed, failed)
    started, rows = flash_start(machine, REGION_PORT)
    report.check("and its flash is warm", started.startswith("warm"), f"{rows}\n{machine.journal()}")
    after, wrong_after = read_back(machine, REGION_PORT)
    report.check("with its objects", after > 0 and wrong == wrong_after == 0, f"{before} {after} {wrong} {wrong_after}\n{rows}")


@contextlib.contextmanager
def knocking(machine):
    """One client after another connects meanwhile, at least one before and one after: the list of what was refused."""
    refused, answered, over = [], [], threading.Event()

    def knock():
        while not over.is_set():
            try:
                with connect(machine, 11211) as client, client.makefile("rb") as answer:
                    client.sendall(b"version\r\n")
                    if answer.readline().startswith(b"VERSION "):
                        answered.append(True)
            except ConnectionRefusedError as why:
                refused.append(str(why))
            except OSError: # it was accepted by the daemon that stopped
                pass

    def another():
        count = len(answered)
        machine.wait("an answer", lambda: len(answered) > count)

    client = threading.Thread(target=knock)
    client.start()
    try:
        another()
        yield refused
        another()
    finally:
        over.set()
        client.join()


def behind_a_socket(report, machine):
    """With flashield.socket clients wait during a restart; none is refused. The socket stays, for what comes after it."""
    machine.run("systemctl", "stop", "flashield")
    code, output = machine.run("systemctl", "start", "flashield.socket", "flashield.service")
    report.need("starts behind its socket", code == 0 and answers(machine), output)
    codes = []
    with knocking(machine) as refused:
        for _ in range(3):
            machine.run("systemctl", "reset-failed", "flashield")  # the unit's limit on starts within a minute
            codes.append(machine.run("systemctl", "restart", "flashield"))
    report.check("no connection is refused while it restarts", not refused and all(code == 0 for code, _ in codes),
                 f"{len(refused)} {refused[:3]} {codes}\n{machine.journal()}")


def upgraded(report, machine, deb):
    """The service and its instances go on with the later version, and with what they had."""
    with tempfile.TemporaryDirectory() as work:
        later, version = package.later_version(deb, work)
        shutil.copy(later, machine.system.path(DEB))
    fill(machine, WARM_PORT)
    before, wrong = read_back(machine, WARM_PORT)
    units = [*UNITS, WARM, REGION]
    machine.run("systemctl", "reset-failed", *units)  # the limit on starts
    old = {unit: machine.show(unit)["MainPID"] for unit in units}
    with knocking(machine) as refused:
        code, output = machine.apt("install", DEB)
    new = {unit: machine.show(unit) for unit in units}
    now = machine.run("dpkg-query", "-W", "-f", "${Version}", "flashield")[1]
    report.check("an upgrade restarts the service and its instances",
                 code == 0 and now == version
                 and all(new[unit]["ActiveState"] == "active" and new[unit]["MainPID"] != old[unit] for unit in units),
                 f"{output}\n{now}\n{old}\n{new}")
    report.check("no connection is refused meanwhile", not refused, f"{len(refused)} {refused[:3]}\n{machine.journal()}")
    machine.wait("objects of memory to be loaded", lambda: flash_rows(machine, WARM_PORT).get("dram_loading") == "0")
    started, rows = flash_start(machine, WARM_PORT)
    report.check("flash and memory are warm after it", started.startswith("warm") and rows.get("dram_start", "").startswith("warm"),
                 f"{rows}\n{machine.journal()}")
    after, wrong_after = read_back(machine, WARM_PORT)
    rows = flash_rows(machine, WARM_PORT)
    report.check("and objects of both are served", all(int(rows.get(name, "0")) > 0 for name in ("dram_hits", "flash_hits"))
                 and wrong == wrong_after == 0, f"{before} {after} {wrong} {wrong_after}\n{rows}")
    # A key whose tag in the index is another one's may cost that one its place.
    report.check("as good as all of them", after >= before * 0.99 > 0, f"{before} {after}\n{rows}")


def removed(report, machine):
    code, output = machine.apt("remove", "flashield")
    report.check("removal stops all of them, and the socket",
                 code == 0 and not any(answers(machine, port) for port in (11211, 11300, WARM_PORT, REGION_PORT)), output)
    code, output = machine.apt("purge", "flashield")
    left = [path for path in ("/var/lib/flashield", CONF, "/etc/systemd/system/multi-user.target.wants/flashield.service")
            if machine.system.exists(path)]
    report.check("purges", code == 0 and not left, f"{left}\n{output}")
