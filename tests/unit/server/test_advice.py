"""Warnings about our own kinds reach the client."""

from pathlib import Path

import pytest

from herder.api.registry import RESERVATION as RESERVATIONS
from herder.server.request import ENGINE, Request, Response
from tests.unit.server.inside import engine_inside

RESERVATION = (
    b'{"apiVersion":"scheduling.koordinator.sh/v1alpha1","kind":"Reservation","metadata":{"name":"a"},'
    b'"spec":{"template":{},"owners":[{"labelSelector":{}}]}}'
)


@pytest.mark.slow
async def test_what_is_probably_not_meant_is_said_and_done(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=(RESERVATIONS,)) as engine:
        path = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
        answer = await engine.router.handle(Request(method="POST", path=path, body=RESERVATION, user=ENGINE))
        assert isinstance(answer, Response)
        assert answer.status == 201, answer.body
        assert answer.warnings == ['299 - "spec.owners[0].labelSelector: is empty and fits every pod of the cluster"']
