"""The only room that wires processes together: `herder up`, and what it supervises."""
