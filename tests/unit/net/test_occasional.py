"""What is said no more than once in a while."""

from typing import Any

from herder.net.occasional import Occasional


def test_the_first_is_said_at_once_and_the_others_are_counted() -> None:
    said: list[tuple[str, dict[str, Any]]] = []
    now = 0.0
    tell = Occasional(lambda event, **fields: said.append((event, fields)), 30, lambda: now)
    for second in range(95):
        now = float(second)
        tell("somebody came", peer=second)
    assert said == [
        ("somebody came", {"peer": 0}),
        ("somebody came", {"peer": 30, "unsaid": 29}),
        ("somebody came", {"peer": 60, "unsaid": 29}),
        ("somebody came", {"peer": 90, "unsaid": 29}),
    ]
