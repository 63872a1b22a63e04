"""Metrics for Prometheus."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_metrics

from tests.service.asking import checkpoint_table, client_in, publish

PLAIN = "text/plain; version=0.0.4; charset=utf-8"


OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"


PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.4"
)


@pytest.mark.parametrize(
    ("accept", "kind", "parse"),
    [
        ("", PLAIN, text_metrics),
        ("*/*", PLAIN, text_metrics),
        ("text/html", PLAIN, text_metrics),
        (PROMETHEUS, OPEN, openmetrics),
        ("application/openmetrics-text;version=x", OPEN, openmetrics),
    ],
)
def test_metrics(client, accept, kind, parse):
    publish(client, 1)
    answer = client.ask("GET", "/metrics", "read", headers={"Accept": accept})
    assert answer.headers["Content-Type"] == kind
    families = {family.name: family for family in parse(answer.text)}
    (value,) = families["panprivacy_release_value"].samples
    assert (value.value, value.labels) == (
        1,
        {
            "stream": "visits",
            "statistic": "visits",
            "question": "exactly",
            "arguments": "state=0",
            "group": "",
        },
    )
    (high,) = families["panprivacy_release_high"].samples
    assert high.value == float("inf")
    assert not families["panprivacy_trouble"].samples


EXAMPLES = Path(__file__).parents[2] / "examples/monitoring"


def test_the_examples_for_prometheus_and_grafana_ask_for_metrics_that_there_are(tmp_path):
    with client_in(tmp_path, checkpoint=checkpoint_table()) as client:
        publish(client, 1)
        client.engine.keeper.write()
        told = client.ask("GET", "/metrics", "read").text
    there = {family.name for family in text_metrics(told)}
    recorded = re.compile(r"\bpanprivacy:[a-z_:]+")  # by a rule, not by the service
    for name in ("grafana.json", "panprivacy.rules.yml"):
        text = (EXAMPLES / name).read_text()
        asked = set(re.findall(r"\bpanprivacy_[a-z_]+", recorded.sub("", text)))
        assert len(asked) > 5
        assert asked <= there, name
    rules = yaml.safe_load((EXAMPLES / "panprivacy.rules.yml").read_text())["groups"][0]["rules"]
    assert all("expr" in rule for rule in rules)
    panels = json.loads((EXAMPLES / "grafana.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert yaml.safe_load((EXAMPLES / "prometheus.yml").read_text())["scrape_configs"]
