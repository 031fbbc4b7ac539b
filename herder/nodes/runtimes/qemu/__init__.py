"""Real guests, by QEMU. docs/qemu.md says how they are run."""

from herder.nodes.runtimes.qemu.host import ask
from herder.nodes.runtimes.qemu.process import RunAs
from herder.nodes.runtimes.qemu.runtime import QemuRuntime
from herder.nodes.runtimes.qemu.wire import KeyPair, Wire

__all__ = ["KeyPair", "QemuRuntime", "RunAs", "Wire", "ask"]
