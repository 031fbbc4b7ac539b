"""Status patches: what node agents send most."""

from bench.load import MERGE_PATCH, Call, pod_path
from bench.objects import status_patch
from bench.report import Report
from bench.sides import Options
from bench.status_writes import measure_writes

NAME = "status-patches"


def run(options: Options) -> Report:
    return measure_writes(NAME, "merge patches", "patches", _patch, options)


def _patch(name: str, mark: int) -> Call:
    return Call("PATCH", pod_path(name, "status"), status_patch(mark), MERGE_PATCH)
