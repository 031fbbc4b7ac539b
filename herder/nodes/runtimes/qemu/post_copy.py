"""Whether a guest can come here by post-copy: only QEMU itself, run as guests are and told to wait for one, knows."""

from __future__ import annotations

import os
from pathlib import Path

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.qemu.progress import capabilities
from herder.nodes.runtimes.qemu.qmp import QMP, Gone, QMPError
from herder.rules.convergence import without_post_copy

SYSCTL = Path("/proc/sys/vm/unprivileged_userfaultfd")
DEVICE = Path("/dev/userfaultfd")


async def set_capabilities(control: QMP, settings: PolicySettings) -> str:
    """Of a QEMU that waits for a guest. Says why post-copy is not among them although it is allowed; empty where all are.

    Raises `QMPError` where the fault is another."""
    try:
        await control.do("migrate-set-capabilities", capabilities=capabilities(settings))
    except Gone:
        raise
    except QMPError as problem:
        if not settings.allow_post_copy:
            raise
        await control.do("migrate-set-capabilities", capabilities=capabilities(without_post_copy(settings)))
        return why_not(str(problem))
    return ""


def why_not(said: str) -> str:
    """QEMU's own words, with what helps where it is the kernel that refuses."""
    if "userfaultfd" not in said.lower():
        return f"QEMU there offers no post-copy ({said})"
    return f"the kernel lets QEMU's user have no userfaultfd ({said}); set the sysctl vm.unprivileged_userfaultfd=1 there"


def rights() -> str:
    """What the answer depends on, beside QEMU and its user: an answer that is kept is good for as long as this is the same."""
    try:
        switch = SYSCTL.read_text().strip()
    except OSError:
        switch = "none"
    try:
        device = os.stat(DEVICE)
    except OSError:
        return f"userfaultfd={switch}"
    return f"userfaultfd={switch},{device.st_mode:o},{device.st_uid},{device.st_gid}"
