"""The same seed gives the same run, line by line, in every process; and whatever a seed chooses, the end is the same."""

import os
import subprocess
import sys

import pytest

from tests.simulation.example.scenario import FLOCKS_IN_A_STORM
from tests.simulation.matrix import play
from tests.simulation.outcome import differences
from tests.simulation.storm import storm
from tests.simulation.trace import hash_of


def _hashes_elsewhere(seed: int) -> list[str]:
    """In processes of their own, where sets and dicts of strings have another order."""
    command = [sys.executable, "-m", "tests.simulation", "--storm", "--only-hash", "--seed", str(seed)]
    running = [
        subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": number}, stdout=subprocess.PIPE, text=True)
        for number in ("1", "2")
    ]
    return [process.communicate()[0].strip() for process in running]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_also_under_another_hash_seed(seed: int) -> None:
    here = hash_of(play(FLOCKS_IN_A_STORM, seed, storm(seed), traced=True).trace)
    assert _hashes_elsewhere(seed) == [here, here]


def test_another_seed_gives_another_trace(seed: int) -> None:
    assert play(FLOCKS_IN_A_STORM, seed, traced=True).trace != play(FLOCKS_IN_A_STORM, seed + 1, traced=True).trace


def test_a_storm_of_faults_leads_to_the_same_end(seed: int) -> None:
    found = differences(play(FLOCKS_IN_A_STORM, seed), play(FLOCKS_IN_A_STORM, seed, storm(seed)))
    assert not found, f"{storm(seed)}\n" + "\n".join(found)
