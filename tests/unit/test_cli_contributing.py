"""What `run --contribute` writes, and where it does not."""

from __future__ import annotations

import json
from fractions import Fraction
from unittest import mock

import pytest

from panprivacy.cli.contributing import Contributing, ContributionFile
from panprivacy.cli.output import Printed
from panprivacy.intake.programs.counting import make_counting
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.statistics.release import Answers
from panprivacy.statistics.specification import Specification
from tests.commands import run_command
from tests.unit.test_cli_merge import STAT, contribute, merge, parts_of, refused


def test_a_contribution_that_cannot_be_written_is_lost_and_leaves_no_file(shards, keys, tmp_path):
    part = tmp_path / "x.part"
    words = shards[0], "--user", "who", "--epsilon", 4, "--stat", STAT
    given = "--contribute", part, "--recipient", keys[1]
    with mock.patch("panprivacy.ground.files.os.fsync", side_effect=OSError(28, "No space left")):
        assert "No space left" in refused(run_command("run", *words, *given))
    assert [one.name for one in tmp_path.iterdir() if "part" in one.name] == []


def test_a_contribution_says_what_it_is_in_json(shards, keys):
    part, said = contribute(shards[0], keys, "--json")
    document = json.loads(said.stdout)
    assert (document["contributed"], document["epsilon"], document["unseen"]) == (str(part), 4, 4)
    assert document["conditions"] == ["who opens the contribution has had that look"]


def test_a_contribution_that_a_signal_ended_says_so_in_json(capsys, tmp_path):
    said = Printed(Answers([]), Guarantee(Fraction(4)), 8, 0.95, interrupted=True)
    counting = mock.Mock(spec=["internals"])
    given = ContributionFile(tmp_path / "x", "age1", None)
    Contributing(counting, given, 0.95).shows(as_json=True)(said)
    assert json.loads(capsys.readouterr().out)["interrupted"] is True


def test_what_was_cut_short_does_not_look_complete(shards, keys):
    """The reason of a run that ended early is in what it has sealed."""
    parts = parts_of(shards[:2], keys)
    part = shards[2].with_suffix(".part")
    counting = make_counting([Specification.from_text(STAT)], epsilon=Fraction(4))
    contributing = Contributing(counting, ContributionFile(part, keys[1], None), 0.95)
    list(contributing.last(complete=False))
    result = merge([*parts, part], keys, "--json")
    assert json.loads(result.stdout)["interrupted"] is True
    assert "panprivacy: contribution 3 is not complete" in result.stderr
    assert "contribution 1 is" not in result.stderr


def test_what_was_not_does(shards, keys):
    result = merge(parts_of(shards, keys), keys, "--json")
    assert "interrupted" not in json.loads(result.stdout)
    assert "not complete" not in result.stderr


@pytest.mark.parametrize("left", [b"", b"age-encryption.org/v1\n-> X2551"])
def test_what_a_killed_shard_has_left_needs_nobody(shards, keys, left):
    shards[0].with_suffix(".part.new").write_bytes(left)
    part, _ = contribute(shards[0], keys)
    assert part.read_bytes().startswith(b"age-encryption")
    assert not part.with_name(f"{part.name}.new").exists()


def test_what_somebody_wrote_there_is_left_alone(shards, keys):
    fresh = shards[0].with_suffix(".part.new")
    fresh.write_text("a letter")
    words = shards[0], "--user", "who", "--epsilon", 4, "--stat", STAT
    given = "--contribute", shards[0].with_suffix(".part"), "--recipient", keys[1]
    assert f"there is a file {fresh} already" in refused(run_command("run", *words, *given))
    assert fresh.read_text() == "a letter"
