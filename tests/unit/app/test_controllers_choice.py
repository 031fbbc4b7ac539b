"""Which controllers run where, and under which rights."""

from typing import Any

from herder.api import account
from herder.app.controllers_choice import controllers_for
from herder.controllers import CONTROLLERS, EMBEDDED_ONLY


def groups(documents: list[dict[str, Any]]) -> set[str]:
    return {group for document in documents for rule in document.get("rules") or () for group in rule["apiGroups"]}


def test_workloads_are_kept_in_the_embedded_engine_and_nowhere_else() -> None:
    assert {*CONTROLLERS, *EMBEDDED_ONLY} <= set(controllers_for(embedded=True))
    assert set(controllers_for(embedded=False)) >= set(CONTROLLERS)
    assert not set(controllers_for(embedded=False)) & set(EMBEDDED_ONLY)


def test_rights_over_workloads_are_given_in_the_embedded_engine_alone() -> None:
    """A real cluster is installed with the account's own documents: whoever may not write a ReplicaSet cannot fight over one."""
    rules = [rule for document in account.documents() for rule in document.get("rules") or ()]
    written = [rule["resources"] for rule in rules if rule["apiGroups"] == ["apps"] and not set(rule["verbs"]) <= set(account.READ)]
    # Pools keep the templates that their machines had, as StatefulSets do. The others are only looked at, for PodMigrationJobs.
    assert written == [["controllerrevisions"]]
    assert [rule["verbs"] for rule in rules if any(one.endswith("/scale") for one in rule["resources"])] == [["get"]]
    # Beside them, what it takes to see nodes out and their pods away, and for autoscalers, which scale whatever there is.
    autoscaling = {"autoscaling", "metrics.k8s.io", "*"}
    assert groups(account.embedded_documents()) == {"apps", "", "coordination.k8s.io", *autoscaling}
