# SPDX-License-Identifier: BSD-3-Clause
"""What an operator's Prometheus and Grafana are given, in conf/prometheus and conf/grafana, holds what it promises:
each alert is proved to fire and to be silent, each name is one that the daemon has."""
import re
import subprocess

import pytest
import yaml

from helpers import ROOT

PROMETHEUS = ROOT / "conf" / "prometheus"
RULES = PROMETHEUS / "flashield.rules.yml"
RULE_TESTS = [PROMETHEUS / "flashield.rules_test.yml", PROMETHEUS / "flashield.rules_days_test.yml"]
METRIC = re.compile(r"\bflashield_\w+")


def rules(kind):
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


def promtool(*words):
    done = subprocess.run(["promtool", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def rows(table, macro):
    """The rows of a table of conf/: (name, the second column)."""
    text = (ROOT / "conf" / table).read_text()
    return re.findall(rf"^{macro}\((\w+), (\w+)", text, re.M)


def names_scraped():
    """All names that the tables give /metrics, as their heads say."""
    names = {"flashield_" + re.sub(r"_num$", "", re.sub(r"^total_", "", name)) + "_total" for name, _ in rows("counters.def", "COUNTER")}
    for name, kind in rows("metrics.def", "METRIC"):
        names |= {f"flashield_{name}{part}" for part in (("_bucket", "_sum", "_count") if kind == "HISTOGRAM" else ("",))}
    return names


def outside_of_recorded_names(expression):
    """The expression without names like instance:flashield_gets:rate5m, which are the rules' own."""
    return re.sub(r"\b\w+(:\w+)+", " ", expression)


def test_configuration_and_rules_are_well_formed():
    assert "WARNING" not in promtool("check", "config", str(PROMETHEUS / "prometheus.yml"))


@pytest.mark.parametrize("tests", RULE_TESTS, ids=lambda path: path.stem)
def test_rules_do_what_their_tests_say(tests):
    assert "SUCCESS" in promtool("test", "rules", str(tests))


def test_every_alert_has_a_case_that_fires_and_one_that_does_not():
    alerts = [rule["alert"] for rule in rules("alert")]
    assert len(alerts) == len(set(alerts)) > 0
    fires, silent = set(), set()
    for path in RULE_TESTS:
        for group in yaml.safe_load(path.read_text())["tests"]:
            for case in group["alert_rule_test"]:
                (fires if case["exp_alerts"] else silent).add(case["alertname"])
    assert fires == set(alerts)
    assert silent == set(alerts)


def test_every_alert_tells_its_severity_and_what_to_do():
    for rule in rules("alert"):
        assert rule["alert"].startswith("Flashield")
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
        assert "{{ $labels.instance }}" in rule["annotations"]["summary"], rule["alert"]
        assert len(rule["annotations"]["description"].split()) > 15, rule["alert"]


def test_rules_name_no_metric_that_is_not_scraped():
    scraped = names_scraped()
    for rule in rules("expr"):
        unknown = set(METRIC.findall(outside_of_recorded_names(rule["expr"]))) - scraped
        assert not unknown, f"{rule.get('alert') or rule.get('record')} asks for {unknown}"


def test_rules_name_no_series_that_is_not_recorded():
    recorded = {rule["record"] for rule in rules("record")}
    used = {name for rule in rules("expr") for name in re.findall(r"\b\w*:?flashield\w*:\w+", rule["expr"])}
    assert used <= recorded
