"""A device, which observes a bit a tick and keeps nothing that it could open itself.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, section 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from panprivacy.devices.federated.messages import REPORT_ID_BYTES, DeviceState, Report
from panprivacy.devices.federated.storage import Storage
from panprivacy.devices.federated.task import Task
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.errors import InputError, PlanError
from panprivacy.ground.hygiene.wiping import wipe_traces
from panprivacy.privacy.coins import SecretCoins, SystemCoins

if TYPE_CHECKING:
    from panprivacy.devices.federated.elgamal import Encryption


class Device:
    """Observes a bit at each tick of a task, and reports once, at the end.

    Guarantee: an intruder who sees the report, and the storage and the memory between ticks, any
    number of times, learns nothing of the observations without the secret key, if the decisional
    Diffie-Hellman problem is hard: for any two inputs as many bytes are written as often, and all
    ciphertexts are fresh at every tick. The holder of the secret key learns from the report what
    `task.promise` says. [docs/guarantees/devices.md, tests/unit/test_device.py]

    Memory is wiped as far as Python lets it be: start the program by the launcher, which has the
    rest overwritten when it is freed. Ticks take the same steps whatever is observed; who can
    measure caches during a tick is beyond the guarantee.

    Args:
        task: what to observe, from `Task.read`.
        storage: where the state is kept. If it holds a state of this task, the device goes on from
            there; a crash loses the tick in progress at most. Give each device one of its own.
        encryption: stands in for the key of the task, for tests and the audit.
        coins: stands in for the system's, likewise.

    Raises:
        InputError: the state is damaged, of another version, or of another task that has not been
            reported; or the key of the task is none. Nothing was changed.
        OSError: the storage cannot be read or written.
    """

    __slots__ = ("_coins", "_encryption", "_state", "_storage", "_task")

    def __init__(
        self,
        task: Task,
        storage: Storage,
        *,
        encryption: Encryption | None = None,
        coins: SecretCoins | None = None,
    ) -> None:
        self._task, self._storage = task, storage
        self._encryption = encryption_of(task) if encryption is None else encryption
        self._coins = SystemCoins() if coins is None else coins
        kept = storage.read()
        found = None if kept is None else self._resumed(DeviceState.read(kept))
        self._state = self._begun() if found is None else found

    def _resumed(self, state: DeviceState) -> DeviceState | None:
        """Return a state to go on from; None for one of another task that is over."""
        if state.task != self._task.digest:
            if state.done:
                return None
            message = "the storage holds a state of another task, which has not been reported: "
            message += "give each device a storage of its own, or remove it"
            raise InputError(message)
        kind = self._task.kind
        width = kind.answers if state.done else kind.width
        length = width * self._encryption.entry_bytes
        if state.tick > self._task.horizon or len(state.row) != length:
            message = "the state is damaged: remove it, and begin anew"
            raise InputError(message)
        self._encryption.check(state.row)
        return state

    def _begun(self) -> DeviceState:
        """Return the state before the first tick.

        The report has its id from here on: if an old file is put back, a second report has the
        same one, and the collector refuses it.
        """
        row = self._task.kind.initial(self._encryption, self._coins)
        name = self._coins.key(REPORT_ID_BYTES)
        return self._stored(DeviceState(self._task.digest, done=False, tick=0, name=name, row=row))

    def _stored(self, state: DeviceState) -> DeviceState:
        """Return the state, once it is in the storage; what led to it is wiped."""
        self._storage.write(bytes(state))
        wipe_traces()
        return state

    @property
    def task(self) -> Task:
        """Task of the device."""
        return self._task

    @property
    def tick(self) -> int:
        """Number of completed ticks; public."""
        return self._state.tick

    @property
    def reported(self) -> bool:
        """Whether the report was made."""
        return self._state.done

    def observe(self, event: bool) -> None:  # noqa: FBT001 - the one thing that it takes
        """End a tick: call it once a tick, with an event or without.

        When it returns, the new state is kept. The row of either case is computed, one is taken,
        and every ciphertext of it is re-randomised.

        Args:
            event: whether there was one in this tick.

        Raises:
            PlanError: it is neither True nor False, all ticks are over, the storage is closed, or
                another program may have it open. Nothing was changed.
            OSError: the state cannot be written; it is as it was. Where the storage closed itself,
                that is not known: open it again, and `tick` says how many are over.
        """
        bit = _bit(event)
        state, kind = self._state, self._task.kind
        if state.done or state.tick == self._task.horizon:
            message = f"all {self._task.horizon:,} ticks of the task are over: report, and begin "
            message += "another task"
            raise PlanError(message)
        rows = state.row, kind.after_event(state.row, self._encryption, self._coins)
        row = self._encryption.rerandomise(rows[bit], self._coins)
        self._state = self._stored(state._replace(tick=state.tick + 1, row=row))

    def report(self) -> bytes:
        """Return the report, at the end: it is made once, and takes the place of the state.

        It is kept before it is returned. Asked again, also after a crash, it is the same bytes, so
        that it can be sent until it has arrived. The storage may then serve another task.

        Raises:
            PlanError: ticks are missing, or as for `observe`. Nothing was changed.
            OSError: as for `observe`.
        """
        state, task = self._state, self._task
        if not state.done:
            if state.tick < task.horizon:
                message = f"{state.tick:,} of {task.horizon:,} ticks are over: observe the others, "
                message += "with False where nothing was seen, and report then"
                raise PlanError(message)
            row = task.kind.reported(state.row, self._encryption, self._coins)
            self._state = state = self._stored(state._replace(done=True, row=row))
        return Report(state.name, state.row).to_bytes(task)


def _bit(event: object) -> int:
    if not isinstance(event, (bool, np.bool_)):
        message = "observe takes True or False: whether there was an event in this tick"
        raise PlanError(message)
    return int(event)


def encryption_of(task: Task) -> Encryption:
    """Return the encryption of the devices.

    Raises:
        InputError: a key of the task is invalid.
    """
    from panprivacy.devices.federated.elgamal import EncryptionKey  # noqa: PLC0415 - an extra
    from panprivacy.devices.federated.shares import Sharing  # noqa: PLC0415

    if isinstance(task.key, TwoServers):
        return Sharing(task.context, task.key)
    return EncryptionKey(bytes.fromhex(task.key))
