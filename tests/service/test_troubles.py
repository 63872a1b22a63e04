"""What does not work at the moment, told once and once when it works again."""

from __future__ import annotations

import pytest

from panprivacy.errors import PanPrivacyError
from panprivacy.service.kept.troubles import Troubles


def failing(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PanPrivacyError("put it back"), "put it back"),
        (OSError(28, "a file of ada"), "No space left on device"),
        (OSError("ada"), "failed with OSError"),
        (ValueError("ada"), "failed with ValueError"),
    ],
)
def test_a_reason_shows_nothing_that_could_be_a_state(error, reason, caplog):
    troubles = Troubles()
    assert troubles.attempt("disk", failing(error)) == reason
    assert troubles.known == {"disk": reason}
    assert "ada" not in caplog.text


def test_each_reason_is_told_once_and_its_end_too(caplog):
    troubles = Troubles()
    for number in (28, 28, 13):
        troubles.attempt("disk", failing(OSError(number, "")))
    assert len(caplog.records) == 2
    for _ in range(2):
        assert troubles.attempt("disk", lambda: None) is None
        assert len(caplog.records) == 3
    assert troubles.known == {}


def test_troubles_do_not_hide_each_other():
    troubles = Troubles()
    troubles.attempt("disk", failing(PanPrivacyError("full")))
    troubles.attempt("store", failing(PanPrivacyError("gone")))
    troubles.attempt("disk", lambda: None)
    assert troubles.known == {"store": "gone"}


def test_what_is_known_is_a_copy():
    troubles = Troubles()
    troubles.known["disk"] = "full"
    assert troubles.known == {}


def test_who_ends_the_program_is_not_held_up():
    with pytest.raises(KeyboardInterrupt):
        Troubles().attempt("disk", failing(KeyboardInterrupt()))
