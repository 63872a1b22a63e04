"""Answers as text and as JSON."""

from __future__ import annotations

import json
from fractions import Fraction

import panprivacy as pp
from panprivacy.cli.output import Printed, print_json
from panprivacy.statistics.release import Answers


def test_json_is_strict_without_an_upper_end(capsys):
    release = pp.Release(1.0, 0.0, float("inf"), 0.95, 1.0, (1,))
    print_json(Printed(Answers([release]), pp.Guarantee(Fraction(1)), 1, 0.95))

    def refuse(constant):
        raise AssertionError(constant)

    document = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert document["answers"][0]["high"] == "inf"
