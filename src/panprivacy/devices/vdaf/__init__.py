"""Prio3Count: two servers add up bits that neither of them sees.

A device splits its bit, 0 or 1, into two shares. Each looks random by itself, and their sum is the
bit.
>>> from panprivacy.privacy.coins import SystemCoins
>>> from panprivacy.devices.vdaf import Prio3Count, aggregate, unshard
>>> coins, bits = SystemCoins(), [1, 0, 1]
>>> prio = Prio3Count(b"visits of May")
>>> leader, helper = prio.shard(bits, coins.secret(len(bits) * prio.RANDOM_BYTES))

Each server has its own share of all reports, their nonces, and the key that both agreed on:

>>> key, nonces = coins.secret(prio.VERIFY_KEY_BYTES), coins.key(len(bits) * prio.NONCE_BYTES)
>>> one = prio.verify_leader(key, nonces, leader)
>>> other = prio.verify_helper(key, nonces, helper)
>>> accepted = prio.decide(one.verifiers, other.verifiers)
>>> accepted.tolist()
[True, True, True]
>>> unshard(aggregate(one.outputs, accepted), aggregate(other.outputs, accepted))
2

| step of the draft | here |
|---|---|
| `shard` | `shard` |
| `verify_init` | `verify_leader`, `verify_helper` |
| `verifier_shares_to_message`, `verify_next` | `decide`: the message is empty |
| `aggregate` | `aggregate` |
| `unshard` | `unshard`, which also reads sums below 0 |

Everything is done for many reports at once, which are the rows of plain `bytes`; one is a row.

Reference: draft-irtf-cfrg-vdaf-18. It needs the extra `federated`.
"""

from panprivacy.devices.vdaf.field64 import MODULUS
from panprivacy.devices.vdaf.prio3count import Prio3Count, Verification, aggregate, unshard

__all__ = ["MODULUS", "Prio3Count", "Verification", "aggregate", "unshard"]
