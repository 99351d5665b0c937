# SPDX-License-Identifier: BSD-3-Clause
"""Starts the daemon of a chroot as its unit says, where no systemd runs: user, folders, environment, readiness."""
import os
import shlex
import signal
import socket
import subprocess
import time
import urllib.request

UNIT = "/lib/systemd/system/flashield.service"  # where it belongs into /usr/lib, /lib is a link
PATIENCE = 300.0
# The root that is the next word can't be written by the command that follows.
READ_ONLY = ["unshare", "--mount", "sh", "-c", 'mount --rbind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"']


class Unit:
    """The lines of a unit's [Service] that a start needs."""

    def __init__(self, text):
        self.values = {}
        for line in text.replace("\\\n", " ").splitlines():
            name, equals, value = line.partition("=")
            if equals and not line.startswith(("#", ";")):
                self.values.setdefault(name.strip(), []).append(value.strip())

    def get(self, name, default=""):
        return self.values.get(name, [default])[-1]

    def command(self):
        return shlex.split(self.get("ExecStart").lstrip("-:+!@"))


def ask(system, *commands, port=11211):
    """Lines of the answer to the last command, talked to from outside of the chroot, in its network."""
    with system.network.entered():
        connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    with connection, connection.makefile("rb") as answer:
        for command in commands:
            connection.sendall(command.encode() + b"\r\n")
            lines = [answer.readline().decode().rstrip()]
            while lines[0].startswith(("STAT ", "VALUE ")) and lines[-1] != "END":
                lines.append(answer.readline().decode().rstrip())
    return lines


def ids(system, user):
    """Of a user's name, or of UID:GID."""
    if ":" in user:
        return tuple(map(int, user.split(":")))
    for line in system.read("/etc/passwd").splitlines():
        fields = line.split(":")
        if fields[0] == user:
            return int(fields[2]), int(fields[3])
    raise LookupError(f"no user {user}")


class Service:
    """The daemon in a system's chroot and network, or another command. Use with "with"; it has ended afterwards."""

    def __init__(self, system, command=None, user=None, env=None, read_only=False):
        unit = Unit("" if command else system.read(UNIT))
        self.system = system
        self.notifies = command is None and unit.get("Type") == "notify"
        self.command = command or unit.command()
        uid, gid = ids(system, user or unit.get("User", "root"))
        self.env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", **(env or {})}
        if command is None:
            for name, above in (("State", "/var/lib"), ("Runtime", "/run")):
                folder = f"{above}/{unit.get(name + 'Directory')}"
                os.makedirs(system.path(folder), exist_ok=True)
                os.chown(system.path(folder), uid, gid)
                self.env[f"{name.upper()}_DIRECTORY"] = folder
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = system.path("/run/notify")
        if os.path.lexists(path):
            os.unlink(path)
        self.notify.bind(path)
        os.chown(path, uid, gid)
        if self.notifies:
            self.env["NOTIFY_SOCKET"] = "/run/notify"
        self.log_path = system.path("/run/flashield.log")
        with open(self.log_path, "wb") as log, system.network.entered():
            self.process = subprocess.Popen(
                [*([*READ_ONLY, system.root] if read_only else []), "chroot", f"--userspec={uid}:{gid}", "--groups=", system.root, *self.command],
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as opened:
            return opened.read()

    def ready(self, port=11211):
        """Waits until it serves: by its own word where the unit has Type=notify, else by an answer."""
        end = time.monotonic() + PATIENCE
        word = b""
        self.notify.settimeout(0.1)
        while self.notifies and b"READY=1" not in word.split(b"\n"):
            self.check(end)
            try:
                word = self.notify.recv(4096)
            except TimeoutError:
                continue
        while True:
            self.check(end)
            try:
                return self.ask("version", port=port)
            except ConnectionRefusedError:
                assert not self.notifies, "it said READY=1, and refuses connections"
                time.sleep(0.02)

    def check(self, end):
        assert self.process.poll() is None, f"the daemon has ended: {self.process.returncode}\n{self.log()}"
        assert time.monotonic() < end, f"not ready after {PATIENCE} s\n{self.log()}"

    def ask(self, *commands, port=11211):
        return ask(self.system, *commands, port=port)

    def stats(self, report="", port=11211):
        lines = self.ask(f"stats {report}".rstrip(), port=port)
        return dict(line.split(" ", 2)[1:] for line in lines if line.count(" ") >= 2)

    def scrape(self, port=9151):
        """What Prometheus would read."""
        with self.system.network.entered():
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
                return answer.read().decode()

    def wait(self):
        return self.process.wait(PATIENCE)

    def stop(self):
        """Its exit code after SIGTERM, as "systemctl stop" does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.notify.close()
