"""Follows one migration, and shows how far it is."""

from __future__ import annotations

from herder.api.kinds import VirtualMachineInstanceMigration
from herder.api.kinds.migration_state import MigrationProgress
from herder.cli.asking import Refusal
from herder.cli.following import Away, until
from herder.cli.progress import Display, Row, State, reminding
from herder.kube.client import Client
from herder.kube.resources import MIGRATIONS, key_of
from herder.rules.migration.phases import finished, phase_of, target_of
from herder.rules.migration.shown import furthest, line, standing, waits_for

STATES: dict[str, State] = {"Pending": "waits", "Succeeded": "done"}


class MigrationFollower:
    def __init__(self, client: Client, migration: VirtualMachineInstanceMigration, shown: Display) -> None:
        self._client = client
        self._key = key_of(migration)
        self._shown = shown
        self._away = Away()
        self._progress: MigrationProgress | None = None
        self.now = migration

    async def until_over(self) -> None:
        """Raises what a person is to be told where it failed."""
        async with reminding(self._shown, self._why):
            await until(self._client, MIGRATIONS, self._key, self._is_over, self._away)
        status = self.now.status
        if phase_of(self.now) == "Failed":
            parts = (status.reason, status.message) if status is not None else ()
            why = ": ".join(part for part in parts if part) or "no reason was given"
            raise Refusal(f"migration {self.now.name} failed: {why}")

    async def until_gone(self) -> None:
        async with reminding(self._shown, self._why):
            await until(self._client, MIGRATIONS, self._key, self._is_gone, self._away)
        moved = f"; the guest had been moved to {target_of(self.now)} before" if phase_of(self.now) == "Succeeded" else ""
        self._shown.show([Row("", "done", f"virtualmachineinstancemigration.kubevirt.io/{self.now.name} is gone{moved}")])

    def _is_over(self, migration: VirtualMachineInstanceMigration | None) -> bool:
        if migration is None:
            raise Refusal(f"migration {self.now.name} was deleted, which cancels it")
        self.now = migration
        self._progress = furthest(migration, self._progress)
        # A failure is said once, at the end.
        if phase_of(migration) != "Failed":
            self._shown.show([row_of(migration, self._progress)])
        return finished(migration)

    def _is_gone(self, migration: VirtualMachineInstanceMigration | None) -> bool:
        self.now = migration or self.now
        return migration is None

    async def _why(self) -> str:
        return self._away.told or waits_for(self.now, self._progress)


def row_of(migration: VirtualMachineInstanceMigration, progress: MigrationProgress | None, name: str = "") -> Row:
    phase, status = phase_of(migration), migration.status
    state, said = STATES.get(phase, "moves"), line(migration, progress)
    if phase == "Running" and progress is not None:
        return Row(name, state, said, progress.percent or 0, step=standing(migration))
    # A sentence that counts nodes or others may change all the time: what is news is its reason.
    reason = (status.reason if status is not None else None) or ""
    return Row(name, state, said, step=f"{phase} {target_of(migration)} {reason}")
