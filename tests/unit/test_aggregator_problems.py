"""What two servers say of what they refuse to each other."""

from __future__ import annotations

import json

import pytest

from panprivacy.devices.aggregator.messages import base64
from panprivacy.devices.aggregator.problems import AbortError, PeerError, Reason
from panprivacy.errors import PanPrivacyError


@pytest.mark.parametrize("reason", Reason)
def test_a_problem_has_the_name_of_the_draft_and_its_task(reason):
    problem = AbortError(reason, "it is none").problem(bytes(32))
    assert problem.status == (404 if reason == "unrecognizedTask" else 400)
    document = json.loads(problem.response().body)
    assert document["type"] == f"urn:ietf:params:ppm:dap:error:{reason}"
    assert document["taskid"] == base64(bytes(32))
    assert document["detail"] == "it is none"


def test_both_are_errors_of_this_program():
    assert issubclass(AbortError, PanPrivacyError)
    assert issubclass(PeerError, PanPrivacyError)
    assert AbortError(Reason.BATCH_OVERLAP, "twice").reason is Reason.BATCH_OVERLAP
