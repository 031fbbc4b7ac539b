"""Server-side apply of the status: how lists with several writers are written."""

from bench.load import APPLY_PATCH, Call, pod_path
from bench.objects import status_apply
from bench.report import Report
from bench.sides import Options
from bench.status_writes import measure_writes

NAME = "status-applies"


def run(options: Options) -> Report:
    return measure_writes(NAME, "server-side apply", "applies", _apply, options)


def _apply(name: str, mark: int) -> Call:
    return Call("PATCH", pod_path(name, "status") + "?fieldManager=bench", status_apply(name, mark), APPLY_PATCH)
