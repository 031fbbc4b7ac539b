"""What the KubeVirt object says of itself."""

from typing import Any

import msgspec

from herder.api.kinds import KubeVirt
from herder.rules.settings_status import settings_status

Json = dict[str, Any]
NOW = 1_767_225_600.0
BUILT_IN: dict[str, Any] = {
    "evictionStrategy": "None",
    "migrations": {
        "allowAutoConverge": False,
        "allowPostCopy": False,
        "allowWorkloadDisruption": False,
        "bandwidthPerMigration": 0,
        "completionTimeoutPerGiB": 150,
        "progressTimeout": 150,
        "maxDowntimeMs": 300,
        "parallelMigrationsPerCluster": 5,
        "parallelOutboundMigrationsPerNode": 2,
        "parallelInboundMigrationsPerNode": 2,
        "nodeDrainTaintKey": "kubevirt.io/drain",
        "unschedulablePendingTimeout": 300,
        "pendingTimeout": 900,
        "requireHostModelMigratabilityLevel": 0,
    },
}


def shown(spec: Json, namespace: str = "kubevirt", status: Json | None = None) -> Json:
    metadata = {"name": "kubevirt", "namespace": namespace, "generation": 3}
    document = {"metadata": metadata, "spec": spec, **({"status": status} if status else {})}
    return settings_status(msgspec.convert(document, KubeVirt), "1.2.3", NOW)


def conditions(status: Json) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


def test_empty_settings_show_every_built_in_value_and_who_uses_them() -> None:
    status = shown({})
    assert status["configuration"] == BUILT_IN
    assert (status["phase"], status["observedKubeVirtVersion"], status["observedGeneration"]) == ("Deployed", "1.2.3", 3)
    assert conditions(status) == {"Available": ("True", "SettingsInUse"), "Degraded": ("False", "SettingsInUse")}


def test_what_is_set_is_shown_with_what_follows_from_it_under_the_names_of_the_spec() -> None:
    wish = {"preferredHostModelMigratabilityLevel": {"level": 60}, "allowPostCopy": True, "bandwidthPerMigration": "64Mi"}
    status = shown({"configuration": {"evictionStrategy": "External", "migrations": wish}})["configuration"]
    expected = {
        **BUILT_IN["migrations"],
        "allowPostCopy": True,
        "allowWorkloadDisruption": True,
        "bandwidthPerMigration": "64Mi",
        "preferedHostModelMigratabilityLevel": {"level": 60, "weight": 1},
    }
    assert status == {"evictionStrategy": "External", "migrations": expected}


def test_a_setting_that_cannot_be_used_is_named_beside_the_value_that_is_used() -> None:
    status = shown({"configuration": {"migrations": {"maxDowntimeMs": 0, "progressTimeout": 7}}})
    assert (status["phase"], status["reason"]) == ("Deployed", "SettingsNotUsed")
    assert status["message"].startswith("the built-in value is used instead: spec.configuration.migrations.maxDowntimeMs:")
    used = status["configuration"]["migrations"]
    assert (used["maxDowntimeMs"], used["progressTimeout"]) == (300, 7)
    assert conditions(status)["Degraded"] == ("True", "SettingsNotUsed")


def test_settings_that_nobody_reads_say_so_and_where_to_write_them() -> None:
    status = shown({}, namespace="shop")
    assert (status["phase"], status["reason"]) == ("Ignored", "WrongNameOrNamespace")
    assert "kubectl edit kubevirt kubevirt -n kubevirt" in status["message"]
    assert "configuration" not in status
    assert conditions(status) == {"Available": ("False", "WrongNameOrNamespace")}


def test_looking_again_changes_nothing() -> None:
    status = shown({})
    metadata = {"name": "kubevirt", "namespace": "kubevirt", "generation": 3}
    again = msgspec.convert({"metadata": metadata, "status": status}, KubeVirt)
    assert settings_status(again, "1.2.3", NOW + 1000) == status
