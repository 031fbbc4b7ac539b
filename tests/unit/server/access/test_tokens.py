"""Tokens: signed, read again, and refused when anything about them is not right any more."""

from pathlib import Path
from typing import Any

import pytest

from herder.server.access import tokens
from herder.server.access.tokens import KEY_FILE, Bound, Claims, Named, Signer
from herder.server.request import User
from herder.server.status import ApiError
from tests.unit.server.inside import Inside, StillWorld, engine_inside

CLAIMS = Claims(("api",), 2, 1, "me", "j", Bound("ns", Named("robot", "u")), 1, "system:serviceaccount:ns:robot")
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
REQUEST = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def test_what_was_signed_can_be_read() -> None:
    signer = Signer.make()
    token = signer.sign(CLAIMS)
    assert signer.read(token) == CLAIMS
    assert signer.read(token) is signer.read(token)


def test_another_key_knows_nothing_of_it() -> None:
    assert Signer.make().read(Signer.make().sign(CLAIMS)) is None


@pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "a" * 100_000, "ä.b.c", "a.b.c.d", "eyJhbGciOiJub25lIn0.e30."])
def test_what_is_no_token_is_none(token: str) -> None:
    assert Signer.make().read(token) is None


def test_every_letter_of_a_token_counts() -> None:
    signer = Signer.make()
    token = signer.sign(CLAIMS)
    for at in range(0, len(token) - 2, 7):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        assert signer.read(changed) is None, at


def test_the_key_of_a_folder_stays(tmp_path: Path) -> None:
    token = Signer.open(tmp_path).sign(CLAIMS)
    assert Signer.open(tmp_path).read(token) == CLAIMS
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_no_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_text("nonsense")
    with pytest.raises(ValueError):
        Signer.open(tmp_path)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_REMEMBERED", 3)
    signer = Signer.make()
    made = [signer.sign(CLAIMS) for _ in range(5)]
    first = signer.read(made[0])
    for token in made:
        assert signer.read(token) == CLAIMS
    assert signer.read(made[0]) is not first


async def _token(inside: Inside, **spec: Any) -> str:
    code, answer = await inside.ask("POST", f"{ACCOUNTS}/robot/token", {**REQUEST, "spec": spec})
    assert code == 201, answer
    return answer["status"]["token"]


def _shown(inside: Inside, token: str) -> User | int:
    try:
        return inside.running.engine.access.identify(None, f"Bearer {token}")
    except ApiError as error:
        return error.code


@pytest.mark.slow
async def test_a_token_ends_with_its_time(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as inside:
        await inside.ask("POST", ACCOUNTS, ACCOUNT)
        token = await _token(inside, expirationSeconds=600)
        user = _shown(inside, token)
        assert isinstance(user, User)
        assert user.name == "system:serviceaccount:default:robot"
        world.seconds += 660
        assert isinstance(_shown(inside, token), User)
        world.seconds += 1
        assert _shown(inside, token) == 401


@pytest.mark.slow
async def test_a_token_of_tomorrow_is_none_today(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as inside:
        await inside.ask("POST", ACCOUNTS, ACCOUNT)
        token = await _token(inside)
        world.seconds -= 61
        assert _shown(inside, token) == 401


async def test_a_token_ends_a_minute_after_its_pod_is_deleted_even_if_that_stays(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as inside:
        await inside.ask("POST", ACCOUNTS, ACCOUNT)
        spec = {"serviceAccountName": "robot", "containers": [{"name": "a", "image": "b"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "finalizers": ["example.com/a"]}, "spec": spec}
        assert (await inside.ask("POST", "/api/v1/namespaces/default/pods", pod))[0] == 201
        token = await _token(inside, boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p"})
        await inside.ask("DELETE", "/api/v1/namespaces/default/pods/p")
        assert isinstance(_shown(inside, token), User)
        world.seconds += 61
        assert _shown(inside, token) == 401
