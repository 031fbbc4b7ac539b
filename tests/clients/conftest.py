"""The clients that people bring, each with nothing but a kubeconfig."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.engines.engine import Engine

Json = dict[str, Any]


@pytest.fixture(scope="session")
def kubeconfig(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made here for both engines, so that the clients read the same."""
    path = tmp_path_factory.mktemp("clients") / "kubeconfig"
    cluster = {"server": engine.server, "certificate-authority": str(engine.ca)}
    user = {"client-certificate": str(engine.client_certificate), "client-key": str(engine.client_key)}
    config: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "here", "user": "me"}}],
        "current-context": "it",
    }
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture
def definition(unique: Callable[..., str]) -> Json:
    """A kind of the test's own, with a status and columns."""
    group = f"{unique('c')}.example.com"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"sheep.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "sheep", "singular": "sheep", "kind": "Sheep", "shortNames": ["sh"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
                }
            ],
        },
    }
