"""Who answers as a node: TLS in which the other side has to be that very node, wherever it says that it is.

Its address is the node's own word, and every node has a certificate of the same authority. So it is the subject that counts:
`system:node:NAME` in `system:nodes`, which is given to that node alone, or the name of the agents that `herder up` runs
itself, which no command gives to anybody (herder/app/users.py).
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from herder.server.access.nodes.identity import NODES, PREFIX

# The agents of `herder up`: one process, and so one certificate, for all nodes of the machine.
AGENTS = "system:herder:agents"


def client_tls(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """For connections whose `server_hostname` is the name of the node, or AGENTS where nobody but those may answer."""
    context = ssl.create_default_context(cafile=str(authority))
    context.load_cert_chain(certificate, key)
    context.check_hostname = False
    context.sslobject_class = _ToNode
    return context


class _ToNode(ssl.SSLObject):
    """Fails the handshake with anybody else, before a byte of a request is sent."""

    def do_handshake(self) -> None:
        super().do_handshake()
        if problem := problem_with(self.getpeercert() or {}, self.server_hostname or ""):
            raise ssl.SSLCertVerificationError(problem)


def problem_with(certificate: Any, node: str) -> str:
    """Why who shows it is not that node; empty where it is. The certificate is as `getpeercert` gives it."""
    fields: list[tuple[str, str]] = [pair for part in certificate.get("subject", ()) for pair in part]
    names = [value for field, value in fields if field == "commonName"]
    groups = [value for field, value in fields if field == "organizationName"]
    if names == [AGENTS] or (node != AGENTS and names == [PREFIX + node] and NODES in groups):
        return ""
    return f"who answers there is {', '.join(names) or 'nobody'}, and not {PREFIX}{node} in {NODES}"
