"""Credential plugins: a program that is asked for a token or a certificate, as client.authentication.k8s.io says."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from herder.api.world import World
from herder.kube.access import Access, encoded
from herder.kube.credentials import Shown, bearer
from herder.kube.errors import Misconfigured
from herder.kube.kubeconfig import EXEC_EXTENSION, Exec
from herder.kube.trust import Material, Trust, Watched

INFO = "KUBERNETES_EXEC_INFO"
# Long enough for a person to log in with a browser; a plugin that hangs must not hold us for ever.
PATIENCE = 300.0


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class Plugin:
    """Runs the program, and says in a sentence what is wrong with it."""

    def __init__(self, access: Access, asked: Exec) -> None:
        self._access = access
        self._asked = asked
        self._at = f"{access.at_user}: exec: {asked.command}"

    async def ask(self) -> _Status:
        interactive = self._is_interactive()
        try:
            process = await asyncio.create_subprocess_exec(
                self._asked.command,
                *self._asked.args,
                # Its questions and complaints are for the person at the terminal.
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=self._environment(interactive),
            )
        except OSError as error:
            raise Misconfigured(f"{self._at}: cannot be run: {error.strerror}{self._hint()}") from None
        return self._read(await self._output(process))

    async def _output(self, process: asyncio.subprocess.Process) -> bytes:
        try:
            async with asyncio.timeout(PATIENCE):
                output, _ = await process.communicate()
        except TimeoutError:
            raise Misconfigured(f"{self._at}: had no credentials after {PATIENCE:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise Misconfigured(f"{self._at}: ended with {process.returncode} and no credentials{self._hint()}")
        return output

    def _is_interactive(self) -> bool:
        available = sys.stdin is not None and sys.stdin.isatty()
        if self._asked.interactive_mode == "Always" and not available:
            raise Misconfigured(f"{self._at}: interactiveMode is Always, and there is no terminal here to ask at")
        return available and self._asked.interactive_mode != "Never"

    def _environment(self, interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._asked.provide_cluster_info:
            spec["cluster"] = self._cluster()
        info = {"apiVersion": self._asked.api_version, "kind": "ExecCredential", "spec": spec}
        said = {variable.name: variable.value for variable in self._asked.env}
        return {**os.environ, **said, INFO: msgspec.json.encode(info).decode()}

    def _cluster(self) -> dict[str, Any]:
        cluster = self._access.cluster
        path, data = cluster.certificate_authority, cluster.certificate_authority_data
        authority = Material(f"{self._access.at_cluster}: certificate-authority", data, path)
        config = next((one.extension for one in cluster.extensions if one.name == EXEC_EXTENSION), None)
        said = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "certificate-authority-data": encoded(authority.read()) if authority else "",
            "proxy-url": cluster.proxy_url,
            "disable-compression": cluster.disable_compression,
            "config": config,
        }
        return {name: value for name, value in said.items() if value or name == "config"}

    def _read(self, output: bytes) -> _Status:
        try:
            answer = msgspec.json.decode(output, type=_Answer)
        except msgspec.MsgspecError as error:
            raise Misconfigured(f"{self._at}: should print an ExecCredential as JSON: {error}") from None
        wanted = self._asked.api_version
        if (answer.api_version, answer.kind) != (wanted, "ExecCredential"):
            printed = f"{answer.api_version} {answer.kind}"
            raise Misconfigured(f"{self._at}: printed {printed!r} where {wanted} ExecCredential was asked for")
        status = answer.status or _Status()
        if not status.token and not status.client_certificate_data:
            raise Misconfigured(f"{self._at}: status: should hold a token, or clientCertificateData and clientKeyData")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise Misconfigured(f"{self._at}: status: clientCertificateData and clientKeyData go together")
        if not status.token.isprintable():
            raise Misconfigured(f"{self._at}: status.token: should be printable characters")
        return status

    def until(self, status: _Status) -> float | None:
        """When what was returned ends; None for never."""
        if not status.expiration_timestamp:
            return None
        try:
            end = datetime.fromisoformat(status.expiration_timestamp)
        except ValueError:
            said = status.expiration_timestamp
            raise Misconfigured(f"{self._at}: status.expirationTimestamp: {said!r}: should be a time as in RFC 3339") from None
        return (end if end.tzinfo else end.replace(tzinfo=UTC)).timestamp()

    def trust(self, trust: Trust, status: _Status) -> Trust:
        """With the certificate that was returned, if any, in place of the kubeconfig's."""
        if not status.client_certificate_data:
            return trust
        certificate = Material(f"{self._at}: status.clientCertificateData", status.client_certificate_data.encode())
        key = Material(f"{self._at}: status.clientKeyData", status.client_key_data.encode())
        return msgspec.structs.replace(trust, certificate=certificate, key=key)

    def _hint(self) -> str:
        hint = " ".join(self._asked.install_hint.split())
        return f" ({hint})" if hint else ""


class FromPlugin:
    """Asks the plugin once, and again when its answer has ended or the server does not take it."""

    def __init__(self, plugin: Plugin, trust: Trust, world: World) -> None:
        self._plugin = plugin
        self._trust = trust
        self._world = world
        self._asking = asyncio.Lock()
        self._authorization = ""
        self._tls = Watched(trust.files(), trust.context)
        self._until: float | None = 0.0

    async def show(self) -> Shown:
        async with self._asking:
            if self._until is not None and self._world.now() >= self._until:
                await self._ask()
            return self._shown()

    async def refused(self, shown: Shown) -> bool:
        """Of all those who were refused with the same credentials, one asks for new ones."""
        async with self._asking:
            if self._shown() == shown:
                await self._ask()
            return True

    async def _ask(self) -> None:
        status = await self._plugin.ask()
        until = self._plugin.until(status)
        trust = self._plugin.trust(self._trust, status)
        tls = Watched(trust.files(), trust.context)
        tls.get()
        self._authorization, self._tls, self._until = bearer(status.token), tls, until

    def _shown(self) -> Shown:
        return Shown(self._authorization, self._tls.get())
