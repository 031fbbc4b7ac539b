"""Where guests come in from other machines: one port for each, of those that were chosen."""

import socket
from pathlib import Path

import msgspec
import pytest

from herder.nodes.runtimes.qemu.wire import KeyPair, Wire, listen

PAIR = KeyPair(Path("crt"), Path("key"))
WIRE = Wire(address="127.0.0.4", ca=Path("ca"), client=PAIR, server=PAIR)


def test_any_free_port_will_do() -> None:
    with listen(WIRE) as one, listen(WIRE) as other:
        assert one.getsockname()[0] == "127.0.0.4"
        assert one.getsockname()[1] != other.getsockname()[1]


def test_each_guest_has_a_port_of_those_that_were_chosen_and_no_other() -> None:
    with socket.create_server(("127.0.0.4", 0)) as taken:
        port = taken.getsockname()[1]
        chosen = msgspec.structs.replace(WIRE, ports=(port, port + 1))
        with listen(chosen) as one:
            assert one.getsockname()[1] == port + 1
            with pytest.raises(OSError, match=rf"as many guests are on their way as there are ports \({port} to {port + 1}\)"):
                listen(chosen)
        with listen(chosen) as again:
            assert again.getsockname()[1] == port + 1


def test_an_address_of_another_machine_is_said() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        listen(msgspec.structs.replace(WIRE, address="192.0.2.1", ports=(40000, 40010)))
