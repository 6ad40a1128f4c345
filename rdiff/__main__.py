"""`rdiff` and `python -m rdiff`: the command line as a process, which Ctrl-C ends in order whatever it is doing."""

import math
import signal
import sys
import time
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
        if "--json" in sys.argv[1:]:
            print('{"schema": 1, "interrupted": true}')
        print("rdiff: interrupted", file=sys.stderr)
        sys.exit(130)
    except SystemExit as end:
        if end.code == 130:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # nor while Python shuts down
        raise


class _Once:
    """A handler of SIGINT that raises `KeyboardInterrupt`, but not for keys pressed again right after."""

    def __init__(self) -> None:
        self.last = -math.inf

    def __call__(self, *_: Any) -> None:
        now = time.monotonic()
        if now - self.last >= _DEAF:
            self.last = now
            raise KeyboardInterrupt


if __name__ == "__main__":
    main()
