"""One module or folder per kind: watch, ask the rules, act. They meet only in objects."""

from herder.kube.kit import Start

# All of them. Whoever leads runs these.
CONTROLLERS: tuple[Start, ...] = ()
