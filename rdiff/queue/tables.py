"""Tables of other libraries as named columns, by what they offer: nothing of pandas, polars or xarray is imported."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.arrays import Arrays
from rdiff.queue.columns import Columns
from rdiff.records import SETTINGS


def is_frame(data: Any) -> bool:
    """Whether `data` has the columns of a table: pandas, polars, or what is like them."""
    return hasattr(data, "columns") and hasattr(data, "__getitem__") and hasattr(data, "shape")


def is_labelled(data: Any) -> bool:
    """Whether `data` has the named dimensions of xarray."""
    return hasattr(data, "dims") and hasattr(data, "coords") and hasattr(data, "transpose")


class Frame(Columns):
    """A DataFrame or a table of pyarrow; a named index counts as a column. Rows are numbered from 0."""

    def __init__(self, frame: Any) -> None:
        index = getattr(frame, "index", None)
        if any(name is not None for name in getattr(index, "names", [None])):
            frame = frame.reset_index()
        self.frame = frame
        keys = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
        keys = [key for key in keys if str(key) != SETTINGS]  # how rdiff made the numbers
        self.names = [str(key) for key in keys]
        if not self.names or not len(frame):
            raise InputError(f"the table has shape {tuple(frame.shape)}: a run that wrote nothing?")
        self._keys = dict(zip(self.names, keys, strict=True))

    def counts_up(self, name: str) -> bool:
        """Whether a column that was saved with an index counts 0, 1, 2, ..."""
        if name not in ("", "Unnamed: 0", "index"):
            return False
        return bool(np.array_equal(self.read([name])[0][:, 0], np.arange(len(self.frame))))

    def labels(self, name: str) -> np.ndarray:
        """A column, as it is."""
        return np.asarray(self.frame[self._keys[name]].to_numpy())

    def read(self, names: Sequence[str], missing: bool = False) -> tuple[np.ndarray, None]:
        """The columns as one array (rows, columns), of the least type that holds them all; missing cells are NaN."""
        return np.stack([self._numbers(name) for name in names], axis=-1), None

    def _numbers(self, name: str) -> np.ndarray:
        array = self.labels(name)
        if array.dtype.kind in "iuf":
            return array
        if array.dtype.kind == "M":
            raise InputError(f"column {name} holds dates, expected numbers: times are in mean service times, from any origin")
        if array.dtype.kind != "O":
            raise InputError(f"column {name} holds {array.dtype}, expected numbers")
        values = np.empty(len(array))
        for k, cell in enumerate(array.tolist()):
            empty = cell is None or type(cell).__name__ in ("NAType", "NaTType")
            if not empty and (isinstance(cell, (bool, str, bytes)) or not hasattr(cell, "__float__")):
                raise InputError(f"row {k}, column {name}: found {cell!r:.40}, expected a number")
            values[k] = np.nan if empty or cell is None else float(cell)
        return values


def parquet(data: bytes) -> Frame:
    """The columns of a parquet file, read by pyarrow, or by what pandas uses instead."""
    import io

    try:
        from pyarrow.parquet import read_table as read
    except ImportError:
        try:
            from pandas import read_parquet as read
        except ImportError:
            raise InputError("reading parquet needs pyarrow: install it, or rdiff with the extra `io`") from None
    try:
        table = read(io.BytesIO(data))
    except Exception as error:  # a damaged file can make a reader raise almost anything
        raise InputError(f"the parquet file is damaged, or not one: {' '.join(str(error).split())[:200]}") from error
    return Frame(table)


def labelled(data: Any, chain: str | None) -> Arrays:
    """The columns of an xarray DataArray or Dataset.

    A dimension called `chain` (or "chain") holds the chains; of the others the first is the rows and, if there is one
    more, the last the columns. Coordinates along the rows are columns too, such as the time.
    """
    variables = dict(data.data_vars) if hasattr(data, "data_vars") else {str(data.name or "Q"): data}
    along = chain if chain is not None and chain in data.dims else "chain" if "chain" in data.dims else None
    most = max(variables.values(), key=lambda v: v.ndim, default=None)
    rest = [str(dim) for dim in most.dims if dim != along] if most is not None else []
    if most is None or len(rest) not in (1, 2):
        raise InputError(
            f"expected dimensions (rows, columns), (chain, rows, columns), or (rows) of several variables, got "
            f"{ {str(dim): size for dim, size in data.sizes.items()} }: name the dimension of the chains 'chain'"
        )
    row = rest[0]
    order = [dim for dim in (along, row) if dim is not None]
    columns: dict[str, np.ndarray] = {}
    coordinates = {str(k): v for k, v in data.coords.items() if row in v.dims and set(v.dims) <= set(order)}
    for name, variable in {**coordinates, **variables}.items():
        if row not in variable.dims or not set(variable.dims) <= {*order, *rest}:
            continue
        if along is not None and along not in variable.dims:
            variable = variable.expand_dims({along: data.sizes[along]})
        values = variable.transpose(*order, ...)
        if values.ndim == len(order):
            columns[str(name)] = np.asarray(values.values)
            continue
        labels = values.coords[rest[1]].values.tolist() if rest[1] in values.coords else []
        for j in range(values.shape[-1]):
            label = labels[j] if labels and isinstance(labels[j], str) else f"{name}[{j}]"
            columns[label] = np.asarray(values.values[..., j])
    return Arrays.of(columns)
