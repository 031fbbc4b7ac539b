"""The StorageClass of an embedded engine whose data directory is of an earlier version, which could not grow volumes."""

from pathlib import Path

import pytest

from tests.unit.server.inside import engine_inside

CLASS = "/apis/storage.k8s.io/v1/storageclasses/herder-local"


@pytest.mark.slow
@pytest.mark.parametrize("said", [None, False])
async def test_it_learns_that_volumes_can_grow_unless_somebody_has_said_that_they_shall_not(
    tmp_path: Path, said: bool | None
) -> None:
    async with engine_inside(tmp_path) as inside:
        _, found = await inside.ask("GET", CLASS)
        del found["allowVolumeExpansion"]
        code, written = await inside.ask("PUT", CLASS, found if said is None else {**found, "allowVolumeExpansion": said})
        assert code == 200, written
    async with engine_inside(tmp_path) as inside:
        assert (await inside.ask("GET", CLASS))[1]["allowVolumeExpansion"] is (said is None)
