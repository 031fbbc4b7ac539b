"""Names that pages show (metrics, annotations, reasons, conditions, fields, functions) are names that the code has."""

import ast
import re
from importlib import import_module
from pathlib import Path

import msgspec
import yaml

from herder.api.registry import info_of
from herder.api.validation import problems_of

from .pages import blocks_of, problems, prose_of, spans_of, text_of
from .sources import source_text, source_words

METRIC = re.compile(r"\b(?:herder|workqueue|leader_election)_[a-z_]+")
OF_OUR_DOMAIN = re.compile(r"[\w.-]*herder\.dev/[A-Za-z-]+")
HUMPED = re.compile(r"\b[A-Za-z]*[a-z][A-Z][A-Za-z0-9]*\b")
UNDERSCORED = re.compile(r"\b[A-Za-z]\w*_\w+\b")
DOTTED = re.compile(r"herder\.[a-z]+(?:\.\w+)+")
METHOD = re.compile(r"([A-Z]\w+)\.(\w+)")
CALL = re.compile(r"(\w+)\(.*\)")
# Words that are written so and are nobody's names here.
OF_OTHERS = {
    *("JavaScript", "PyYAML", "SeaBIOS", "vCPU", "GitHub", "PR_SET_PDEATHSIG", "disconnect", "process_start_time_seconds"),
    *("MutatingWebhookConfigurations", "ValidatingWebhookConfigurations", "HorizontalPodAutoscaler"),
    "ValidatingAdmissionPolicy",
    # Fields and values of KubeVirt's own pools.
    *("virtualMachineTemplate", "appendIndexToConfigMapRefs", "appendIndexToSecretRefs", "sortPolicy", "AscendingOrder"),
    *("DescendingOrder", "startUpFailureThreshold", "minFailingToStartDuration"),
}


def _known(word: str) -> bool:
    # Of several; a field that Python writes with underscores; a kind that is asked for by its resource.
    spelt = {word, word.removesuffix("s"), f"{word}s", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower(), word.lower()}
    return bool(spelt & source_words()) or word in OF_OTHERS


def _metric(name: str) -> bool:
    declared = {name, name.removesuffix("_total")} & source_words()
    return bool(declared) or (name.endswith("_") and f'"{name}' in source_text())


def test_metrics_of_pages_are_counted() -> None:
    assert problems(lambda page: {name for name in METRIC.findall(text_of(page)) if not _metric(name)}) == {}


def _ours(name: str) -> bool:
    """In the code as it is, or a prefix there and the key (as a field: `crashes-after` is `crashes_after`)."""
    domain, _, key = name.partition("/")
    return name in source_text() or (f'"{domain}/"' in source_text() and bool({key, key.replace("-", "_")} & source_words()))


def test_labels_and_annotations_of_our_domain_are_read_or_written_by_the_code() -> None:
    assert problems(lambda page: {name for name in OF_OUR_DOMAIN.findall(text_of(page)) if not _ours(name)}) == {}


def _without_files(text: str) -> str:
    return re.sub(r"[\w./-]+\.(?:py|md|json|sh)\b|tests/[\w/]+", "", text)


def test_kinds_fields_reasons_and_conditions_of_pages_are_in_the_code() -> None:
    assert problems(lambda page: {word for word in HUMPED.findall(_without_files(prose_of(page))) if not _known(word)}) == {}


def _unknown_names(page: Path) -> set[str]:
    spans = [_without_files(span) for span in spans_of(page)]
    words = {word for span in spans for word in UNDERSCORED.findall(span) if not METRIC.match(word)}
    called = {found[1] for span in spans for found in [CALL.fullmatch(span)] if found}
    return {word for word in words | called if not _known(word)}


def test_functions_and_constants_of_pages_are_in_the_code() -> None:
    assert problems(_unknown_names) == {}


def _not_importable(page: Path) -> list[str]:
    missing = [span for span in spans_of(page) if DOTTED.fullmatch(span) and not _importable(span)]
    for span in spans_of(page):
        if (found := METHOD.fullmatch(span)) and re.search(rf"^class {found[1]}\b", source_text(), re.MULTILINE):
            missing += [] if re.search(rf"\bdef {found[2]}\b", source_text()) else [span]
    return missing


def _importable(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(import_module(module), attribute) or bool(import_module(name))
    except ModuleNotFoundError:
        return False


def test_modules_and_methods_of_pages_can_be_found() -> None:
    assert problems(_not_importable) == {}


def _unknown_calls(page: Path) -> set[str]:
    trees = [ast.parse(block.text) for block in blocks_of(page) if block.language == "python"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in called}
    own = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    return {name for name in names - own if not _known(name)}


def test_python_that_pages_show_calls_what_there_is() -> None:
    assert problems(_unknown_calls) == {}


def _wrong_objects(page: Path) -> list[str]:
    written = [one for block in blocks_of(page) if block.language == "yaml" for one in yaml.safe_load_all(block.text)]
    found = list[str]()
    for document in written:
        if "kind" in document and (info := info_of(document)):
            msgspec.convert(document, info.view)
            found += [str(problem) for problem in problems_of(document)]
    return found


def test_objects_of_our_kinds_that_pages_show_are_right() -> None:
    assert problems(_wrong_objects) == {}
