"""What somebody with the secret key learns of a device whose old file was put back."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest

from panprivacy.audit import RELEASE, exact_loss
from panprivacy.audit.ideal import KEY, AuditedDevice, Decrypted
from panprivacy.errors import InputError
from panprivacy.federated.collector import Collector
from panprivacy.federated.device import Device
from panprivacy.federated.messages import Report
from panprivacy.federated.promise import Promise
from panprivacy.federated.task import CountNonZero, Histogram, Task

ONE = Promise(epsilon=Fraction(1))
KINDS = {"count": CountNonZero.planned(ONE), "histogram": Histogram.planned(ONE, most=1)}


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def task_of(kind):
    return Task(version=1, id="00" * 16, kind=kind, promise=ONE, horizon=1, key=KEY.hex())


class PutBack(AuditedDevice):
    """After each report the file that was there before it is put back, and asked again."""

    def __init__(self, coins, task, times):
        super().__init__(coins, task)
        self._coins, self._times = coins, times
        self._counts = ()

    def reports(self):
        before = self._storage.state
        for _ in range(self._times):
            self._storage.state = before
            device = Device(self._task, self._storage, encryption=self._key, coins=self._coins)
            yield device.report()

    def release(self):
        rows = [Report.read(report, self._task).row for report in self.reports()]
        read = [self._task.kind.read(row, self._key, 1)[0] for row in rows]
        return Decrypted(tuple(int(one) for row in read for one in row))


class Counted(PutBack):
    """A collector takes what comes, and only its answer is seen."""

    def release(self):
        collector = Collector(self._task, self._key)
        for report in self.reports():
            with suppress(InputError):  # of the same id
                collector.add(report)
        return Decrypted(collector.release().counts)


TRIED = [("count", 1), ("count", 3), ("histogram", 1)]


@pytest.mark.parametrize(("kind", "times"), [*TRIED, slow("histogram", 2)])
def test_each_report_of_one_id_costs_the_promise_once_more(kind, times):
    """Claim 5: whoever has the key and saw them all, also those that were refused."""
    task = task_of(KINDS[kind])
    found = exact_loss(lambda coins: PutBack(coins, task, times), [[0], RELEASE], [[], RELEASE])
    assert float(found) == pytest.approx(times, rel=2e-3)
    assert found.within(times)


@pytest.mark.parametrize("kind", ["count", slow("histogram")])
def test_an_answer_has_one_of_them_and_costs_the_promise_once(kind):
    task = task_of(KINDS[kind])
    found = exact_loss(lambda coins: Counted(coins, task, 2), [[0], RELEASE], [[], RELEASE])
    assert float(found) == pytest.approx(1, rel=2e-3)
    assert found.within(1)
