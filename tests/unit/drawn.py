"""Coins whose secrets are given."""

from __future__ import annotations

from panprivacy.privacy.coins import SystemCoins


class Scripted(SystemCoins):
    """Gives these secrets, in order, and checks that as many bytes are asked for."""

    __slots__ = ("_left",)

    def __init__(self, *secrets):
        self._left = list(secrets)

    def secret(self, nbytes):
        given = self._left.pop(0)
        assert len(given) == nbytes
        return given

    def is_used_up(self):
        return not self._left
