# SPDX-License-Identifier: BSD-3-Clause
"""All of it together: three instances behind the proxy, a trace played over it, Prometheus, pictures of what it shows."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import package
from boot import Booted, CantBoot
from service import ask

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEB = "/srv/flashield.deb"
EXAMPLES = "/usr/share/doc/flashield/examples"
POLICY = "/usr/sbin/policy-rc.d"
NODES = {"a": (11311, 9151), "b": (11312, 9152), "c": (11313, 9153)}  # as packaging/samples/nutcracker.yml and prometheus.yml have them
PROXY_PORT = 22121
URL = "http://127.0.0.1:9090"

# A day of a cache in three minutes: the sample's settings made small, models each some ten seconds.
SMALL = {"memory-limit": "10m", "flash-size": "24m"}
MORE = "segment-size = 512k\ntraining-window = 15s\nflashiness-horizon = 15s\nflash-write-limit = 1m\n"
TRACE_SECONDS = 150
SCRAPE_SECONDS = 2
TRACE = ["--scale", "0.0007", "--duration", f"{TRACE_SECONDS}s", "--no-fit", "--quiet", "--output", "/srv/trace.csv"]
REPLAY = ["--server", f"127.0.0.1:{PROXY_PORT}", "--copies", "2", "--speed", "1", "--quiet", "--json", "/srv/replay.json", "/srv/trace.csv"]
PATIENCE = 60
REPLAY_SECONDS = 3 * TRACE_SECONDS
TOP_SECONDS = 25  # that flashield-top watches the load before its picture is taken
MOST_EXPOSED = 2.0  # of systemd-analyze


def shown(report, system, folder, pictures):
    prepare(report, system, package.find(folder))
    # The overlay lies in memory; a flash is shown on a disk.
    with tempfile.TemporaryDirectory(dir=folder, prefix="state-") as disk:
        os.chmod(disk, 0o755)
        os.makedirs(system.path("/var/lib/flashield"))
        subprocess.run(["mount", "--bind", disk, system.path("/var/lib/flashield")], check=True)
        try:
            with Booted(system) as machine:
                play(report, machine, pictures)
        except CantBoot as why:
            report.skip("all of it", str(why))
        finally:
            subprocess.run(["umount", system.path("/var/lib/flashield")], check=True)


def prepare(report, system, deb):
    """What the demonstration needs beside the package, from Debian; nothing is started yet."""
    report.need("package lists are fetched", system.apt("update")[0] == 0)
    system.write(POLICY, "#!/bin/sh\nexit 101\n")
    os.chmod(system.path(POLICY), 0o755)
    needs = f"{package.field(deb, 'Pre-Depends')}, {package.field(deb, 'Depends')}, systemd-sysv, nutcracker, prometheus".strip(", ")
    code, output = system.apt("satisfy", needs)
    os.unlink(system.path(POLICY))
    report.need("what it depends on, nutcracker and prometheus install", code == 0, output)
    shutil.copy(deb, system.path(DEB))


def play(report, machine, pictures):
    first_service(report, machine)
    instances(report, machine)
    proxy(report, machine)
    prometheus = Prometheus(machine.system)
    monitoring(report, machine, prometheus)
    code, output = machine.run("flashield-tracegen", *TRACE)
    report.need("flashield-tracegen makes a trace", code == 0, output)
    with machine.system.network.entered():
        replay = subprocess.Popen(["chroot", machine.system.root, "flashield-replay", *REPLAY], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with ended(replay):
        watched(report, machine, replay, pictures)
        output = replay.communicate(timeout=REPLAY_SECONDS)[0]
    replayed(report, machine, replay.returncode, output)
    agreed(report, machine, prometheus)
    draw_dashboard(report, machine, prometheus, pictures)


@contextlib.contextmanager
def ended(process):
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


# ---- services -----------------------------------------------------------------------------------

def first_service(report, machine):
    """What the installation starts; then it makes room for the instances."""
    code, output = machine.apt("install", DEB)
    report.need("the package installs", code == 0 and machine.show()["ActiveState"] == "active", f"{output}\n{machine.journal()}")
    exposed(report, machine, "flashield")
    code, output = machine.run("systemctl", "disable", "--now", "flashield")
    report.check("its service stops", code == 0, output)


def exposed(report, machine, unit):
    output = machine.run("systemd-analyze", "security", "--no-pager", f"{unit}.service")[1]
    line = output.strip().splitlines()[-1]
    score = re.search(r"level for \S+: ([0-9.]+)", line)
    report.check(f"systemd-analyze security {unit}: {score and score[1]}", score and float(score[1]) <= MOST_EXPOSED, output)


def instances(report, machine):
    """flashield@a and others, from the sample of a node: their files are "flash" in their state directories."""
    for name, (port, metrics) in NODES.items():
        text = machine.system.read(f"{EXAMPLES}/flashield-node.conf")
        for option, value in {"listen": f"127.0.0.1:{port}", "metrics-listen": f"127.0.0.1:{metrics}", **SMALL}.items():
            text, found = re.subn(rf"(?m)^{option} = .*$", f"{option} = {value}", text)
            assert found == 1, f"{option} is not in the sample"
        machine.system.write(f"/etc/flashield/{name}.conf", f"{text}\n{MORE}")
    units = [f"flashield@{name}" for name in NODES]
    code, output = machine.run("systemctl", "start", *units)
    states = {unit: machine.show(unit) for unit in units}
    report.need("three instances start", code == 0 and all(state["ActiveState"] == "active" for state in states.values()),
                f"{output}\n{states}\n{machine.journal()}")
    report.check("each with a flash of its own", all(node_stats(machine, name, "flash")["flash_enabled"] == "1" and
                 machine.system.exists(f"/var/lib/flashield/{name}/flash") for name in NODES), states)
    exposed(report, machine, units[0])


def node_stats(machine, name, what=""):
    lines = ask(machine.system, f"stats {what}".rstrip(), port=NODES[name][0])
    return dict(line.split(" ", 2)[1:] for line in lines if line.count(" ") >= 2)


def start(report, machine, unit):
    """A service of Debian's, with its new configuration."""
    code, output = machine.run("systemctl", "restart", unit)
    report.need(f"{unit} starts", code == 0 and machine.show(unit)["ActiveState"] == "active",
                output + journal(machine, unit))


def journal(machine, unit):
    return machine.run("journalctl", "-q", "--no-pager", "-n", "30", "-u", unit)[1]


def proxy(report, machine):
    """The sample as it is."""
    shutil.copy(machine.system.path(f"{EXAMPLES}/nutcracker.yml"), machine.system.path("/etc/nutcracker/nutcracker.yml"))
    machine.system.write("/etc/default/nutcracker", 'DAEMON_OPTS="-c /etc/nutcracker/nutcracker.yml -s 22222 -a 127.0.0.1"\n')
    start(report, machine, "nutcracker")


def monitoring(report, machine, prometheus):
    """The samples, with the job of the three in place of the one, and more scrapes, as all is over in minutes."""
    text = machine.system.read(f"{EXAMPLES}/prometheus/prometheus.yml").replace("15s", f"{SCRAPE_SECONDS}s")
    one, three = text.index("  # One daemon"), text.index("  # Several daemons")
    text = text[:one] + re.sub(r"(?ms)^  # (- job_name: flashield-cluster\n.*?cluster: web\n)",
                               lambda job: re.sub("(?m)^  # ", "  ", job[0]), text[three:])
    machine.system.write("/etc/prometheus/prometheus.yml", text)
    rules = "flashield.rules.yml"
    shutil.copy(machine.system.path(f"{EXAMPLES}/prometheus/{rules}"), machine.system.path(f"/etc/prometheus/{rules}"))
    machine.system.write("/etc/default/prometheus", 'ARGS="--web.listen-address=127.0.0.1:9090"\n')
    code, output = machine.run("promtool", "check", "config", "/etc/prometheus/prometheus.yml")
    report.need("promtool accepts configuration and rules", code == 0, output)
    tests = [f"{EXAMPLES}/prometheus/flashield.rules_{kind}test.yml" for kind in ("", "days_")]
    code, output = machine.run("promtool", "test", "rules", *tests)
    fires = any(re.search(r"alertname: FlashieldDriveWear\n +exp_alerts:\n", machine.system.read(path)) for path in tests)
    report.check("the rules' tests pass: the alert on a drive's wear fires, among others", code == 0 and fires, output)
    # A root that was changed may have no user namespace below it; the unit of Debian's asks for one.
    os.makedirs(machine.system.path("/etc/systemd/system/prometheus.service.d"))
    machine.system.write("/etc/systemd/system/prometheus.service.d/chroot.conf", "[Service]\nPrivateUsers=no\n")
    machine.run("systemctl", "daemon-reload")
    start(report, machine, "prometheus")
    try:
        machine.wait("Prometheus", prometheus.is_ready)
    except AssertionError as why:
        report.need("Prometheus is ready", False, f"{why}\n{journal(machine, 'prometheus')}")
    reach(report, "Prometheus scrapes all three without an error",
          lambda: sorted((t["scrapeUrl"], t["health"], t["lastError"]) for t in prometheus.ask("targets")["activeTargets"]),
          sorted((f"http://127.0.0.1:{metrics}/metrics", "up", "") for _, metrics in NODES.values()))
    groups = lambda: {rule["health"] for group in prometheus.ask("rules")["groups"] for rule in group["rules"]}
    reach(report, "its rules are loaded and all evaluated without an error", groups, {"ok"})


class Prometheus:
    def __init__(self, system):
        self.system = system

    def ask(self, path, **words):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with self.system.network.entered():
            with opener.open(f"{URL}/api/v1/{path}?{urllib.parse.urlencode(words)}", timeout=PATIENCE) as answer:
                return json.load(answer)["data"]

    def is_ready(self):
        try:
            return bool(self.ask("status/buildinfo"))
        except (OSError, urllib.error.URLError):
            return False

    def query(self, expression):
        """[(labels, value)]"""
        return [(row["metric"], float(row["value"][1])) for row in self.ask("query", query=expression)["result"]]


def reach(report, what, get, wanted):
    """A check that holds when it comes to hold."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            got = get()
        except (OSError, urllib.error.URLError) as why:
            got = why
        if got == wanted or time.monotonic() > end:
            return report.check(what, got == wanted, f"{got}\nrather than {wanted}")
        time.sleep(0.2)


# ---- the load, and what is seen of it -----------------------------------------------------------

def watched(report, machine, replay, pictures):
    """While the trace is played: flash is used by each, and flashield-top shows it."""
    end = time.monotonic() + REPLAY_SECONDS
    while True:
        flash = {name: node_stats(machine, name, "flash") for name in NODES}
        used = all(int(rows["flash_items"]) and int(rows["flash_hits"]) for rows in flash.values())
        if used or replay.poll() is not None or time.monotonic() > end:
            break
        time.sleep(0.5)
    report.check("each has objects on flash, and hits there", used, flash)
    if not pictures:
        return
    servers = [f"127.0.0.1:{port}" for port, _ in NODES.values()]
    for view in ("overview", "flash"):
        path = os.path.join(pictures, f"top-{view}.png")
        # The program of the package, from outside: its terminal is the picture's.
        draw(report, machine, f"a picture of flashield-top's {view}", path, "draw-terminal.py", "--rows", "40", "--columns", "100",
             "--seconds", str(TOP_SECONDS), path, machine.system.path("/usr/bin/flashield-top"), "--view", view, *servers)


def replayed(report, machine, code, output):
    report.need("flashield-replay plays the trace through the proxy to its end", code == 0, output)
    played = json.loads(machine.system.read("/srv/replay.json"))
    values = played["values"]
    report.check(f"{values['checked']} values checked: {values['older']} older, {values['wrong']} wrong",
                 values["checked"] > 0 and values["older"] == values["wrong"] == 0, values)
    report.check(f"{played['requests']} requests in {played['run_seconds']:.0f} s, hit ratio {played['hit_ratio']:.3f}",
                 played["requests"] > 0 and played["hit_ratio"] > 0)
    on_flash = {name: int(node_stats(machine, name, "flash")["flash_items"]) for name in NODES}
    report.check(f"objects on flash: {on_flash}", all(on_flash.values()))


def agreed(report, machine, prometheus):
    """Now that nothing moves."""
    def by_node(series):
        ports = {f"127.0.0.1:{metrics}": name for name, (_, metrics) in NODES.items()}
        return {ports[labels["instance"]]: value for labels, value in prometheus.query(series)}
    for series, row, what in (("flashield_cmd_get_total", "cmd_get", ""), ("flashield_get_hits_total", "get_hits", ""),
                              ("flashield_flash_hits_total", "flash_hits", "flash"),
                              ('flashield_items{tier="flash"}', "flash_items", "flash")):
        reach(report, f"Prometheus has {row} of stats for each", lambda: by_node(series),
              {name: float(node_stats(machine, name, what)[row]) for name in NODES})


def draw(report, machine, what, path, tool, *words):
    with machine.system.network.entered():
        done = subprocess.run([sys.executable, os.path.join(TOP, "tools", tool), *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=REPLAY_SECONDS,
                              env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()})
    report.check(what, done.returncode == 0 and os.path.getsize(path) > 0, done.stdout)


def draw_dashboard(report, machine, prometheus, pictures):
    if pictures:
        path = os.path.join(pictures, "dashboard.png")
        draw(report, machine, "a picture of the dashboard", path, "draw-dashboard.py", "--prometheus", URL, "--output", path,
             "--dashboard", os.path.join(TOP, "packaging/samples/grafana/flashield.json"), "--minutes", str(TRACE_SECONDS / 60 + 0.5),
             "--scrape-interval", str(SCRAPE_SECONDS))
