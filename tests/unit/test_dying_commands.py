"""Commands that are killed at each step: what they have written is whole or not there.

What a command does to a file, and each line that it prints, is numbered. It is run once for each
number, in a process that kills itself there, before the step or with half of it done. The same
command is given again then: it completes, or says in one line what happened.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyrage
import pytest

from panprivacy.service.config.loading import load
from panprivacy.service.config.tokens import hash_of

pytestmark = pytest.mark.long

USERS = 300
STAT = "incidence,universe=1000,bound=2,exactly=1"
_MOST_STEPS = 60
_PROGRAM = """
import io, json, os, signal, sys, tempfile
from contextlib import redirect_stdout, suppress
import numpy, numba, pyarrow, sqlalchemy
from panprivacy.ground.kernels import compile_kernels
import panprivacy.cli.run, panprivacy.cli.merge, panprivacy.cli.token, panprivacy.cli.init
from panprivacy.cli import main
from panprivacy.service.config import loading
pyarrow.array([])
with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
    sys.argv = ["panprivacy", "init", f"{folder}/a.toml"]  # which imports and plans
    with suppress(SystemExit):
        main()
real = {name: getattr(os, name) for name in ("open", "write", "fsync", "replace", "unlink")}
class Steps:
    done = 0
    def __call__(self, half=lambda: None):
        self.done += 1
        if self.done == deadly:
            half()
            os.kill(os.getpid(), signal.SIGKILL)
class Printed(io.FileIO):
    def write(self, data):
        step()
        step(lambda: io.FileIO.write(self, bytes(data)[: len(data) // 2]))
        return super().write(data)
def opened(path, flags, *more, **named):
    if flags & os.O_CREAT:
        step()
    return real["open"](path, flags, *more, **named)
def written(file, data):
    step()
    step(lambda: real["write"](file, data[: len(data) // 2]))
    return real["write"](file, data)
def synced(file):
    step()
    if os.readlink(f"/proc/self/fd/{file}").endswith(".new"):
        step(lambda: os.truncate(file, os.fstat(file).st_size // 2))
def moved(*names, **named):
    step()
    return real["replace"](*names, **named)
def removed(*names, **named):
    step()
    return real["unlink"](*names, **named)
for line in sys.stdin:
    given, deadly, words, out, err = json.loads(line)
    if words[0] in ("run", "merge"):
        compile_kernels()  # what it has compiled, its children know
    pid = os.fork()
    if not pid:
        for number, path in enumerate((given, out, err)):
            file = os.open(path, (os.O_WRONLY | os.O_APPEND) if number else os.O_RDONLY)
            os.dup2(file, number)
        step = Steps()
        os.open, os.write, os.fsync, os.replace, os.unlink = opened, written, synced, moved, removed
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(Printed(1, "w")))
        sys.argv, code = ["panprivacy", *words], 99
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Done:
    """What a command left behind: its exit code, what it printed, and what it said."""

    code: int
    printed: str
    said: str


@pytest.fixture(scope="module", autouse=True)
def _started():
    pipe = subprocess.PIPE
    words = [sys.executable, "-W", "ignore", "-c", _PROGRAM]
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        run.process = process
        yield
        process.stdin.close()


def run(folder, *words, deadly=0, given=os.devnull):
    """Run a command that dies at a step; 0 for none."""
    out, err = folder / "stdout", folder / "stderr"
    for one in (out, err):
        one.write_text("")
    process = run.process
    order = [str(given), deadly, [str(word) for word in words], str(out), str(err)]
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    code = int(process.stdout.readline())
    return Done(code, out.read_text(), err.read_text())


def killed_at_each_step(tmp_path, words_in):
    """Yield a folder for each step, in which a command was killed there, and what it printed."""
    for deadly in range(1, _MOST_STEPS):
        folder = tmp_path / f"{deadly}"
        folder.mkdir()
        done = run(folder, *words_in(folder), deadly=deadly)
        if done.code != -signal.SIGKILL:
            assert done.code == 0, done.said
            assert deadly > 5
            return
        yield folder, done
    pytest.fail("it has more steps than that")


def refusal(done):
    """The one line with which a command refuses."""
    assert done.code == 2, done
    *remarks, line = done.said.splitlines()
    assert all(remark.startswith("panprivacy: ") for remark in remarks)
    assert line.startswith("panprivacy: ")
    return line


IDENTITY = pyrage.x25519.Identity.generate()


def shard(folder, first=0):
    """A file of users, and the command that contributes them."""
    name, part = folder / f"{first}.csv", folder / f"{first}.part"
    name.write_text("who\n" + "".join(f"{one}\n" for one in range(first, first + USERS)))
    options = "--user", "who", "--epsilon", 200, "--stat", STAT
    return ["run", name, *options, "--contribute", part, "--recipient", IDENTITY.to_public()], part


def merging(folder, *parts):
    """The command that merges contributions."""
    key = folder / "key.txt"
    key.write_text(f"{IDENTITY}\n")
    return ["merge", *parts, "--identity", key, "--json"]


def value(done):
    """The answer of a merge."""
    assert done.code == 0, done.said
    (answer,) = json.loads(done.printed)["answers"]
    return round(answer["value"])


def test_a_contribution_is_whole_or_not_there_and_counts_once(tmp_path):
    whole, made = 0, tmp_path / "made"
    made.mkdir()
    words, other = shard(made, USERS)
    assert run(made, *words).code == 0
    for folder, _ in killed_at_each_step(tmp_path, lambda folder: shard(folder)[0]):
        words, part = shard(folder)
        was_there = part.exists()
        again = run(folder, *words)
        if was_there:
            whole += 1
            assert f"there is a file {part} already" in refusal(again)
        else:
            assert again.code == 0, again.said
        parts = part, shutil.copy(other, folder)
        assert value(run(folder, *merging(folder, *parts))) == 2 * USERS
        assert not part.with_name(f"{part.name}.new").exists()
    assert whole


def test_merged_contributions_are_answered_once_whenever_the_program_dies(tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    for first in (0, USERS):
        assert run(made, *shard(made, first)[0]).code == 0

    def words_in(folder):
        return merging(folder, *(shutil.copy(one, folder) for one in made.glob("*.part")))

    outcomes = set()
    for folder, done in killed_at_each_step(tmp_path, words_in):
        parts = sorted(folder.glob("*.part"))
        printed = done.printed.endswith("\n")
        again = run(folder, *merging(folder, *parts))
        outcomes.add((printed, again.code))
        if again.code == 0:
            assert not done.printed, "an answer is shown once"
            assert value(again) == 2 * USERS
        else:
            said = refusal(again)
            assert "was merged already" in said
            listed = said.endswith("its answer is in key.txt.merged")
            assert listed or said.endswith("the answer is in that file")
            file = folder / "key.txt.merged" if listed else spent_in(parts)
            line = file.read_text().splitlines()[-1]
            assert value(Done(0, line[line.index("{") :], "")) == 2 * USERS
            if printed:
                assert value(Done(0, done.printed, "")) == 2 * USERS
    assert (False, 0) in outcomes
    assert (False, 2) in outcomes, "it was killed between the two: the answer is in the files"


def spent_in(parts):
    """The first contribution of which only a note is left."""
    return next(part for part in parts if part.read_bytes().startswith(b"panprivacy has merged"))


def test_a_token_is_changed_for_one_that_was_shown_or_not_at_all(tmp_path):
    def words_in(folder):
        config = folder / "panprivacy.toml"
        assert run(folder, "init", config).code == 0
        (folder / "before").write_bytes(config.read_bytes())
        return ["token", "ingest", "--config", config]

    changed = 0
    for folder, done in killed_at_each_step(tmp_path, words_in):
        config, before = folder / "panprivacy.toml", (folder / "before").read_bytes()
        if config.read_bytes() != before:
            changed += 1
            assert digest(config) in shown(done)
        again = run(folder, "token", "ingest", "--config", config)
        assert again.code == 0, again.said
        assert shown(again) == {digest(config)}
        others = [one for one in load(config).tokens if one.name != "ingest"]
        assert len(others) == 3
        assert not (folder / "panprivacy.toml.new").exists()
    assert changed


def digest(config):
    """The hash of the token in a configuration."""
    return {one.name: one.sha256 for one in load(config).tokens}["ingest"]


def shown(done):
    """The hashes of all tokens that were printed."""
    return {hash_of(word) for word in done.printed.split() if word.startswith("pp_")}


def test_a_new_configuration_is_whole_or_not_there(tmp_path):
    there = 0
    for folder, _ in killed_at_each_step(
        tmp_path, lambda folder: ["init", folder / "panprivacy.toml"]
    ):
        config = folder / "panprivacy.toml"
        was_there = config.exists()
        again = run(folder, "init", config)
        if was_there:
            there += 1
            assert len(load(config).tokens) == 4
            assert "is there already: name another file, or remove it first" in refusal(again)
        else:
            assert again.code == 0, again.said
            assert len(shown(again)) == 4
        assert [one.name for one in Path(folder).glob("*.new")] == []
    assert there


def windows_of(printed):
    """The windows of all lines that are whole: their start, and whether they are complete."""
    lines = [json.loads(line) for line in printed.split("\n")[:-1]]
    return [(one["window"]["start"], one["window"]["complete"]) for one in lines]


def test_windows_that_were_printed_are_whole_lines_and_none_is_complete_twice(tmp_path):
    """The window in which it is killed is gone, as the page says: nothing of it is kept."""
    words = "run", "-", "--format", "csv", "--user", "who", "--epsilon", 200, "--stat", STAT
    rows = [b"who\n", *(b"%d\n" % one for one in range(USERS))]
    for deadly in (2, 4, 5, 6):
        pipe = tmp_path / f"{deadly}"
        os.mkfifo(pipe)
        printed = ""
        for one in (deadly, 0):
            sender = threading.Thread(target=send_slowly, args=(pipe, rows), daemon=True)
            sender.start()
            done = run(tmp_path, *words, "--window", "1s", "--json", deadly=one, given=pipe)
            sender.join()
            assert (done.code == 0) == (not one), done.said
            whole, _, rest = done.printed.rpartition("\n")
            assert not rest or one, "only a process that was killed leaves a part of a line"
            printed += whole + "\n" * bool(whole)
        complete = [start for start, is_complete in windows_of(printed) if is_complete]
        assert complete
        assert len(complete) == len(set(complete))


def send_slowly(pipe, rows):
    """Send rows for three seconds, or until nobody reads."""
    with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
        for row in rows:
            file.write(row)
            time.sleep(3 / len(rows))
