# SPDX-License-Identifier: BSD-3-Clause
"""Reading /metrics: a scrape as {series: value}, and which counter is which row of stats."""
import http.client
import pathlib
import re

from helpers import PATIENCE, ROOT, Daemon, free_port

SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)",?')


def get(port, path="/metrics", timeout=PATIENCE, method="GET"):
    """(status, text)"""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def parse(text):
    """{name: {labels as a sorted tuple of pairs: value}}"""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.match(line).groups()
        pairs = tuple(sorted(LABEL.findall(labels or "")))
        series = found.setdefault(name, {})
        assert pairs not in series, f"twice: {line}"
        series[pairs] = float(value)
    return found


def scrape(port):
    status, text = get(port)
    assert status == 200
    return parse(text)


def value(found, name, **labels):
    return found[f"flashield_{name}"][tuple(sorted(labels.items()))]


def counters():
    """{row of stats or of a report of ours: (the report, its name in /metrics)}, from the table that both are made of."""
    text = (pathlib.Path(ROOT) / "base" / "metrics" / "counters.def").read_text(encoding="utf-8")
    reports = {"GENERAL": b"", "FLASH": b"flash", "CLASSIFIER": b"classifier"}
    return {name: (reports[group], re.sub("_num$", "", re.sub("^total_", "", name)) + "_total")
            for name, group in re.findall(r"^COUNTER\((\w+), (\w+),", text, re.MULTILINE)}


class Measured(Daemon):
    """A daemon that serves /metrics on a port of its own."""

    def __init__(self, options, **keywords):
        self.metrics_port = free_port()
        super().__init__([f"--metrics-listen=127.0.0.1:{self.metrics_port}", *options], **keywords)

    def scrape(self):
        return scrape(self.metrics_port)
