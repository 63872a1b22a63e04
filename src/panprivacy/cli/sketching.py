"""Published tables of `run --sketch`: their files, and the addressing key of their series."""

from __future__ import annotations

import base64
import errno
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from panprivacy.cli.options import read_key, write_new
from panprivacy.cli.output import Printed, WrittenSketch
from panprivacy.cli.publishing import Schedule
from panprivacy.errors import PlanError
from panprivacy.ground.files import unfinished, write_new_file
from panprivacy.intake.programs.counting import Grouping
from panprivacy.privacy.coins import SystemCoins
from panprivacy.statistics.release import Name
from panprivacy.statistics.sketch.released import SketchRelease
from panprivacy.statistics.specification import Specification

if TYPE_CHECKING:
    from panprivacy.statistics.overlaps.sketch import Sketch

_KEY_BYTES = 32
_LONGEST_NAME = 200
_MODE = 0o644  # a sketch and its key are public


@dataclass(frozen=True)
class SeriesKey:
    """The addressing key of all windows of a series, which is public.

    Args:
        file: path of its file.
        key: the key.
        new: whether it was drawn now, so that its file has to be written.
    """

    file: Path
    key: bytes
    new: bool

    @classmethod
    def of(cls, file: Path) -> Self:
        """Read the key of a file, or draw one if there is no file.

        Raises:
            InputError: it cannot be read.
        """
        if os.path.lexists(file):
            return cls(file, read_key(file), new=False)
        return cls(file, SystemCoins().key(_KEY_BYTES).hex().encode(), new=True)

    def write(self) -> None:
        """Write a new key.

        Raises:
            PlanError: it cannot be written.
        """
        if not self.new:
            return
        write_new(self.file, self.key, mode=_MODE)
        sys.stderr.write(
            f"panprivacy: made {self.file}, the addressing key of the series: keep it for all "
            "windows; it is public, as it is in every sketch\n"
        )


@dataclass(frozen=True)
class SketchFiles:
    """Files of the tables that a command publishes, and the key of their series.

    Args:
        path: of the file, or of the folder if there are several tables; None if there are none.
        series: the addressing key of the series.
        labels: of the statistics that publish tables.
        groups: the groups that are counted separately; empty without groups.
        windows: whether each clock window publishes a table.
        unwritten: tables that were printed, because they could not be written.
    """

    path: Path | None = None
    series: SeriesKey | None = None
    labels: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    windows: bool = False
    unwritten: list[WrittenSketch] = field(default_factory=list)

    @classmethod
    def read(
        cls,
        path: Path | None,
        key: Path | None,
        schedule: Schedule,
        grouping: Grouping | None,
        specifications: Sequence[Specification],
    ) -> Self:
        """Check the options of a command and return the files.

        Raises:
            PlanError: they are inconsistent, or a file exists or cannot be written.
            InputError: the key cannot be read.
        """
        labels = tuple(one.label for one in specifications if one.sizes.published)
        _check_options(path, key, schedule, labels)
        if path is None or key is None:
            return cls()
        groups = () if grouping is None else tuple(map(str, grouping.labels))
        files = cls(path, SeriesKey.of(key), labels, groups, schedule.window is not None)
        files._check_free(path)
        return files

    @property
    def key(self) -> bytes | None:
        """The addressing key; None if no table is published."""
        return None if self.series is None else self.series.key

    @property
    def several(self) -> bool:
        """Whether the path is a folder."""
        return self.windows or bool(self.groups) or len(self.labels) > 1

    def begin(self) -> None:
        """Write a new key, and make the folder, before anything is counted.

        Raises:
            PlanError: they cannot be written.
        """
        if self.path is None or self.series is None:
            return
        if self.several:
            try:
                self.path.mkdir(exist_ok=True)
            except OSError as error:
                message = f"--sketch cannot make the folder {self.path}: {error.strerror}"
                raise PlanError(message) from None
        self.series.write()

    def write(self, printed: Printed) -> Printed:
        """Write the published tables of one moment, before their answers are printed.

        A table that cannot be written goes out with the answers: it cannot be published again.
        """
        written = tuple(self._written(printed))
        self.unwritten.extend(one for one in written if one.reason is not None)
        return replace(printed, sketches=written)

    def end(self) -> None:
        """Check, when all answers are printed, that all tables are in files.

        Raises:
            PlanError: one was printed in place of a file.
        """
        for one in self.unwritten:
            message = f"--sketch cannot write {one.path}: {one.reason}; the table is printed in "
            message += "base64: keep it, as it cannot be published again"
            raise PlanError(message)

    def _written(self, printed: Printed) -> Iterator[WrittenSketch]:
        for name, release in printed.answers.items():
            if not isinstance(release, SketchRelease) or release.sketch is None:
                continue
            sketch = release.sketch.named(statistic=name.statistic, group=name.group)
            if printed.window is not None:
                sketch = sketch.named(start=printed.window.start, end=printed.window.end)
            yield self._write(sketch, name)

    def _write(self, sketch: Sketch, name: Name) -> WrittenSketch:
        path, data = self._path(sketch, name), sketch.to_bytes()
        try:
            write_new_file(path, data, _MODE)
        except FileExistsError:
            reason = "there is a file of this name now"
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            return WrittenSketch(path)
        return WrittenSketch(path, reason, base64.b64encode(data).decode())

    def _path(self, sketch: Sketch, name: Name) -> Path:
        """Return the path of a sketch; of a window that another process counted too, a new one."""
        start = sketch.front.start
        moment = None if start is None else f"{start:%Y-%m-%dT%H%M%SZ}"
        path = self._place(moment, name.statistic, None if name.group is None else str(name.group))
        if moment is None or not os.path.lexists(path):
            return path
        others = (path.with_name(f"{path.stem}_{number}.sketch") for number in itertools.count(2))
        return next(one for one in others if not os.path.lexists(one))

    def _place(self, moment: str | None, label: str, group: str | None) -> Path:
        path = self.path or Path()
        if not self.several:
            return path
        parts = [
            *([] if moment is None else [moment]),
            *([label] if len(self.labels) > 1 else []),
            *([] if group is None else [quote(group, safe=" ")]),
        ]
        return path / f"{'_'.join(parts)}.sketch"

    def _check_free(self, path: Path) -> None:
        """Check, before anything is counted, that all files can be made and none is there."""
        if not self.several:
            _check_absent(path)
            _check_makes(path)
            return
        if path.exists() and not path.is_dir():
            message = f"--sketch needs a folder for several tables, and {path} is a file"
            raise PlanError(message)
        places: set[Path] = set()
        for label, group in itertools.product(self.labels, self.groups or [None]):
            place = self._place("" if self.windows else None, label, group)
            if place in places:
                message = (
                    f"--sketch: two tables would be in one file, {place.name}: give a statistic "
                    "another name with as="
                )
                raise PlanError(message)
            places.add(place)
            if len(place.name) > _LONGEST_NAME:
                message = "--groups: a name is too long for the name of a file of --sketch"
                raise PlanError(message)
            if not self.windows:
                _check_absent(place)
        _check_makes(path / "x.sketch" if path.is_dir() else path)


def _check_options(
    path: Path | None, key_file: Path | None, schedule: Schedule, labels: Sequence[str]
) -> None:
    """Check that the options go together."""
    message = ""
    if path is None and labels:
        message = (
            f"{labels[0]} publishes its table: say where, --sketch monday.sketch --key series.key"
        )
    elif path is not None and not labels:
        message = "--sketch is for tables that are published: --stat overlap,expected=100_000"
    elif path is not None and key_file is None:
        message = (
            "--sketch needs --key series.key: windows are compared by one addressing key, which is "
            "public; the file is made if it is not there"
        )
    elif path is not None and (schedule.every is not None or schedule.releases > 1):
        message = "--sketch writes one table a window: leave out --every and --releases"
    if message:
        raise PlanError(message)


def _check_absent(path: Path) -> None:
    """Check that no file would be overwritten."""
    if os.path.lexists(path):
        message = f"--sketch: there is {path} already: name another, or remove it"
        raise PlanError(message)


def _check_makes(path: Path) -> None:
    """Check that a file can be made beside this path."""
    fresh = unfinished(path)
    try:
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, _MODE))
        fresh.unlink()
    except FileExistsError:  # of a command that was killed while writing: it is written over
        return
    except OSError as error:
        message = f"--sketch cannot write {path}: {error.strerror or os.strerror(errno.EIO)}"
        raise PlanError(message) from None
