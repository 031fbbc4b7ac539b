"""What a MigrationPolicy says of itself while machines come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.machines.herd import Herd, Json
from tests.machines.migrations import POLICIES


class Policies:
    """For machines with a label of the test's own."""

    def __init__(self, herd: Herd, label: str) -> None:
        self.herd = herd
        self.label = label

    async def make(self, name: str, **labels: str) -> None:
        spec = {"allowPostCopy": True, "selectors": {"virtualMachineInstanceSelector": {self.label: "yes", **labels}}}
        (await self.herd.api.create(POLICIES, {"metadata": {"name": f"{self.label}-{name}"}, "spec": spec})).ok  # noqa: B018

    async def delete(self, name: str) -> None:
        await self.herd.api.delete(POLICIES, f"{self.label}-{name}")

    async def shows(self, name: str, applied: int, matching: int, reason: str) -> Json:
        async def look() -> Json:
            found = (await self.herd.api.get(POLICIES, f"{self.label}-{name}")).ok
            status = found.get("status", {})
            conditions = {one["type"]: (one["status"], one["reason"]) for one in status.get("conditions", ())}
            assert (status.get("instances"), status.get("matchingInstances")) == (applied, matching), status
            assert conditions == {"Accepted": ("True", "Accepted"), "Applied": ("True" if applied else "False", reason)}
            assert status["observedGeneration"] == found["metadata"]["generation"]
            return found

        return await self.herd.eventually(look)


@pytest.fixture
async def policies(herd: Herd, unique: Callable[..., str]) -> AsyncIterator[Policies]:
    made = Policies(herd, unique("policy"))
    yield made
    for name in ("broad", "exact"):
        await made.delete(name)


async def test_a_policy_says_to_how_many_running_instances_it_applies_and_why_to_none(policies: Policies) -> None:
    await policies.make("broad")
    await policies.shows("broad", 0, 0, "NoMatchingInstance")
    for name, size in (("a", "small"), ("b", "large")):
        await policies.herd.make(name=name, marked={policies.label: "yes", "size": size})
    await policies.shows("broad", 2, 2, "Applied")
    await policies.make("exact", size="large")
    await policies.shows("exact", 1, 1, "Applied")
    await policies.shows("broad", 1, 2, "Applied")
    await policies.herd.delete("a")
    await policies.shows("broad", 0, 1, "OtherPoliciesFirst")
    await policies.delete("exact")
    await policies.shows("broad", 1, 1, "Applied")
