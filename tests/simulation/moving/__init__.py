"""Guests on their way between two nodes, while everything that takes part in it may die at every step."""
