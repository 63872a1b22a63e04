"""What strangers read: short sentences; in the README an example before any transcript."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, blocks, commands

README = ROOT / "README.md"
FOR_STRANGERS = (
    *("tutorial", "notebook", "demonstration", "command-line", "python", "commands"),
    *("concepts", "faq", "comparison", "decoding", "measurements"),
)
MOST_WORDS = 30


def sentences(text):
    """What is written between full stops: code, pictures and the frames of tables taken out."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^(#.*|\|[-:| ]*\|)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\n(?=\n|[*|] ?)|(?<=\|)\n", ".\n", text)
    return [words for part in re.split(r"[.:;!?|](?=\s|$)", text) if (words := part.split())]


@pytest.mark.parametrize(
    "page",
    [README, *(ROOT / f"docs/{name}.md" for name in FOR_STRANGERS)],
    ids=lambda page: page.stem,
)
def test_no_sentence_is_long(page):
    found = sentences(page.read_text())
    assert len(found) > 10
    assert [" ".join(words) for words in found if len(words) > MOST_WORDS] == []


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("one two three. four", 3),
        ("one [two three](four.md) five", 4),
        ("one\ntwo\n\nthree", 2),
        ("* one two\n* three\n", 3),
        ("```console\n$ one two three\n```\n\nfour", 1),
    ],
)
def test_words_of_sentences_are_counted(text, longest):
    assert max(map(len, sentences(text))) == longest


def test_it_is_said_in_three_sentences_what_it_is():
    said = README.read_text().split("\n\n")[1]
    assert len(re.findall(r"[.!?](?=\s|$)", said)) == 3
    assert README.read_text().split("\n\n")[2].startswith("![")


def test_no_output_of_a_command_is_shown():
    consoles = [block for language, block, _ in blocks(README) if language == "console"]
    assert [shown for block in consoles for _, shown in commands(block) if shown] == []


def test_it_is_installed_by_one_line_and_then_used_in_five():
    (_, install, _), (_, python, _), (_, two, _), (_, shell, _) = blocks(README)
    assert [command for command, _ in commands(install)] == ["pip install ."]
    said = [command.partition("#") for command, _ in commands(two)]
    assert [command.strip() for command, *_ in said] == ["make run", "make test"]
    assert [why.split(":")[0].strip() for *_, why in said] == ["see it work", "check it"]
    assert python.count(">>> ") == len(commands(shell)) == 5
