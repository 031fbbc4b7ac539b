"""What a MigrationPolicy says of itself."""

from typing import Any

import msgspec
import pytest

from herder.api.kinds import MigrationPolicy
from herder.rules.policies import Counts, Policies
from herder.rules.policies.status import policy_status
from tests.unit.rules.test_settings_status import NOW, conditions

Json = dict[str, Any]


def policy_shown(spec: Json, counts: Counts) -> Json:
    metadata = {"name": "gold", "generation": 2}
    policy = msgspec.convert({"metadata": metadata, "spec": spec}, MigrationPolicy)
    return policy_status(policy, Policies([policy]).unused("gold"), counts, NOW)


CHOSEN = {"selectors": {"virtualMachineInstanceSelector": {"tier": "gold"}}}


@pytest.mark.parametrize(
    ("spec", "counts", "accepted", "applied"),
    [
        (CHOSEN, Counts(2, 3), ("True", "Accepted"), ("True", "Applied")),
        (CHOSEN, Counts(0, 3), ("True", "Accepted"), ("False", "OtherPoliciesFirst")),
        (CHOSEN, Counts(), ("True", "Accepted"), ("False", "NoMatchingInstance")),
        ({**CHOSEN, "maxDowntimeMs": 0}, Counts(1, 1), ("True", "SettingsNotUsed"), ("True", "Applied")),
        ({"selectors": {}}, Counts(), ("False", "NoSelectors"), ("False", "NotAccepted")),
        ({"selectors": {"namespaceSelector": {"a": 1.5}}}, Counts(), ("False", "Invalid"), ("False", "NotAccepted")),
    ],
)
def test_a_policy_says_whether_it_is_in_use_and_for_how_many(
    spec: Json, counts: Counts, accepted: tuple[str, str], applied: tuple[str, str]
) -> None:
    status = policy_shown(spec, counts)
    assert conditions(status) == {"Accepted": accepted, "Applied": applied}
    assert (status["instances"], status["matchingInstances"], status["observedGeneration"]) == (counts.applied, counts.matching, 2)
