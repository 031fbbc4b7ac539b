"""Connections: how many there may be, who is let go first, and where requests may lead. Imports nothing of ours."""
