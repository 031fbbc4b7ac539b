"""Becomes another program that is not trusted with anything but its open files. Run by its path, with nothing but Python itself.

In this order, as each step may need what the next one takes away: no network of the machine's, limits, another user, no new
privileges, no files but those of the program and those it was given (Landlock), no system calls that reach other processes, sockets
or the kernel's rarer parts (seccomp). Where a kernel lacks one of namespaces, Landlock and seccomp, the others remain.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Iterable

LIBRARY = ctypes.CDLL(None, use_errno=True)
_PDEATHSIG, _NO_NEW_PRIVS, _SECCOMP, _FILTER = 1, 38, 22, 2
_NEWIPC, _NEWNET = 0x08000000, 0x40000000
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
# Landlock's first version: what can be done with files and folders.
_ALL, _EXECUTE, _WRITE, _READ, _LIST = (1 << 13) - 1, 1 << 0, 1 << 1, 1 << 2, 1 << 3
# Where programs and their libraries are.
SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache")
# x86-64. Sockets; signals to others; their memory and limits; other namespaces and mounts; keys, modules, io_uring and the like.
_DENIED = (
    *(41, 42, 43, 44, 46, 49, 50, 53, 288, 307),
    *(62, 129, 200, 234, 297, 424),
    *(101, 310, 311, 312, 434, 438, 141, 142, 144, 203, 251, 314),
    *(155, 161, 163, 165, 166, 167, 168, 169, 272, 304, 308, 428, 429, 430, 431, 432, 433, 442),
    *(175, 176, 246, 248, 249, 250, 298, 313, 320, 321, 322, 323, 425, 426, 427),
)
_PRLIMIT = 302
_X86_64 = 0xC000003E


def main(settings: dict[str, int], inside: list[int], command: list[str]) -> None:
    confine(settings, (*SYSTEM, command[0]), inside)
    os.execv(command[0], command)


def confine(settings: dict[str, int], paths: Iterable[str], inside: Iterable[int]) -> None:
    """This very process, for good. `paths` may be read and run, and the open files of `inside` opened once more."""
    if os.geteuid() == 0:
        LIBRARY.unshare(_NEWNET | _NEWIPC)
    limit(settings)
    if settings["uid"] >= 0:
        os.setgroups([])
        os.setresgid(settings["gid"], settings["gid"], settings["gid"])
        os.setresuid(settings["uid"], settings["uid"], settings["uid"])
    # Only now: the kernel forgets it when the user changes.
    LIBRARY.prctl(_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != settings["parent"]:
        sys.exit("whoever asked for it is gone")
    if LIBRARY.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("it could gain privileges")
    keep_to(paths, inside)
    deny_calls()


def limit(settings: dict[str, int]) -> None:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: settings["memory"],
        resource.RLIMIT_CPU: settings["cpu_seconds"],
        resource.RLIMIT_FSIZE: settings["file_size"],
        resource.RLIMIT_NOFILE: settings["open_files"],
    }
    for kind, most in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def keep_to(paths: Iterable[str], inside: Iterable[int]) -> bool:
    """Landlock: what is at these paths may be read and run, the given files read and written, and nothing else."""
    attributes = struct.pack("Q", _ALL)
    ruleset = LIBRARY.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    if ruleset < 0:
        return False
    for path in paths:
        if os.path.exists(path):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            _allow(ruleset, descriptor, _READ | _EXECUTE | (_LIST if os.path.isdir(path) else 0))
            os.close(descriptor)
    for descriptor in inside:
        _allow(ruleset, descriptor, _READ | _WRITE)
    done = LIBRARY.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0)) == 0
    os.close(ruleset)
    return done


def _allow(ruleset: int, descriptor: int, access: int) -> None:
    LIBRARY.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), struct.pack("=Qi", access, descriptor), ctypes.c_uint(0))


def deny_calls() -> bool:
    """seccomp. What is denied fails with EPERM: a program that can do without goes on. Of limits only its own can be asked for."""
    if platform.machine() != "x86_64":
        return False
    refuse, allow, kill = 0x00050001, 0x7FFF0000, 0x80000000
    load, jump_if, jump_from, back = 0x20, 0x15, 0x35, 0x06
    lines = [(load, 0, 0, 4), (jump_if, 1, 0, _X86_64), (back, 0, 0, kill), (load, 0, 0, 0)]
    # Those of the x32 ABI have other numbers for the same.
    lines += [(jump_from, 0, 1, 0x40000000), (back, 0, 0, refuse)]
    for number in _DENIED:
        lines += [(jump_if, 0, 1, number), (back, 0, 0, refuse)]
    lines += [(jump_if, 0, 3, _PRLIMIT), (load, 0, 0, 16), (jump_if, 1, 0, 0), (back, 0, 0, refuse), (back, 0, 0, allow)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    # A number of instructions, and where they are.
    given = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program))
    return LIBRARY.prctl(_SECCOMP, _FILTER, given, 0, 0) == 0


if __name__ == "__main__":
    about = json.loads(sys.argv[1])
    main(about["settings"], about["inside"], sys.argv[2:])
