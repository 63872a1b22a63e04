"""A key that two servers have together: what it encrypts neither of them opens by itself.

The joint key of the keys K and L is `a K + b L`, with factors a and b that are hashed from both.
Each server opens with its own secret times its factor: one takes its layer off, the other opens
what is left. Without the factors, the second to choose could say `L = T - K`, where it knows the
secret of T, and would open everything by itself (a rogue key).

Reference: G. Maxwell, A. Poelstra, Y. Seurin, P. Wuille, "Simple Schnorr multi-signatures with
applications to Bitcoin", Designs, Codes and Cryptography 87 (2019), for the factors.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from panprivacy.devices.federated.elgamal import DecryptionKey, EncryptionKey
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.errors import PlanError

_DOMAIN: Final = b"panprivacy joint key\n"


def payload_keys(servers: TwoServers) -> tuple[EncryptionKey, EncryptionKey]:
    """Return the keys to which a device encrypts the shares of the leader and of the helper.

    Raises:
        InputError: a key is not a point.
    """
    names = servers.leader, servers.helper
    leader, helper = (EncryptionKey(bytes.fromhex(name)) for name in names)
    if not servers.joint:
        return leader, helper
    of_leader, of_helper = (_factor(servers, name) for name in names)
    joint = leader.times(of_leader).plus(helper.times(of_helper))
    return joint, joint


def own_key(servers: TwoServers, key: DecryptionKey) -> DecryptionKey:
    """Return the key with which a server opens its shares, and removes its layer from the others.

    Raises:
        PlanError: the secret key is that of neither server.
    """
    public = bytes(key.public).hex()
    if public not in {servers.leader, servers.helper}:
        message = "the secret key is not that of a server of the task"
        raise PlanError(message)
    return key.times(_factor(servers, public)) if servers.joint else key


def _factor(servers: TwoServers, public: str) -> int:
    """Return the factor of one of the keys."""
    hashed = _DOMAIN + bytes.fromhex(servers.leader + servers.helper + public)
    return int.from_bytes(sha256(hashed).digest(), "big")
