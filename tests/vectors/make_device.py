"""Writes the vectors of devices, tests/vectors/device/*.json: python -m tests.vectors.make_device

docs/device-format.md says what each field is. All secrets come from a hash, so that the files are
the same bytes whenever they are written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import shake_256
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from panprivacy.devices.aggregator.reports import upload
from panprivacy.devices.federated import (
    CountNonZero,
    Device,
    DeviceHistogram,
    Mean,
    Promise,
    Task,
    TwoServers,
)
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.embedding import embed
from panprivacy.devices.federated.shares import BothServers
from panprivacy.privacy.guarantee import randomised_response

FOLDER = Path(__file__).parent / "device"
BASE = bytes.fromhex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
"""The base point of secp256k1: each of its multiples is a point."""
OFF_CURVE = b"\2" + bytes(31) + b"\5"
"""There is no y for this x."""


@dataclass
class ListedCoins:
    """Coins from a hash of a name, which list what they have drawn.

    Args:
        name: two names give other coins.
        drawn: one object for each draw, as the vectors have it.
    """

    name: str
    drawn: list = field(default_factory=list)
    calls: int = 0

    def _bytes(self, nbytes):
        self.calls += 1
        return shake_256(f"{self.name} {self.calls}".encode()).digest(nbytes)

    def secret(self, nbytes):
        """Bytes for nonces, shares and proofs."""
        found = self._bytes(nbytes)
        self.drawn.append({"secret": found.hex()})
        return found

    def key(self, nbytes):
        """Bytes that need not stay secret: the id of a report."""
        found = self._bytes(nbytes)
        self.drawn.append({"id": found.hex()})
        return found

    def bernoulli(self, probability, size):
        """Bits of about this probability: a vector says what came up."""
        bits = [int(byte < 256 * probability) for byte in self._bytes(size)]
        self.drawn.append({"bernoulli": str(probability), "bits": bits})
        return np.array(bits, np.uint8)

    def discrete_gaussian(self, variance, size):
        """Numbers of both signs."""
        numbers = [byte % 7 - 3 for byte in self._bytes(size)]
        self.drawn.append({"discrete_gaussian": str(variance), "numbers": numbers})
        return np.array(numbers, np.int64)

    def listed(self):
        """What was drawn since this was asked last."""
        found, self.drawn = self.drawn, []
        return found


class Kept:
    """Storage in memory."""

    def __init__(self, state=None):
        self.state = state

    def read(self):
        """The last state."""
        return self.state

    def write(self, state):
        """Keep a state."""
        self.state = state


def secret_of(name):
    """A secret key, and its 32 bytes."""
    return DecryptionKey.generate(ListedCoins(name))


def signer_of(name="signer"):
    """A key that signs tasks."""
    return Ed25519PrivateKey.from_private_bytes(shake_256(name.encode()).digest(32))


def trusted(signer=None):
    """The public key that devices trust."""
    return (signer or signer_of()).public_key().public_bytes_raw()


PROMISE = Promise(epsilon=Fraction(1))
KINDS = {
    "count-nonzero": (CountNonZero.planned(PROMISE), PROMISE),
    "histogram": (DeviceHistogram.planned(PROMISE, most=2), PROMISE),
    "mean": (
        Mean(most=3, variance=Fraction(400)),
        Promise(epsilon=Fraction(2), delta=Fraction(1, 10**6), devices=10),
    ),
}
SERVERS = ("one", "none", "one-server")


def key_of(servers):
    """The key of a task, and the secrets that open it."""
    if servers == "one":
        key = secret_of("collector")
        return bytes(key.public), {"secret": bytes(key).hex()}
    leader, helper = secret_of("leader"), secret_of("helper")
    both = TwoServers(
        leader=bytes(leader.public).hex(),
        helper=bytes(helper.public).hex(),
        collusion=servers,
        batch=2,
    )
    return both, {"leader": bytes(leader).hex(), "helper": bytes(helper).hex()}


def task_of(kind, servers, horizon=3, name="task"):
    """A task."""
    statistic, promise = KINDS[kind]
    to, _ = key_of(servers)
    coins = ListedCoins(f"{name} {kind} {servers}")
    return Task.new(statistic, promise, horizon=horizon, key=to, coins=coins)


def opened(task, row, secrets):
    """The values in a row of ciphertexts."""
    if "leader" in secrets:
        leader, helper = (
            DecryptionKey.from_bytes(bytes.fromhex(secrets[name])) for name in ("leader", "helper")
        )
        return BothServers(task.context, task.key, leader, helper).bits(row).tolist()
    key = DecryptionKey.from_bytes(bytes.fromhex(secrets["secret"]))
    return key.small_sums(row, -1_000, 1_000).tolist()


STATE_FRONT, REPORT_FRONT = 62, 53


def life(kind, servers, events):
    """A whole life of a device, step by step."""
    task = task_of(kind, servers, len(events))
    _, secrets = key_of(servers)
    coins, kept, steps = ListedCoins(f"device {kind} {servers} {events}"), Kept(), []

    def add(**step):
        row = kept.state[STATE_FRONT:]
        steps.append(
            {
                **step,
                "draws": coins.listed(),
                "state": kept.state.hex(),
                "opens": opened(task, row, secrets),
            }
        )

    device = Device(task, kept, coins=coins)
    add(do="begin")
    for event in events:
        device.observe(event)
        add(do="observe", event=event)
    report = device.report()
    add(do="report")
    steps[-1]["report"] = report.hex()
    if servers != "one":
        steps[-1]["upload"] = upload([report], task).hex()
    return {
        "task": task.signed(signer_of()).decode(),
        "signer": trusted().hex(),
        "canonical": task.canonical().decode(),
        "digest": task.digest.hex(),
        "secrets": secrets,
        "steps": steps,
        "refused_states": bad_states(task, bytes.fromhex(steps[1]["state"])),
        "refused_reports": bad_reports(report),
    }


def bad_states(task, state):
    """States from which a device of this task does not go on."""
    other = bytes(32)
    size = task.entry_bytes
    changed = {
        "magic": b"PPDX" + state[4:],
        "version": state[:4] + b"\2" + state[5:],
        "task": state[:5] + other + state[37:],
        "done": state[:37] + b"\2" + state[38:],
        "tick": state[:38] + (task.horizon + 1).to_bytes(8, "little") + state[46:],
        "length": state[:-size],
        "one byte": state[:-1],
        "empty": b"",
        "prefix": state[:STATE_FRONT] + b"\4" + state[STATE_FRONT + 1 :],
        "point": state[:STATE_FRONT] + OFF_CURVE + state[STATE_FRONT + 33 :],
        "second point": state[: STATE_FRONT + 33] + OFF_CURVE + state[STATE_FRONT + 66 :],
    }
    return [{"why": why, "state": data.hex()} for why, data in changed.items()]


def bad_reports(report):
    """Reports that a collector does not take."""
    changed = {
        "magic": b"PPDS" + report[4:],
        "version": report[:4] + b"\2" + report[5:],
        "task": report[:5] + bytes(32) + report[37:],
        "length": report[:-1],
        "point": report[:REPORT_FRONT] + OFF_CURVE + report[REPORT_FRONT + 33 :],
    }
    return [{"why": why, "report": data.hex()} for why, data in changed.items()]


def signed_file(document):
    """A file of a task as another program may sign it, with the author's key."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    signature = signer_of().sign(b"panprivacy task\n" + canonical).hex()
    return json.dumps({"task": document, "signature": signature})


def bad_tasks():
    """Files that no device takes as a task, from a good one."""
    task = task_of("count-nonzero", "one")
    file = task.signed(signer_of()).decode()
    plain = json.loads(file)["task"]

    def signed(**changes):
        return signed_file({**plain, **changes})

    kind = plain["kind"]
    both, _ = key_of("one-server")
    one_key = {"leader": both.leader, "helper": both.leader, "collusion": "none", "batch": 2}
    files = {
        "signature of another": task.signed(signer_of("another")).decode(),
        "horizon changed": file.replace('"horizon": 3', '"horizon": 4'),
        "no JSON": file[:-3],
        "a number with a fraction": file.replace('"horizon": 3', '"horizon": 3.0'),
        "a number with an exponent": file.replace('"horizon": 3', '"horizon": 3e0'),
        "an exact number with an exponent": signed(kind={**kind, "epsilon_0": "1e-1"}),
        "an exact number without a digit before the point": signed(
            kind={**kind, "epsilon_0": ".5"}
        ),
        "an exact number with a sign": signed(kind={**kind, "epsilon_0": "+1"}),
        "an exact number with a space": signed(kind={**kind, "epsilon_0": " 1"}),
        "nested too deep": json.dumps(
            {"task": json.loads("[" * 500 + "]" * 500), "signature": "00"}
        ),
        "unknown field": signed(more=1),
        "missing field": json.dumps({"task": plain}),
        "version": signed(version=2),
        "short id": signed(id="00"),
        "horizon 0": signed(horizon=0),
        "horizon too large": signed(horizon=2**31 + 1),
        "key of 32 bytes": signed(key="02" * 32),
        "unknown kind": signed(kind={**kind, "kind": "median"}),
        "number that is no text": signed(kind={**kind, "epsilon_0": 1}),
        "noise below the promise": signed(kind={**kind, "epsilon_0": "1001/1000"}),
        "epsilon 0": signed(promise={**plain["promise"], "epsilon": "0"}),
        "delta 1": signed(promise={**plain["promise"], "delta": "1"}),
        "the same key twice": signed(key=one_key),
        "batch below the devices": signed(
            key={**one_key, "helper": both.helper, "batch": 1},
            promise={**plain["promise"], "devices": 2},
        ),
        "mean with two servers": signed(
            kind={"kind": "mean", "most": 3, "variance": "400"},
            promise={"epsilon": "2", "delta": "1/1000000", "devices": 2},
            key={**one_key, "helper": both.helper},
        ),
    }
    return [{"why": why, "file": data} for why, data in files.items()]


EPSILONS = ("1/1000000", "1/1024", "1/3", "1/2", "1", "7/5", "10", "40", "44", "45", "64", "100")
"""From nearly a fair coin to where the grid of 2**-64 and the largest exponent bind."""


def tasks():
    """Good files, also as another program may write them, and bad ones."""
    task = task_of("count-nonzero", "one")
    file = task.signed(signer_of()).decode()
    document = json.loads(file)
    spaced = json.dumps(document, indent=7, sort_keys=True)
    plain = document["task"]
    kind = {**plain["kind"], "epsilon_0": "2/2"}
    short = signed_file({**plain, "kind": kind, "promise": {"epsilon": "1.0"}})
    good = [file, spaced, short]
    return {
        "signer": trusted().hex(),
        "good": [{"file": one, "digest": task.digest.hex()} for one in good],
        "refused": bad_tasks(),
        "present": [
            {"epsilon": one, "probability": str(randomised_response(Fraction(one)))}
            for one in EPSILONS
        ],
    }


def points():
    """Payloads as points, and encodings that are none."""
    payloads = [b"", b"a", b"a share", bytes(30), bytes(31), bytes(range(31)), b"\xff" * 31]
    bad = {
        "prefix 4": b"\4" + BASE[1:],
        "off the curve": OFF_CURVE,
        "x too large": b"\2" + b"\xff" * 32,
        "short": BASE[:-1],
        "neutral": bytes(33),
    }
    return {
        "embedded": [{"payload": one.hex(), "point": embed(one).hex()} for one in payloads],
        "refused": [{"why": why, "point": data.hex()} for why, data in bad.items()],
    }


LIVES = [
    (kind, servers) for kind in KINDS for servers in SERVERS if kind != "mean" or servers == "one"
]


def documents():
    """Each file by its name."""
    found = {"tasks.json": tasks(), "points.json": points()}
    for kind, servers in LIVES:
        name = kind if servers == "one" else f"{kind}-{servers}"
        found[f"{name}.json"] = life(kind, servers, [True, False, True])
    found["count-nonzero-nothing.json"] = life("count-nonzero", "one", [False, False, False])
    return found


def written(document):
    """A document as it stands in its file."""
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, document in documents().items():
        (FOLDER / name).write_text(written(document))
