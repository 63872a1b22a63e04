"""Replaying a file of test vectors of draft-irtf-cfrg-vdaf-18: its operations, in their order."""

from __future__ import annotations

from functools import partial

import numpy as np

from panprivacy.devices.vdaf import Prio3Count, aggregate, unshard, xof
from panprivacy.errors import InputError


class Count:
    """A run of Prio3Count.

    What comes in at each step is the file's. What comes out has to be the file's: of each operation
    that succeeds, and none that is to fail may succeed.
    """

    def __init__(self, vector):
        assert vector["agg_param"] == ""
        self.vector = vector
        self.prio = Prio3Count(bytes.fromhex(vector["ctx"]), vector["shares"])
        self.verified, self.accepted, self.outputs = {}, {}, {}

    def run(self):
        for operation in self.vector["operations"]:
            arguments = dict(operation)
            step, success = STEPS[arguments.pop("operation")], arguments.pop("success")
            try:
                succeeded = step(self, **arguments)
            except InputError:
                succeeded = False
            assert succeeded == success, operation

    def shard(self, report_index):
        report = self.vector["reports"][report_index]
        shares = self.prio.shard([report["measurement"]], bytes.fromhex(report["rand"]))
        assert [share.hex() for share in shares] == report["input_shares"]
        assert report["public_share"] == ""
        return True

    def verify_init(self, aggregator_id, report_index):
        report = self.vector["reports"][report_index]
        verify = self.prio.verify_leader
        if aggregator_id:
            verify = partial(self.prio.verify_helper, aggregator=aggregator_id)
        share, nonce = report["input_shares"][aggregator_id], report["nonce"]
        found = verify(*map(bytes.fromhex, (self.vector["verify_key"], nonce, share)))
        (valid,) = found.valid.tolist()
        if valid:
            assert found.verifiers.hex() == report["verifier_shares"][0][aggregator_id]
        self.verified[aggregator_id, report_index] = found
        return valid

    def verifier_shares_to_message(self, round, report_index):  # noqa: A002 - the files' name
        assert round == 0
        report = self.vector["reports"][report_index]
        (accepted,) = self.prio.decide(*map(bytes.fromhex, report["verifier_shares"][0])).tolist()
        if accepted:
            assert report["verifier_messages"] == [""]
        self.accepted[report_index] = accepted
        return accepted

    def verify_next(self, round, aggregator_id, report_index):  # noqa: A002 - the files' name
        assert round == 1
        report = self.vector["reports"][report_index]
        if not self.accepted[report_index] or report["verifier_messages"][0]:
            return False
        outputs = self.verified[aggregator_id, report_index].outputs
        assert outputs.tolist() == [element(report["out_shares"][aggregator_id])]
        self.outputs.setdefault(aggregator_id, []).append(outputs)
        return True

    def aggregate(self, aggregator_id):
        outputs = np.concatenate(self.outputs[aggregator_id])
        found = aggregate(outputs, np.ones(outputs.size, bool))
        assert found == element(self.vector["agg_shares"][aggregator_id])
        return True

    def unshard(self):
        found = unshard(*map(element, self.vector["agg_shares"]))
        assert found == self.vector["agg_result"]
        return True


STEPS = {
    step.__name__: step
    for step in (
        Count.shard,
        Count.verify_init,
        Count.verifier_shares_to_message,
        Count.verify_next,
        Count.aggregate,
        Count.unshard,
    )
}


def element(encoded):
    """A field element, as the files have it."""
    encoded = bytes.fromhex(encoded)
    assert len(encoded) == Prio3Count.SHARE_BYTES
    return int.from_bytes(encoded, "little")


FIELD_128 = 2**66 * 4611686018427387897 + 1


def replay_count(vector):
    Count(vector).run()


def replay_xof(vector):
    """The stream: its first 32 bytes, and elements of a field of which words are rarely none."""
    message = xof.absorbed(*(bytes.fromhex(vector[name]) for name in ("seed", "dst", "binder")))
    assert xof.stream(message, xof.SEED_BYTES).hex() == vector["derived_seed"]
    expanded = xof.stream(message, 16 * vector["length"])
    words = [int.from_bytes(expanded[i : i + 16], "little") for i in range(0, len(expanded), 16)]
    assert max(words) < FIELD_128
    assert expanded.hex() == vector["expanded_vec_field128"]


REPLAYS = {"Prio3Count": replay_count, "XofTurboShake128": replay_xof}
