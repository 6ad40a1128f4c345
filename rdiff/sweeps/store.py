"""Where a sweep keeps what is done: a folder of small files that are whole or not there, whenever the power goes.

sweep.json          the settings, and the points of the grid in order
points/NAME.json    what was found at a point; NAME is a hash of everything the numbers depend on
running/NAME.npz    how far a batch of points has come
"""

import contextlib
import hashlib
import io
import json
import logging
import os
import time
import uuid
import zipfile
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rdiff.accumulate import Batches
from rdiff.engine import Checkpoint
from rdiff.errors import InputError
from rdiff.estimate import Estimate, Estimates, plain

SCHEMA = 2
_VARIED = "in the grid"
_ABANDONED = 3600.0  # seconds after which a half-written file is one of a process that was killed
Found = Estimates | str  # what a point gave, or what went wrong there
_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
logger = logging.getLogger(__name__)


def digest(value: Any) -> str:
    """A hash of plain data that does not depend on the order of dicts, or on whether a number is written 1 or 1.0.

    ```python
    >>> from rdiff.sweeps.store import digest
    >>> digest({"beta": 1, "b": 2}) == digest({"b": 2.0, "beta": 1.0})
    True

    ```
    """
    return hashlib.sha256(json.dumps(_canonical(value), sort_keys=True).encode()).hexdigest()


class Store:
    """The folder of a sweep. Writing is atomic: a new file, flushed to the disk, then renamed.

    It pickles, so that workers elsewhere write to the same folder.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder).absolute()
        self.unsaved: str | None = None  # why the last write failed

    def open(self, settings: Mapping[str, Any], points: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Enter a sweep of these settings and points, (name, values) each, or go on with it; the grid may have changed.

        **Raises:** `InputError` when nothing can be written there, or the folder holds a sweep of other settings.
        """
        path = self.folder / "sweep.json"
        before = _load(path)
        if before is None and path.exists():
            logger.warning("%s is damaged: it is written anew; points that were done are kept", path)
        if before is not None and (changed := _changed(before, settings, points)):
            other = f"{self.folder} holds a sweep of other settings"
            raise InputError(f"{other}: {changed}; give another folder, or those settings")
        record = {"settings": dict(settings), "points": [[name, dict(values)] for name, values in points]}
        try:
            for part in ("points", "running"):
                (self.folder / part).mkdir(parents=True, exist_ok=True)
            self._write(path, _dump(record))
        except OSError as error:
            raise InputError(f"cannot write in {self.folder}: {error.strerror or error}") from None
        for left in self.folder.glob(".*.*.*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _ABANDONED:
                    _remove(left)

    def read(self, name: str) -> Found | None:
        """What was found at the point of that name, None when it is not done."""
        path = self._point(name)
        if path.is_dir():
            logger.warning("%s is a folder, where the file of a point should be: that point cannot be kept; remove it", path)
            return None
        record = _load(path)
        if record is None or record.get("point") != name:  # damaged, or a copy of another point's file
            if path.exists():
                logger.warning("%s is damaged: that point is not done", path)
            return None
        if record["failed"] is not None:
            return str(record["failed"])
        return Estimates({row["observable"]: Estimate.of(row) for row in record["estimates"]})

    def write(self, name: str, values: Mapping[str, Any], found: Found) -> bool:
        """Keep what was found at a point; whether that worked. What did not is told once, and the sweep goes on."""
        path, record = self._point(name), {"point": name, "values": dict(values), "failed": None, "estimates": []}
        if path.is_dir():  # `read` has told
            self.unsaved = self.unsaved or "a folder is in the place of the file"
            return False
        if isinstance(found, str):
            record["failed"] = found
        else:
            record["estimates"] = [{**e.to_dict(), "dof": plain(e.dof), "settings": e.settings} for e in found.values()]
        return self._try(path, _dump(record))

    def has(self, name: str) -> bool:
        """Whether there is a file of that point."""
        return self._point(name).is_file()

    def others(self, names: Container[str]) -> int:
        """How many points are done besides those."""
        return sum(path.stem not in names for path in (self.folder / "points").glob("*.json") if path.is_file())

    def begun(self, wanted: Iterable[str], done: Container[str] = ()) -> list[list[str]]:
        """The batches under way that have wanted points only, as the names of their points; those all done are dropped."""
        wanted, found = set(wanted), []
        for path in sorted((self.folder / "running").glob("*.npz")):
            try:
                with open(path, "rb") as raw, np.load(raw) as file:
                    names = [str(name) for name in file["points"]]
            except _DAMAGED as error:
                _forget(path, error)
                continue
            if all(name in done for name in names):
                _remove(path)
            elif wanted.issuperset(names):
                found.append(names)
                wanted -= set(names)
        return found

    def resume(self, names: Sequence[str]) -> Checkpoint | None:
        """How far the batch of these points has come; None when it has not begun."""
        path = self._running(names)
        if not path.exists():
            return None
        try:
            with open(path, "rb") as raw, np.load(raw) as file:
                arrays = {name: file[name] for name in file.files}
            leaves = tuple(arrays[f"leaf{i}"] for i in range(int(arrays["leaves"])))
            done, averaged = (int(x) for x in arrays["steps"])
            return Checkpoint(leaves, Batches.of(arrays), arrays["began"], done, averaged)
        except _DAMAGED as error:
            _forget(path, error)
            return None

    def keep(self, names: Sequence[str], at: Checkpoint) -> None:
        """Note how far a batch has come."""
        text = io.BytesIO()
        leaves = {f"leaf{i}": leaf for i, leaf in enumerate(at.leaves)}
        steps = np.array([at.done, at.averaged])
        np.savez(text, points=names, leaves=len(at.leaves), steps=steps, began=at.began, **at.batches.arrays(), **leaves)  # pyright: ignore
        self._try(self._running(names), text.getvalue())

    def drop(self, names: Sequence[str]) -> None:
        """A batch is done."""
        _remove(self._running(names))

    def _point(self, name: str) -> Path:
        return self.folder / "points" / f"{name}.json"

    def _running(self, names: Sequence[str]) -> Path:
        return self.folder / "running" / f"{digest(list(names))[:20]}.npz"

    def _try(self, path: Path, text: bytes) -> bool:
        try:
            self._write(path, text)
        except OSError as error:
            if self.unsaved is None:
                logger.warning("cannot write %s (%s): the sweep goes on, and keeps it in memory", path, error.strerror)
            self.unsaved = error.strerror or str(error)
            return False
        return True

    def _write(self, path: Path, text: bytes) -> None:
        """`path` holds `text` afterwards, or what it held before."""
        new = self.folder / f".{path.name}.{uuid.uuid4().hex}"
        try:
            with open(new, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, path)
        except OSError:
            new.unlink(missing_ok=True)
            raise


def manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The settings and points of the sweep in a folder. **Raises:** `InputError` when there is none."""
    path = Path(folder) / "sweep.json"
    record = _load(path)
    if record is None:
        raise InputError(f"{path} is {'damaged' if path.exists() else 'not there'}: a sweep's folder holds one (out=, --out)")
    return record


def _changed(before: dict[str, Any], settings: Mapping[str, Any], points: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """In what these settings differ from those of the record before; empty when in nothing."""
    was, what = before["settings"], []
    for name in sorted({*was, *settings}):
        old, new = was.get(name, _VARIED), settings.get(name, _VARIED)
        if _canonical(old) != _canonical(new):
            what.append(f"{name} was {old!r}, now {new!r}")
    known = {digest(values): name for name, values in before["points"]}
    if not what and any(known.get(digest(values), name) != name for name, values in points):
        what = ["the model or an observable is another function than it was"]
    return "; ".join(what)


def _forget(path: Path, why: Exception) -> None:
    logger.warning("%s is damaged (%s): that batch of points starts over", path, why)
    _remove(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # not there, or nothing that can be taken away
        path.unlink()


def _dump(record: dict[str, Any]) -> bytes:
    return json.dumps({"schema": SCHEMA, "sha256": _checksum(record), "record": record}).encode()


def _load(path: Path) -> dict[str, Any] | None:
    """The record in a file; None when it is not what was written."""
    try:
        found = json.loads(path.read_bytes())
        record = found["record"]
        whole = found["schema"] == SCHEMA and found["sha256"] == _checksum(record)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return record if whole else None


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, allow_nan=False).encode()).hexdigest()


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _canonical(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return repr(float(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
