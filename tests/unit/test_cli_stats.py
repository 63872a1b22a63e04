"""The command `panprivacy stats`."""

from __future__ import annotations

import re

import pytest

from panprivacy.statistics.catalogue import kinds
from panprivacy.statistics.specification import Specification
from tests.commands import run_command
from tests.unit.test_cli_run import SECRET, refused


class TestStats:
    def test_what_statistics_are_is_in_one_column(self):
        lines = run_command("stats").stdout.splitlines()
        rows = [line.partition(" ") for line in lines[: len(kinds())]]
        assert len({len(name) + len(rest) - len(rest.lstrip()) for name, _, rest in rows}) == 1
        assert [name for name, _, _ in rows] == list(kinds())

    @pytest.mark.parametrize("name", kinds())
    def test_every_statistic_is_listed_and_says_how_it_is_written(self, name):
        listed = run_command("stats")
        assert listed.code == 0
        assert name in {line.split()[0] for line in listed.stdout.splitlines() if line}
        told = run_command("stats", name).stdout
        kind = kinds()[name]
        written = re.findall(r"^  (\w+)(?:=| )", told, re.MULTILINE)
        assert written == [*kind.entry.sizes.fields(), *kind.entry.query.fields()]
        assert told.count("(needed)") == sum(
            entry.required for entry in kind.entry.sizes.fields().values()
        )
        assert max(map(len, told.splitlines())) <= 100

    @pytest.mark.parametrize("name", kinds())
    def test_its_example_lacks_nothing(self, name):
        told = run_command("stats", name).stdout
        (example,) = re.findall(r"^  --stat (\S+)$", told, re.MULTILINE)
        text = example.replace("=N", "=2")
        assert Specification.from_text(text).kind.entry.name == name

    def test_another_name_is_refused_with_the_nearest(self):
        assert "did you mean density?" in refused("stats", "densty")
        assert "there are distinct, density" in refused("stats", SECRET)
