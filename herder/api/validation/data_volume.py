"""DataVolume, beyond its schema: a claim that could never be made."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from herder.api.builtin.storage import check_claim_spec
from herder.api.problems import Problem, invalid, required
from herder.api.reading import Json, part, positive_bytes, text
from herder.api.selectors import validate_label_selector
from herder.api.validation.made import size_problems

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f-\x9f]*")


def validate_data_volume(data_volume: Json, old: Json | None = None) -> list[Problem]:
    return data_volume_problems(part(data_volume, "spec"), "spec")


def data_volume_problems(spec: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    source = part(spec, "source")
    url = text(part(source, "http"), "url")
    if url and not _has_host(url):
        problems.append(invalid(f"{path}.source.http.url", url, "must name a host: for example https://example.com/disk.qcow2"))
    headers = part(source, "http").get("extraHeaders")
    for index, header in enumerate(headers if isinstance(headers, list) else ()):
        if not _HEADER.fullmatch(str(header)):
            problems.append(
                invalid(f"{path}.source.http.extraHeaders[{index}]", header, "must be one header, such as X-Token: abc")
            )
    problems += size_problems(spec, path, "use fewer or shorter headers")
    for name in ("pvc", "storage"):
        if name in spec:
            claim = part(spec, name)
            found = _claim_problems(claim, f"{path}.{name}", exact=name == "pvc", sized="pvc" in source)
            problems += found or _problems_of_claims(claim, f"{path}.{name}")
    return problems


def _problems_of_claims(claim: Json, path: str) -> list[Problem]:
    """It is passed on to a claim as it is written, with what is chosen for the user where that is missing."""
    problems: list[Problem] = []
    requests = {"storage": "1", **part(claim, "resources", "requests")}
    whole = {**claim, "accessModes": claim.get("accessModes") or ["ReadWriteMany"], "resources": {"requests": requests}}
    check_claim_spec(whole, path, problems)
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
    positive_bytes(requests, "storage", f"{path}.resources.requests", problems)
    return problems + validate_label_selector(part(claim, "selector"), f"{path}.selector")
