"""What is accepted but probably not meant: the sentences that an API server sends as warnings."""

from __future__ import annotations

from herder.api.reading import Json, indexed, part, text
from herder.api.registry import JOB, POOL, RESERVATION, SETTINGS


def settings_advice(settings: Json) -> list[str]:
    metadata = part(settings, "metadata")
    advice: list[str] = []
    if (text(metadata, "namespace"), text(metadata, "name")) != ("kubevirt", "kubevirt"):
        advice.append("only the KubeVirt object kubevirt in namespace kubevirt is used: this one is ignored")
    level = part(settings, "spec", "configuration", "migrations").get("requireHostModelMigratabilityLevel")
    if level == 100:
        advice.append(
            "spec.configuration.migrations.requireHostModelMigratabilityLevel: no node reaches 100, because a node does not count"
            " itself: no host-model machine will start"
        )
    return advice


def job_advice(job: Json) -> list[str]:
    spec = part(job, "spec")
    options = part(spec, "reservationOptions")
    advice: list[str] = []
    if spec.get("mode") == "EvictDirectly" and options:
        advice.append("spec.reservationOptions: not used with mode EvictDirectly, which reserves nothing")
    if "reservationRef" in options and "template" in options:
        advice.append("spec.reservationOptions.template: not used, because reservationRef names a reservation that exists already")
    return advice


def reservation_advice(reservation: Json) -> list[str]:
    empty = [place for place, owner in indexed(reservation, "spec", "owners") if owner == {"labelSelector": {}}]
    return [f"{place}.labelSelector: is empty and fits every pod of the cluster" for place in empty]


def pool_advice(pool: Json) -> list[str]:
    advice: list[str] = []
    for strategy in ("updateStrategy", "scaleInStrategy"):
        path = ("spec", strategy, "proactive", "selectionPolicy", "orderedPolicies")
        empty = [place for place, entry in indexed(pool, *path) if entry == {"labelSelector": {}}]
        advice += [f"{place}.labelSelector: is empty and fits every machine of the pool" for place in empty]
    return advice


ADVICE = {
    (info.group, info.kind): advise
    for info, advise in (
        (SETTINGS, settings_advice),
        (JOB, job_advice),
        (RESERVATION, reservation_advice),
        (POOL, pool_advice),
    )
}
