"""Fields of a pool, changed in turn while all controllers look on."""

from typing import Any

from herder.api.account import SYSTEM_NAMESPACE
from herder.kube.client import Client
from herder.kube.resources import CONFIG_MAPS, POOLS, PRIORITY_CLASSES
from herder.rules.herder_config import NAME
from tests.simulation.inputs_to import inputs_to
from tests.simulation.pools.scenario import ROLLED, pool, template

# So that of many the first one stays, which was made before all others.
NEWEST: dict[str, Any] = {"selectionPolicy": {"basePolicy": "Newest"}}
COMMON: dict[str, Any] = {
    "maxUnavailable": "50%",
    "minReadySeconds": 1,
    "progressDeadlineSeconds": 60,
    "revisionHistoryLimit": 2,
    "nameGeneration": {"appendPostfixToSecretReferences": True},
    "autohealing": {"startupFailureThreshold": 2, "minFailingDuration": "1s"},
}
PROACTIVE: dict[str, Any] = {
    **COMMON,
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
    "scaleInStrategy": {"proactive": {"statePreservation": "Offline", **NEWEST}},
}
OPPORTUNISTIC: dict[str, Any] = {**COMMON, "updateStrategy": {"opportunistic": {}}, "scaleInStrategy": {"proactive": NEWEST}}
# Of what is never taken (scaleInStrategy.unmanaged), or not while it runs, no way would lead back from a greater number.
UNMANAGED: dict[str, Any] = {
    **COMMON,
    "updateStrategy": {"unmanaged": {}},
    "scaleInStrategy": {"opportunistic": {"statePreservation": "Offline"}},
}


async def few_at_once(client: Client) -> None:
    """The most replicas that one may ask for are many. And the class that is asked for is there."""
    await client.create(PRIORITY_CLASSES, {"metadata": {"name": "a"}, "value": 7})
    metadata = {"name": NAME, "namespace": SYSTEM_NAMESPACE}
    await client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"pools.yaml": "burst: 3"}})


test_a_pool_copes_with_every_field = inputs_to(
    ROLLED,
    POOLS,
    pool(1, template("6Gi", terminationGracePeriodSeconds=1), **PROACTIVE),
    most=60,
    history="controllerrevisions",
    prepare=few_at_once,
)
test_a_pool_with_opportunistic_updates_copes_with_every_field = inputs_to(
    ROLLED,
    POOLS,
    pool(1, template("6Gi", terminationGracePeriodSeconds=1), **OPPORTUNISTIC),
    most=30,
    history="controllerrevisions",
    prepare=few_at_once,
)
test_a_pool_that_leaves_its_machines_alone_copes_with_every_field = inputs_to(
    ROLLED,
    POOLS,
    pool(1, template("6Gi", "Halted", terminationGracePeriodSeconds=1), **UNMANAGED),
    most=30,
    history="controllerrevisions",
    prepare=few_at_once,
    # Machines that are off are done as soon as they are made: a hundred thousand of them.
    but="spec.replicas",
)
