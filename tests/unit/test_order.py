"""The order of modules in a whole run: everything once, what takes long first, and what waits beside what computes."""

from tests.order import in_order


def test_every_module_is_there_once_and_what_takes_long_comes_first_of_its_kind() -> None:
    waiting = {"tests/pools/test_a.py": 40, "tests/machines/test_b.py": 4, "tests/e2e/test_c.py": 1}
    computing = {"tests/simulation/test_d.py": 90, "tests/unit/test_e.py": 100, "tests/unit/test_f.py": 1}
    ordered = in_order({**computing, **waiting})
    assert sorted(ordered) == sorted((*waiting, *computing))
    assert [path for path in ordered if path in waiting] == list(waiting)
    assert [path for path in ordered if path in computing] == list(computing)
    assert {*ordered[:2]} == {"tests/pools/test_a.py", "tests/simulation/test_d.py"}
