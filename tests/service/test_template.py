"""The text of a configuration that `panprivacy init` writes."""

from __future__ import annotations

import json
import re
import tomllib

import msgspec
import numpy as np
import pytest

from panprivacy.errors import PlanError
from panprivacy.privacy.coins import SystemCoins
from panprivacy.service.config.beacon import BeaconConfig
from panprivacy.service.config.config import CheckpointConfig, Config, ReleasesConfig, ServerConfig
from panprivacy.service.config.loading import load
from panprivacy.service.config.stream import StdinConfig, StreamConfig, SyslogConfig
from panprivacy.service.config.template import configuration
from panprivacy.service.config.tokens import Role, Token, hash_of
from panprivacy.statistics.catalogue import kinds

RECIPIENT = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"


TEXT = configuration("visits", RECIPIENT, {role: hash_of(role) for role in Role})


KEY = re.compile(r"#(\w+) = ([^#]*?)(?:  # .*)?")


WITH = {
    "contribute": {"contribute": f'"{RECIPIENT}"'},
    "every": {"releases": "2"},
    "moves": {"every": '"1h"', "releases": "4"},
    "prefix": {"ids": '"addresses"'},
    "by": {"groups": '["home", "help"]'},
    "groups": {"by": '"page"'},
    "per_user": {"by": '"page"', "groups": '["home", "help"]'},
    "ignore_others": {"by": '"page"', "groups": '["home", "help"]'},
}
"""What else must be said for a key of a stream to mean something."""


EXAMPLES = {
    "user",
    "value",
    "every",
    "moves",
    "prefix",
    "delta",
    "side",
    "by",
    "groups",
    "contribute",
    "key",
    "keep_tables",
}
"""Keys of a stream whose value in the file is an example."""


PUBLISHED = 'name = "overlap"\nas = "published"\nexpected = 1_000'


BESIDES = {"distinct": {"bound": "deletions", "signed": "deletions"}}
"""The key of a statistic without which another one means nothing."""


def sections():
    """The lines of each table, by its header; of statistics, with their names."""
    found, header = {}, ""
    lines = TEXT.splitlines()
    for position, line in enumerate(lines):
        if re.fullmatch(r"#?\[.*\]", line):
            header = line.lstrip("#")
            name = KEY.fullmatch(f"#{lines[position + 1].lstrip('#')}")
            header += f" {json.loads(name[2])}" if "stat]]" in header else ""
            header = f"{header}{sum(name.startswith(header) for name in found) or ''}"
        found.setdefault(header, []).append(line)
    return found


SECTIONS = sections()


STATISTICS = {
    header.partition(" ")[2]: lines for header, lines in SECTIONS.items() if "stat]] " in header
}


def commented(statistics):
    """Header and name of each key that may be left out."""
    for header, lines in SECTIONS.items():
        for line in lines:
            key = KEY.fullmatch(line)
            if key and (" " in header) == statistics:
                yield header, key[1]


def uncommented(header, name):
    """The text with a key, and what it needs to mean something."""
    asked, inner = {name: ""}, {}
    if header == "[streams.visits]":
        asked |= WITH.get(name, {})
    elif header.startswith(("[[streams", "[streams.visits.")):
        inner = {"": "", "listen": "", "format": "", "origins": "", name: ""}
        asked = {"user": '"remote_addr"'} if "syslog" in header else {}
        if name == "pattern":
            inner, asked = inner | {"format": '"lines"'}, {}
        if name in {"delimiter", "comment"}:
            inner |= {"format": '"csv"'}
    lines = []
    for title, section in SECTIONS.items():
        streams = title == "[streams.visits]"
        wanted = inner if title == header and inner else asked if streams or not inner else {}
        wanted = wanted if title == header or (streams and inner) else {}
        lines += [changed(line, wanted) for line in section]
    return "\n".join(lines)


def changed(line, wanted):
    if line.startswith("#[") and "" in wanted:
        return line[1:]
    key = re.fullmatch(r"#?(\w+) = .*", line)
    if key is None or key[1] not in wanted:
        return line
    return f"{key[1]} = {wanted[key[1]]}" if wanted[key[1]] else line.removeprefix("#")


@pytest.mark.parametrize(("header", "name"), list(commented(statistics=False)))
def test_each_key_can_be_uncommented(tmp_path, header, name):
    text = uncommented(header, name)
    assert f"\n{name} = " in text
    if name in {"key", "keep_tables"}:  # of a table that is published
        text += f"\n{header.replace('[', '[[').replace(']', '.stat]]')}\n{PUBLISHED}\n"
    path = tmp_path / "a.toml"
    path.write_text(text)
    if name == "value":  # for a histogram, which is not the statistic of the text
        with pytest.raises(PlanError, match="what counts events by their value"):
            load(path)
    else:
        load(path)


def with_statistic(kind, names):
    """The text with one statistic alone, of whose keys these begin no comment."""
    lines = []
    for header, section in SECTIONS.items():
        if header == f"[[streams.visits.stat]] {kind}":
            lines += [changed(line, {"": "", "name": "", **names}) for line in section]
        elif header == "[streams.visits]":
            extra = {"ids": '"integers"'} if "universe" in names else {}
            extra |= {"delta": ""} if "deletions" in names else {}
            extra |= {"side": ""} if "left" in kinds()[kind].entry.sizes.fields() else {}
            lines += [changed(line, extra) for line in section]
        else:
            lines += [re.sub(r"^(?=\w|\[)", "#", line) if "stat]]" in header else line
                      for line in section]  # fmt: skip
    return "\n".join(lines)


def needs(kind, name):
    """Each choice of further keys that one of a statistic needs."""
    sizes = kinds()[kind].entry.sizes.fields()
    needed = {one.name: "" for one in sizes.values() if one.required}
    besides = BESIDES.get(kind, {}).get(name)
    needed |= {} if besides is None else {besides: "true", "bound": ""}
    if name == "deletions":
        needed |= {"deletions": "true", "bound": ""}
    if kind == "histogram" and name != "edges":
        needed |= {"low": "", "high": ""}
    if (kind, name) == ("overlap", "cells"):  # of a sample of a universe
        return [{**needed, "universe": ""}]
    either = {"universe", "expected"} & {*sizes} - {*needed}
    if len(either) < 2 or name in either:
        return [needed]
    return [{**needed, one: ""} for one in sorted(either)]


@pytest.fixture
def no_noise(monkeypatch):
    """Tables as large as the defaults make them are born in a second; here nobody looks at them."""
    for law in ("bernoulli", "categorical", "discrete_laplace"):
        monkeypatch.setattr(SystemCoins, law, lambda _, law, size: np.zeros(size, np.int64))


@pytest.mark.long
@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(("header", "name"), list(commented(statistics=True)))
def test_each_key_of_each_statistic_can_be_uncommented(tmp_path, header, name):
    kind = header.partition(" ")[2]
    for names in needs(kind, name):
        path = tmp_path / "a.toml"
        path.write_text(with_statistic(kind, {**names, name: names.get(name, "")}))
        (table,) = tomllib.loads(path.read_text())["streams"]["visits"]["stat"]
        assert name in table
        (one,) = load(path).streams["visits"].specifications()
        assert one.kind.entry.name == kind


@pytest.mark.long
@pytest.mark.parametrize("name", ["deletions", "signed"])
def test_what_is_false_in_the_text_may_be_true(tmp_path, name):
    path = tmp_path / "a.toml"
    path.write_text(with_statistic("distinct", {"deletions": "true", "bound": "", name: "true"}))
    load(path)


def test_the_deletions_of_a_strict_stream_need_no_bound(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(with_statistic("distinct", {"deletions": '"strict"'}))
    (one,) = load(path).streams["visits"].specifications()
    assert one.sizes.deletions == "strict"


def test_a_key_begins_a_line_and_none_is_long():
    short = (line for line in TEXT.splitlines() if not line.startswith("recipient"))
    assert max(map(len, short)) <= 100
    for line in TEXT.splitlines():
        assert re.match(r"#\w+ = |#\[|# |# *#|\w+ = |\[|$|#$", line), line


def everything():
    """The document with every key in it."""
    lines = [line[1:] if re.match(r"#(\w+ = |\[)", line) else line for line in TEXT.splitlines()]
    return tomllib.loads("\n".join(lines))


def test_every_key_of_the_schema_is_in_the_text():
    document = everything()
    assert set(document) == set(Config.__struct_fields__)
    (stream,) = document["streams"].values()
    assert set(stream) == set(StreamConfig.__struct_fields__)
    tables = {
        "server": document["server"],
        "releases": document["releases"],
        "checkpoint": document["checkpoint"],
        "tokens": document["tokens"][0],
        "syslog": stream["syslog"][0],
        "stdin": stream["stdin"],
        "beacon": stream["beacon"],
    }
    for name, table in tables.items():
        assert set(table) == set(TABLES[name].__struct_fields__), name


def test_every_statistic_with_all_its_sizes_and_questions_is_in_the_text():
    (stream,) = everything()["streams"].values()
    assert [table["name"] for table in stream["stat"]] == list(kinds())
    for table in stream["stat"]:
        kind = kinds()[table["name"]]
        known = {*kind.entry.sizes.fields(), *kind.entry.query.fields(), "name"} - {"law"}
        assert set(table) - {"as"} == known
        for entry in kind.entry.sizes.fields().values():
            if entry.name in table and isinstance(entry.default, bool | int):
                assert table[entry.name] == entry.default


def test_every_size_has_its_meaning_beside_it():
    for kind, lines in STATISTICS.items():
        text = re.sub(r"\n# *# ", " ", "\n".join(lines))
        for record in (kinds()[kind].entry.sizes, kinds()[kind].entry.query):
            for entry in record.fields().values():
                needed = "needed: " if entry.required else ""
                if entry.name != "law":
                    line = rf"^#{entry.name} = .*  # {needed}{re.escape(entry.says)}$"
                    assert re.search(line, text, re.MULTILINE), (kind, entry.name)


TABLES = {
    "server": ServerConfig,
    "releases": ReleasesConfig,
    "checkpoint": CheckpointConfig,
    "tokens": Token,
    "syslog": SyslogConfig,
    "stdin": StdinConfig,
    "beacon": BeaconConfig,
}


def test_values_in_the_text_are_the_defaults_or_examples():
    document = everything()
    (stream,) = document["streams"].values()
    for kind, table in [(StreamConfig, stream), (SyslogConfig, stream["syslog"][0])]:
        for field in msgspec.structs.fields(kind):
            if field.required or field.name in {"syslog", "stdin", "beacon", "pattern"} | EXAMPLES:
                continue
            assert table[field.name] == field.default, field.name
    for name in ("server", "releases"):
        default = next(f.default for f in msgspec.structs.fields(Config) if f.name == name)
        assert document[name] == msgspec.structs.asdict(default)
    assert stream["beacon"]["prefix"] == BeaconConfig(origins=()).prefix
    checkpoint = {"recipient": RECIPIENT, "path": "panprivacy.sealed", "every": "1s"}
    assert document["checkpoint"] == checkpoint
