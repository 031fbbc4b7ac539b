"""The settings of the cluster, as a person edits and reads them. Here because the cluster is these tests' own."""

from __future__ import annotations

from importlib.metadata import version

from tests.levels.cluster import KUBEVIRT, SETTINGS, Mixed
from tests.machines.herd import Json, condition


async def shown(mixed: Mixed) -> Json:
    """Once its status is about what is written."""

    async def look() -> Json:
        found = (await mixed.api.get(SETTINGS, KUBEVIRT, KUBEVIRT)).ok
        assert found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"], found.get("status")
        return found

    return await mixed.eventually(look)


async def test_what_is_in_use_is_shown_beside_what_is_written_and_never_in_it(mixed: Mixed) -> None:
    written = {"parallelMigrationsPerCluster": 9, "preferedHostModelMigratabilityLevel": {"level": 20}}
    await mixed.set(**written)
    found = await shown(mixed)
    assert found["spec"] == {"configuration": {"migrations": written}}, "no default is written into it"
    status = found["status"]
    assert (status["phase"], status["observedKubeVirtVersion"]) == ("Deployed", version("herder"))
    assert condition(found, "Available")["status"] == "True"
    used = status["configuration"]["migrations"]
    assert (used["parallelMigrationsPerCluster"], used["parallelOutboundMigrationsPerNode"]) == (9, 2)
    assert used["preferedHostModelMigratabilityLevel"] == {"level": 20, "weight": 1}
    await mixed.set()
    status = (await shown(mixed))["status"]
    assert status["configuration"]["migrations"]["parallelMigrationsPerCluster"] == 5
    assert "preferedHostModelMigratabilityLevel" not in status["configuration"]["migrations"]
