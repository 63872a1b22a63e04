"""The vectors of devices are those of the class that ships, and what they refuse is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from panprivacy.devices.aggregator import leader, leader_store
from panprivacy.devices.aggregator.messages import ReportError
from panprivacy.devices.federated import Collector, Device, ReplayError, Task
from panprivacy.devices.federated.elgamal import CIPHERTEXT_BYTES, DecryptionKey, EncryptionKey
from panprivacy.devices.federated.embedding import embed, extract
from panprivacy.devices.federated.messages import Report
from panprivacy.devices.federated.rows import SHARED_BYTES
from panprivacy.devices.federated.task import MOST_TASK, VERSION
from panprivacy.errors import InputError, PanPrivacyError, PlanError
from tests.vectors.make_device import FOLDER, Kept, documents, written

PAGE = (Path(__file__).parents[2] / "docs" / "device-format.md").read_text()
FILES = sorted(path.name for path in FOLDER.glob("*.json"))
LIVES = [name for name in FILES if name not in {"tasks.json", "points.json"}]
EACH_LIFE = pytest.mark.parametrize("name", LIVES)


def loaded(name):
    return json.loads((FOLDER / name).read_text())


class Replayed:
    """Coins that hand out the draws of a step, and no others."""

    def __init__(self):
        self.draws = []

    def _next(self, kind, **asked):
        draw = self.draws.pop(0)
        assert {name: draw[name] for name in asked} == asked
        return draw[kind]

    def secret(self, nbytes):
        """The bytes that come next."""
        found = bytes.fromhex(self._next("secret"))
        assert len(found) == nbytes
        return found

    def key(self, nbytes):
        """The id of the report."""
        found = bytes.fromhex(self._next("id"))
        assert len(found) == nbytes
        return found

    def bernoulli(self, probability, size):
        """The bits that come next."""
        bits = self._next("bits", bernoulli=str(probability))
        assert len(bits) == size
        return np.array(bits, np.uint8)

    def discrete_gaussian(self, variance, size):
        """The numbers that come next."""
        numbers = self._next("numbers", discrete_gaussian=str(variance))
        assert len(numbers) == size
        return np.array(numbers, np.int64)


def test_the_files_are_those_that_the_generator_writes():
    found = {name: written(document) for name, document in documents().items()}
    assert found == {name: (FOLDER / name).read_text() for name in FILES}


@EACH_LIFE
def test_a_device_takes_the_steps_of_its_vector(name):
    """Also from each state that is read again, as after a crash."""
    vector, coins = loaded(name), Replayed()
    task = Task.read(vector["task"].encode(), bytes.fromhex(vector["signer"]))
    assert task.canonical().decode() == vector["canonical"]
    assert task.digest.hex() == vector["digest"]
    kept = Kept()
    for step in vector["steps"]:
        coins.draws = list(step["draws"])
        device = Device(task, kept, coins=coins)
        if step["do"] == "observe":
            device.observe(step["event"])
        elif step["do"] == "report":
            assert device.report().hex() == step["report"]
        assert (kept.state.hex(), coins.draws) == (step["state"], [])


@EACH_LIFE
def test_no_ciphertext_comes_twice(name):
    """Every step changes all of them, with an event or without."""
    points = [
        state[at : at + 33]
        for step in loaded(name)["steps"]
        for state in [bytes.fromhex(step["state"])]
        for at in range(62, len(state), 33)
    ]
    assert len(set(points)) == len(points)


@EACH_LIFE
def test_bad_states_and_reports_are_refused(name):
    vector = loaded(name)
    task = Task.read(vector["task"].encode(), bytes.fromhex(vector["signer"]))
    for bad in vector["refused_states"]:
        kept = Kept(bytes.fromhex(bad["state"]))
        with pytest.raises(InputError):
            Device(task, kept)
        assert kept.state.hex() == bad["state"]
    if "secret" in vector["secrets"]:
        key = DecryptionKey.from_bytes(bytes.fromhex(vector["secrets"]["secret"]))
        for bad in vector["refused_reports"]:
            with pytest.raises(InputError):
                Collector(task, key).add(bytes.fromhex(bad["report"]))
    for bad in vector["refused_reports"]:
        if bad["why"] != "point":
            with pytest.raises(InputError):
                Report.read(bytes.fromhex(bad["report"]), task)


@EACH_LIFE
def test_a_report_that_comes_again_counts_once(name):
    vector = loaded(name)
    if "secret" in vector["secrets"]:
        task = Task.read(vector["task"].encode(), bytes.fromhex(vector["signer"]))
        key = DecryptionKey.from_bytes(bytes.fromhex(vector["secrets"]["secret"]))
        collector, report = Collector(task, key), bytes.fromhex(vector["steps"][-1]["report"])
        collector.add(report)
        with pytest.raises(ReplayError):
            collector.add(report)
        assert len(collector) == 1


def test_tasks():
    vector = loaded("tasks.json")
    signer = bytes.fromhex(vector["signer"])
    for good in vector["good"]:
        assert Task.read(good["file"].encode(), signer).digest.hex() == good["digest"]
    for bad in vector["refused"]:
        with pytest.raises((InputError, PlanError)):
            Task.read(bad["file"].encode(), signer)


def test_points():
    vector = loaded("points.json")
    for good in vector["embedded"]:
        payload, point = bytes.fromhex(good["payload"]), bytes.fromhex(good["point"])
        assert embed(payload) == point
        assert extract(point) == payload
    for bad in vector["refused"]:
        with pytest.raises(PanPrivacyError):
            EncryptionKey(bytes.fromhex(bad["point"]))


def test_the_page_has_the_sizes_of_the_code():
    said = {int(found.replace(",", "")) for found in re.findall(r"\b[\d,]*\d\b", PAGE)}
    assert {CIPHERTEXT_BYTES, SHARED_BYTES, MOST_TASK, 62, 53, 2**31} <= said
    assert f"version {VERSION}" in PAGE


def test_the_page_has_the_codes_of_the_leader():
    """All that a leader gives, by the names that its source has."""
    sources = [Path(one.__file__).read_text() for one in (leader, leader_store)]
    given = set(re.findall(r"ReportError\.([A-Z_]+)", "".join(sources)))
    table = PAGE.split("| code |")[1].split("\n\n")[0]
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert {ReportError[name].value for name in given} == codes


def test_the_page_names_each_file_of_vectors():
    assert {name for name in FILES if f"`{name}`" not in PAGE} == set()
