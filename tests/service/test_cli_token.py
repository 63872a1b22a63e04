"""The command `panprivacy token`."""

from __future__ import annotations

import re
import stat
import time

import pytest

from panprivacy.service.config.loading import load
from tests.commands import run_command

from .running import Service, rows_of, wait_until


def added(service, *words):
    """Run the command; the token that it shows."""
    result = run_command("token", *words, "--config", service.config)
    assert (result.code, result.stderr) == (0, "")
    (shown,) = re.findall(r"^    (pp_\S+)$", result.stdout, re.MULTILINE)
    return shown


def statuses(service, token):
    """What a body of one id gets, and a request for what was released."""
    headers = {"Authorization": f"Bearer {token}"}
    updates, released = (
        service.url("/v1/streams/visits/updates"),
        service.url("/v1/releases?stream=visits"),
    )
    kind = {"Content-Type": "application/x-ndjson"}
    sent = service.client.post(updates, content=rows_of([1]), headers=headers | kind)
    return sent.status_code, service.client.get(released, headers=headers).status_code


@pytest.mark.long
def test_a_service_takes_over_a_token_that_is_added_and_one_that_is_changed(tmp_path):
    with Service(tmp_path) as service:
        text, mode = service.config.read_text(), 0o640
        service.config.chmod(mode)
        service.start()
        first = added(service, "web", "--may", "ingest", "--stream", "visits")
        assert service.config.read_text().startswith(text.rstrip())
        assert stat.S_IMODE(service.config.stat().st_mode) == mode
        wait_until(lambda: statuses(service, first) == (202, 403))
        second = added(service, "web")
        wait_until(lambda: statuses(service, second) == (202, 403))
        assert statuses(service, first) == (401, 401)
        assert service.send([1]).status_code == 202, "the others are as they were"
        assert service.said.count("takes over the tokens") == 2
        assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


@pytest.mark.long
def test_a_configuration_that_is_spoilt_meanwhile_changes_nothing_and_is_told_once(tmp_path):
    with Service(tmp_path) as service:
        service.start()
        whole = service.config.read_text()
        spoilt = tmp_path / "spoilt"
        spoilt.write_text(whole.replace("[[tokens]]", "[[tokens]", 1))
        spoilt.replace(service.config)  # at once: half a file would be told as well
        wait_until(lambda: "cannot take over" in service.said)
        time.sleep(1.5)
        assert service.said.count("cannot take over") == 1
        assert service.send([1]).status_code == 202
        service.config.write_text(whole.replace('name = "ingest"', 'name = "gone"', 1))
        added(service, "gone")
        wait_until(lambda: service.send([1]).status_code == 401)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["web"], "there is no token web yet: say what it may do, as in --may ingest"),
        (["ingest", "--may", "read"], "there is a token ingest: leave out --may"),
        (
            ["web", "--may", "reed"],
            "each entry of may must be one of ingest, read, release, announce",
        ),
        (["web", "--may", "read", "--stream", "nowhere"], "nowhere"),
        (["", "--may", "read"], "name must not be empty"),
        (["a b", "--may", "read"], "name must have no blank and no control character"),
        (["a\tb", "--may", "read"], "name must have no blank and no control character"),
        (["a\x1bb", "--may", "read"], "name must have no blank and no control character"),
        (["a\u2028b", "--may", "read"], "name must have no blank and no control character"),
    ],
)
def test_a_token_that_cannot_be_is_refused_and_the_file_left_alone(tmp_path, words, says):
    service = Service(tmp_path)
    before = service.config.read_bytes()
    result = run_command("token", *words, "--config", service.config)
    assert (result.code, result.stdout) == (2, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert f"{service.config.name}." not in result.stderr
    assert service.config.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2
    service.client.close()


def test_a_hash_that_is_written_in_pieces_is_refused(tmp_path):
    """Nothing would be changed, and a lost token would stay good."""
    service = Service(tmp_path)
    text = service.config.read_text()
    found = {one.name: one.sha256 for one in load(service.config).tokens}["ingest"]
    text = text.replace(f'"{found}"', f'"""{found[:9]}\\\n{found[9:]}"""')
    service.config.write_text(text)
    assert {one.name: one.sha256 for one in load(service.config).tokens}["ingest"] == found
    result = run_command("token", "ingest", "--config", service.config)
    assert (result.code, result.stdout) == (2, "")
    assert "does not have the sha256 of ingest in one piece" in result.stderr
    assert service.config.read_text() == text
    service.client.close()
