"""A schema, compiled once and asked often: what is unknown, what is missing, what is wrong."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import problems
from herder.api.problems import Problem
from herder.server.schema import defaults, fast, types, unknown
from herder.server.schema.embedded import check_embedded, has_embedded
from herder.server.schema.lists import check_lists, has_unique_lists
from herder.server.schema.node import ABSENT, Node, build
from herder.server.schema.quick import compile_quick
from herder.server.schema.rules import Rules, compile_rules
from herder.server.schema.values import NO_PATH, check_value

# Problems of these reasons keep the rules from running: a rule may count on types, required fields and bounds.
_BLOCKING = (problems.REQUIRED, problems.NOT_SUPPORTED, problems.TOO_LONG, problems.TOO_MANY, problems.TYPE_INVALID)
_RULES_SKIPPED = Problem(
    NO_PATH,
    problems.INVALID,
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_NOT_MADE = object()


class Schema:
    """What is known of one kind at one version."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.builtin = root.builtin
        self._decoder: Any = _NOT_MADE
        self._defaults: defaults.Apply | None = None
        self._quick = compile_quick(root)
        self._rules: Rules | None = compile_rules(root)
        self._has_lists = has_unique_lists(root)
        self._has_embedded = has_embedded(root)

    def accepts(self, raw: bytes) -> bool:
        """True: these bytes certainly hold no unknown field and no wrong type. False: ask the exact functions."""
        if self._decoder is _NOT_MADE:
            self._decoder = fast.decoder_for(self.root)
        if self._decoder is None:
            return False
        try:
            self._decoder.decode(raw)
        except (msgspec.ValidationError, msgspec.DecodeError):
            return False
        return True

    def unknown_fields(self, obj: dict[str, Any]) -> list[str]:
        """Paths of the fields that the schema does not know: `spec.foo`, `spec.containers[0].bar`."""
        return unknown.unknown_fields(obj, self.root)

    def did_you_mean(self, path: str) -> str | None:
        """The known field nearest to an unknown one."""
        return unknown.did_you_mean(path, self.root)

    def type_errors(self, obj: dict[str, Any]) -> list[str]:
        """What Go's decoder would refuse: for built-in kinds everywhere, for custom ones in their metadata."""
        return types.type_errors(obj, self.root)

    def prune(self, obj: dict[str, Any]) -> None:
        """Drops unknown fields in place."""
        unknown.prune(obj, self.root)

    def apply_defaults(self, obj: dict[str, Any]) -> None:
        """Fills in defaults in place. The defaults of built-in kinds are not in their schemas: for those this does nothing."""
        if self.builtin:
            return
        if self._defaults is None:
            self._defaults = defaults.compile_defaults(self.root)
        if defaults.may_have_null(obj):
            defaults.drop_nulls(obj, self.root)
        self._defaults(obj)

    def validate(self, obj: dict[str, Any], old: dict[str, Any] | None = None, typed: bool = False) -> list[Problem]:
        """Everything that is wrong with the values. `typed`: `accepts` said yes, so types need not be looked at again.

        With `old` this is an update: rules may compare, and what was wrong and did not change is left alone.
        """
        found: list[Problem] = []
        if not ((typed or self._is_typed(obj, old or {})) and self._quick(obj, old or {})):
            check_value(obj, self.root, "", found, ABSENT if old is None else old)
        if self.builtin:
            return found
        if self._has_embedded:
            check_embedded(obj, self.root, "", found)
        if self._has_lists:
            self._check_lists(obj, old, found)
        if self._rules is not None:
            if any(one.reason in _BLOCKING for one in found):
                found.append(_RULES_SKIPPED)
            else:
                self._rules.check(obj, old, found)
        return found

    def _is_typed(self, obj: dict[str, Any], old: dict[str, Any]) -> bool:
        """The encoder and the decoder of bytes are so quick that asking them costs less than a walk through the values."""
        changed = {field: value for field, value in obj.items() if value is not old.get(field)}
        return self.accepts(msgspec.json.encode(changed))

    def _check_lists(self, obj: dict[str, Any], old: dict[str, Any] | None, found: list[Problem]) -> None:
        repeated: list[Problem] = []
        check_lists(obj, self.root, "", repeated, old)
        if repeated and old is not None:
            before: list[Problem] = []
            check_lists(old, self.root, "", before)
            if before:
                return  # it was so already, and had been let in
        found.extend(repeated)


def compile_schema(openapi: dict[str, Any], components: dict[str, Any] | None = None) -> Schema:
    """With `components` (what `$ref`s point into) the schema is of a built-in kind, without of a custom resource."""
    return Schema(build(openapi, components))
