# SPDX-License-Identifier: BSD-3-Clause
"""A Grafana dashboard's panels and queries, and the Prometheus that answers them. For draw-dashboard.py and the tests."""
import json
import re
import urllib.error
import urllib.parse
import urllib.request

VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
LABEL_VALUES = re.compile(r"label_values\((.*), *(\w+)\)")
PATIENCE = 30  # seconds for an answer


def load(path):
    with open(path, encoding="utf-8") as opened:
        return json.load(opened)


def panels(dashboard):
    """All but the rows' heads, also those within collapsed rows."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def substitute(expression, values):
    """As Grafana does it; a variable without a value is a KeyError."""
    return VARIABLE.sub(lambda match: values[match[1] or match[2]], expression)


def everything(rate_seconds, shown_seconds):
    """The variables' values when all daemons are chosen."""
    return {"job": ".*", "instance": ".*", "__rate_interval": f"{rate_seconds}s", "__range": f"{shown_seconds}s"}


class Refused(Exception):
    """Prometheus would not answer: the text says why."""


class Prometheus:
    def __init__(self, url):
        self.url = url.rstrip("/")

    def ask(self, path, **words):
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(words)}", timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise Refused(f"{words}: {error.read().decode(errors='replace')}") from None

    def query(self, expression):
        """[(labels, value)] of a vector now; of a number, one without labels."""
        data = self.ask("query", query=expression)
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(series["metric"], float(series["value"][1])) for series in data["result"]]

    def query_range(self, expression, start, end, step):
        """[(labels, [(time, value)])]"""
        data = self.ask("query_range", query=expression, start=start, end=end, step=step)
        return [(series["metric"], [(float(at), float(value)) for at, value in series["values"]]) for series in data["result"]]

    def label_values(self, definition):
        """Returns the values that a variable of the dashboard may have: "label_values(series, label)"."""
        series, label = LABEL_VALUES.fullmatch(definition).groups()
        return sorted({found[label] for found in self.ask("series", **{"match[]": series})})
