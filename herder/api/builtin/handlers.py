"""Rules for probes and lifecycle hooks."""

from __future__ import annotations

import re
from typing import Any, Final

from herder.api import names
from herder.api.builtin.semantics import Document, Problems, refuse_names, refuse_negative
from herder.api.problems import forbidden, invalid, not_supported, required

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HEADER = re.compile("[-A-Za-z0-9]+")
_HEADER_RULE = names.regex_complaint(
    "a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+", "X-Header-Name"
)


def check_probes(container: Document, field: str, out: Problems, grace: int | None) -> None:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            _check_probe(probe, name, f"{field}.{name}", out, grace)
    if container.get("lifecycle") is not None:
        for name in ("postStart", "preStop"):
            hook = container["lifecycle"].get(name)
            if hook is not None:
                check_handler(hook, f"{field}.lifecycle.{name}", out, grace)


def _check_probe(probe: Document, name: str, field: str, out: Problems, grace: int | None) -> None:
    check_handler(probe, field, out, grace)
    for number in _NUMBERS:
        refuse_negative(probe.get(number), f"{field}.{number}", out)
    own_grace = probe.get("terminationGracePeriodSeconds")
    if own_grace is not None and own_grace <= 0:
        out.append(invalid(f"{field}.terminationGracePeriodSeconds", own_grace, "must be greater than 0"))
    if name == "readinessProbe":
        if own_grace is not None:
            out.append(invalid(f"{field}.terminationGracePeriodSeconds", own_grace, "must not be set for readinessProbes"))
    elif probe.get("successThreshold", 0) != 1:
        out.append(invalid(f"{field}.successThreshold", probe.get("successThreshold", 0), "must be 1"))


def check_handler(handler: Document, field: str, out: Problems, grace: int | None) -> None:
    chosen = [name for name in _HANDLERS if handler.get(name) is not None]
    if not chosen:
        out.append(required(field, "must specify a handler type"))
        return
    _check_action(chosen[0], handler[chosen[0]], f"{field}.{chosen[0]}", out, grace)
    for name in chosen[1:]:
        out.append(forbidden(f"{field}.{name}", "may not specify more than 1 handler type"))


def _check_action(name: str, action: Document, field: str, out: Problems, grace: int | None) -> None:
    match name:
        case "exec":
            if not action.get("command"):
                out.append(required(f"{field}.command"))
        case "httpGet":
            _check_http(action, field, out)
        case "tcpSocket":
            check_port(action.get("port", 0), f"{field}.port", out)
        case "grpc":
            check_port_number(action.get("port", 0), f"{field}.port", out)
        case _:
            seconds = action.get("seconds", 0)
            if grace is not None and not 0 <= seconds <= grace:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                out.append(invalid(field, seconds, detail))


def _check_http(action: Document, field: str, out: Problems) -> None:
    if not action.get("path"):
        out.append(required(f"{field}.path"))
    check_port(action.get("port", 0), f"{field}.port", out)
    if action.get("scheme") not in ("HTTP", "HTTPS"):
        out.append(not_supported(f"{field}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        if not _HEADER.fullmatch(header.get("name", "")):
            out.append(invalid(f"{field}.httpHeaders", header.get("name", ""), _HEADER_RULE))


def check_port(port: Any, field: str, out: Problems) -> None:
    """A number, or the name of one."""
    if isinstance(port, int):
        check_port_number(port, field, out)
    else:
        refuse_names(names.port_name(port), field, port, out)


def check_port_number(port: int, field: str, out: Problems) -> None:
    if not 1 <= port <= 65535:
        out.append(invalid(field, port, "must be between 1 and 65535, inclusive"))
