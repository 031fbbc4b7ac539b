"""Whether we may do what we are about to start, asked before it starts: a sentence now is better than retries for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import structlog

from herder.app.refusal import CANNOT_USE_CLUSTER, Refusal
from herder.kube.client import Client
from herder.kube.errors import ApiStatusError, Forbidden, KubeError, Unauthorized, error_from
from herder.kube.resources import LEASES, Key
from herder.kube.transport import Call

log = structlog.get_logger()
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
NEEDED = ("get", "create", "patch")
TRY_AGAIN = 1.0


async def check_allowed(client: Client, lease: Key) -> None:
    """Waits for a server that does not answer yet."""
    told = False
    while True:
        try:
            missing = [verb for verb in NEEDED if not await _may(client, verb, lease)]
        except (Unauthorized, Forbidden) as error:
            raise Refusal(f"the API server does not let us in: {error}", CANNOT_USE_CLUSTER) from None
        except ApiStatusError as error:
            # One that knows no such question is asked the thing itself.
            log.info("what we may do cannot be asked", error=str(error))
            return
        except KubeError as error:
            if not told:
                log.warning("the API server does not answer, will try again", error=str(error))
            told = True
            await asyncio.sleep(TRY_AGAIN)
            continue
        if missing:
            verbs = ", ".join(missing)
            raise Refusal(
                f"we may not {verbs} {LEASES.qualified} in namespace {lease.namespace}: give our user a role", CANNOT_USE_CLUSTER
            )
        return


async def _may(client: Client, verb: str, lease: Key) -> bool:
    """A role may name the one lease; what is created has no name yet."""
    attributes = {"verb": verb, "group": LEASES.group, "resource": LEASES.plural, "namespace": lease.namespace}
    attributes |= {} if verb == "create" else {"name": lease.name}
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    reply = await client.transport.send(Call("POST", REVIEWS, body=msgspec.json.encode(review)))
    if reply.status >= 400:
        raise error_from(reply.status, reply.body)
    return bool(msgspec.json.decode(reply.body)["status"]["allowed"])
