"""Metrics for Prometheus."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_metrics

from tests.dashboard.rows import published
from tests.service.asking import checkpoint_table, client_in, publish
from tests.service.binned import bins, powers

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


@pytest.mark.parametrize(("accept", "parse"), [("", text_metrics), (OPEN, openmetrics)])
def test_a_histogram_has_cumulative_buckets_in_place_of_a_gauge_for_each_bin(client, accept, parse):
    old = bins([1, 2, 4], [9, 9, 9, 9], hours=-1, stream="visits")
    new = bins([1, 2, 8], [-2, 50, 7, 1], stream="visits")
    published(client.engine.store, [*old, *new])
    answer = client.ask("GET", "/metrics", "read", headers={"Accept": accept})
    families = {family.name: family for family in parse(answer.text)}
    samples = families["panprivacy_values"].samples
    labels = {"stream": "visits", "statistic": "times", "group": ""}
    assert families["panprivacy_values"].type == "histogram"
    assert all(one.labels.items() >= labels.items() for one in samples)
    found = {(one.name.rpartition("_")[2], one.labels.get("le")): one.value for one in samples}
    assert found["bucket", "1.0"] == 0
    assert found["bucket", "2.0"] < found["bucket", "8.0"] <= found["bucket", "+Inf"] == 56
    assert found["count", None] == 56
    assert found["sum", None] > 50
    (margin,) = families["panprivacy_values_margin"].samples
    assert margin.value == 3
    (when,) = families["panprivacy_release_timestamp_seconds"].samples
    assert when.labels == {**labels, "question": "count", "arguments": ""}
    assert when.value == new[0].released.timestamp()
    assert not families["panprivacy_release_value"].samples


NATIVE = "application/vnd.google.protobuf"
SCRAPER = f"{NATIVE};proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,{PROMETHEUS}"


def test_who_asks_for_protobuf_gets_the_same_metrics(client):
    publish(client, 1)
    published(client.engine.store, bins(powers(0, 3, 2), range(14), stream="visits"))
    answer = client.ask("GET", "/metrics", "read", headers={"Accept": SCRAPER})
    kind = f"{NATIVE}; proto=io.prometheus.client.MetricFamily; encoding=delimited"
    assert answer.headers["Content-Type"] == kind
    families = text_metrics(client.ask("GET", "/metrics", "read").text)
    named = [one.name for one in families if one.samples]
    assert "panprivacy_values" in named
    places = [answer.content.index(name.encode()) for name in named]
    assert places == sorted(places)


EXAMPLES = Path(__file__).parents[2] / "examples/monitoring"


def test_the_examples_for_prometheus_and_grafana_ask_for_metrics_that_there_are(tmp_path):
    with client_in(tmp_path, checkpoint=checkpoint_table()) as client:
        publish(client, 1)
        client.engine.keeper.write()
        told = client.ask("GET", "/metrics", "read").text
    families = list(text_metrics(told))
    there = {family.name for family in families}
    there |= {f"{one.name}_bucket" for one in families if one.type == "histogram"}
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
