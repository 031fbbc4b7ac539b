"""Where an object is on the wire: a name is often somebody's text, and never more than one part of a path."""

import pytest

from herder.kube.resources import CLUSTER_ROLES, INSTANCES, NAMESPACES, PODS

VMIS = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("web", "web"),
        ("web/status", "web%2Fstatus"),
        ("../../../../api/v1/nodes", "..%2F..%2F..%2F..%2Fapi%2Fv1%2Fnodes"),
        ("a?watch=1#b", "a%3Fwatch%3D1%23b"),
    ],
)
def test_a_name_is_one_part_of_the_path(name: str, written: str) -> None:
    assert INSTANCES.path("shop", name) == f"{VMIS}/{written}"


def test_subresources_and_names_of_roles_are_as_they_are_written() -> None:
    assert PODS.path("shop", "a", "attach") == "/api/v1/namespaces/shop/pods/a/attach"
    assert CLUSTER_ROLES.path("", "herder:controllers") == "/apis/rbac.authorization.k8s.io/v1/clusterroles/herder:controllers"
    assert NAMESPACES.path("", "a b") == "/api/v1/namespaces/a%20b"
