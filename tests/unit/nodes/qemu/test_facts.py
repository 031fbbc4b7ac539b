"""What is made of QEMU's answers."""

import msgspec

from herder.nodes.runtimes.qemu.facts import runs_baseline
from tests.unit.nodes.qemu.orders import FACTS


def test_a_kvm_without_the_plainest_processor_runs_no_guest() -> None:
    assert runs_baseline(msgspec.structs.replace(FACTS, models={"qemu64": ()}))
    assert not runs_baseline(msgspec.structs.replace(FACTS, models={"qemu64": ("pni",)}))
    assert not runs_baseline(msgspec.structs.replace(FACTS, models={"pentium3": ()}))
