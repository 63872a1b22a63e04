"""What a request is refused with."""

from __future__ import annotations

import json

from panprivacy.service.incoming.problems import Problem


def test_a_problem_is_a_document_of_the_standard():
    answer = Problem(404, "there is none").response()
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].partition(";")[0] == "application/problem+json"
    assert json.loads(answer.body) == {
        "title": "Not Found",
        "status": 404,
        "detail": "there is none",
    }


def test_headers_and_members_go_with_it():
    headers, members = {"Accept": "text/csv"}, {"type": "urn:x"}
    problem = Problem(429, "come again", retry_after=0, headers=headers, members=members)
    answer = problem.response()
    assert (answer.headers["Accept"], answer.headers["Retry-After"]) == ("text/csv", "0")
    assert json.loads(answer.body)["type"] == "urn:x"
    assert headers == {"Accept": "text/csv"}


def test_without_a_time_nobody_is_told_to_come_again():
    assert "Retry-After" not in Problem(429, "no").response().headers
    assert str(Problem(429, "no")) == "no"
