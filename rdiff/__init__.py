"""Reflected diffusions in queueing: simulation, long-run averages, and comparison with queue samples."""

import importlib
import pkgutil
import re
import sys
from types import ModuleType  # not `types`: rdiff has a module of that name
from typing import Any

__version__ = "0.1.0"

# JAX takes a second to import, so a name is imported when it is first asked for. `__init__.pyi` has the names, a line each,
# for type checkers and for this file.
_STUB = (pkgutil.get_data(__name__, "__init__.pyi") or b"").decode()
_HOME = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as \2\b", _STUB, re.MULTILINE)}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


class _Package(ModuleType):
    """This package, with the public names imported when they are first asked for."""

    def __getattr__(self, name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        whole = _HOME[name] == __name__  # a module of its own
        value = importlib.import_module(f"{__name__}.{name}" if whole else _HOME[name])
        self.__dict__[name] = value = value if whole else getattr(value, name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # To import the module `rdiff.compare` must not hide the function `rdiff.compare`.
        if _HOME.get(name, __name__) == __name__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        modules = [name for name, value in self.__dict__.items() if getattr(value, "__name__", "") == f"{__name__}.{name}"]
        return sorted({*(name for name in self.__dict__ if name.startswith("__")), *modules, *_HOME})


sys.modules[__name__].__class__ = _Package
