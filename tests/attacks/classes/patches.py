"""Patches: JSON patches of many operations and of growing copies, merge and strategic merge patches of long lists, applies."""

from __future__ import annotations

from tests.attacks.attack import CORE, EDITOR, NAMESPACE, Plan, Shot, attack, config_map, create, encoded
from tests.attacks.classes.documents import VALUES, counted, up_to

MAPS = f"{CORE}/configmaps"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
JSON_PATCH, MERGE, STRATEGIC = (f"application/{kind}+json" for kind in ("json-patch", "merge-patch", "strategic-merge-patch"))
APPLY = "application/apply-patch+yaml"
LARGE = 1_000_000


def patch(path: str, body: bytes, kind: str, query: str = "") -> Shot:
    return Shot("PATCH", path + query, body, kind)


def large_map(name: str, keys: int = 20_000) -> Shot:
    return create(MAPS, config_map(name, data={f"key-{number}": "x" * (LARGE // keys - 20) for number in range(keys)}))


@attack("json-patch-operations", EDITOR)
def json_patch_operations(size: int) -> Plan:
    path = f"{MAPS}/operations"
    text = "x" * LARGE
    prepare = [create(MAPS, config_map("operations", data={"a": text, "b": "c"}))]
    test_all = {"op": "test", "path": "/data", "value": {"a": text, "b": "c"}}
    many = [{"op": "replace", "path": "/data/b", "value": "d"}] * 10_000
    tests = [{"op": "test", "path": "/data/a", "value": text}] * 2
    deep = [{"op": "add", "path": "/data" + "/a" * 100, "value": "d"}] * 10_000
    fail = [{"op": "test", "path": "/" + "x" * (size // 2), "value": 1}]
    bodies = (many, tests, deep, fail, [test_all] * 2, [{"op": "x" * size}])
    return Plan([patch(path, encoded(body), JSON_PATCH, "?dryRun=All") for body in bodies], prepare)


@attack("json-patch-lists", EDITOR)
def json_patch_lists(size: int) -> Plan:
    """Inserting at the front of a long list, taking from its front."""
    path = f"{MAPS}/lists"
    finalizers = [f"e.com/{number}" for number in range(20_000)]
    prepare = [create(MAPS, config_map("lists"))]
    shots = [
        [
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
            *[{"op": "add", "path": "/metadata/finalizers/0", "value": "e.com/x"}] * 5_000,
        ],
        [
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
            *[{"op": "remove", "path": "/metadata/finalizers/0"}] * 8_000,
        ],
        [
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
            *[{"op": "test", "path": "/metadata/finalizers", "value": []}] * 6_000,
        ],
        [{"op": "add", "path": "/x", "value": finalizers}, *[{"op": "move", "from": "/x/0", "path": "/x/19999"}] * 6_000],
    ]
    return Plan([patch(path, encoded(body), JSON_PATCH, "?dryRun=All") for body in shots], prepare)


@attack("json-patch-copies", EDITOR)
def json_patch_copies(size: int) -> Plan:
    path = f"{MAPS}/copies"
    prepare = [create(MAPS, config_map("copies", data={"a": "x" * 1000}))]
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(60)]
    many = [{"op": "copy", "from": "/data/a", "path": f"/data/k{number}"} for number in range(10_000)]
    small = [{"op": "add", "path": "/data/e", "value": [[]] * 1000}]
    small += [{"op": "copy", "from": "/data/e", "path": f"/data/k{number}"} for number in range(9_000)]
    missing = [{"op": "copy", "from": "/data/zzz", "path": "/data/b"}] * 10_000
    bodies = (doubling, many, small, missing)
    return Plan([patch(path, encoded(body), JSON_PATCH, "?dryRun=All") for body in bodies], prepare)


@attack("merge-patches", EDITOR)
def merge_patches(size: int) -> Plan:
    path = f"{MAPS}/merged"
    nulls = b'{"data":{' + up_to(size, counted(b'"key-%d":null')) + b"}}"
    unknown = b'{"x":{' + up_to(size, counted(b'"key-%d":{"a":{}}')) + b"}}"
    deep = b'{"data":' + b'{"a":' * 140 + b"1" + b"}" * 140 + b"}"
    return Plan([patch(path, body, MERGE, "?dryRun=All") for body in (nulls, unknown, deep)], [large_map("merged")])


POD = b'{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[%s]}}'
CONTAINER = b'{"name":"c%d","image":"i"}'


def deployment(name: bytes, containers: bytes) -> bytes:
    head = b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"%s"},"spec":{"replicas":0,' % name
    return head + b'"selector":{"matchLabels":{"a":"b"}},"template":' + POD % containers + b"}}"


@attack("strategic-lists", EDITOR)
def strategic_lists(size: int) -> Plan:
    """Lists that are merged by a key, with all directives that there are."""
    environment = b'{"name":"E%d","value":"v"}'
    few = 700_000
    container = b'{"name":"c","image":"i","env":[' + up_to(few, counted(environment)) + b"]}"
    prepare = [create(DEPLOYMENTS, deployment(b"strategic", container))]

    def of_env(items: bytes, more: bytes = b"") -> bytes:
        return b'{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[' + items + b"]" + more + b"}]}}}}"

    reverse = up_to(size // 2, (environment % number for number in range(9_000, 0, -1)))
    order = b',"$setElementOrder/env":[' + up_to(size // 2, (b'{"name":"E%d"}' % number for number in range(9_000, 0, -1))) + b"]"
    deletes = up_to(size, counted(b'{"name":"E%d","$patch":"delete"}'))
    duplicates = up_to(size, (b'{"name":"E1","value":"w"}' for _ in range(size)))
    bodies = [of_env(reverse), of_env(reverse, order), of_env(deletes), of_env(duplicates), of_env(b"", order)]
    finalizers = b'{"metadata":{"$deleteFromPrimitiveList/finalizers":[' + up_to(size, counted(b'"e.com/%d"')) + b"]}}"
    added = b'{"metadata":{"finalizers":[' + up_to(size // 2, counted(b'"e.com/%d"')) + b"]}}"
    retain = (
        b'{"data":{"$retainKeys":['
        + up_to(size // 2, counted(b'"k%d"'), values=VALUES // 2)
        + b"],"
        + up_to(size // 2, counted(b'"k%d":"v"'), values=VALUES // 2)
        + b"}}"
    )
    orders = b'{"metadata":{' + up_to(size, counted(b'"$setElementOrder/f%d":[]')) + b"}}"
    target = f"{MAPS}/strategic"
    prepare.append(create(MAPS, config_map("strategic")))
    shots = [patch(f"{DEPLOYMENTS}/strategic", body, STRATEGIC, "?dryRun=All") for body in bodies]
    return Plan([*shots, *(patch(target, body, STRATEGIC, "?dryRun=All") for body in (finalizers, added, retain, orders))], prepare)


@attack("applies", EDITOR)
def applies(size: int) -> Plan:
    """Applies of very many fields and of long lists, against what others hold."""
    head = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{'
    mine = head + up_to(LARGE - 10_000, counted(b'"key-%d":"y"'), values=30_000) + b"}}"
    other = head + up_to(LARGE - 10_000, counted(b'"key-%d":"z"'), values=30_000) + b"}}"
    undeclared = head + b'"a":"b"},' + up_to(size, counted(b'"unknown%d":1')) + b"}"
    doubled = head + up_to(size, (b'"k%d":"y"' % (number // 2) for number in range(size))) + b"}}"
    path = f"{MAPS}/applied"
    one = "?fieldManager=one"
    return Plan(
        [
            patch(path, mine, APPLY, "?fieldManager=two&dryRun=All"),
            patch(path, other, APPLY, "?fieldManager=two&dryRun=All"),
            patch(path, other, APPLY, "?fieldManager=two&dryRun=All&force=true"),
            patch(path, other, APPLY, "?fieldManager=kubectl&dryRun=All"),
            patch(path, undeclared, APPLY, one),
            patch(path, doubled, APPLY, "?fieldManager=one&dryRun=All"),
            patch(path, head + b'"only":"this"}}', APPLY, "?fieldManager=one&dryRun=All"),
        ],
        [patch(path, mine, APPLY, one)],
    )


@attack("applies-of-lists", EDITOR)
def applies_of_lists(size: int) -> Plan:
    environment = [b'{"name":"E%d","value":"v"}' % number for number in range(14_000)]
    container = b'{"name":"c","image":"i","env":[%s]}'
    forward, backward = (deployment(b"listed", container % b",".join(one)) for one in (environment, environment[::-1]))
    same = deployment(b"listed", container % b",".join([b'{"name":"E","value":"v"}'] * 14_000))
    path = f"{DEPLOYMENTS}/listed"
    one = "?fieldManager=one&dryRun=All"
    return Plan(
        [
            patch(path, forward, APPLY, one),
            patch(path, backward, APPLY, one),
            patch(path, same, APPLY, one),
            patch(path, deployment(b"listed", container % b""), APPLY, one),
            patch(path, backward, APPLY, "?fieldManager=two&dryRun=All"),
        ],
        [patch(path, forward, APPLY, "?fieldManager=one")],
    )
