"""A device, which observes a bit a tick and keeps nothing that it could open itself.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, section 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from panprivacy.coins import SecretCoins, SystemCoins
from panprivacy.errors import InputError, PlanError
from panprivacy.federated.messages import REPORT_ID_BYTES, Report, State
from panprivacy.federated.storage import Storage
from panprivacy.federated.task import Task
from panprivacy.federated.two_servers import TwoServers
from panprivacy.hygiene.wiping import wipe_traces

if TYPE_CHECKING:
    from panprivacy.federated.elgamal import Encryption


class Device:
    """Observes a bit at each tick of a task, and reports once, at the end.

    Guarantee: whoever sees the storage and the memory between ticks, as often as he likes, and the
    report, learns nothing of what was observed if he lacks the secret key and the decisional
    Diffie-Hellman problem is hard: for any two inputs as many bytes are written as often, and all
    ciphertexts are fresh at every tick. Whoever has the secret key and sees the report learns what
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
        found = None if kept is None else self._resumed(State.read(kept))
        self._state = self._begun() if found is None else found

    def _resumed(self, state: State) -> State | None:
        """A state to go on from; None for one of another task that is over."""
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

    def _begun(self) -> State:
        """The state before the first tick.

        The report has its id from here on: if an old file is put back, a second report has the
        same one, and the collector refuses it.
        """
        row = self._task.kind.born(self._encryption, self._coins)
        name = self._coins.key(REPORT_ID_BYTES)
        return self._kept(State(self._task.digest, done=False, tick=0, name=name, row=row))

    def _kept(self, state: State) -> State:
        """The state, once it is in the storage; what led to it is wiped."""
        self._storage.write(bytes(state))
        wipe_traces()
        return state

    @property
    def task(self) -> Task:
        """What it observes."""
        return self._task

    @property
    def tick(self) -> int:
        """How many ticks are over, which is public."""
        return self._state.tick

    @property
    def reported(self) -> bool:
        """Whether the report is made."""
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
        self._state = self._kept(state._replace(tick=state.tick + 1, row=row))

    def report(self) -> bytes:
        """The report, at the end: it is made once, and takes the place of the state.

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
            self._state = state = self._kept(state._replace(done=True, row=row))
        return Report(state.name, state.row).to_bytes(task)


def _bit(event: object) -> int:
    if not isinstance(event, (bool, np.bool_)):
        message = "observe takes True or False: whether there was an event in this tick"
        raise PlanError(message)
    return int(event)


def encryption_of(task: Task) -> Encryption:
    """What devices encrypt with.

    Raises:
        InputError: a key of the task is none.
    """
    from panprivacy.federated.elgamal import EncryptionKey  # noqa: PLC0415 - an extra
    from panprivacy.federated.shares import Sharing  # noqa: PLC0415

    if isinstance(task.key, TwoServers):
        return Sharing(task.context, task.key)
    return EncryptionKey(bytes.fromhex(task.key))
