"""Several files that are read as one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from panprivacy.errors import InputError
from panprivacy.intake.sources import Column, Skips, open_source
from tests.commands import run_command

USER, PAGE = Column("user"), Column("page")
COUNT = ["--stat", "distinct,expected=1000", "--epsilon", 1, "--user", "user"]


def rows_of(*paths, columns=(USER,), **options):
    """All rows, and the files that they came from."""
    found, names = [], []
    with open_source(*map(str, paths), columns=list(columns), **options) as source:
        for batch in source.batches():
            found += [tuple(row.values()) for row in batch.to_pylist()]
            names.append(source.name)
    return found, names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two files of CSV, of which the columns stand in another order."""
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("a.csv").write_text("user,page\nada,home\n")
    tmp_path.joinpath("b.csv").write_text("page;user\nhelp;grace\nhome;alan\n")
    return tmp_path


class TestNames:
    def test_files_are_read_in_the_order_in_which_they_are_named(self, folder):
        rows = [(b"grace", b"help"), (b"alan", b"home"), (b"ada", b"home")]
        assert rows_of("b.csv", "a.csv", columns=[USER, PAGE]) == (rows, ["b.csv", "a.csv"])

    def test_those_of_a_glob_in_that_of_their_paths(self, folder):
        assert rows_of("*.csv")[1] == ["a.csv", "b.csv"]
        folder.joinpath("[x].csv").write_text("user\nada\n")
        assert rows_of("[x].csv") == ([(b"ada",)], [None])

    @pytest.mark.parametrize(
        ("paths", "says"),
        [
            (["a.csv", "b.csv", "./a.csv"], "named twice, so that its rows would count twice"),
            (["a.csv", "*.csv"], "named twice"),
            (["x*.csv"], r"no file is called like x\*.csv"),
            (["a.csv", "none.csv"], "cannot read none.csv: No such file"),
            (["a.csv", "c.ndjson"], "a.csv is csv and c.ndjson is ndjson: count files of one"),
            (["."], r"\. is a directory, and holds other files than Parquet: name its files"),
            (["empty"], "empty is a directory, and holds no files"),
            ([], "name a file, or - for standard input"),
        ],
    )
    def test_what_cannot_be_meant_is_refused_before_anything_is_read(self, folder, paths, says):
        folder.joinpath("c.ndjson").write_text('{"user": "ada"}\n')
        folder.joinpath("empty").mkdir()
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(InputError, match=says):
            open_source(*paths, columns=[USER])
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    def test_of_many_files_few_are_open(self, folder):
        for number in range(300):
            folder.joinpath(f"n{number:03}.csv").write_text(f"user\n{number}\n")
        before, most = len(list(Path("/proc/self/fd").iterdir())), 0
        with open_source("n*.csv", columns=[USER]) as source:
            rows = []
            for batch in source.batches():
                rows += batch.column(0).to_pylist()
                most = max(most, len(list(Path("/proc/self/fd").iterdir())))
        assert rows == [str(number).encode() for number in range(300)]
        assert most < before + 20
        assert len(list(Path("/proc/self/fd").iterdir())) == before


class TestDirectories:
    @pytest.fixture
    def years(self, tmp_path):
        """Two years of Parquet, with a mark that is none."""
        for year, users in ((2025, ["ada"]), (2026, ["grace", "alan"])):
            path = tmp_path / "d" / f"year={year}" / "page=home%20page"
            path.mkdir(parents=True)
            pq.write_table(pa.table({"user": users}), path / "part.parquet")
        tmp_path.joinpath("d", "_SUCCESS").touch()
        return tmp_path / "d"

    def test_the_names_of_folders_are_columns(self, years):
        rows, names = rows_of(years, columns=[Column("year"), USER, PAGE])
        assert rows == [
            (2025, "ada", "home page"),
            (2026, "grace", "home page"),
            (2026, "alan", "home page"),
        ]
        assert [name.split("/")[-3] for name in names] == ["year=2025", "year=2026"]
        assert rows_of(years, columns=[Column("year")])[0] == [(2025,), (2026,), (2026,)]
        assert rows_of(years)[0] == [("ada",), ("grace",), ("alan",)]

    def test_groups_may_be_years(self, years):
        told = run_command("run", years, *COUNT, "--by", "year", "--groups", "2025,2026")
        assert told.code == 0, told.stderr
        assert "2026" in told.stdout

    def test_one_of_another_format_is_refused(self, years):
        with pytest.raises(InputError, match=r"is a directory, which can be of Parquet"):
            open_source(str(years), columns=[USER], format="csv")


class TestErrors:
    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            ("user,page\n,home\n", "b.csv, row 1 (line 2): the user id is null"),
            ("user,page\n1,2\n\n1,2,3\n", "b.csv, row 2 (line 4): the header has 2 fields"),
            ('user,page\n"a\nb",2\n1,2,3\n', "b.csv, row 2 (line 4): the header has 2 fields"),
            ('user,page\n1,2\n\n"1,2\n', "b.csv, row 2 (line 4): a quoted field is still open"),
            (
                "users,page\n1,2\n",
                "b.csv: there is no column 'user'; the columns are 'users', 'page'",
            ),
        ],
    )
    def test_a_row_that_cannot_be_counted_names_its_file_and_line(self, folder, bad, says):
        folder.joinpath("b.csv").write_text(bad)
        told = run_command("run", "a.csv", "b.csv", *COUNT)
        assert told.code == 2
        assert says in told.stderr
        assert told.stdout == ""

    def test_one_file_is_not_named(self, folder):
        folder.joinpath("b.csv").write_text("user,page\n\nada,home\n,home\n")
        told = run_command("run", "b.csv", *COUNT)
        assert told.stderr.startswith("panprivacy: row 2 (line 4): the user id is null")

    def test_what_is_skipped_names_the_file_of_the_first(self, folder):
        folder.joinpath("b.csv").write_text("user,page\n1,2,3\nada,home\n,home\n")
        folder.joinpath("c.csv").write_text("user,page\n1,2,3\n")
        told = run_command("run", "a.csv", "b.csv", "c.csv", *COUNT, "--skip-unreadable")
        assert told.code == 0
        assert "skipped 3 rows that cannot be read; the first: b.csv: the " in told.stderr

    def test_rows_before_it_count_and_the_answer_is_incomplete_where_a_pipe_is_among_them(
        self, folder
    ):
        many = "".join(f"u{number}\n" for number in range(3_000))
        folder.joinpath("many.csv").write_text("user\n" + many)
        os.mkfifo("pipe")
        writer = threading.Thread(
            target=folder.joinpath("pipe").write_text, args=("user\nada\n\n",), daemon=True
        )
        writer.start()
        told = run_command("run", "many.csv", "pipe", *COUNT, "--format", "csv", "--demo")
        writer.join()
        assert told.code == 2
        assert "Incomplete" in told.stdout
        assert "3,001" in told.stdout
        assert "pipe, row 2 " in told.stderr
        assert "the last answer is of all rows before it" in told.stderr

    def test_a_first_line_that_may_be_a_record_is_not_shown(self, folder):
        folder.joinpath("b.csv").write_text("lovelace,home\n")
        told = run_command("run", "b.csv", *COUNT)
        assert "the first line of the input must name the columns" in told.stderr
        assert "lovelace" not in told.stderr


class TestComments:
    TEXT = '# a "comment, that is open\n\n#,"x\nuser,page\n#user,page\n"a\n#b",home\n#\n3,"#"\n'

    @pytest.mark.parametrize("size", [1, 3, 1 << 20])
    def test_lines_that_begin_so_are_left_out_unless_they_are_quoted(
        self, folder, size, monkeypatch
    ):
        monkeypatch.setattr("panprivacy.intake.sources.text.BLOCK_BYTES", size)
        folder.joinpath("b.csv").write_text(self.TEXT + "#,x")
        rows = [(b"a\n#b", b"home"), (b"3", b"#")]
        assert rows_of("b.csv", columns=[USER, PAGE], comment="#")[0] == rows

    def test_they_are_lines(self, folder):
        folder.joinpath("b.csv").write_text(self.TEXT + ",home\n")
        told = run_command("run", "b.csv", *COUNT, "--comment", "#")
        assert "row 3 (line 10): the user id is null" in told.stderr

    def test_without_quotes_and_of_comments_alone(self, folder):
        folder.joinpath("b.csv").write_text("#\n#x\nuser\n#y\nada\n#z\n")
        assert rows_of("b.csv", comment="#")[0] == [(b"ada",)]
        folder.joinpath("b.csv").write_text("user\n#z\n")
        assert rows_of("b.csv", comment="#")[0] == []
        skips = Skips()
        folder.joinpath("b.csv").write_text("user,page\n#z\n1,2,3\n#\n1,2\n")
        assert rows_of("b.csv", comment="#", skips=skips)[0] == [(b"1",)]
        assert skips.rows == 1

    @pytest.mark.parametrize("given", ["", "##", '"', "\n", "é"])
    def test_what_cannot_be_one_is_refused(self, folder, given):
        with pytest.raises(InputError, match="the comment must be one character of ASCII"):
            open_source("a.csv", columns=[USER], comment=given)

    def test_other_formats_have_none(self, folder):
        with pytest.raises(InputError, match="a comment is for the formats csv and tsv, and"):
            open_source("a.log", columns=[USER], format="combined", comment="#")
        with pytest.raises(InputError, match="must be two characters"):
            open_source("a.csv", columns=[USER], comment="#", delimiter="#")
