"""What names may look like. Every rule returns the sentences that say what is wrong with a name: none when it is right."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

Complaints: TypeAlias = tuple[str, ...]
NameRule: TypeAlias = Callable[[str, bool], Complaints]
"""Takes the name and whether it is only a prefix (generateName), which may end in a dash."""

FINE: Final[Complaints] = ()

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_KEY_NAME})?"
_ENV_NAME: Final = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"

# Of what is so much longer than any name may be, only that is told: looking at every letter of it would take long.
LONGEST_LOOKED_AT: Final = 4096


def _subdomain(value: str) -> bool:
    return len(value) > LONGEST_LOOKED_AT or _is_subdomain(value) is not None


_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_label_1035 = re.compile(_LABEL_1035).fullmatch
_key_name = re.compile(_KEY_NAME).fullmatch
_label_value = re.compile(_LABEL_VALUE).fullmatch
_config_key = re.compile(_CONFIG_KEY).fullmatch
_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_port_letters = re.compile("[-a-z0-9]+").fullmatch
_a_letter = re.compile("[a-z]").search
_printable = re.compile("[ -<>-~]+").fullmatch  # ASCII from the blank to the tilde, but for the equals sign

_ENDS = "must start and end with an alphanumeric character"
_KEY_RULE = f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"

MAX_LABEL: Final = 63
MAX_SUBDOMAIN: Final = 253
GENERATED_SUFFIX_LENGTH: Final = 5
MAX_GENERATE_BASE: Final = MAX_LABEL - GENERATED_SUFFIX_LENGTH


def regex_complaint(rule: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_COMPLAINT = regex_complaint(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_COMPLAINT = regex_complaint(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS}",
    _SUBDOMAIN,
    "example.com",
)
_LABEL_1035_COMPLAINT = regex_complaint(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_KEY_COMPLAINT = regex_complaint(_KEY_RULE, _KEY_NAME, "MyName", "my.name", "123-abc")
_LABEL_VALUE_COMPLAINT = regex_complaint(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_COMPLAINT = regex_complaint(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'", _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"
)
_C_IDENTIFIER_COMPLAINT = regex_complaint(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)


def length(text: str) -> int:
    """In bytes, as Kubernetes counts."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _too_long(limit: int, unit: str = "characters") -> str:
    return f"must be no more than {limit} {unit}"


def dns_label(value: str) -> Complaints:
    """DNS-1123 label: namespaces, containers, volumes."""
    if len(value) <= MAX_LABEL and _label(value):
        return FINE
    found: list[str] = []
    if length(value) > MAX_LABEL:
        found.append(_too_long(MAX_LABEL))
    if not _label(value):
        found.append("must not contain dots" if _subdomain(value) else _LABEL_COMPLAINT)
    return tuple(found)


def dns_subdomain(value: str, unit: str = "characters") -> Complaints:
    """DNS-1123 subdomain: what most objects are called."""
    if len(value) <= MAX_SUBDOMAIN and _subdomain(value):
        return FINE
    found: list[str] = []
    if length(value) > MAX_SUBDOMAIN:
        found.append(_too_long(MAX_SUBDOMAIN, unit))
    if not _subdomain(value):
        found.append(_SUBDOMAIN_COMPLAINT)
    return tuple(found)


def dns_1035_label(value: str) -> Complaints:
    """DNS-1035 label: begins with a letter; resource names in CRDs and services."""
    if len(value) <= MAX_LABEL and _label_1035(value):
        return FINE
    found: list[str] = []
    if length(value) > MAX_LABEL:
        found.append(_too_long(MAX_LABEL))
    if not _label_1035(value):
        found.append(_LABEL_1035_COMPLAINT)
    return tuple(found)


def qualified_name(value: str) -> Complaints:
    """A label key: a name, with an optional DNS subdomain and a slash before it."""
    prefix, slash, name = value.rpartition("/")
    if len(name) <= MAX_LABEL and _key_name(name) and (not slash or (len(prefix) <= MAX_SUBDOMAIN and _subdomain(prefix))):
        return FINE
    return _complaints_about_key(prefix, slash, name)


def _complaints_about_key(prefix: str, slash: str, name: str) -> Complaints:
    if "/" in prefix:
        return (f"a valid label key {_KEY_COMPLAINT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    found: list[str] = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found.extend(f"prefix part {complaint}" for complaint in dns_subdomain(prefix, "bytes"))
    if not name:
        found.append("name part must be non-empty")
    elif length(name) > MAX_LABEL:
        found.append(f"name part {_too_long(MAX_LABEL, 'bytes')}")
    if not _key_name(name):
        found.append(f"name part {_KEY_COMPLAINT}")
    return tuple(found)


label_key = qualified_name


def label_value(value: str) -> Complaints:
    if len(value) <= MAX_LABEL and _label_value(value):
        return FINE
    found: list[str] = []
    if length(value) > MAX_LABEL:
        found.append(_too_long(MAX_LABEL, "bytes"))
    if not _label_value(value):
        found.append(_LABEL_VALUE_COMPLAINT)
    return tuple(found)


def environment_name(value: str) -> Complaints:
    """Since 1.34 anything printable but the equals sign."""
    if _printable(value):
        return FINE
    if not value:
        return ("environment variable name must be non-empty",)
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


def config_key(value: str) -> Complaints:
    """A key of a ConfigMap or a Secret; it becomes a file name."""
    if len(value) <= MAX_SUBDOMAIN and _config_key(value) and not value.startswith("."):
        return FINE
    found: list[str] = []
    if length(value) > MAX_SUBDOMAIN:
        found.append(_too_long(MAX_SUBDOMAIN))
    if not _config_key(value):
        found.append(_CONFIG_KEY_COMPLAINT)
    if value in (".", ".."):
        found.append(f"must not be '{value}'")
    elif value.startswith(".."):
        found.append("must not start with '..'")
    return tuple(found)


def c_identifier(value: str) -> Complaints:
    return FINE if _c_identifier(value) else (_C_IDENTIFIER_COMPLAINT,)


def port_name(value: str) -> Complaints:
    found: list[str] = []
    if length(value) > 15:
        found.append(_too_long(15))
    if not _port_letters(value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _a_letter(value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return tuple(found)


def path_segment(value: str) -> Complaints:
    """What can stand between two slashes of an address."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return path_segment_prefix(value)


def path_segment_prefix(value: str) -> Complaints:
    return tuple(f"may not contain '{bad}'" for bad in "/%" if bad in value)


def name_is_subdomain(name: str, prefix: bool) -> Complaints:
    return dns_subdomain(_without_last_dash(name) if prefix else name)


def name_is_label(name: str, prefix: bool) -> Complaints:
    return dns_label(_without_last_dash(name) if prefix else name)


def name_is_1035_label(name: str, prefix: bool) -> Complaints:
    return dns_1035_label(_without_last_dash(name) if prefix else name)


def name_is_path_segment(name: str, prefix: bool) -> Complaints:
    """RBAC objects may be called almost anything: `system:node`."""
    return path_segment_prefix(name) if prefix else path_segment(name)


def _without_last_dash(name: str) -> str:
    """A prefix may end in a dash, because letters follow. Kubernetes replaces the last two characters; so the same is refused."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def generated_name(base: str, suffix: str) -> str:
    """`generateName` and its random suffix; a long base is cut so that the whole stays a label."""
    if length(base) > MAX_GENERATE_BASE:
        base = base.encode(errors="surrogatepass")[:MAX_GENERATE_BASE].decode(errors="ignore")
    return base + suffix
