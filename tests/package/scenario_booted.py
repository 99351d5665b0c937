# SPDX-License-Identifier: BSD-3-Clause
"""The package under a systemd that really runs: started, reloaded, killed, upgraded and removed by it."""
import contextlib
import os
import re
import shutil
import socket
import tempfile
import threading
import urllib.request

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
        reload_fails(report, machine)
        start_fails(report, machine)
        second_instance(report, machine)
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


def metric(machine, name, port=9151):
    """A metric without labels."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with machine.system.network.entered(), opener.open(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
    except OSError:
        return None
    return next((float(line.split()[1]) for line in text.splitlines() if line.startswith(f"flashield_{name} ")), None)


def shown_status(machine, unit="flashield"):
    return machine.run("systemctl", "status", "--no-pager", "--full", unit)[1]


def reload_fails(report, machine):
    """With a mistake in the configuration: in the exit code, in systemctl status, in a metric; then it is mended."""
    good = machine.system.read(CONF)
    machine.system.write(CONF, good.replace("memory-limit = 256m", "memory-limit = banana"))
    fault = f'{CONF}:12: memory-limit: "banana" is not a size from 1m to 1p'
    code, output = machine.run("systemctl", "reload", "flashield")
    report.check("a reload with a mistake fails", code != 0 and answers(machine), output)
    try:
        machine.wait("it to be told", lambda: "the last reload failed" in machine.show()["StatusText"])
    except AssertionError:
        pass
    status = shown_status(machine)
    report.check("systemctl status says that, and why", f"the last reload failed, options stay as they were: {fault}" in status,
                 f"{status}\n{machine.journal()}")
    report.check("the journal has the mistake with its line", f": {fault}" in machine.journal(), machine.journal())
    report.check("and so has a metric", metric(machine, "reload_successful") == 0, metric(machine, "reload_successful"))
    machine.system.write(CONF, good)
    code, output = machine.run("systemctl", "reload", "flashield")
    machine.wait("its end", lambda: "the last reload failed" not in machine.show()["StatusText"])
    report.check("until it is mended", code == 0 and metric(machine, "reload_successful") == 1, f"{output}\n{machine.show()}")


def start_fails(report, machine):
    """Why, in systemctl status: options, a port and a flash file that are others'."""
    foreign = "/var/lib/flashield/bad/foreign"
    os.makedirs(machine.system.path(os.path.dirname(foreign)), exist_ok=True)
    machine.system.write(foreign, "precious\n" * 100000)
    for what, text, wanted in (
            ("wrong options", "threads = 0\n", '/etc/flashield/bad.conf:1: threads: "0" is not a whole number from 1 to 256 threads'),
            ("a port that is held", "listen = 127.0.0.1\nport = 11211\n",
             "Address already in use: TCP 127.0.0.1:11211 is held by process "),
            ("a foreign flash file", "port = 11300\nflash-path = foreign\nflash-size = 64m\n",
             f"flash-path {foreign}: holds something that is not a cache")):
        machine.system.write("/etc/flashield/bad.conf", f"{text}metrics-listen = off\n")
        code, output = machine.run("systemctl", "start", "flashield@bad")
        status = shown_status(machine, "flashield@bad")
        report.check(f"systemctl status says why a start failed: {what}",
                     code != 0 and 'Status: "The start failed: ' in status and wanted in status.split('Status: "', 1)[-1].split("\n")[0],
                     f"{output}\n{status}")
        machine.run("systemctl", "stop", "flashield@bad")
        machine.run("systemctl", "reset-failed", "flashield@bad")
    report.check("the foreign file is as it was", machine.system.read(foreign).startswith("precious\n"))


def second_instance(report, machine):
    """From the sample, beside the service: it serves, and has its metrics at a port of its own."""
    sample = machine.system.read("/usr/share/doc/flashield/examples/flashield-instance.conf")
    machine.system.write("/etc/flashield/two.conf", sample)
    code, output = machine.run("systemctl", "start", "flashield@two")
    state = machine.show("flashield@two")
    report.check("the sample's second instance runs, and nothing is degraded but a flash that has no room",
                 code == 0 and answers(machine, 11212) and re.match(r"(Degraded: no flash, objects are in DRAM only; )?0 objects",
                                                                    state["StatusText"]), f"{output}\n{state}")
    report.check("with its metrics", metric(machine, "start_time_seconds", 9152) is not None)
    machine.system.write("/etc/flashield/two.conf", sample.replace("127.0.0.1:9152", "127.0.0.1:9151"))
    code, output = machine.run("systemctl", "restart", "flashield@two")
    state = machine.show("flashield@two")
    report.check("with the first one's port for metrics it serves, and its state says who has it",
                 code == 0 and answers(machine, 11212) and "no /metrics, 127.0.0.1:9151: Address already in use: it is held by process "
                 in state["StatusText"], f"{output}\n{state}")
    machine.run("systemctl", "stop", "flashield@two")


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
