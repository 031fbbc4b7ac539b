"""Which answers of the server people should hear of: those that somebody has to do something about."""

from __future__ import annotations

from herder.kube.errors import ApiStatusError, Forbidden


def is_refusal(error: Exception) -> bool:
    """A quota, a rule, a right: not what passes by itself, such as a conflict or a server that is busy."""
    return isinstance(error, ApiStatusError) and (isinstance(error, Forbidden) or not error.passing) and not is_ending(error)


def is_ending(error: Exception) -> bool:
    """The namespace goes, and all that is in it."""
    return isinstance(error, ApiStatusError) and error.namespace_terminating
