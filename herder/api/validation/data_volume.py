"""DataVolume, beyond its schema: a claim that could never be made."""

from __future__ import annotations

from urllib.parse import urlsplit

from herder.api.problems import Problem, invalid, required
from herder.api.reading import Json, part, positive, text
from herder.api.selectors import validate_label_selector


def validate_data_volume(data_volume: Json, old: Json | None = None) -> list[Problem]:
    return data_volume_problems(part(data_volume, "spec"), "spec")


def data_volume_problems(spec: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    source = part(spec, "source")
    url = text(part(source, "http"), "url")
    if url and not _has_host(url):
        problems.append(invalid(f"{path}.source.http.url", url, "must name a host: for example https://example.com/disk.qcow2"))
    for name in ("pvc", "storage"):
        if name in spec:
            problems += _claim_problems(part(spec, name), f"{path}.{name}", exact=name == "pvc", sized="pvc" in source)
    return problems


def _has_host(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _claim_problems(claim: Json, path: str, *, exact: bool, sized: bool) -> list[Problem]:
    """`exact`: nothing is chosen for the user. `sized`: the size can be taken from the claim that is copied."""
    problems: list[Problem] = []
    if exact and not claim.get("accessModes"):
        problems.append(required(f"{path}.accessModes", "must have at least one, for example ReadWriteOnce"))
    requests = part(claim, "resources", "requests")
    if "storage" not in requests and (exact or not sized):
        problems.append(required(f"{path}.resources.requests.storage", "must say how large the volume is, for example 2Gi"))
    positive(requests, "storage", f"{path}.resources.requests", problems)
    return problems + validate_label_selector(part(claim, "selector"), f"{path}.selector")
