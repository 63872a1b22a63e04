"""A task: signed, canonical, and refused in one line if it is anything else."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import KINDS, Task

SIGNING = Ed25519PrivateKey.generate()
SIGNER = SIGNING.public_key().public_bytes_raw()
ONE = Promise(epsilon=Fraction(1, 3))
LARGE = Promise(epsilon=Fraction(1), delta=Fraction(1, 10**6), devices=1_000)
ALL = [
    (CountNonZero.planned(ONE), ONE),
    (DeviceHistogram.planned(ONE, most=4), ONE),
    (Mean.planned(LARGE, most=4), LARGE),
]


def made(kind=ALL[0][0], promise=ONE):
    return Task.new(kind, promise, horizon=30, key=b"\x02" + bytes(32))


TASK = made()
DOCUMENT = json.loads(TASK.signed(SIGNING))


def resigned(task):
    """A file with any document in place of the task, and a signature that is right."""
    plain = json.dumps(task, sort_keys=True, separators=(",", ":")).encode()
    signature = SIGNING.sign(b"panprivacy task\n" + plain).hex()
    return json.dumps({"task": task, "signature": signature}).encode()


@pytest.mark.parametrize(("kind", "promise"), ALL, ids=list(KINDS))
def test_a_task_is_read_as_it_was_written(kind, promise):
    task = made(kind, promise)
    found = Task.read(task.signed(SIGNING), SIGNER)
    assert found == task
    assert found.digest == task.digest
    assert type(found.kind) is type(kind)


def test_the_digest_is_that_of_sorted_json():
    plain = json.dumps(DOCUMENT["task"], sort_keys=True, separators=(",", ":")).encode()
    assert plain == TASK.canonical()
    assert made().digest != TASK.digest, "each has an id of its own"


def test_spaces_and_the_order_of_names_are_nothing():
    shuffled = {
        "signature": DOCUMENT["signature"],
        "task": dict(reversed(DOCUMENT["task"].items())),
    }
    assert Task.read(json.dumps(shuffled, indent=7).encode(), SIGNER) == TASK


def test_what_another_signed_is_refused():
    other = Ed25519PrivateKey.generate()
    with pytest.raises(pp.InputError, match="not signed by"):
        Task.read(TASK.signed(other), SIGNER)
    with pytest.raises(pp.InputError, match="not signed by"):
        Task.read(TASK.signed(SIGNING), other.public_key().public_bytes_raw())
    assert Task.unverified(TASK.signed(other)) == TASK


@pytest.mark.parametrize(
    "change",
    [
        {"horizon": 31},
        {"id": "00" * 16},
        {"key": "03" + "00" * 32},
        {"promise": {"epsilon": "2", "delta": "0", "devices": 1}},
    ],
)
def test_nothing_can_be_changed_without_the_signature(change):
    document = {**DOCUMENT, "task": {**DOCUMENT["task"], **change}}
    with pytest.raises(pp.InputError, match="not signed by"):
        Task.read(json.dumps(document).encode(), SIGNER)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2"),
        ({"horizon": 0}, "horizon"),
        ({"more": 1}, "unknown field"),
        ({"id": "XY" * 16}, "id"),
        ({"key": "02"}, "key"),
        ({"kind": {"kind": "median"}}, "median"),
        ({"kind": {"kind": "count-nonzero", "epsilon_0": "1/2"}}, "does not keep its promise"),
        ({"kind": {"kind": "count-nonzero", "epsilon_0": 0.25}}, "exact numbers as texts"),
        ({"kind": {"kind": "count-nonzero", "epsilon_0": "1/3", "x": 1}}, "unknown field"),
        ({"promise": {"epsilon": "-1"}}, "number"),
        ({"promise": {"epsilon": "1/3", "devices": 10**9}}, "devices"),
    ],
)
def test_a_signed_task_with_wrong_values_is_refused(change, message):
    with pytest.raises(pp.InputError, match=message) as caught:
        Task.read(resigned({**DOCUMENT["task"], **change}), SIGNER)
    assert "\n" not in str(caught.value)


def test_a_task_takes_no_work_before_its_signature_is_right():
    """Noise over ten million devices takes a while to look at: nobody can ask for that."""
    task = {**DOCUMENT["task"], "promise": {"epsilon": "1/100", "devices": 10_000_000}}
    with pytest.raises(pp.InputError, match="not signed by"):
        Task.read(json.dumps({"task": task, "signature": "00" * 64}).encode(), SIGNER)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.long
@settings(max_examples=150)
@given(data=st.binary(max_size=400) | JSON.map(lambda one: json.dumps(one).encode()))
def test_any_file_is_refused_in_one_line(data):
    with pytest.raises(pp.InputError) as caught:
        Task.read(data, SIGNER)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.long
@settings(max_examples=150)
@given(name=st.sampled_from([*DOCUMENT["task"]]), value=JSON)
def test_any_signed_value_is_refused_in_one_line_or_read(name, value):
    try:
        found = Task.read(resigned({**DOCUMENT["task"], name: value}), SIGNER)
    except pp.InputError as error:
        said = str(error)
        assert len(said.splitlines()) == 1
    else:
        assert name in {"horizon", "id", "key"}
        assert isinstance(found, Task)


def test_a_long_file_is_refused():
    with pytest.raises(pp.InputError, match="more than"):
        Task.read(b" " * 70_000 + TASK.signed(SIGNING), SIGNER)


def test_no_kind_of_less_noise_than_the_promise_can_be_made():
    with pytest.raises(pp.PlanError, match="does not keep its promise"):
        Task.new(CountNonZero(epsilon_0=Fraction(2)), ONE, horizon=1, key=bytes(33))
    printed = Mean(most=4, variance=Mean.planned(LARGE, most=4).variance / 4)
    with pytest.raises(pp.PlanError, match="does not keep its promise"):
        Task.new(printed, LARGE, horizon=1, key=bytes(33))


def test_a_file_has_64_kib_at_most():
    plain = TASK.signed(SIGNING)
    Task.read(plain + b" " * ((1 << 16) - len(plain)), SIGNER)
    with pytest.raises(pp.InputError) as refused:
        Task.read(plain + b" " * ((1 << 16) - len(plain) + 1), SIGNER)
    assert str(refused.value) == "this is no task: it has more than 65,536 bytes"


def test_a_reason_is_cut_and_printed_in_one_line():
    with pytest.raises(pp.InputError) as refused:
        Task.unverified(json.dumps({"task": {"x" * 1_000: 1}, "signature": "00" * 64}).encode())
    assert len(str(refused.value)) <= len("this is no task: ") + 200


@pytest.mark.parametrize(
    ("name", "length", "where"), [("id", 16, "task"), ("key", 33, "task"), ("signature", 64, None)]
)
def test_what_is_hexadecimal_has_its_length(name, length, where):
    good = bytes([2, *bytes(length - 1)]).hex()
    for text, taken in ((good, True), (good + "00", False), (good[:-2], False)):
        document = {**DOCUMENT, "task": dict(DOCUMENT["task"])}
        (document[where] if where else document)[name] = text
        if taken:
            Task.unverified(json.dumps(document).encode())
        else:
            with pytest.raises(pp.InputError, match=name):
                Task.unverified(json.dumps(document).encode())


def test_a_fraction_may_be_0_and_is_no_number():
    task = {**DOCUMENT["task"], "promise": {"epsilon": "1/3", "delta": "0", "devices": 1}}
    assert Task.read(resigned(task), SIGNER).promise.delta == 0
    for wrong in (0, 0.5, "-1/2", "nan"):
        task["promise"]["delta"] = wrong
        with pytest.raises(pp.InputError):
            Task.read(resigned(task), SIGNER)


def test_a_task_is_made_by_its_version_and_bound_to_its_digest():
    assert len(TASK.id) == 32
    assert len(TASK.digest) == 32
    assert TASK.context == b"dap-17" + TASK.digest
    assert TASK.entry_bytes == 66
    assert TASK.signed(SIGNING).startswith(b'{\n  "task"')
