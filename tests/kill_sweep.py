"""Kills a sweep with SIGKILL, goes on with it, and compares the end with an undisturbed one, bit for bit.

    python tests/kill_sweep.py --kills 50
    python tests/kill_sweep.py --kills 3 --points 200 --amid

Kills come at random moments, three a sweep. With --amid all fall on one sweep, each after the batch under way has written its
progress at least twice, and each start must go on from the steps on record at the kill. Every kill is listed: when it came, how
many points were done, and how many steps the batch under way had on record.
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
    """The sweep that is killed: a checkpoint after each call of the device. It notes what it goes on from."""
    import numpy as np

    from rdiff.observables import parse_all
    from rdiff.sweeps.store import Store
    from rdiff.sweeps.sweep import sweep

    resume = Store.resume

    def noted(self: Store, names: list[str]):
        at = resume(self, names)
        if at is not None:
            with open(f"{folder}.resumed", "a") as file:
                file.write(f"{at.done}\n")
        return at

    Store.resume = noted
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


def ended(process: subprocess.Popen, folder: Path, seconds: float, amid: bool) -> bool:
    """Whether a worker is done so many seconds after it began, imports left out; with `amid`, and before it has written the
    progress of the batch under way twice."""
    started, before = Path(f"{folder}.started"), written(folder)
    while not started.exists() and process.poll() is None:
        time.sleep(0.01)
    end, seen = time.monotonic() + seconds, {}
    while process.poll() is None:
        now = written(folder)
        for name, moment in now.items():
            seen.setdefault(name, {before.get(name)}).add(moment)
        if time.monotonic() >= end and (not amid or any(len(seen[name]) > 2 for name in now)):
            return False
        time.sleep(0.002)
    return True


def written(folder: Path) -> dict[str, int]:
    """When the progress of each batch under way was written."""
    found = {}
    for path in (folder / "running").glob("*.npz"):
        try:
            found[path.name] = path.stat().st_mtime_ns
        except FileNotFoundError:  # that batch is done
            continue
    return found


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


def resumed(folder: Path) -> list[int]:
    """The steps that starts of this sweep went on from."""
    path = Path(f"{folder}.resumed")
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def undisturbed(points: int = POINTS) -> tuple[str, float]:
    """The result of a sweep that nobody kills, and how long it took."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "whole"
        finish(launch(folder, points))
        result = folder / "result.json"
        return result.read_text(), result.stat().st_mtime - Path(f"{folder}.started").stat().st_mtime


def trial(kills: int, points: int, whole: str, span: float, *, seed: int = 0, amid: bool = False, say=print) -> int:
    """`kills` kills, over as many sweeps as that takes; the number of sweeps, all equal to the whole one of that span."""
    moments = random.Random(seed)
    sweeps, killed = 0, 0
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        while killed < kills:
            folder, records = home / f"sweep{sweeps}", []
            while killed < kills and (amid or len(records) < 3):  # then to the end
                Path(f"{folder}.started").unlink(missing_ok=True)
                moment = moments.uniform(0.05, 0.6) * span
                process = launch(folder, points)
                if ended(process, folder, moment, amid):
                    span = min(span, moment)
                    break
                process.send_signal(signal.SIGKILL)
                process.wait()
                ready, steps = state(folder)
                killed += 1
                records.append(steps)
                say(f"kill {killed:2}: sweep {sweeps}, after {moment:5.2f} s, {ready:3} points done, {steps:6} steps on record")
            finish(launch(folder, points))
            went_on = resumed(folder)
            if amid and (went_on != records or not all(records)):
                raise SystemExit(f"the starts went on from {went_on}, and not from the steps on record, {records}")
            same = (folder / "result.json").read_text() == whole
            say(f"sweep {sweeps}: {'equal, bit for bit' if same else 'DIFFERS'}; its starts went on from {went_on}")
            if not same:
                raise SystemExit("a resumed sweep differs from the undisturbed one")
            sweeps += 1
    return sweeps


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--amid", action="store_true", help="one sweep, killed while a batch has progress on record")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.points)
    else:
        tell = lambda line: print(line, flush=True)  # noqa: E731
        text, seconds = undisturbed(options.points)
        tell(f"undisturbed: {seconds:.1f} s, {options.points} points, {len(OBSERVABLES)} observables")
        count = trial(options.kills, options.points, text, seconds, seed=options.seed, amid=options.amid, say=tell)
        print(f"{options.kills} kills, {count} sweeps, all equal to the undisturbed one")
