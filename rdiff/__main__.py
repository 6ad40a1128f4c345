"""`rdiff` and `python -m rdiff`: the command line as a process, which Ctrl-C ends in order whatever it is doing."""

import math
import os
import signal
import sys
import time
from types import FrameType
from typing import Any

_DEAF = 5.0  # seconds in which keys pressed again change nothing: what was reached is being printed


def main() -> None:
    """Runs the command line; exit code 130 after Ctrl-C."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started this wants it so
            signal.signal(signal.SIGINT, _Once())
        from rdiff.cli import main as command

        command(prog_name="rdiff")
    except KeyboardInterrupt:  # before click was there to catch it
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _say()
        _end()
    except SystemExit as end:
        if end.code == 130:
            _end()
        raise


class _Once:
    """A handler of SIGINT that raises `KeyboardInterrupt`, but not for keys pressed again right after.

    Modules half imported cannot be left by an exception: some swallow it, some abort the process. There it ends at once.
    """

    def __init__(self) -> None:
        self.last = -math.inf

    def __call__(self, _: Any, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self.last >= _DEAF:
            self.last = now
            if _importing(frame):
                _say()
                _end()
            raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _end() -> None:
    """Exit code 130 now: JAX may be in the middle of something that Python's shutdown would pull away."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130)


def _say() -> None:
    if "--json" in sys.argv[1:]:
        print('{"schema": 1, "interrupted": true}')
    print("rdiff: interrupted", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
