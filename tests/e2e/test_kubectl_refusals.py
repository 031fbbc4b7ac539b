"""What a person reads who got something wrong: which field, what was there, what would be right."""

import pytest

from tests.e2e.kubectl import Json, Kubectl
from tests.e2e.manifests import config_map, deployment, machine, pod, pool


def _with(document: Json, path: str, value: object) -> Json:
    """The document with one field set; the path is in dots."""
    first, _, rest = path.partition(".")
    return document | {first: _with(document.get(first, {}), rest, value) if rest else value}


@pytest.mark.parametrize(
    ("document", "field", "meant"),
    [
        (machine("one"), "spec.runStrateg", "spec.runStrategy"),
        (machine("one"), "spec.template.spec.domain.cpuu", "spec.template.spec.domain.cpu"),
        (deployment("web", 1), "spec.replica", "spec.replicas"),
        (config_map("a"), "dat", "data"),
    ],
    ids=["vm", "deep", "deployment", "configmap"],
)
def test_an_unknown_field_is_named_with_what_was_meant(here: Kubectl, document: Json, field: str, meant: str) -> None:
    said = here.refused("create", "-f", "-", stdin=_with(document, field, {}))
    assert said.startswith("Error from server (BadRequest): ")
    assert said.endswith(f'unknown field "{field}" (did you mean "{meant}"?)')
    assert here("get", document["kind"], "-o", "name") == ""


def test_an_unknown_field_may_be_only_a_warning(here: Kubectl) -> None:
    answer = here.run("create", "--validate=warn", "-f", "-", stdin=_with(machine("one"), "spec.runStrateg", "Always"))
    assert answer.returncode == 0
    assert answer.stderr.startswith('Warning: unknown field "spec.runStrateg"')


@pytest.mark.parametrize(
    ("document", "field", "value", "complaint"),
    [
        (
            machine("one"),
            "spec.runStrategy",
            "Sometimes",
            'spec.runStrategy: Unsupported value: "Sometimes": supported values: "Always", "Halted", "Manual", "Once"',
        ),
        (pool("herd", 1), "spec.replicas", -1, "spec.replicas: Invalid value: -1"),
        (pool("herd", 1), "spec.replicas", "many", 'spec.replicas: Invalid value: "string"'),
        (
            config_map("a"),
            "metadata.name",
            "Not A Name",
            'metadata.name: Invalid value: "Not A Name": a lowercase RFC 1123 subdomain',
        ),
        (config_map("a"), "metadata.labels", {"a": "not ok!"}, 'metadata.labels: Invalid value: "not ok!": a valid label must be'),
        (pod("p"), "spec.containers", [], "spec.containers: Required value"),
        (
            pod("p"),
            "spec.restartPolicy",
            "Perhaps",
            'spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", ',
        ),
        (deployment("web", 1), "spec.selector", {"matchLabels": {"app": "other"}}, "`selector` does not match template `labels`"),
    ],
    ids=["enum", "minimum", "type", "name", "label", "required", "pod", "selector"],
)
def test_a_wrong_value_is_named_with_what_is_right(
    here: Kubectl, document: Json, field: str, value: object, complaint: str
) -> None:
    said = here.refused("create", "-f", "-", stdin=_with(document, field, value))
    assert said.startswith(f'The {document["kind"]} "')
    assert "is invalid:" in said
    assert complaint in said


def test_a_field_that_must_stay_is_named(here: Kubectl) -> None:
    here.create(deployment("web", 1))
    said = here.refused(
        "patch", "deploy", "web", "--type=json", "-p", '[{"op":"add","path":"/spec/selector/matchLabels/x","value":"y"}]'
    )
    assert 'The Deployment "web" is invalid: ' in said
    assert "spec.selector: Invalid value" in said
    assert "field is immutable" in said


def test_what_is_not_there_is_said_to_be_missing(here: Kubectl) -> None:
    assert here.refused("get", "cm", "a") == 'Error from server (NotFound): configmaps "a" not found'
    assert here.refused("get", "vm", "a") == 'Error from server (NotFound): virtualmachines.kubevirt.io "a" not found'
    assert here.refused("describe", "vm", "a") == 'Error from server (NotFound): virtualmachines.kubevirt.io "a" not found'
    assert here.refused("get", "unicorns") == 'error: the server doesn\'t have a resource type "unicorns"'


def test_what_is_there_already_is_said_to_be_there(here: Kubectl) -> None:
    here.create(machine("one"))
    said = here.refused("create", "-f", "-", stdin=machine("one"))
    assert said.endswith('virtualmachines.kubevirt.io "one" already exists')
    assert said.startswith("Error from server (AlreadyExists): ")


def test_a_namespace_that_is_not_there_takes_nothing(kubectl: Kubectl) -> None:
    said = kubectl.inside("nowhere").refused("create", "-f", "-", stdin=config_map("a"))
    assert said.endswith('namespaces "nowhere" not found')


def test_a_kind_that_nobody_knows_is_named(here: Kubectl) -> None:
    said = here.refused("apply", "-f", "-", stdin=machine("one") | {"kind": "VirtualUnicorn"})
    assert 'no matches for kind "VirtualUnicorn" in version "kubevirt.io/v1"' in said


def test_what_pods_cannot_do_here_is_said_and_not_crashed_on(here: Kubectl) -> None:
    here("run", "web", "--image=registry.example.com/web:1")
    assert "ephemeral containers are disabled" in here.refused("debug", "web", "--image=registry.example.com/debug:1")


def test_a_selector_that_makes_no_sense_is_refused(here: Kubectl) -> None:
    assert "field label not supported" in here.refused("get", "cm", "--field-selector", "data.colour=blue")
