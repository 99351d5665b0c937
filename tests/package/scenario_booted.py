# SPDX-License-Identifier: BSD-3-Clause
"""The package under a systemd that really runs: started, reloaded, killed, upgraded and removed by it."""
import shutil
import tempfile

import package
from boot import Booted, CantBoot
from package import CONF
from service import ask

DEB = "/srv/flashield.deb"
UNITS = ("flashield", "flashield@one")
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


def killed(report, machine):
    before = machine.show()["MainPID"]
    machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "flashield")
    try:
        machine.wait("a restart", lambda: machine.show()["MainPID"] not in (before, "0") and answers(machine))
    except AssertionError as why:
        report.check("comes back after SIGKILL", False, f"{why}\n{machine.show()}")
    else:
        report.check("comes back after SIGKILL", True)


def upgraded(report, machine, deb):
    before = {unit: machine.show(unit)["MainPID"] for unit in UNITS}
    with tempfile.TemporaryDirectory() as work:
        later, _ = package.later_version(deb, work)
        shutil.copy(later, machine.system.path(DEB))
    code, output = machine.apt("install", DEB)
    after = {unit: machine.show(unit) for unit in UNITS}
    report.check("an upgrade restarts the service and its instances",
                 code == 0 and all(after[unit]["ActiveState"] == "active" and after[unit]["MainPID"] != before[unit]
                                   for unit in UNITS), f"{output}\n{before}\n{after}")


def removed(report, machine):
    code, output = machine.apt("remove", "flashield")
    report.check("removal stops all of them", code == 0 and not answers(machine) and not answers(machine, 11300), output)
    code, output = machine.apt("purge", "flashield")
    left = [path for path in ("/var/lib/flashield", CONF, "/etc/systemd/system/multi-user.target.wants/flashield.service")
            if machine.system.exists(path)]
    report.check("purges", code == 0 and not left, f"{left}\n{output}")
