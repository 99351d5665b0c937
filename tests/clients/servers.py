# SPDX-License-Identifier: BSD-3-Clause
"""The daemons that a suite talks to, and where their objects lie.

    plain       Debian's memcached: what a suite is written against, and must pass in full
    plain-full  memcached with -m 8, filled as ours in the place "full": what the counts there are compared with
    dram        ours, all objects in DRAM
    flash       ours with fault points and little memory, behind place.py, which has the client's objects moved to flash. The memory is
                enough for the index of a full flash too: with -M nothing else makes room. A read may take as long as a busy drive needs.
                Nothing is lost: a set clears the slot of another key only where a filter is wrong, and these have 16 bits.
    full        ours in DRAM with -m 8, of which others' objects have filled all before: what a suite stores makes it evict
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATIENCE = 120.0
PLACES = {
    "plain": ["-m", "64", "-U", "0"],
    "dram": ["-m", "64", "--metrics-listen=off"],
    "flash": ["--metrics-listen=off", "-m", "18", "-M", "--flash-size", "640m", "--segment-size", "2m", "--flash-object-size", "2048",
              "--filter-bits", "16", "-t", "2", "--flash-read-timeout", "2m"],
    "full": ["-m", "8", "--metrics-listen=off"],
    "plain-full": ["-m", "8", "-U", "0"],
}
MEMCACHED = {"dram": "plain", "flash": "plain", "full": "plain-full"}  # where the counts of each place are compared with


class Beside:
    """What ours is compared with: nothing, or a memcached of this version."""
    version = None
    release = None  # debian or newest
    newest = False  # not Debian's

    @classmethod
    def options(cls, place):
        """By which ours answers like that one. They are the last: a suite's own choice of a version gives way."""
        return ["--compat-version", cls.version] if cls.version and place in MEMCACHED else []


def program_of(place):
    if place not in MEMCACHED:
        return os.environ.get("MEMCACHED_BIN", "/usr/bin/memcached")
    if place == "flash":
        return os.environ.get("FLASHIELD_FAULTS_BIN", str(ROOT / "build" / "debug" / "flashield"))
    return os.environ.get("FLASHIELD_BIN", str(ROOT / "build" / "flashield"))


def free_port():
    """Below the range that the kernel gives to outgoing connections, so that none of those takes it meanwhile."""
    start = 20000 + os.getpid() * 7 % 10000
    for port in range(start + free_port.given, start + free_port.given + 2000):
        free_port.given += 1
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise OSError("no free port")


free_port.given = 0


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def wait_for(port, process, patience=PATIENCE):
    end = time.monotonic() + patience
    while not answers(port):
        if process.poll() is not None:
            raise OSError(f"{' '.join(process.args)} ended with {process.returncode}")
        if time.monotonic() > end:
            raise OSError(f"{' '.join(process.args)}: no answer on port {port}")
        time.sleep(0.01)


class Server:
    """One daemon; `port` is the one that clients use. Its output is kept for a failure's report."""

    def __init__(self, place, options=(), env=None, tls=False):
        self.place = place
        self.options = list(options)
        self.env = dict(os.environ, **(env or {}))
        self.tls = tls
        self.processes = []
        self.folder = None
        self.port = self.daemon_port = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="clients-")
        os.chmod(self.folder.name, 0o777)  # the daemon becomes another user
        self.output = open(os.path.join(self.folder.name, "output"), "w+", encoding="utf-8")
        self.daemon_port = self.port = free_port()
        command = [program_of(self.place), *PLACES[self.place], "-l", "127.0.0.1", "-p", str(self.port)]
        if self.place == "flash":
            command += ["--flash-path", os.path.join(self.folder.name, "flash")]
            drive = self.env["FLASHIELD_DRIVE"] = os.path.join(self.folder.name, "drive")
        if os.geteuid() == 0:
            command += ["-u", "nobody"]
        try:
            self.start(command + self.options + Beside.options(self.place), self.port)
            if self.place == "flash":
                self.port = free_port()
                self.start([sys.executable, str(HERE / "place.py"), str(self.port), str(self.daemon_port), drive], self.port)
            if self.place.endswith("full"):
                self.fill()
        except OSError:
            self.stop()
            raise
        return self

    def start(self, command, port):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
                                   env=self.env, cwd=self.folder.name)
        self.processes.append(process)
        wait_for(port, process)

    def stop(self):
        """What the daemon said, when it didn't end cleanly."""
        bad = None
        while self.processes:
            process = self.processes.pop()
            early = process.poll()
            process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            if early is not None or code not in (0, -signal.SIGTERM):
                bad = f"{os.path.basename(process.args[0])} ended with {code}{' too early' if early is not None else ''}"
        if bad:
            self.output.seek(0)
            bad += "\n" + self.output.read()[-4000:]
        self.output.close()
        self.folder.cleanup()
        return bad

    def __exit__(self, *_):
        self.stop()

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.daemon_port), PATIENCE)
        if not self.tls:
            return connection
        import ssl
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(connection)

    def row(self, report, name):
        """A row of this report, from the daemon itself; 0 where it can't be asked in plain text."""
        with self.connect() as connection, connection.makefile("rb") as reader:
            connection.sendall(report + b"\r\n")
            while (line := reader.readline()) not in (b"END\r\n", b""):
                if line.startswith(b"STAT " + name + b" "):
                    return int(line.split()[2])
        return 0

    def flash_hits(self):
        return self.row(b"stats flash", b"flash_hits")

    def fill(self):
        """Stores objects of many sizes until some are evicted, and then as many again. The counters begin anew behind it."""
        with self.connect() as connection, connection.makefile("rb") as reader:
            count = 0
            while not count or self.row(b"stats", b"evictions") < count // 2:
                for _ in range(500):
                    count += 1
                    size = 100 + count * 37 % 4000
                    connection.sendall(b"set others:%d 0 0 %d\r\n%s\r\n" % (count, size, b"x" * size))
                    if reader.readline() != b"STORED\r\n":
                        raise OSError("an object of the filling was not stored")
            connection.sendall(b"stats reset\r\n")
            reader.readline()
