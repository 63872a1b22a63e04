"""The page is enough: a device that was written from it takes the steps of the vectors."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.vectors import second_device
from tests.vectors.make_device import Kept
from tests.vectors.second_device import RefusedError, SecondDevice, read_task
from tests.vectors.test_device import EACH_LIFE, Replayed, loaded


def verify(key, signature, message):
    """Whether an Ed25519 signature holds."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def task_of(vector):
    return read_task(vector["task"].encode(), bytes.fromhex(vector["signer"]), verify)


def test_it_takes_nothing_from_the_package():
    tree = ast.parse(Path(second_device.__file__).read_text())
    named = {one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    named |= {
        name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names
    }
    assert named == {"__future__", "dataclasses", "decimal", "fractions", "hashlib", "json", "re"}


@EACH_LIFE
def test_the_second_device_takes_the_steps_of_the_vectors(name):
    vector, coins, kept = loaded(name), Replayed(), Kept()
    task = task_of(vector)
    assert task.digest.hex() == vector["digest"]
    for step in vector["steps"]:
        coins.draws = list(step["draws"])
        device = SecondDevice(task, kept, coins)
        if step["do"] == "observe":
            device.observe(step["event"])
        elif step["do"] == "report":
            assert device.report().hex() == step["report"]
            if "upload" in step:
                assert device.upload().hex() == step["upload"]
        assert (kept.state.hex(), coins.draws) == (step["state"], [])


@EACH_LIFE
def test_the_second_device_refuses_bad_states(name):
    vector = loaded(name)
    for bad in vector["refused_states"]:
        with pytest.raises(RefusedError):
            SecondDevice(task_of(vector), Kept(bytes.fromhex(bad["state"])), Replayed())


def test_the_second_device_reads_tasks():
    vector = loaded("tasks.json")
    signer = bytes.fromhex(vector["signer"])
    for good in vector["good"]:
        assert read_task(good["file"].encode(), signer, verify).digest.hex() == good["digest"]
    for bad in vector["refused"]:
        with pytest.raises(RefusedError):
            read_task(bad["file"].encode(), signer, verify)


def test_the_second_device_has_the_probabilities_of_reports():
    listed = {
        Fraction(one["epsilon"]): one["probability"] for one in loaded("tasks.json")["present"]
    }
    assert {one: str(second_device.present(one)) for one in listed} == listed
    assert len(set(listed.values())) == len(listed) - 2, "from 45 on it is the last of the grid"


def test_the_second_device_embeds_payloads():
    vector = loaded("points.json")
    for good in vector["embedded"]:
        assert second_device.embed(bytes.fromhex(good["payload"])).hex() == good["point"]
    for bad in vector["refused"]:
        with pytest.raises(RefusedError):
            second_device.decode(bytes.fromhex(bad["point"]))
