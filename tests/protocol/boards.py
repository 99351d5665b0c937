# SPDX-License-Identifier: BSD-3-Clause
"""What rules and dashboards may name: the tables' metrics and the rules' own series. And a Prometheus with our files."""
import functools
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import yaml

from helpers import PATIENCE, ROOT, free_port, until
from metrics import counters

sys.path.insert(0, os.fspath(ROOT / "tools" / "dashboard"))
import board  # noqa: E402

CONFIGURATION = ROOT / "packaging" / "samples" / "prometheus" / "prometheus.yml"
RULES = ROOT / "packaging" / "samples" / "prometheus" / "flashield.rules.yml"


def rules(kind):
    """All rules that are "alert" or "record"; all have an "expr"."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


@functools.cache
def scraped():
    """The names that the tables give /metrics."""
    names = {f"flashield_{name}" for _, name in counters().values()}
    for name, kind in re.findall(r"^METRIC\((\w+), (\w+)", (ROOT / "base" / "metrics" / "metrics.def").read_text(), re.M):
        names |= {f"flashield_{name}{part}" for part in (("_bucket", "_sum", "_count") if kind == "HISTOGRAM" else ("",))}
    return names


@functools.cache
def recorded():
    return {rule["record"] for rule in rules("record")}


def unknown(expression):
    """What an expression names that is neither scraped nor recorded."""
    of_rules = set(re.findall(r"\b\w*:?flashield\w*:\w+", expression))
    of_daemon = set(re.findall(r"\bflashield_\w+", re.sub(r"\b\w+(:\w+)+", " ", expression)))
    return (of_daemon - scraped()) | (of_rules - recorded())


class Prometheus(board.Prometheus):
    """Debian's Prometheus with our configuration and rules, but one target, each second."""

    def __init__(self, folder, target):
        self.folder = folder
        self.port = free_port()
        super().__init__(f"http://127.0.0.1:{self.port}")
        configuration = yaml.safe_load(CONFIGURATION.read_text())
        configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        configuration["scrape_configs"][0]["static_configs"][0]["targets"] = [target]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        (folder / RULES.name).write_text(RULES.read_text())

    def __enter__(self):
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self.is_ready, "Prometheus")
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def is_ready(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=PATIENCE):
                return True
        except (urllib.error.URLError, OSError):
            return False
