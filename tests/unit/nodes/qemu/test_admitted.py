"""Whatever spec is admitted makes a valid pod, and a command line that holds what was meant and nothing beside it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herder.api import builtin
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.registry import INSTANCE
from herder.nodes.runtimes.base import EmptyVolume, Refused, Volume
from herder.nodes.runtimes.qemu.command import BOARD
from herder.rules.instances.launcher import launcher_pod
from tests.examples import examples
from tests.unit.api.validation.judging import completed, document, refused
from tests.unit.nodes.qemu.orders import FACTS, command, values

Json = dict[str, Any]
UID = "0c6f6bd6-0000-4000-8000-000000000001"
HOSTILE = (
    *("a,b=on", "a,,b", ",", "q35,accel=kvm", "qemu64,+avx", "a\x00b", "\x00", "a\nb", "a b", "-append", "..", "../../etc/shadow"),
    *("/etc/shadow", "a" * 64, "a" * 300, "ü", "\u202e", "a=b", "", "-", ".", "_", "a-", "$(id)", '"', "{", "%n"),
)
TEXT = st.sampled_from(HOSTILE) | st.text(max_size=12)
NUMBER = st.sampled_from([-1, 0, 1, 2, 64, 1024, 65535, 65536, 2**31 - 1, 2**31, 2**63 - 1, 2**63])
AMOUNT = NUMBER | st.sampled_from(
    ["1", "64m", "64Mi", "1Gi", "0", "1e3", "1e400", "9999999Ei", "1.5", "0.5Gi", "1Pi", "2Pi", "100m", "x", ""]
)
NAME = st.sampled_from(["root", "a", "data", "kernel"]) | TEXT
# Where something is put, and what: one path for each field that reaches the pod, the command line or the name of a file.
FIELDS: dict[tuple[str | int, ...], st.SearchStrategy[Any]] = {
    ("domain", "cpu", "model"): st.sampled_from(["Nehalem", "host-model", "host-passthrough"]) | TEXT,
    ("domain", "cpu", "sockets"): NUMBER,
    ("domain", "cpu", "cores"): NUMBER,
    ("domain", "cpu", "features"): st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(["aes", "sse4.2"]) | TEXT},
            optional={"policy": st.sampled_from(["force", "require", "disable"])},
        ),
        max_size=2,
    ),
    ("domain", "memory", "guest"): AMOUNT,
    ("domain", "resources"): st.fixed_dictionaries(
        {},
        optional={
            place: st.dictionaries(
                st.sampled_from(["cpu", "memory", "example.com/gpu", "hugepages-2Mi", "ephemeral-storage"]) | TEXT,
                AMOUNT,
                max_size=3,
            )
            for place in ("requests", "limits")
        },
    ),
    ("domain", "machine", "type"): st.sampled_from(["q35", "pc"]) | TEXT,
    ("domain", "firmware", "uuid"): TEXT,
    ("domain", "firmware", "serial"): TEXT,
    ("domain", "firmware", "kernelBoot", "kernelArgs"): TEXT,
    ("domain", "firmware", "kernelBoot", "volume", "kernelPath"): TEXT,
    ("domain", "firmware", "kernelBoot", "volume", "initrdPath"): TEXT,
    ("domain", "clock", "timezone"): st.sampled_from(["Europe/Berlin", "UTC"]) | TEXT,
    ("domain", "clock", "utc", "offsetSeconds"): NUMBER,
    ("domain", "devices", "disks", 0, "name"): NAME,
    ("domain", "devices", "disks", 0, "serial"): TEXT,
    ("domain", "devices", "disks", 0, "bootOrder"): NUMBER,
    ("domain", "devices", "interfaces", 0, "model"): st.sampled_from(["virtio", "e1000"]) | TEXT,
    ("domain", "devices", "interfaces", 0, "macAddress"): TEXT,
    ("domain", "devices", "interfaces", 0, "ports"): st.lists(
        st.fixed_dictionaries({"port": NUMBER}, optional={"name": st.sampled_from(["http"]) | TEXT}), max_size=2
    ),
    ("domain", "devices", "watchdog", "name"): NAME,
    ("volumes", 0, "emptyDisk", "capacity"): AMOUNT,
    ("volumes", 1, "secret", "secretName"): NAME,
    ("volumes", 1, "secret", "volumeLabel"): TEXT,
    ("nodeSelector",): st.dictionaries(st.sampled_from(["zone"]) | TEXT, TEXT, max_size=2),
    ("tolerations",): st.lists(
        st.fixed_dictionaries({}, optional={"key": TEXT, "operator": st.sampled_from(["Exists", "Equal"]), "value": TEXT}),
        max_size=2,
    ),
    ("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"): st.lists(
        st.fixed_dictionaries(
            {"topologyKey": st.sampled_from(["zone"]) | TEXT}, optional={"namespaces": st.lists(NAME, max_size=1)}
        ),
        max_size=1,
    ),
    ("topologySpreadConstraints",): st.lists(
        st.fixed_dictionaries(
            {"maxSkew": NUMBER, "topologyKey": st.sampled_from(["zone"]) | TEXT, "whenUnsatisfiable": st.just("DoNotSchedule")},
            optional={"minDomains": NUMBER},
        ),
        max_size=2,
    ),
    ("priorityClassName",): NAME,
    ("schedulerName",): NAME,
    ("hostname",): NAME,
    ("subdomain",): NAME,
    ("terminationGracePeriodSeconds",): NUMBER,
    ("readinessProbe", "tcpSocket", "port"): NUMBER | TEXT,
}


def base() -> Json:
    return {
        "domain": {
            "memory": {"guest": "64Mi"},
            "firmware": {
                "kernelBoot": {"volume": {"name": "root", "kernelPath": "/boot/vmlinuz"}, "kernelArgs": "console=ttyS0 a,b"}
            },
            "devices": {
                "disks": [{"name": "root", "serial": "S-1,2"}, {"name": "keys"}],
                "interfaces": [{"name": "default", "ports": [{"name": "http", "port": 80}]}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}, {"name": "keys", "secret": {"secretName": "keys"}}],
    }


def with_(spec: Any, path: tuple[str | int, ...], value: Any) -> Any:
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(head, int):
        return [with_(one, rest, value) if index == head else one for index, one in enumerate(spec)]
    return {**spec, head: with_(spec.get(head, {}), rest, value)}


def admitted(spec: Json, name: str = "web") -> Json | None:
    """As it is stored, where it is admitted at all."""
    return None if refused(INSTANCE, spec, name=name) else completed(INSTANCE, document(INSTANCE, spec, name=name, uid=UID))


def problems_of_pod(instance: Json) -> list[str]:
    pod = launcher_pod(instance, msgspec.convert(instance["spec"], VirtualMachineInstanceSpec))
    whole = msgspec.json.decode(msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", **pod}))
    sentence = builtin.conform("", "Pod", whole)
    if sentence is not None:
        return [sentence]
    builtin.default("", "Pod", whole)
    builtin.prepare_for_create("", "Pod", whole)
    return [str(problem) for problem in builtin.validate_create("", "Pod", whole)]


def options_of(text: str) -> list[str]:
    """As QEMU takes an option apart: a comma that is meant is doubled."""
    return [one.replace("\x01", ",") for one in text.replace(",,", "\x01").split(",")]


def check_command(spec: Json) -> None:
    view = msgspec.convert(spec, VirtualMachineInstanceSpec)
    volumes: dict[str, Volume] = {volume.name: EmptyVolume(1 << 20) for volume in view.volumes or ()}
    try:
        line = command(spec, volumes, kernel=30)
    except Refused as why:
        assert str(why), "a node that cannot run it says why"
        return
    assert all("\x00" not in word and word.encode() for word in line if word)
    assert options_of(values(line, "-machine")[0])[1:] == BOARD.split(","), "nothing beside what we say of the board"
    (model, *features) = options_of(values(line, "-cpu")[0])
    assert model in ("Westmere", "Nehalem", "max")
    asked = {one.name for one in (view.domain.cpu.features if view.domain.cpu else None) or ()} | set(FACTS.host_model_features)
    assert all(one == "enforce" or one.rpartition("=")[0] in asked for one in features)
    assert [len(options_of(name)) for name in values(line, "-name")] == [1]
    for smbios in values(line, "-smbios"):
        assert [one.partition("=")[0] for one in options_of(smbios)] == ["type", "serial"]
    for netdev in values(line, "-netdev"):
        assert {one.partition("=")[0] for one in options_of(netdev)} <= {"user", "id", "hostfwd"}
    for device in values(line, "-device"):
        if device.startswith("{"):
            json.loads(device)


def test_the_spec_that_all_others_are_made_from_is_admitted_and_runs() -> None:
    instance = admitted(base())
    assert instance is not None, refused(INSTANCE, base())
    assert problems_of_pod(instance) == []
    line = command(instance["spec"], {"root": EmptyVolume(1), "keys": EmptyVolume(1)}, kernel=30)
    assert values(line, "-append") == ["console=ttyS0 a,b"]


@pytest.mark.parametrize("path", FIELDS, ids=lambda path: ".".join(map(str, path)))
@given(data=st.data())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_admitted_in_one_field_makes_a_valid_pod_and_a_clean_command_line(
    path: tuple[str | int, ...], data: st.DataObject
) -> None:
    spec = with_(base(), path, data.draw(FIELDS[path]))
    if (instance := admitted(spec)) is not None:
        assert problems_of_pod(instance) == []
        check_command(instance["spec"])


@given(data=st.data())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_admitted_in_several_fields_makes_a_valid_pod_and_a_clean_command_line(data: st.DataObject) -> None:
    spec = base()
    for path in data.draw(st.lists(st.sampled_from(list(FIELDS)), max_size=4, unique=True)):
        spec = with_(spec, path, data.draw(FIELDS[path]))
    if (instance := admitted(spec, data.draw(st.sampled_from(["web", "a" * 253, "a." * 100 + "b", "1"])))) is not None:
        assert problems_of_pod(instance) == []
        check_command(instance["spec"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("domain", "cpu", "model"), "qemu64,+avx"),
        (("domain", "cpu", "features"), [{"name": "avx,check=off"}]),
        (("domain", "machine", "type"), "q35,accel=kvm"),
        (("domain", "memory", "guest"), "1"),
        (("domain", "memory", "guest"), "64m"),
        (("domain", "memory", "guest"), "9999999Ei"),
        (("domain", "firmware", "kernelBoot", "kernelArgs"), "console=ttyS0\x00"),
        (("domain", "firmware", "kernelBoot", "volume", "kernelPath"), "../../etc/shadow"),
        (("domain", "firmware", "uuid"), "not a uuid"),
        (("domain", "firmware", "serial"), "a\nb"),
        (("domain", "clock", "timezone"), "../../../etc/shadow"),
        (("domain", "devices", "disks", 0, "serial"), "a\x00b"),
        (("terminationGracePeriodSeconds",), 2**63 - 1),
        (("readinessProbe", "tcpSocket", "port"), "https"),
        (("domain", "resources"), {"requests": {"example.com/gpu": "1"}}),
        (("tolerations",), [{"key": "a b", "operator": "Exists"}]),
        (("schedulerName",), "a b"),
    ],
)
def test_what_could_never_run_is_refused_by_a_sentence_about_that_field(path: tuple[str | int, ...], value: Any) -> None:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in ("spec", *path)).removeprefix(".")
    assert any(sentence.startswith(place) for sentence in refused(INSTANCE, with_(base(), path, value)))


def test_a_definition_that_does_not_fit_into_an_annotation_is_refused() -> None:
    data = {"userData": "x" * 65_000}
    spec = {"domain": {}, "volumes": [{"name": f"v{number}", "cloudInitNoCloud": data} for number in range(5)]}
    (sentence,) = refused(INSTANCE, spec)
    assert sentence.startswith("spec: Invalid value: ")
    assert "put user data, network data and files into Secrets or ConfigMaps" in sentence
    spec["volumes"] = spec["volumes"][:3]
    instance = admitted(spec)
    assert instance is not None
    assert problems_of_pod(instance) == []
