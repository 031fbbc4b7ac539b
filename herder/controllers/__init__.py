"""One module or folder per kind: watch, ask the rules, act."""
