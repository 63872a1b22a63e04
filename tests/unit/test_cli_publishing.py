"""What `run` publishes, and when."""

from __future__ import annotations

import json
import subprocess
import threading
import weakref
from fractions import Fraction

import pyarrow as pa
import pytest

from panprivacy.cli.output import json_line, print_text
from panprivacy.cli.publishing import InWindows, Schedule, Timed, publish
from panprivacy.intake.programs.counting import make_counting
from panprivacy.intake.programs.intake import Columns, Intake, Nulls
from panprivacy.intake.sources import Column
from panprivacy.statistics.specification import Specification
from tests.service.running import PLAIN, shared


@pytest.mark.parametrize(
    ("window", "windows", "number"),
    [
        (3_600, None, 8_760), (86_400, None, 365), (7 * 86_400, None, 53), (1, None, 31_536_000),
        (400 * 86_400, None, 1), (3_600, 12, 12),
    ],
)  # fmt: skip
def test_a_year_has_as_many_windows_as_begin_in_it(window, windows, number):
    def make():
        density = Specification.from_text("density,universe=100")
        return make_counting([density], epsilon=Fraction(1), releases=1)

    publisher = InWindows(make, Schedule(1, None, window, windows), 0.95)
    (printed,) = publisher.last()
    assert printed.loss.windows == number
    assert printed.loss.loss == make().guarantee.over(number)


@pytest.mark.parametrize(("covers", "seen"), [("seizure", 1), ("publication", 0)])
def test_a_window_is_said_to_be_seen_where_that_is_covered(covers, seen, capsys):
    def make():
        tables = Specification.from_text(f"overlap,expected=100,covers={covers}")
        return make_counting([tables], epsilon=Fraction(9), releases=1)

    (printed,) = InWindows(make, Schedule(1, None, 3_600, 12), 0.95).last()
    assert json.loads(json_line(printed))["loss"]["seen"] == seen
    print_text(printed)
    text = " ".join(capsys.readouterr().out.split())
    assert ("12 windows, one of them seen" in text) == bool(seen)
    assert ("12 windows, where nobody sees the state" in text) != bool(seen)


@pytest.mark.long
def test_a_pipe_is_counted_as_it_arrives_and_released_on_the_clock():
    command = [
        *PLAIN, "run", "-", "--format", "csv", "--user", "id",
        "--stat", "distinct,expected=100:1000", "--epsilon", "40", "--releases", "3",
        "--every", "1", "--json",
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        watchdog = threading.Timer(60, run.kill)
        watchdog.start()
        run.stdin.write("id\n" + "".join(f"user {n}\n" for n in range(300)))
        run.stdin.flush()
        first = json.loads(run.stdout.readline())
        run.stdin.write("".join(f"user {n}\n" for n in range(900)))
        run.stdin.close()
        rest = [json.loads(line) for line in run.stdout]
        watchdog.cancel()
    assert first["answers"][0]["value"] == pytest.approx(300, rel=0.4)
    assert rest[-1]["answers"][0]["value"] == pytest.approx(900, rel=0.4)
    assert run.returncode == 0


@pytest.mark.long
def test_the_rows_of_a_pipe_are_not_counted_on():
    """A running count of rows would be state: a row is named within its block."""
    words = [
        "run", "-", "--format", "csv", "--user", "id",
        "--stat", "distinct", "--epsilon", "1", "--releases", "2", "--every", "0.1", "--json",
    ]  # fmt: skip
    with shared().piped(words) as run:
        run.stdin.write(b"id,x\n" + b"a,1\n" * 100)
        run.stdin.flush()
        run.stdout.readline()
        run.stdin.write(b"a,1\n,2\n")
        _, message = run.communicate()
    assert run.returncode == 2
    assert b"row 2 (counting from 1)" in message
    assert b"in each block" in message


def test_a_silent_pipe_leaves_no_batch_behind():
    """Between two blocks the command holds no ids."""

    class Pipe:
        size, stopped, skips, name, counted = None, False, None, None, False

        def batches_or_ticks(self, _deadline):
            batch = pa.record_batch({"id": ["patient-4711"]})
            held.append(weakref.ref(batch))
            yield batch
            del batch
            alive.append(held[0]() is not None)

    held, alive = [], []
    counting = make_counting(
        [Specification.from_text("distinct,expected=100")], epsilon=Fraction(1)
    )
    publisher = Timed(counting, Schedule(1, None, None), 0.95, None)
    intake = Intake(Columns(Column("id")), Nulls.error)
    for _ in publish(Pipe(), intake, publisher):
        pass
    assert alive == [False]
