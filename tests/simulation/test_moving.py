"""A guest is handed over between two nodes whose agents know nothing of each other but what the protocol says."""

from tests.simulation.moving.scenario import play


def test_a_guest_goes_on_at_the_target_from_where_it_stopped_at_the_source(seed: int) -> None:
    ended = play(seed)
    assert (ended.wrong, ended.runs_on) == ([], "node-2"), "\n".join(ended.trace[-80:])
