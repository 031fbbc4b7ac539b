"""What a store should be, in a few lines: the list of all steps, and everything else derived from it."""

from tests.unit.server.store.rig import Seen


class Model:
    def __init__(self) -> None:
        self.steps: list[Seen] = []
        # Behind this revision history need not be whole any more.
        self.compacted = 0

    @property
    def revision(self) -> int:
        return self.steps[-1].revision if self.steps else 0

    def state(self, table: str, at: int | None = None) -> dict[str, bytes]:
        """The objects of a table at a revision (None: now), in key order."""
        objects: dict[str, bytes] = {}
        for step in self.steps:
            if step.table != table or (at is not None and step.revision > at):
                continue
            if step.kind == "DELETED":
                del objects[step.key]
            else:
                objects[step.key] = step.raw
        return dict(sorted(objects.items()))

    def after(self, table: str, revision: int) -> list[Seen]:
        return [step for step in self.steps if step.table == table and step.revision > revision]

    def commit(self, revision: int, table: str, key: str, raw: bytes, *, deleted: bool = False) -> None:
        before = self.state(table).get(key)
        kind = "DELETED" if deleted else "MODIFIED" if before is not None else "ADDED"
        self.steps.append(Seen(revision, table, kind, key, raw, before))
