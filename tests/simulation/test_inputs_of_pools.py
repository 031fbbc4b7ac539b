"""Fields of a pool, changed in turn while all controllers look on."""

from typing import Any

from herder.api.account import SYSTEM_NAMESPACE
from herder.kube.client import Client
from herder.kube.resources import CONFIG_MAPS, POOLS, PRIORITY_CLASSES
from herder.rules.herder_config import NAME
from tests.simulation.inputs_to import inputs_to
from tests.simulation.pools.scenario import ROLLED, pool, template

SPEC: dict[str, Any] = {
    "maxUnavailable": "50%",
    "minReadySeconds": 1,
    "progressDeadlineSeconds": 60,
    "revisionHistoryLimit": 2,
    "nameGeneration": {"appendPostfixToSecretReferences": True},
    "autohealing": {"startupFailureThreshold": 2, "minFailingDuration": "1s"},
    "updateStrategy": {
        "proactive": {
            "limit": "100%",
            "onFailure": "Rollback",
            "volumes": "Reprovision",
            "selectionPolicy": {
                "orderedPolicies": [{"labelSelector": {"matchLabels": {"a": "b"}}}, {"nodeSelector": {"zone": "a"}}],
                "basePolicy": "Oldest",
            },
        }
    },
    # So that of many the first one stays, which was made before all others.
    "scaleInStrategy": {"proactive": {"statePreservation": "Offline", "selectionPolicy": {"basePolicy": "Newest"}}},
}


async def few_at_once(client: Client) -> None:
    """The most replicas that one may ask for are many. And the class that is asked for is there."""
    await client.create(PRIORITY_CLASSES, {"metadata": {"name": "a"}, "value": 7})
    metadata = {"name": NAME, "namespace": SYSTEM_NAMESPACE}
    await client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"pools.yaml": "burst: 3"}})


test_a_pool_copes_with_every_field = inputs_to(
    ROLLED,
    POOLS,
    pool(1, template("6Gi", terminationGracePeriodSeconds=1), **SPEC),
    most=60,
    history="controllerrevisions",
    prepare=few_at_once,
)
