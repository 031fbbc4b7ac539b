"""Rules for CronJobs. The schedule is read to see whether it can be: nobody here looks at the clock for it."""

from __future__ import annotations

import re
from typing import Final

from herder.api import names
from herder.api.builtin.jobs import check_work
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.semantics import Document, Problems, refuse_negative, section
from herder.api.duration import parse_duration
from herder.api.problems import invalid, not_supported, required

LONGEST_NAME: Final = 52
_POLICIES: Final = ("Allow", "Forbid", "Replace")
_WORDS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# The name of each field, its least and its greatest value, and words for its values from the least on.
_FIELDS: Final[tuple[tuple[str, int, int, tuple[str, ...]], ...]] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)
_TERM: Final = re.compile(r"(?:(?P<all>[*?])|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?")
_ZONE: Final = re.compile(r"[A-Za-z0-9._+][A-Za-z0-9._+-]{0,13}(/[A-Za-z0-9._+][A-Za-z0-9._+-]{0,13})*")


def default_cron_job(spec: Document) -> None:
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


def validate_cron_job(obj: Document, out: Problems) -> None:
    meta = section(obj, "metadata")
    validate_meta(meta, True, names.name_is_subdomain, out)
    _check_spec(section(obj, "spec"), out)
    if len(meta.get("name") or "") > LONGEST_NAME:
        out.append(invalid("metadata.name", meta["name"], f"must be no more than {LONGEST_NAME} characters"))


def validate_cron_job_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    _check_spec(section(new, "spec"), out)


def _check_spec(spec: Document, out: Problems) -> None:
    schedule = spec.get("schedule") or ""
    if not schedule:
        out.append(required("spec.schedule"))
    elif "TZ" in schedule:
        out.append(invalid("spec.schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
    elif said := schedule_complaint(schedule):
        out.append(invalid("spec.schedule", schedule, said))
    zone = spec.get("timeZone")
    if zone is not None and not _is_zone(zone):
        out.append(invalid("spec.timeZone", zone, "must be the name of a time zone, such as Europe/Paris"))
    if spec.get("concurrencyPolicy") not in _POLICIES:
        out.append(not_supported("spec.concurrencyPolicy", spec.get("concurrencyPolicy", ""), _POLICIES))
    for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        refuse_negative(spec.get(name), f"spec.{name}", out)
    _check_job(section(section(spec, "jobTemplate"), "spec"), "spec.jobTemplate.spec", out)


def _is_zone(name: str) -> bool:
    return _ZONE.fullmatch(name) is not None and name.lower() != "local" and not {".", ".."} & set(name.split("/"))


def _check_job(spec: Document, field: str, out: Problems) -> None:
    check_work(spec, field, out)
    if spec.get("selector") is not None:
        out.append(invalid(f"{field}.selector", spec["selector"], "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        out.append(not_supported(f"{field}.manualSelector", True, ("nil", "false")))


def schedule_complaint(schedule: str) -> str:
    """Nothing where it is one that cron understands."""
    if schedule.startswith("@"):
        return _about_word(schedule)
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"must have 5 fields (minute, hour, day of the month, month, day of the week), but has {len(parts)}"
    for part, field in zip(parts, _FIELDS, strict=True):
        for term in filter(None, part.split(",")):
            if not _is_term(term, *field[1:]):
                return f"{part!r} is no {field[0]}: a number from {field[1]} to {field[2]}, a range, a list of them, or *"
    return ""


def _about_word(schedule: str) -> str:
    if schedule in _WORDS:
        return ""
    try:
        word, _, duration = schedule.partition(" ")
        if word == "@every" and parse_duration(duration):
            return ""
    except ValueError:
        pass
    return f"must be one of {', '.join(_WORDS)} or '@every 1h30m'"


def _is_term(term: str, least: int, greatest: int, words: tuple[str, ...]) -> bool:
    found = _TERM.fullmatch(term)
    if found is None or (found["step"] is not None and int(found["step"]) == 0):
        return False
    if found["all"]:
        return True
    first = _value(found["first"], least, words)
    last = _value(found["last"], least, words) if found["last"] else first
    return first is not None and last is not None and least <= first <= last <= greatest


def _value(text: str, least: int, words: tuple[str, ...]) -> int | None:
    if text.lower() in words:
        return least + words.index(text.lower())
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else None
