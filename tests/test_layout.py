"""The numbers of a lane are its own: they do not depend on the lanes beside it, on tiles, or on devices."""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff import averages, engine
from rdiff.precision import precision

ROOT = Path(__file__).parent.parent
PROGRAM = """
import sys
import jax
jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
import numpy as np
import rdiff
sys.path.insert(0, "tests")
from test_layout import sums
assert len(jax.devices()) == int(sys.argv[1])
np.save(sys.argv[2], sums(600))
"""


def sums(chains, noise=None, dtype=jnp.float32):
    """Of each lane."""
    h = {"y2": lambda y: y[1], "exp": lambda y: jnp.exp(-y[0] - y[1])}
    with precision(dtype):
        plan = averages._plan(rdiff.JSQDiffusion(1.0), h, 3, 0.1, chains, 20.0, 5.0, None, None, dtype, False, noise, None)
        *_, last = engine.run(plan.chain, plan.keys, plan.starts, burn_in=plan.burn_in, steps=plan.steps)
    return last.sums


@pytest.fixture(scope="module")
def many():
    return sums(1200)


@pytest.mark.parametrize("chains", [2, 17, 64, 100, 600, 1024])
def test_the_lanes_beside_change_no_bit(many, chains):
    found = sums(chains)
    assert found.shape == (chains, 2) and np.array_equal(found, many[:chains])


@pytest.mark.parametrize("options", [{"noise": rdiff.Threefry()}, {"dtype": jnp.float64}], ids=["threefry", "float64"])
def test_so_with_other_generators_and_precisions(options):
    assert np.array_equal(sums(70, **options), sums(700, **options)[:70])


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_the_number_of_devices_changes_no_bit(many, devices, tmp_path):
    file = tmp_path / "sums.npy"
    subprocess.run([sys.executable, "-c", PROGRAM, str(devices), str(file)], check=True, cwd=ROOT)
    assert np.array_equal(np.load(file), many[:600])
