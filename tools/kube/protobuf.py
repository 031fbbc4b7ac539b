"""Writes herder/server/protobuf/messages.json: the messages that Kubernetes' clients send, field by field.

    .venv/bin/python tools/kube/protobuf.py

Read out of the Go types of the pinned release, not of its .proto files: only the types say which fields are pointers, and which
of the empty ones their JSON leaves out. The file is the same on every run, so a diff shows what a new release changed.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from herder.server.builtins import BUILTINS

TARGET = Path(__file__).resolve().parents[2] / "herder" / "server" / "protobuf" / "messages.json"

# What is sent and not stored: options, subresources, questions.
PASSING = (
    *("v1/Binding", "v1/DeleteOptions", "autoscaling/v1/Scale", "policy/v1/Eviction"),
    *(f"authentication.k8s.io/v1/{kind}" for kind in ("SelfSubjectReview", "TokenRequest", "TokenReview")),
    *(
        f"authorization.k8s.io/v1/{kind}"
        for kind in ("LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview")
    ),
)


def main() -> None:
    stored = [f"{resource.group_version}/{resource.kind}" for resource in BUILTINS]
    tables = ask({"op": "tables", "kinds": sorted({*stored, *PASSING})})
    TARGET.write_text(compact(tables))
    print(f"{TARGET.name}: {len(tables['kinds'])} kinds, {len(tables['messages'])} messages, {TARGET.stat().st_size:,} bytes")


def ask(question: dict[str, Any]) -> dict[str, Any]:
    """The oracle's one answer to one question."""
    command = ["go", "run", "-trimpath", "./oracle/wire"]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    asked = json.dumps(question).encode() + b"\n"
    answer = json.loads(subprocess.check_output(command, cwd=Path(__file__).parent, env=environment, input=asked))
    if "error" in answer:
        raise SystemExit(answer["error"])
    return answer


def compact(tables: dict[str, Any]) -> str:
    """One line for each message, so that a diff is readable."""
    messages = ",\n".join(f"{json.dumps(name)}:{_dense(fields)}" for name, fields in sorted(tables["messages"].items()))
    return f'{{"kinds":{_dense(tables["kinds"])},\n"messages":{{\n{messages}\n}}}}\n'


def _dense(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


if __name__ == "__main__":
    main()
