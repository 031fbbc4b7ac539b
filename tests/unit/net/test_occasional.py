"""What is said no more than once in a while."""

import structlog
from structlog.testing import capture_logs

from herder.net.occasional import Occasional


def test_the_first_is_said_at_once_and_the_others_are_counted() -> None:
    now = 0.0
    with capture_logs() as said:
        tell = Occasional(structlog.get_logger(), clock=lambda: now)
        for second in range(95):
            now = float(second)
            tell("somebody came", peer=second)
    assert [(one["log_level"], one["peer"], one.get("unsaid")) for one in said] == [
        ("warning", 0, None),
        ("warning", 30, 29),
        ("warning", 60, 29),
        ("warning", 90, 29),
    ]
