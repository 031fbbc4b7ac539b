"""Revisions of a StatefulSet: one for each template, the newest last, and no more of the past than people want."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api.core import ControllerRevision
from herder.rules.workloads.revisions import (
    Revision,
    current_revision,
    is_same_revision,
    plan_revision,
    revision_document,
    revision_of,
    to_forget,
)
from herder.rules.workloads.templates import same_template

from .stateful import NEW, OLD, stateful_set
from .things import template_with


def stored(document: dict[str, Any]) -> ControllerRevision:
    return msgspec.convert(document, type=ControllerRevision)


def numbered(number: int, image: str = "") -> Revision:
    return Revision(name=f"web-{number}", template=template_with(image or f"web:{number}"), number=number, uid=f"uid-{number}")


def test_a_template_that_is_new_is_the_next() -> None:
    assert plan_revision(NEW.template, []).number == 1
    found = plan_revision(template_with("web:3"), [NEW, OLD])
    assert (found.update, found.number, found.renumber) == (None, 3, False)


def test_a_template_that_is_the_newest_already_stays_what_it_is() -> None:
    found = plan_revision({**NEW.template, "spec": {**NEW.template["spec"], "nodeName": ""}}, [NEW, OLD])
    assert (found.update, found.renumber) == (NEW, False)


@pytest.mark.parametrize(("field", "counts"), [("hostNetwork", False), ("automountServiceAccountToken", True)])
def test_a_flag_that_is_written_as_false_is_news_only_where_nothing_means_something_else(field: str, counts: bool) -> None:
    template = {**NEW.template, "spec": {**NEW.template["spec"], field: False}}
    assert (plan_revision(template, [NEW]).update is None) is counts
    assert same_template(template, NEW.template) is not counts


def test_a_template_that_people_went_back_to_is_the_newest_again() -> None:
    found = plan_revision(OLD.template, [NEW, OLD])
    assert (found.update, found.number, found.renumber) == (OLD, 3, True)


def test_a_revision_is_a_patch_that_undo_sends_as_it_is() -> None:
    one = stateful_set(annotations={"kubernetes.io/change-cause": "because"})
    document = revision_document(one, NEW.template, 2, 0)
    ending = document["metadata"]["labels"]["controller.kubernetes.io/hash"]
    assert document["metadata"]["name"] == f"web-{ending}"
    assert document["metadata"]["labels"]["app"] == "web"
    assert document["metadata"]["annotations"] == {"kubernetes.io/change-cause": "because"}
    assert document["data"] == {"spec": {"template": {**NEW.template, "$patch": "replace"}}}
    read = revision_of(stored(document))
    assert read is not None
    assert (read.template, read.number) == (NEW.template, 2)
    assert revision_document(one, NEW.template, 2, 1)["metadata"]["name"] != document["metadata"]["name"]


def test_a_name_that_is_taken_is_ours_only_with_our_template_and_our_owner() -> None:
    one = stateful_set()
    document = revision_document(one, NEW.template, 2, 0)
    assert is_same_revision(stored(document), one, NEW.template)
    assert not is_same_revision(stored(document), one, OLD.template)
    foreign = {**document, "metadata": {**document["metadata"], "ownerReferences": []}}
    assert not is_same_revision(stored(foreign), one, NEW.template)


@pytest.mark.parametrize("data", [None, [], {"spec": []}, {"spec": {"template": "x"}}])
def test_a_revision_that_is_none_is_passed_over(data: Any) -> None:
    assert revision_of(stored({"metadata": {"name": "x"}, "data": data})) is None


def test_the_current_revision_is_that_of_the_status_where_pods_can_be_made_of_it() -> None:
    one = stateful_set(status={"currentRevision": "web-old"})
    assert current_revision(one, [NEW, OLD], NEW) is OLD
    assert current_revision(one, [NEW], NEW) is NEW
    forged = Revision(name="web-old", template={"metadata": [], "spec": {"volumes": "x"}})
    assert current_revision(one, [forged], NEW) is NEW


def test_what_nobody_uses_is_forgotten_but_for_the_latest() -> None:
    known = [numbered(number) for number in range(1, 7)]
    gone = to_forget(stateful_set(), known, {"web-1", "web-6"})
    assert [(one.name, one.uid) for one in gone] == [("web-2", "uid-2"), ("web-3", "uid-3")]
    assert to_forget(stateful_set(spec={"revisionHistoryLimit": 4}), known, {"web-1", "web-6"}) == ()
