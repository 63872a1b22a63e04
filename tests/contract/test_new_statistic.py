"""A new statistic is what it declares, and a line in the catalogue: every program takes it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

from panprivacy.audit.subject import Row
from panprivacy.audit.suite.products import products
from panprivacy.service.config.loading import load
from panprivacy.service.config.template import configuration
from panprivacy.service.config.tokens import Role
from panprivacy.service.outgoing.store import ReleaseStore
from panprivacy.service.stream import Stream
from panprivacy.statistics import catalogue
from panprivacy.statistics.cases import Short, Trial, Walk
from panprivacy.statistics.count_plan import CountPlan
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.density.decoder import DensityModel
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.records import Sizes, integer
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.cells.bits import BitCells
from panprivacy.tables.decoders.intervals import EstimateModel
from panprivacy.tables.planning.bits import best_split
from tests.commands import run_command

# The new statistic begins here.


@dataclass(frozen=True)
class AbsentModel(EstimateModel):
    """The number of users that are missing."""

    share: DensityModel

    def estimate(self, ones):
        return self.share.universe * (1 - self.share.estimate(ones))

    def deviation(self, truth):
        return self.share.universe * self.share.deviation(1 - truth / self.share.universe)

    def output_share(self, truth):
        return self.share.output_share(1 - truth / self.share.universe)

    def interval(self, estimate, confidence):
        low, high = self.share.interval(1 - estimate / self.share.universe, confidence)
        return self.share.universe * (1 - high), self.share.universe * (1 - low)


@dataclass(frozen=True, slots=True)
class AbsentPlan(CountPlan):
    """A bit for each of so many members."""

    members: int
    request: object
    split: object

    proofs, checks = ("bits", "releases"), ("exact/test_exact",)
    question, unit, measure = "how many members never came?", "members", "the members"
    name = Name("", "absent")

    @property
    def cells(self):
        return self.members

    @property
    def numbered(self):
        return self.members

    @property
    def table(self):
        return BitCells(self.members, self.split.budget.state, self.request.intrusions)

    def check_deltas(self, deltas):
        refuse_deltas(deltas < 1, "delta must be at least 1: nobody leaves")

    def model(self, epoch):
        contrast, noise = float(self.table.contrast(epoch)), self.split.noise_variance
        return AbsentModel(DensityModel(self.members, self.members, contrast, noise))

    @property
    def largest(self):
        return float(self.members)

    def truth(self, name, states, last):
        return float(self.members - len(states))

    def synthetic_users(self, answer):
        return self.members - answer, 1


class AbsentSizes(Sizes, frozen=True, tag="absent"):
    """The number of members that never came."""

    members: Annotated[int, integer("how many members there are: ids 0 to N-1", 1 << 20)]

    def plan(self, request):
        return AbsentPlan(self.members, request, best_split(request, self.members))


class Absent(Statistic[AbsentPlan, Release]):
    """How many members never came?"""

    __slots__ = ()
    entry = CatalogueEntry(
        AbsentSizes,
        trials=(Trial("absent", {"members": 50_021}, {"members": 3}, refused=(0, -1)),),
        walks=(Walk("absent", "two members, a release", {"members": 2}, [Short([[0], [1]], 2)]),),
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests():
    """The line in the catalogue, for a run of the suite that takes this file as a plugin."""
    catalogue.KINDS.append(Absent)


# Here it ends.

CAME = 3_000


@pytest.fixture
def listed(monkeypatch):
    """The line in the catalogue."""
    monkeypatch.setattr(catalogue, "KINDS", [*catalogue.KINDS, Absent])


@pytest.fixture
def visits(tmp_path):
    """A file in which 3,000 of 10,000 members come."""
    path = tmp_path / "visits.csv"
    path.write_text("member\n" + "\n".join(map(str, range(CAME))) + "\n")
    return path


SPECIFICATION = "absent,members=10_000"


def test_it_is_written_in_less_than_80_lines():
    source = Path(__file__).read_text().split("# The new statistic begins here.")[1]
    lines = source.split("# Here it ends.")[0].splitlines()
    assert sum(bool(line.strip()) for line in lines) < 80


@pytest.mark.long
def test_run_counts_it_and_a_demonstration_shows_the_truth_and_a_picture(listed, visits, tmp_path):
    picture = tmp_path / "absent.png"
    arguments = (visits, "--user", "member", "--stat", SPECIFICATION, "--epsilon", 4)
    result = run_command("run", *arguments, "--demo", "--plot", picture)
    assert result.code == 0, result.stderr
    row = next(line for line in result.stdout.splitlines() if line.startswith("absent"))
    answer, truth = row.split()[1], row.split()[-1]
    assert truth == "7,000"
    assert abs(int(answer.replace(",", "")) - 7_000) < 700
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_plan_and_stats_show_it(listed):
    planned = run_command("plan", SPECIFICATION, "--epsilon", 1)
    assert "how many members never came?" in planned.stdout
    assert "±" in planned.stdout
    assert "members=N" in run_command("stats", "absent").stdout
    refused = run_command("plan", "absent", "--epsilon", 1)
    assert (refused.code, refused.stdout) == (2, "")
    assert "absent needs members=: how many members there are" in refused.stderr


def test_answers_that_are_noise_are_refused_with_what_would_do(listed, visits):
    arguments = (visits, "--user", "member", "--stat", "absent,members=20", "--epsilon", "0.1")
    refused = run_command("run", *arguments)
    assert refused.code == 2
    assert "times the members: the answer would be noise; epsilon" in refused.stderr


def test_explain_reads_its_state(listed, tmp_path):
    seized = tmp_path / "seized.state"
    seized.write_bytes(Absent(members=100, epsilon=1).state())
    page = run_command("explain", seized)
    assert page.code == 0, page.stderr
    assert "how many members never came?" in page.stdout
    assert "100 (how many members there are" in page.stdout


def test_the_service_counts_it_and_the_store_has_its_rows(listed, tmp_path):

    file = tmp_path / "service.toml"
    file.write_text(
        '[streams.club]\nepsilon = 4\nwindow = "1d"\nids = "integers"\n'
        '[[streams.club.stat]]\nname = "absent"\nmembers = 10_000\nas = "stayed_away"\n'
    )
    config = load(file).streams["club"]
    store = ReleaseStore(f"sqlite:///{tmp_path / 'releases.sqlite'}")
    stream = Stream("club", config, store, clock=datetime(2026, 11, 16, 9, tzinfo=UTC).timestamp)
    stream.close()
    (row,) = store.answers()
    assert (row.statistic, row.question, row.arguments) == ("stayed_away", "absent", "")
    assert 9_000 < row.low <= row.value <= row.high < 11_000
    store.close()


def test_the_template_of_the_service_has_its_table(listed):

    text = configuration("visits", None, dict.fromkeys(Role, "0" * 64))
    assert '#name = "absent"\n#members = ' in text


def test_the_exact_audit_walks_it(listed):

    subject = next(one for one in products(Fraction(1)) if one.name == "absent")
    row = Row(subject, subject.losses())
    assert row.holds
    assert 0.5 < float(row.losses["add_remove"]) <= 1


@pytest.mark.long
def test_the_contract_suite_takes_it():
    plugin = "tests.contract.test_new_statistic"
    chosen = ["-k", "absent", "-p", plugin, "-p", "no:cacheprovider", "-q", "-n", "0"]
    suite = [f"tests/contract/test_{name}.py" for name in ("contract", "declared_state", "resume")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *suite, *chosen],
        capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4_000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 30


def test_its_constructor_and_its_help_tell_its_sizes():
    with pytest.raises(ValueError, match="absent needs members=: how many members"):
        Absent(epsilon=1)
    with pytest.raises(ValueError, match=r"absent has no member=: did you mean members=\?"):
        Absent(epsilon=1, member=3)
    assert "members (int): how many members there are" in Absent.__doc__
    away = Absent(members=1_000, epsilon=8)
    away.update(np.arange(400))
    answer = away.release(confidence=1 - 1e-9)
    assert 500 < answer.low <= 600 <= answer.high < 700
