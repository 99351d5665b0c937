#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes packaging/samples/grafana/flashield.json, for Grafana 9 and later, from panels.py: tools/dashboard/generate.py > packaging/samples/grafana/flashield.json

A dashboard that was changed in Grafana is exported there; what is to stay in this file belongs into panels.py.
"""
import json

from panels import ROWS

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
CHOSEN = 'job=~"$job",instance=~"$instance"'
HEIGHT = {"stat": 4, "timeseries": 8}
COLUMNS = 24


def expand(query):
    return query.replace("{@", "{" + CHOSEN).replace("[%]", "[$__rate_interval]")


def target(number, legend, query):
    return {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": expand(query), "legendFormat": legend or "__auto",
            "range": True, "editorMode": "code"}


def color_override(legend, color):
    return {"matcher": {"id": "byName", "options": legend},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}]}


def timeseries(panel):
    custom = {"drawStyle": "line", "lineWidth": 0 if panel.stack else 1, "fillOpacity": 60 if panel.stack else 8, "showPoints": "never", "spanNulls": False,
              "stacking": {"mode": "normal" if panel.stack else "none", "group": "A"}}
    defaults = {"unit": panel.unit, "min": 0, "custom": custom, "color": {"mode": "palette-classic"}}
    if panel.log or panel.unit == "none":
        del defaults["min"]  # a logarithm of 0 is none, and a decision value may be negative
    if panel.log:
        custom["scaleDistribution"] = {"type": "log", "log": 10}
    if panel.maximum is not None:
        defaults["max"] = panel.maximum
    return {
        "fieldConfig": {"defaults": defaults, "overrides": [color_override(*pair) for pair in panel.colors.items()]},
        "options": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                    "tooltip": {"mode": "multi", "sort": "desc"}},
    }


def stat(panel):
    steps = [{"value": value, "color": color} for value, color in panel.colors]
    return {
        "fieldConfig": {"defaults": {"unit": panel.unit, "decimals": None if panel.unit != "none" else 2,
                                     "color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": steps}},
                        "overrides": []},
        "options": {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value",
                    "graphMode": "area", "textMode": "auto", "justifyMode": "auto", "orientation": "auto"},
    }


def place(rows):
    """Panels from left to right, rows below each other, ids in order."""
    number, y = 0, 0
    for title, panels in rows:
        number += 1
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [],
               "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}}
        y += 1
        x = height = 0
        for panel in panels:
            if x + panel.width > COLUMNS or (height and HEIGHT[panel.kind] != height):
                x, y = 0, y + height
            height = HEIGHT[panel.kind]
            number += 1
            yield {"id": number, "type": panel.kind, "title": panel.title, "description": panel.description, "datasource": SOURCE,
                   "gridPos": {"x": x, "y": y, "w": panel.width, "h": height},
                   "targets": [target(n, *pair) for n, pair in enumerate(panel.queries.items())],
                   **(stat(panel) if panel.kind == "stat" else timeseries(panel))}
            x += panel.width
        y += height


def variable(name, label, query, several):
    chosen = {"text": ["All"], "value": ["$__all"]} if several else {}
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "definition": query,
            "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1, "multi": several, "includeAll": several,
            "allValue": ".*" if several else None, "current": chosen, "options": [], "regex": "", "hide": 0}


def dashboard():
    return {
        "uid": "flashield",
        "title": "Flashield",
        "description": "A cache in DRAM and on flash: what it answers, what it writes to the drive, and why. dashboard.md explains each row.",
        "tags": ["cache", "flashield", "memcached"],
        "schemaVersion": 37,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "links": [],
        "templating": {"list": [
            {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1, "regex": "",
             "multi": False, "includeAll": False, "current": {}, "options": [], "hide": 0},
            variable("job", "Job", "label_values(flashield_build_info, job)", True),
            variable("instance", "Daemon", 'label_values(flashield_build_info{job=~"$job"}, instance)', True),
        ]},
        "annotations": {"list": [
            {"name": "Restarts", "datasource": SOURCE, "enable": True, "hide": False, "iconColor": "purple",
             "expr": expand("changes(flashield_start_time_seconds{@}[2m]) > 0"), "titleFormat": "restart", "textFormat": "{{instance}}"},
        ]},
        "panels": list(place(ROWS)),
    }


if __name__ == "__main__":
    print(json.dumps(dashboard(), indent=1, ensure_ascii=False))
