"""What an API server asks of a node: logs and consoles of its pods, by the kubelet's own paths."""

from herder.nodes.endpoint.callers import Named, Reviewed
from herder.nodes.endpoint.endpoint import Endpoint, server_tls
from herder.nodes.endpoint.tokens import Tokens

__all__ = ["Endpoint", "Named", "Reviewed", "Tokens", "server_tls"]
