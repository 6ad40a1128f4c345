"""Strict arithmetic for every test: a dtype or a rank that changes by accident is an error. Two host devices."""

import os
import pathlib
import signal

import jax
import pytest

import rdiff

# Started in the background of a shell a process ignores Ctrl-C, and so would the processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

rdiff.use_all_cores(2)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key() -> jax.Array:
    return jax.random.key(20230301)


@pytest.fixture
def data() -> pathlib.Path:
    """The folder of files that other people's simulators wrote."""
    folder = os.environ.get("RDIFF_DATA")
    if not folder or not pathlib.Path(folder).is_dir():
        pytest.skip("RDIFF_DATA names no folder")
    return pathlib.Path(folder)


@pytest.fixture(autouse=True, scope="module")
def no_programs_are_left():
    """Every compiled program holds memory maps, of which a process has 65530: the whole suite would run out of them."""
    yield
    jax.clear_caches()
