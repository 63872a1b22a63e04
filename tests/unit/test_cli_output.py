"""Answers as text and as JSON."""

from __future__ import annotations

import json
from fractions import Fraction

import panprivacy as pp
from panprivacy.cli.output import Printed, print_json, print_text
from panprivacy.statistics.release import Answers


def test_json_is_strict_without_an_upper_end(capsys):
    release = pp.Release(1.0, 0.0, float("inf"), 0.95, 1.0, (1,))
    print_json(Printed(Answers([release]), pp.Guarantee(Fraction(1)), 1, 0.95))

    def refuse(constant):
        raise AssertionError(constant)

    document = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert document["answers"][0]["high"] == "inf"


def test_what_was_cut_is_said_and_in_json_beside_it(capsys):
    name = pp.Name("visitors", "distinct", (), "home")
    numbers = -56.6, 0.0, 55.0, 0.95, 1.0, (1,), name
    cut = pp.Release(*numbers, estimate=-56.6, standard_error=55.7)
    whole = pp.Release(*numbers[:6], name._replace(group="help"))
    printed = Printed(Answers([cut, whole.under()]), pp.Guarantee(Fraction(1)), 1, 0.95)
    print_json(printed)
    row, _ = json.loads(capsys.readouterr().out)["answers"]
    assert (row["value"], row["estimate"], row["standard_error"], row["bias"]) == (
        0,
        -56.6,
        55.7,
        0,
    )
    print_text(printed)
    (line,) = (one for one in capsys.readouterr().out.splitlines() if one.startswith("Uncut"))
    assert "visitors: distinct of home -57 (standard error 56)" in line


def test_a_small_standard_error_is_not_said_to_be_0(capsys):
    cut = pp.Release(-1.0, 0.0, 1.0, 0.95, 1.0, (1,), estimate=-1.0, standard_error=0.0871)
    printed = Printed(Answers([cut]), pp.Guarantee(Fraction(1)), 1, 0.95)
    print_text(printed)
    assert "-1 (standard error 0.087)" in capsys.readouterr().out
