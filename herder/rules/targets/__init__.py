"""Where one migration may go (seed 001).

merging.py  what a migration adds, AND what the machine asks for: the target pod's affinity
nodes.py    every node, judged by the scheduler's rules
details.py  of each node the very selector, feature, taint or amount that says no
answers.py  a row per node, the sentence for the status, and whether waiting is any use
words.py    the words for all of it
written.py  what people write on the command line, as a term
"""

from herder.rules.targets.answers import TargetExplanation, TargetRow, explain_target, impossible, why_waiting
from herder.rules.targets.merging import Added, Impossible, added_by, constrained, contradiction
from herder.rules.targets.nodes import Asked, asked_of
from herder.rules.targets.written import written_term

__all__ = [
    "Added",
    "Asked",
    "Impossible",
    "TargetExplanation",
    "TargetRow",
    "added_by",
    "asked_of",
    "constrained",
    "contradiction",
    "explain_target",
    "impossible",
    "why_waiting",
    "written_term",
]
