"""`kubectl --as`: a request made as somebody else, by someone who may do that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import unquote

from herder.api.names import dns_label, dns_subdomain
from herder.server.access.accounts import account_groups
from herder.server.access.attributes import Attributes
from herder.server.access.rbac import ACCOUNT_PREFIX
from herder.server.request import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User
from herder.server.status import bad_request

PREFIX = "impersonate-"
EXTRA = "impersonate-extra-"
AUTHENTICATION = "authentication.k8s.io"
Require = Callable[[User, Attributes], None]


def impersonated(user: User, headers: Mapping[str, str], require: Require) -> User:
    """Who the request is to be answered as. Every name, group, uid and extra that is asked for must be allowed."""
    wanted = _wanted(headers)
    if wanted is None:
        return user
    account = _account(wanted.name)
    namespace, name = account or ("", wanted.name)
    require(user, Attributes("impersonate", "", "", "serviceaccounts" if account else "users", "", namespace, name))
    for group in wanted.groups:
        require(user, Attributes("impersonate", "", "", "groups", "", "", group))
    for key, values in wanted.extra.items():
        for value in values:
            require(user, Attributes("impersonate", "", AUTHENTICATION, "userextras", key, "", value))
    if wanted.uid:
        require(user, Attributes("impersonate", "", AUTHENTICATION, "uids", "", "", wanted.uid))
    groups = wanted.groups or (account_groups(namespace) if account else ())
    return User(wanted.name, _completed(wanted.name, groups), wanted.uid, wanted.extra)


def _wanted(headers: Mapping[str, str]) -> User | None:
    names = [name for name in headers if name[:12].lower() == PREFIX]
    if not names:
        return None
    groups: list[str] = []
    extra: dict[str, tuple[str, ...]] = {}
    user = uid = ""
    for name in dict.fromkeys(name.lower() for name in names):
        values = _values(headers, name)
        if name == "impersonate-user":
            user = values[0]
        elif name == "impersonate-group":
            groups += values
        elif name == "impersonate-uid":
            uid = values[0]
        elif name.startswith(EXTRA):
            extra[unquote(name.removeprefix(EXTRA))] = tuple(values)
        else:
            # Never to be ignored: the request would be answered with more rights than it asked for.
            raise bad_request(f"unknown impersonation header {name!r}")
    if not user and (groups or uid or extra):
        raise bad_request("requested a group, uid or extra without impersonating a user name")
    return User(user, tuple(groups), uid, extra) if user else None


def _values(headers: Mapping[str, str], name: str) -> list[str]:
    """All values of a header, whose name comes in any case."""
    return [value for key, value in headers.items() if key.lower() == name]


def _account(name: str) -> tuple[str, str] | None:
    """The namespace and name of a ServiceAccount, where the user is one."""
    if not name.startswith(ACCOUNT_PREFIX):
        return None
    namespace, colon, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
    if not colon or dns_label(namespace) or dns_subdomain(account):
        return None
    return namespace, account


def _completed(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Everyone is authenticated or is not, whether the one who asked said so or not."""
    if name == ANONYMOUS.name:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)
