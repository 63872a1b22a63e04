"""Prometheus itself scrapes a service, and answers for its histograms."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from tests.service.running import TOKENS, Service, wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="apt-get install prometheus"),
]

TIMES = """
[streams.times]
epsilon = 1
window = "1s"
[[streams.times.stat]]
name = "histogram"
low = 1
high = 1024
bins = 40
scale = "log"
horizon = 1_000
counts = true
quantile = [0.5, 0.95]
"""
"""Its edges are those of a native histogram, and it counts on from window to window."""
DELAYS = """
[streams.delays]
epsilon = 1
window = "1s"
[[streams.delays.stat]]
name = "histogram"
edges = [-60, -30, 0, 10, 30, 60, 120, 240]
horizon = 1_000
counts = true
"""
EVENTS, NOISE = 100_000, 1_000
GRAFANA = Path(__file__).parents[2] / "examples/monitoring/grafana.json"
VERSION = re.compile(r"version (\d+)\.(\d+)")


@contextmanager
def prometheus(service, folder, *, native):
    """Where Prometheus is, while it scrapes a service every second."""
    told = subprocess.run(["prometheus", "--version"], check=True, capture_output=True, text=True)
    version = tuple(map(int, VERSION.search(told.stdout + told.stderr).groups()))
    job = {"job_name": "panprivacy", "scrape_interval": "1s", "scrape_timeout": "1s"}
    job["authorization"] = {"credentials": TOKENS["read"]}
    where = re.sub("^http://", "", service.url("")).rstrip("/")
    job["static_configs"] = [{"targets": [where]}]
    if native and version >= (3, 8):
        job |= {"scrape_native_histograms": True, "convert_classic_histograms_to_nhcb": True}
    config = folder / "prometheus.yml"
    config.write_text(json.dumps({"scrape_configs": [job]}))  # YAML holds JSON
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
    words += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    if native and version < (3, 8):
        words.append("--enable-feature=native-histograms")
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(["prometheus", *words], stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def asked(where, query):
    """The numbers that a query gives, by stream; none while Prometheus starts."""
    try:
        told = httpx.get(f"{where}/api/v1/query", params={"query": query}, trust_env=False)
    except httpx.TransportError:
        return {}
    if told.status_code == 503:
        return {}
    document = told.json()
    assert document["status"] == "success", document
    return {
        one["metric"].get("stream", ""): float(one["value"][1])
        for one in document["data"]["result"]
        if "value" in one
    }


def drawn(where):
    """How many series the heat map of Grafana draws; Prometheus takes what all panels ask."""
    panels = json.loads(GRAFANA.read_text())["panels"]
    asks = [(panel, re.sub(r"\$\w+", ".*", one["expr"])) for panel in panels
            for one in panel["targets"]]  # fmt: skip
    found = {}
    for panel, query in asks:
        told = httpx.get(f"{where}/api/v1/query", params={"query": query}, trust_env=False).json()
        assert told["status"] == "success", (query, told)
        found[panel["type"]] = len(told["data"]["result"])
    return found["heatmap"]


@contextmanager
def serving(folder, streams, values):
    """A service that has released histograms of some values, by stream."""
    with Service(folder, streams, checkpoint=None) as one:
        one.start()
        for name, numbers in values.items():
            kind = one.headers("ingest", **{"Content-Type": "application/json"})
            body, path = json.dumps({"value": numbers.tolist()}), f"/v1/streams/{name}/updates"
            one.client.post(one.url(path), content=body, headers=kind).raise_for_status()
        wait_until(lambda: counted(exposed(one)) == set(values))
        yield one


def exposed(service):
    """The metrics as text."""
    return service.client.get(service.url("/metrics"), headers=service.headers("read")).text


def counted(text):
    """The streams whose histogram has all events, but for noise: 1,000 is over 7 deviations."""
    buckets = [one for family in parsed(text) for one in family.samples if "le" in one.labels]
    return {
        one.labels["stream"]
        for one in buckets
        if one.labels["le"] == "+Inf" and abs(one.value - EVENTS) < NOISE
    }


@pytest.fixture(scope="module")
def values():
    coins = np.random.default_rng(1)
    return {"times": coins.lognormal(4, 1, EVENTS), "delays": coins.normal(20, 20, EVENTS)}


def test_promtool_finds_nothing_to_say(values, tmp_path):
    with serving(tmp_path, TIMES + DELAYS, values) as one:
        found = subprocess.run(
            ["promtool", "check", "metrics"],
            input=exposed(one),
            capture_output=True,
            text=True,
            check=False,
        )
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


def test_prometheus_scrapes_a_native_histogram(values, tmp_path):
    with (
        serving(tmp_path, TIMES, {"times": values["times"]}) as one,
        prometheus(one, tmp_path, native=True) as where,
    ):
        wait_until(lambda: asked(where, "histogram_count(panprivacy_values)"))
        found = asked(where, "histogram_quantile(0.5, panprivacy_values)")
        released = asked(where, 'panprivacy_release_value{arguments="share=0.5"}')
        counts = asked(where, "histogram_count(panprivacy_values)")
        assert not asked(where, "panprivacy_values_bucket")
        assert drawn(where) == 1
    assert abs(counts["times"] - EVENTS) < NOISE
    # a bin is 19 % wide, and its edges are the same for both
    assert abs(found["times"] / released["times"] - 1) < 0.19
    assert abs(found["times"] / np.median(values["times"]) - 1) < 0.19


def test_prometheus_scrapes_buckets(values, tmp_path):
    with (
        serving(tmp_path, TIMES + DELAYS, values) as one,
        prometheus(one, tmp_path, native=False) as where,
    ):
        wait_until(lambda: len(asked(where, "panprivacy_release_value")) == 1)
        query = "histogram_quantile(0.5, panprivacy_values_bucket)"
        wait_until(lambda: asked(where, query).keys() == set(values))
        found = asked(where, query)
        assert drawn(where) > 40
    assert abs(found["times"] / np.median(values["times"]) - 1) < 0.19
    assert abs(found["delays"] - np.median(values["delays"])) < 10
