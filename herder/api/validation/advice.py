"""What is accepted but probably not meant: the sentences that an API server sends as warnings."""

from __future__ import annotations

from herder.api import labels
from herder.api.kinds.kubevirt import NAME, NAMESPACE
from herder.api.reading import Json, entries, indexed, part, text
from herder.api.registry import JOB, MIGRATION, POOL, RESERVATION, SETTINGS


def settings_advice(settings: Json) -> list[str]:
    metadata = part(settings, "metadata")
    advice: list[str] = []
    if (text(metadata, "namespace"), text(metadata, "name")) != (NAMESPACE, NAME):
        # A new one is refused: this one was stored before, or where nobody asked us.
        advice.append(f"only the KubeVirt object {NAME} in namespace {NAMESPACE} is used: this one is ignored, and can be deleted")
    migrations = part(settings, "spec", "configuration", "migrations")
    advice += _level_advice(migrations)
    unschedulable, pending = (migrations.get(name) for name in ("unschedulablePendingTimeout", "pendingTimeout"))
    if isinstance(unschedulable, int) and isinstance(pending, int) and pending < unschedulable:
        advice.append(
            f"spec.configuration.migrations.pendingTimeout: {pending} ends every wait before unschedulablePendingTimeout"
            f" ({unschedulable}) can"
        )
    return advice


def _level_advice(migrations: Json) -> list[str]:
    where = "spec.configuration.migrations"
    required = migrations.get("requireHostModelMigratabilityLevel")
    advice: list[str] = []
    if required == 100:
        advice.append(
            f"{where}.requireHostModelMigratabilityLevel: no node reaches 100, because a node does not count itself: no host-model"
            " machine will start; `herder explain migratability` shows the highest level there is"
        )
    for name in ("preferedHostModelMigratabilityLevel", "preferredHostModelMigratabilityLevel"):
        level = part(migrations, name).get("level")
        if level == 100:
            advice.append(f"{where}.{name}.level: no node reaches 100, because a node does not count itself: nothing is preferred")
        elif isinstance(level, int) and isinstance(required, int) and 0 < level <= required:
            advice.append(f"{where}.{name}.level: {level} prefers nothing, because {required} is required of every node already")
    return advice


def migration_advice(migration: Json) -> list[str]:
    """Texts about this field show `<nodeName>` where a name belongs."""
    term = part(migration, "spec").get("addedNodeSelectorTerm")
    terms = term if isinstance(term, list) else [term]
    named = [str(value) for one in terms for test in entries(one, "matchFields") for value in test.get("values") or ()]
    return [
        f"spec.addedNodeSelectorTerm: {name} is a placeholder, and no node has this name: write the name of a node"
        for name in named
        if name.startswith("<")
    ]


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
    return advice + _preservation_advice(pool) + _template_advice(part(pool, "spec", "template"))


def _preservation_advice(pool: Json) -> list[str]:
    """Memory that knows a disk which is lost with the instance is of no use, and is not saved."""
    volumes = entries(pool, "spec", "template", "spec", "template", "spec", "volumes")
    lost = next((text(one, "name") for one in volumes if one.get("emptyDisk") is not None), None)
    if lost is None:
        return []
    why = f"memory cannot be saved, because volume {lost} is an emptyDisk"
    taken = [
        f"spec.scaleInStrategy.{name}.statePreservation: {why}: no machine that runs is taken"
        for name in ("opportunistic", "proactive")
        if part(pool, "spec", "scaleInStrategy", name).get("statePreservation") == "Online"
    ]
    asleep = part(pool, "spec", "standby").get("state") == "Online"
    return [*taken, *([f"spec.standby.state: {why}: standby machines are stopped, as with Offline"] if asleep else [])]


def _template_advice(template: Json) -> list[str]:
    """Templates are often copied from a machine that has these labels: no reason to refuse them."""
    advice = [
        f"{path}.labels[{label}]: is not used: the pool writes this label itself"
        for path, metadata in (
            ("spec.template.metadata", part(template, "metadata")),
            ("spec.template.spec.template.metadata", part(template, "spec", "template", "metadata")),
        )
        for label in (labels.POOL, labels.POOL_REVISION, labels.STANDBY)
        if label in part(metadata, "labels")
    ]
    if part(template, "metadata", "annotations").get(labels.SCALE_IN) == labels.SCALE_IN_NEVER:
        advice.append(
            f"spec.template.metadata.annotations[{labels.SCALE_IN}]: the pool can never shrink, as this protects every machine"
        )
    return advice


ADVICE = {
    (info.group, info.kind): advise
    for info, advise in (
        (SETTINGS, settings_advice),
        (MIGRATION, migration_advice),
        (JOB, job_advice),
        (RESERVATION, reservation_advice),
        (POOL, pool_advice),
    )
}
