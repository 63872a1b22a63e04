"""The vault: of two processes that are the same shard one goes on, and a kept state is kept."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

import pytest

from panprivacy.cluster import vault as vaults
from panprivacy.cluster.vault import LEASE, FencedError, Vault
from panprivacy.errors import PlanError
from panprivacy.service.outgoing.records import StoreError
from panprivacy.tables.slices import Slice
from tests.cluster.shards import KEY
from tests.service.doubles import Crash

ONE, TWO = (Slice(shard, 2, KEY) for shard in range(2))
TOLD = {"visits": {"window": 1.0}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "panprivacy.sealed"


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def vault(path, clock):
    found = Vault(path, clock)
    yield found
    found.close()


def again(vault, path):
    """What a vault finds after this one has died, and all leases with it."""
    vault.close()
    found = Vault(path, vault._clock)
    vault._clock.now += LEASE
    vault.close = found.close  # for the fixture
    return found


def test_a_shard_goes_on_from_what_it_kept(vault, path):
    first, sealed = vault.begin(ONE)
    assert sealed is None
    vault.keep(ONE, first, 1, b"a", TOLD)
    vault.keep(ONE, first, 2, b"b", TOLD)
    second, sealed = vault.begin(ONE)
    assert sealed == b"b"
    assert second > first
    third, sealed = again(vault, path).begin(ONE)
    assert (third > second, sealed) == (True, b"b")
    assert vault.begin(TWO)[1] is None
    assert path.with_name("panprivacy-1-of-2.sealed").stat().st_mode & 0o077 == 0


def test_of_two_that_are_one_shard_the_later_keeps(vault):
    first, _ = vault.begin(ONE)
    other, _ = vault.begin(TWO)
    vault.keep(ONE, first, 1, b"a", TOLD)
    second, _ = vault.begin(ONE)
    with pytest.raises(FencedError, match="1 of 2"):
        vault.keep(ONE, first, 2, b"b", {})
    assert vault.report() == {ONE: (second, TOLD)}
    vault.keep(TWO, other, 3, b"c", TOLD)
    vault.keep(ONE, second, 4, b"d", {})
    assert vault.begin(ONE)[1] == b"d"


def test_another_node_goes_on_once_the_last_process_must_have_ended(vault, clock):
    first, _ = vault.begin(ONE, "a")
    vault.keep(ONE, first, 1, b"a", TOLD)
    clock.now += LEASE - 0.1
    vault.keep(ONE, first, 2, b"b", TOLD)
    clock.now += LEASE - 0.1
    with pytest.raises(StoreError, match=r"another process may be shard 1 of 2 for 0\.1 seconds"):
        vault.begin(ONE, "b")
    with pytest.raises(FencedError):  # nor does the last one get another lease
        vault.keep(ONE, first, 3, b"c", TOLD)
    clock.now += 0.1
    second, sealed = vault.begin(ONE, "b")
    assert sealed == b"b"
    assert vault.begin(ONE, "b")[0] > second, "a node that starts another has seen the last one end"


def test_a_vault_that_starts_again_knows_no_nodes(vault, path, clock):
    first, _ = vault.begin(ONE, "a")
    vault.keep(ONE, first, 1, b"a", TOLD)
    after = again(vault, path)
    clock.now -= 0.1
    with pytest.raises(StoreError, match="another process may be"):
        after.begin(ONE, "a")
    assert after.begin(TWO, "a")[1] is None, "it has counted nothing yet"


def test_who_began_before_the_vault_died_is_refused(vault, path):
    first, _ = vault.begin(ONE)
    after = again(vault, path)
    with pytest.raises(FencedError):
        after.keep(ONE, first, 1, b"a", TOLD)
    assert after.report() == {}


def test_of_two_states_the_later_one_stays_in_whatever_order_they_come(vault):
    first, _ = vault.begin(ONE)
    vault.keep(ONE, first, 2, b"b", TOLD)
    with pytest.raises(StoreError, match="later state"):
        vault.keep(ONE, first, 1, b"a", {})
    assert vault.report() == {ONE: (first, TOLD)}
    second, sealed = vault.begin(ONE)
    assert sealed == b"b"
    vault.keep(ONE, second, 1, b"c", TOLD)


def test_it_tells_what_is_on_the_disk(vault, monkeypatch):
    first, _ = vault.begin(ONE)
    assert vault.report() == {}
    vault.keep(ONE, first, 1, b"a", TOLD)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fail(OSError(errno.ENOSPC, "")))
        with pytest.raises(StoreError, match="No space left"):
            vault.keep(ONE, first, 2, b"b", {})
    assert vault.report() == {ONE: (first, TOLD)}
    assert vault.begin(ONE)[1] == b"a"
    assert len(list(vault._path.parent.iterdir())) == 2, "the file, and the lock"


@pytest.mark.parametrize(
    ("step", "left"), [("open", b"a"), ("fsync", b"a"), ("replace", b"a"), ("close", b"b")]
)
def test_a_crash_between_steps_leaves_the_old_state_or_the_new_one(
    vault, path, monkeypatch, step, left
):
    first, _ = vault.begin(ONE)
    vault.keep(ONE, first, 1, b"a", TOLD)
    with monkeypatch.context() as broken:
        if step == "replace":
            broken.setattr(vaults.Path, "replace", fail(Crash()))
        elif step == "close":
            broken.setattr("panprivacy.ground.files.sync_names", fail(Crash()))
        else:
            broken.setattr(os, step, fail(Crash()))
        broken.setattr(vaults.Path, "unlink", fail(OSError()))  # nobody tidies up
        with suppress(Crash):
            vault.keep(ONE, first, 2, b"b", {})
    after = again(vault, path)
    assert after.found() == [(0, 2)]
    second, sealed = after.begin(ONE)
    assert sealed == left
    after.keep(ONE, second, 3, b"c", TOLD)
    assert after.begin(ONE)[1] == b"c"


def fail(error):
    def failing(*_, **__):
        raise error

    return failing


def test_one_vault_at_a_time_has_the_folder(vault, path, monkeypatch):
    monkeypatch.setattr(vaults, "_PATIENCE", 0.0)
    with pytest.raises(PlanError, match="another cluster"):
        Vault(path)
    Vault(path.with_name("other.sealed")).close()
    with pytest.raises(PlanError, match="No such file"):
        Vault(path.parent / "none" / "panprivacy.sealed")


def test_what_is_found_can_be_removed(vault, path):
    first, _ = vault.begin(ONE)
    vault.keep(ONE, first, 1, b"a", TOLD)
    path.with_name("panprivacy-12-of-40.sealed").write_bytes(b"b")
    path.with_name("panprivacy-1-of-2.sealed.new").write_bytes(b"c")
    assert vault.found() == [(0, 2), (11, 40)]
    vault.remove(0, 2)
    vault.remove(0, 2)
    assert vault.found() == [(11, 40)]
    assert not path.with_name("panprivacy-1-of-2.sealed.new").exists()
    assert vault.report() == {}
    with pytest.raises(FencedError):
        vault.keep(ONE, first, 4, b"d", TOLD)
