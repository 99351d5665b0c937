# SPDX-License-Identifier: BSD-3-Clause
"""The rules for an operator's Prometheus hold: each alert is proved to fire and to be silent, and
names nothing that the daemon doesn't have."""
import re
import subprocess

import pytest
import yaml

from boards import CONFIGURATION, RULES, board, rules, unknown
from helpers import ROOT

RULE_TESTS = [RULES.with_name("flashield.rules_test.yml"), RULES.with_name("flashield.rules_days_test.yml")]


def promtool(*words):
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_name_that_nobody_has_is_noticed():
    assert unknown("rate(flashield_get_hits_total[5m]) / instance:flashield_gets:rate5m") == set()
    assert unknown("rate(flashield_get_hit_total[5m]) / instance:flashield_gets:rate6m") == {
        "flashield_get_hit_total", "instance:flashield_gets:rate6m"}


def test_configuration_and_rules_are_well_formed():
    assert "WARNING" not in promtool("check", "config", str(CONFIGURATION))


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


def test_rules_name_nothing_that_is_not_there():
    for rule in rules("expr"):
        assert not unknown(rule["expr"]), rule


def test_the_guide_has_every_alert_and_every_row():
    guide = (ROOT / "packaging" / "doc" / "dashboard.md").read_text()
    told = re.findall(r"^\| (Flashield\w+) \| (\w+) \|", guide, re.M)
    assert told == [(rule["alert"], rule["labels"]["severity"]) for rule in rules("alert")]
    dashboard = board.load(ROOT / "packaging" / "samples" / "grafana" / "flashield.json")
    for title in (panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"):
        assert f"\n## {title}\n" in guide
    options = set(re.findall(r"`--([a-z][\w-]+)", guide))
    known = set(re.findall(r'^OPTION\("([\w-]+)"', (ROOT / "conf" / "options.def").read_text(), re.M))
    assert options <= known
