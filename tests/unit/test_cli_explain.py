"""The command `panprivacy explain`."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pyrage
import pytest

import panprivacy as pp
from panprivacy.testing import SeededCoins
from tests.commands import run_command
from tests.unit.test_explain import HEAD, SMALL, STATISTICS, refused, with_text


@pytest.fixture
def file(tmp_path):
    return tmp_path / "seized.state"


def test_the_page_has_the_numbers_of_the_document(file):
    file.write_bytes(STATISTICS["distinct"]().state())
    page, document = run_command("explain", file), run_command("explain", file, "--json")
    assert page.code == document.code == 0
    assert page.stderr == document.stderr == ""
    (told,) = json.loads(document.stdout)["states"]
    assert told["promised"]["odds"] == pytest.approx(math.e)
    assert told["promised"]["odds"] >= math.e
    assert told["promised"]["beliefs"][4]["before"] == 0.5
    assert "26.8 % to 73.2 %" in page.stdout
    assert f"{told['bytes']:,} bytes" in page.stdout
    assert all(len(line) <= 100 for line in page.stdout.splitlines())


@pytest.mark.parametrize("arguments", [(), ("--json",)])
@pytest.mark.parametrize("name", ["sample", "distinct", "hashed"])
def test_key_and_cells_are_not_shown(name, arguments, file):
    statistic = STATISTICS[name](coins=SeededCoins(5))
    file.write_bytes(statistic.state())
    printed = run_command("explain", file, *arguments).stdout
    state = statistic.internals.memory.now
    blank = state.table.copy()
    blank[:] = 0
    file.write_bytes(
        statistic.state()[: -len(state.key) - blank.nbytes]
        + bytes(len(state.key))
        + blank.tobytes()
    )
    assert run_command("explain", file, *arguments).stdout == printed


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no state"),
        (b"user\nada\ngrace\n", "no state"),
        (b"panpriv1" + SMALL[8:], "another format"),
        (SMALL + b"\0", "after state 1"),
        (SMALL + b"ada", "after state 1"),
        (SMALL[:8] + b"\xff\xff\xff\xff" + SMALL[12:], "too long"),
        (with_text(b"[" * 60_000), "damaged"),
        (with_text(b'{"a":' * 10_000), "damaged"),
        (with_text(b"[]"), "damaged"),
        (with_text(b"9" * 50_000), "damaged"),
        (with_text(b"\xff\xfe"), "damaged"),
        (with_text(SMALL[HEAD:-2] + b" "), "damaged"),
        (with_text(SMALL[HEAD:-2].replace(b"density", b"Grades!")), "does not know"),
        (with_text(SMALL[HEAD:-2].replace(b'"epsilon": "1"', b'"epsilon": "1/0"')), "go together"),
        (with_text(SMALL[HEAD:-2].replace(b'"epsilon": "1"', b'"epsilon": "1/2"')), "go together"),
        (with_text(SMALL[HEAD:-2].replace(b"0.1.0", b"0\\u001b[2J")), "go together"),
        (with_text(SMALL[HEAD:-2], b"\0\0\0"), "go together"),
        (SMALL[:20] + b"\2\0\0\0" + SMALL[24:], "go together"),
        (SMALL[:28] + b"\1" + SMALL[29:], "go together"),
        (b"age-encryption.org/v1\n-> X25519 abc\n", "sealed"),
        (b"-----BEGIN AGE ENCRYPTED FILE-----\nYWdl", "sealed"),
    ],
)
def test_bad_input_is_one_line_that_shows_nothing_of_it(content, says, file):
    line = refused(file, content)
    assert says in line
    assert not {"ada", "grace", "Grades", "X25519", "\x1b"} & set(re.findall(r"[\w\x1b]+", line))


def test_what_is_no_file_is_refused_in_one_line(tmp_path):
    for path in (tmp_path, tmp_path / "missing", Path("/dev/zero")):
        result = run_command("explain", path)
        assert (result.code, result.stdout) == (2, "")
        assert result.stderr.count("\n") == 1


def test_a_sealed_file_says_that_it_is_sealed(file):
    line = refused(file, b"age-encryption.org/v1\n")
    assert "without the identity" in line


@pytest.fixture
def sealed(tmp_path):
    """A sealed state, and the file with the identity that opens it."""
    key = pyrage.x25519.Identity.generate()
    identity = tmp_path / "key.txt"
    identity.write_text(f"# created: today\n# public key: {key.to_public()}\n{key}\n")
    state = pp.DistinctCount(epsilon=1, expected=1_000).state()
    return state, key.to_public(), identity


@pytest.mark.parametrize("armored", [False, True])
def test_a_sealed_state_is_opened_with_its_identity(sealed, file, armored):
    state, recipient, identity = sealed
    file.write_bytes(state)
    plain = run_command("explain", file, "--json")
    file.write_bytes(pyrage.encrypt(state, [recipient], armored=armored))
    assert run_command("explain", file, "--identity", identity, "--json").stdout == plain.stdout
    result = run_command("explain", file)
    assert result.code == 2
    assert "name it with --identity" in result.stderr


def test_a_sealed_state_that_cannot_be_opened_is_refused(sealed, file, tmp_path):
    state, recipient, identity = sealed
    data = pyrage.encrypt(state, [recipient])
    other = tmp_path / "other.txt"
    other.write_text(str(pyrage.x25519.Identity.generate()))
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n")
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("canary")
    cases = [
        (data, other, "sealed to another identity"),
        (data[:-5], identity, "damaged"),
        (data, empty, "there is no age identity"),
        (data, wrong, "there is no age identity"),
        (data, tmp_path / "missing.txt", "No such file"),
        (pyrage.encrypt(b"canary", [recipient]), identity, "no state of panprivacy"),
    ]
    for content, key, says in cases:
        file.write_bytes(content)
        result = run_command("explain", file, "--identity", key)
        assert result.code == 2
        assert says in result.stderr
        assert "canary" not in result.stderr
        assert len(result.stderr.splitlines()) == 1
