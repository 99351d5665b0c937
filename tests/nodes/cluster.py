# SPDX-License-Identifier: BSD-3-Clause
"""Three nodes, and twemproxy in front of them."""
import os
import re
import signal
import subprocess

from helpers import ROOT, SEGMENT, Daemon, fill, flashield_command, free_port, is_free, memcached_command, until

NODES = 3
# What the sample file says of a real machine, made small; the rest is as in the file.
SMALL = ["--flash-size", "16m", "--segment-size", str(SEGMENT), "--admission", "all", "-m", "4", "-t", "2"]


class Node(Daemon):
    """A node of ours with flash, or memcached; starts again on its port and its flash."""

    def __init__(self, kind, folder, number, more=()):
        self.kind = kind
        self.flash = folder / f"flash{number}"
        if kind == "memcached":
            super().__init__(["-m", "64", "-U", "0"], program=memcached_command())
        else:
            state = folder / f"state{number}"
            state.mkdir()
            state.chmod(0o777)  # the daemon may have become another user
            super().__init__(["--config", str(ROOT / "packaging" / "samples" / "flashield-node.conf"), "--flash-path",
                              str(self.flash), "--state-dir", str(state), *SMALL, *more], program=flashield_command())

    def end(self, number):
        """Ends it by a signal and waits for that; a clean end must be one."""
        code = self.stop(number)
        assert code == (-number if number == signal.SIGKILL else 0)

    def holds(self, keys):
        """Which of these keys it answers for when it is asked itself."""
        with self.client() as client:
            return {key for key in keys if client.get(key.encode())}

    def push_to_flash(self, keys):
        """Other objects, until some of these keys are read from flash. memcached here has none."""
        if self.kind == "memcached":
            return
        with self.client() as client:
            def moved():
                fill(client, 8 * SEGMENT)
                before = client.count("flash_hits")
                for key in keys:
                    client.get(key.encode())
                return client.count("flash_hits") > before

            until(moved, "objects on flash")

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"


class Cluster:
    def __init__(self, kind, folder, more=()):
        """more: options of our nodes, behind those of the sample file."""
        self.folder = folder
        self.nodes = [Node(kind, folder, number, more) for number in range(NODES)]
        self.proxies = []
        for node in self.nodes:
            node.start()

    def addresses(self):
        return [node.address for node in self.nodes]

    def proxy(self, **settings):
        """twemproxy with the settings of packaging/samples/nutcracker.yml, but for addresses and what is given."""
        self.proxies.append(Proxy(self, settings))
        return self.proxies[-1].port

    def stop(self):
        for proxy in self.proxies:
            proxy.stop()
        codes = []
        for node in self.nodes:
            node.process.send_signal(signal.SIGCONT) if node.process.poll() is None else None
            codes.append(node.stop())
        assert all(code in (0, -signal.SIGKILL) for code in codes), "not a clean end (sanitizers tell here too)"


class Proxy:
    def __init__(self, cluster, settings):
        self.port = free_port()
        text = sample().replace("127.0.0.1:22121", f"127.0.0.1:{self.port}")
        for number, node in enumerate(cluster.nodes, 1):
            text = text.replace(f"127.0.0.1:{11310 + number}:1", f"{node.address}:1")
        for name, value in settings.items():
            text, found = re.subn(rf"(?m)^  {name}: .*$", f"  {name}: {value}", text)
            assert found == 1, f"{name} is not in the sample"
        path = cluster.folder / "nutcracker.yml"
        path.write_text(text)
        self.process = subprocess.Popen(["nutcracker", "-c", str(path), "-s", str(free_port()), "-a", "127.0.0.1"],
                                        stdin=subprocess.DEVNULL, stderr=open(cluster.folder / "nutcracker.log", "wb"))
        until(lambda: self.listens(), "nutcracker")

    def listens(self):
        assert self.process.poll() is None, "nutcracker has ended"
        return not is_free(self.port)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def sample():
    return (ROOT / "packaging" / "samples" / "nutcracker.yml").read_text(encoding="utf-8")


def ketama_client():
    return os.environ.get("KETAMA_CLIENT_BIN", str(ROOT / "build" / "ketama_client"))
