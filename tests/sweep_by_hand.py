"""What other processes are given to do in the tests of sweeps."""

import os
import signal


def y2(y):
    return y[1]


def deadly(y):
    """An observable that kills the process that traces it, when that is a worker."""
    if os.environ.get("RDIFF_TEST_WORKER"):
        os.kill(os.getpid(), signal.SIGKILL)
    return y[1]


def mark_worker():
    os.environ["RDIFF_TEST_WORKER"] = "1"
