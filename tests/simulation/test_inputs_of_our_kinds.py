"""Every field of every kind of ours, changed in turn at the API: no crash, refusals that name the field, and a way back."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from herder.api.registry import INSTANCE, JOB, KINDS, MIGRATION, SETTINGS, KindInfo, info_of
from herder.api.schemas import schema_of_kind
from herder.kube.resources import CONFIG_MAPS, PODS, Key, Resource
from tests.simulation.inputs import Inputs
from tests.simulation.simulation import Simulation, simulate

FOLDER = Path(__file__).parents[2] / "examples"
# Of a kind and a seed. Machines have thousands of fields: `--seeds 6` tries all of them.
MOST = 400
DOCUMENTS: list[dict[str, Any]] = [one for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]


def _example(info: KindInfo) -> dict[str, Any]:
    found = next(one for one in DOCUMENTS if info_of(one) is info)
    namespace = {"namespace": "default"} if info.namespaced else {}
    return {**found, "metadata": {**namespace, **found["metadata"]}}


def _resource(info: KindInfo) -> Resource[Any]:
    view: Any = info.view
    return Resource(
        group=info.group, version=info.version, plural=info.plural, kind=info.kind, namespaced=info.namespaced, view=view
    )


async def _prepare(simulation: Simulation, info: KindInfo) -> None:
    """Only what is there can be moved. The settings that came with the engine make room for others."""
    if info is JOB:
        reference = _example(info)["spec"]["podRef"]
        owner = await simulation.client().create(CONFIG_MAPS, {"metadata": {"name": "owner", "namespace": reference["namespace"]}})
        controller = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid, "controller": True}
        metadata = {"name": reference["name"], "namespace": reference["namespace"], "ownerReferences": [controller]}
        await simulation.client().create(PODS, {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    if info is SETTINGS:
        await simulation.client().delete(_resource(info), Key("kubevirt", "kubevirt"))
    if info is MIGRATION:
        metadata = {"name": _example(info)["spec"]["vmiName"], "namespace": "default"}
        await simulation.client().create(_resource(INSTANCE), {"metadata": metadata, "spec": {"domain": {}}})


@pytest.mark.slow
@pytest.mark.parametrize("info", KINDS, ids=lambda info: info.kind)
def test_every_field_is_refused_in_words_or_taken_and_there_is_a_way_back(info: KindInfo, seed: int) -> None:
    async def main(simulation: Simulation) -> Inputs:
        await simulation.started()
        await _prepare(simulation, info)
        inputs = Inputs(simulation, _resource(info), _example(info))
        await inputs.go_through(schema_of_kind(info.view), MOST, seed)
        return inputs

    kinds = [info, INSTANCE] if info is MIGRATION else [info]
    inputs = simulate(seed, main, kinds, traced=False, latency=False)
    assert not inputs.wrong, "\n".join(inputs.wrong[:20])
    assert inputs.accepted
    assert inputs.refused > 3
