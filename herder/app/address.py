"""HOST:PORT on the command line, and listening there."""

from __future__ import annotations

import socket

import click

from herder.app.refusal import CANNOT_LISTEN, Refusal


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, with [brackets] around an IPv6 host."""

    name = "HOST:PORT"

    def convert(self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        host, separator, port = value.rpartition(":")
        if not separator or not port.isdigit() or int(port) > 65535:
            self.fail(f"{value!r} is not HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:6443", param, ctx)
        return host.strip("[]"), int(port)


def listen_on(option: str, host: str, port: int) -> socket.socket:
    """Taken before anything else is touched, and kept while the engine is restarted: its callers wait, and are not refused."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        raise Refusal(f"{option} {host}:{port}: cannot be listened on: {error.strerror or error}", CANNOT_LISTEN) from None
    listener.set_inheritable(True)
    return listener
