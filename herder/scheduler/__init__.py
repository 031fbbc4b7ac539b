"""The loop that places pods."""
