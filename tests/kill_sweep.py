"""Kills a sweep with SIGKILL at random moments, goes on with it, and compares the end with an undisturbed one, bit for bit.

    python tests/kill_sweep.py --kills 50

lists every kill: when it came, how many points were done, and how many steps the batch under way had on record.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POINTS, OBSERVABLES = 12, ("y1", "y2", "y2>1")


def worker(folder: str, points: int) -> None:
    """The sweep that is killed: a checkpoint after each call of the device."""
    import numpy as np

    from rdiff.observables import parse_all
    from rdiff.sweeps.sweep import sweep

    betas = np.linspace(0.5, 2.0, points).tolist()
    options = {"chains": 64, "horizon": 25000.0, "batch": -(-points // 4)}
    Path(folder + ".started").touch()
    found = sweep({"beta": betas}, parse_all(OBSERVABLES), out=folder, checkpoint=0.0, key=1, **options)
    Path(folder, "result.json").write_text(json.dumps(found.to_dict()))


def launch(folder: Path, points: int) -> subprocess.Popen:
    """The worker as a process of its own."""
    command = [sys.executable, __file__, "--worker", str(folder), "--points", str(points)]
    with open(f"{folder}.log", "w") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def work(folder: Path, points: int, seconds: float) -> tuple[subprocess.Popen, bool]:
    """A worker that has had so many seconds since it began, imports left out; whether it is done."""
    started = Path(f"{folder}.started")
    started.unlink(missing_ok=True)
    process = launch(folder, points)
    while not started.exists() and process.poll() is None:
        time.sleep(0.01)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return process, False
    return process, True


def finish(process: subprocess.Popen) -> None:
    """To the end, without fault."""
    if process.wait(600):
        raise SystemExit(f"the sweep failed: {Path(process.args[-3] + '.log').read_text()}")


def state(folder: Path) -> tuple[int, int]:
    """Points done, and steps on record of the batch under way."""
    import numpy as np

    steps = 0
    for path in (folder / "running").glob("*.npz"):
        with np.load(path) as file:
            steps += int(file["steps"][0])
    return len(list((folder / "points").glob("*.json"))), steps


def trial(kills: int, points: int = POINTS, seed: int = 0, say=print) -> int:
    """`kills` kills, over as many sweeps as that takes; the number of sweeps, all equal to the undisturbed one."""
    moments = random.Random(seed)
    sweeps, killed = 0, 0
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        finish(launch(home / "whole", points))
        span = (home / "whole" / "result.json").stat().st_mtime - Path(f"{home / 'whole'}.started").stat().st_mtime
        whole = (home / "whole" / "result.json").read_text()
        say(f"undisturbed: {span:.1f} s, {points} points")
        while killed < kills:
            folder = home / f"sweep{sweeps}"
            own = 0
            while own < 3 and killed < kills:  # three kills a sweep, then to the end
                moment = moments.uniform(0.05, 0.6) * span
                process, done = work(folder, points, moment)
                if done:
                    span = min(span, moment)
                    break
                process.send_signal(signal.SIGKILL)
                process.wait()
                own, killed = own + 1, killed + 1
                ready, steps = state(folder)
                say(f"kill {killed:2}: sweep {sweeps}, after {moment:5.2f} s, {ready:3} points done, {steps:6} steps on record")
            finish(launch(folder, points))
            same = (folder / "result.json").read_text() == whole
            say(f"sweep {sweeps}: {'equal, bit for bit' if same else 'DIFFERS'}")
            if not same:
                raise SystemExit("a resumed sweep differs from the undisturbed one")
            sweeps += 1
    return sweeps


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.points)
    else:
        count = trial(options.kills, options.points, options.seed, lambda line: print(line, flush=True))
        print(f"{options.kills} kills, {count} sweeps, all equal to the undisturbed one")
