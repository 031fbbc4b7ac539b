"""Certificates: an authority of our own, and what it signs. Imports nothing of ours."""
