"""Files of numbers as named columns: CSV (also gzipped), npy, npz, parquet. Whatever is wrong is an `InputError`."""

import glob
import gzip
import io
import os
import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.arrays import Arrays
from rdiff.queue.columns import Source
from rdiff.queue.tables import Frame, is_frame, is_labelled, labelled, parquet
from rdiff.queue.text import Text
from rdiff.queue.together import Together


def opened(data: Any, chain: Any = None) -> tuple[Source, Any]:
    """What `data` holds: a path, a pattern or a list of paths (each file a chain), a table, or labelled arrays.

    **Returns:** its columns, and `chain`, the name of the chains' column: None where a dimension of that name is it.
    """
    if is_labelled(data):
        return labelled(data, chain if isinstance(chain, str) else None), None if chain in data.dims else chain
    if is_frame(data):
        return Frame(data), chain
    if isinstance(data, (list, tuple)):
        return Together([(str(path), _named(path)) for path in _distinct(data)]), chain
    if isinstance(data, str) and glob.has_magic(data) and not os.path.exists(data):
        paths = sorted(glob.glob(data))
        if not paths:
            raise InputError(f"{data}: no file matches this pattern")
        if len(paths) > 1:
            return opened(paths, chain)
        data = paths[0]
    return load(data), chain


def _named(path: Any) -> Source:
    try:
        return load(path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _distinct(paths: Sequence[Any]) -> Sequence[Any]:
    if not paths:
        raise InputError("no files: expected at least one")
    twice = [path for k, path in enumerate(paths) if path in paths[:k]]
    if twice:
        raise InputError(f"{twice[0]} is named twice: a run counted twice makes the error too small")
    return paths


def load(path: str | os.PathLike[str]) -> Source:
    """The file's columns; raises `InputError` when it is missing, empty, damaged, or not what its name says."""
    try:
        name = os.fspath(path)
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"the file cannot be read: {reason}") from error
    if not data:
        raise InputError("the file is empty: a run that wrote nothing?")
    suffix = os.path.splitext(str(name).lower().removesuffix(".gz"))[1]
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"the gzip file is damaged or truncated ({error})") from error
    if data.startswith(b"PAR1"):
        return parquet(data)
    if suffix in (".parquet", ".pq"):
        raise InputError("this is not a parquet file, whatever its name says (truncated, or text?)")
    is_numpy = data.startswith(b"\x93NUMPY") or data.startswith(b"PK")
    if suffix in (".npy", ".npz"):
        if not is_numpy:
            raise InputError(f"this is not a NumPy {suffix} file, whatever its name says (truncated, or text?)")
        if data.startswith(b"PK") != (suffix == ".npz"):
            raise InputError(f"this is a NumPy {'npz' if suffix == '.npy' else 'npy'} file, whatever its name says: rename it")
        return Arrays(_arrays(data))
    if is_numpy:
        kind = "npy" if data.startswith(b"\x93NUMPY") else "npz (or another zip archive)"
        raise InputError(f"this is a NumPy {kind} file, not text: give it that ending")
    return Text(data)


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            found = {key: loaded[key] for key in loaded.files}
            return {key: array for key, array in found.items() if isinstance(array, np.ndarray)}
    except Exception as error:  # a damaged file can make NumPy and zipfile raise almost anything
        text = re.sub(r"\s+", " ", str(error))
        if "allow_pickle" in text or "Object arrays" in text:
            text = "it holds Python objects, which are not read"
        raise InputError(f"the NumPy file is damaged, truncated or not one: {text}") from error
