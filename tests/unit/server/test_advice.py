"""Warnings about our own kinds reach the client."""

from pathlib import Path

import pytest

from herder.api.registry import JOB as JOBS
from herder.server.request import ENGINE, Request, Response
from tests.unit.server.inside import engine_inside

JOB = (
    b'{"apiVersion":"scheduling.koordinator.sh/v1alpha1","kind":"PodMigrationJob","metadata":{"name":"a"},'
    b'"spec":{"podRef":{"namespace":"default","name":"p"},"mode":"EvictDirectly","reservationOptions":{"reservationRef":{"name":"r"}}}}'
)


@pytest.mark.slow
async def test_what_is_probably_not_meant_is_said_and_done(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=(JOBS,)) as engine:
        path = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs"
        answer = await engine.router.handle(Request(method="POST", path=path, body=JOB, user=ENGINE))
        assert isinstance(answer, Response)
        assert answer.status == 201, answer.body
        assert answer.warnings == ['299 - "spec.reservationOptions: not used with mode EvictDirectly, which reserves nothing"']
