"""Orders and kinds that others count by: scales, evictions, bindings, disruption budgets, workloads, machines, events."""

from __future__ import annotations

from tests.attacks.attack import CORE, EDITOR, NAMESPACE, OWNER, Plan, Shot, attack, create, dry
from tests.attacks.classes.documents import VALUES, counted, up_to
from tests.attacks.classes.patches import DEPLOYMENTS, deployment

BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
MACHINES = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
POD = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s"%s},"spec":{"containers":[{"name":"c","image":"i"}]%s}}'


def pod(name: bytes, metadata: bytes = b"", spec: bytes = b"") -> bytes:
    return POD % (name, metadata, spec)


@attack("orders", EDITOR)
def orders(size: int) -> Plan:
    unknown = up_to(size, counted(b'"unknown%d":1'))
    eviction = b'{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"ordered"},' + unknown + b"}"
    binding = b'{"apiVersion":"v1","kind":"Binding","metadata":{"name":"ordered"},"target":{"name":"n"},' + unknown + b"}"
    scale = b'{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"ordered"},"spec":{"replicas":1},' + unknown + b"}"
    options = b'{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"],' + unknown + b"}"
    return Plan(
        [
            create(dry(f"{CORE}/pods/ordered/eviction"), eviction),
            create(dry(f"{CORE}/pods/ordered/binding"), binding),
            Shot("PUT", f"{DEPLOYMENTS}/ordered/scale?dryRun=All", scale),
            Shot("PATCH", f"{DEPLOYMENTS}/ordered/scale?dryRun=All", scale, "application/merge-patch+json"),
            Shot("DELETE", f"{CORE}/pods/ordered?dryRun=All", options),
            Shot("DELETE", f"{CORE}/pods?dryRun=All", options),
        ],
        [create(f"{CORE}/pods", pod(b"ordered")), create(DEPLOYMENTS, deployment(b"ordered", b'{"name":"c","image":"i"}'))],
    )


@attack("budgets", EDITOR)
def budgets(size: int) -> Plan:
    head = b'{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"%s"},"spec":{"minAvailable":1,"selector":{'
    few = size // 2 - 8192
    labels = head % b"labels" + b'"matchLabels":{' + up_to(few, counted(b'"k%d":"v"')) + b"}}}}"
    terms = head % b"terms" + b'"matchExpressions":[' + up_to(few, counted(b'{"key":"k%d","operator":"Exists"}')) + b"]}}}"
    values = (
        head % b"values"
        + b'"matchExpressions":[{"key":"k","operator":"NotIn","values":['
        + up_to(few, counted(b'"v%d"'))
        + b"]}]}}}"
    )
    wrong = head % b"wrong" + b'"matchExpressions":[' + up_to(size, (b"{}" for _ in range(size))) + b"]}}}"
    pods = [create(f"{CORE}/pods", pod(b"budgeted-%d" % number)) for number in range(50)]
    made = [create(BUDGETS, body) for body in (labels, terms, values)]
    removed = [Shot("DELETE", f"{BUDGETS}/{name}") for name in ("labels", "terms", "values")]
    return Plan(
        [*made, create(f"{CORE}/pods", pod(b"later")), *removed, create(dry(BUDGETS), wrong), Shot("DELETE", f"{CORE}/pods/later")],
        pods,
    )


@attack("pods", EDITOR)
def pods(size: int) -> Plan:
    """The lists of a pod, each as long as it may be."""
    few = size // 2 - 8192
    tolerations = b',"tolerations":[' + up_to(few, counted(b'{"key":"k%d","operator":"Exists"}')) + b"]"
    volumes = b',"volumes":[' + up_to(few, counted(b'{"name":"v%d","emptyDir":{}}')) + b"]"
    term = b'{"labelSelector":{"matchLabels":{"a":"b%d"}},"topologyKey":"t"}'
    affinity = (
        b',"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[' + up_to(few, counted(term)) + b"]}}"
    )
    selector = b',"nodeSelector":{' + up_to(few, counted(b'"k%d":"v"')) + b"}"
    gates = b',"schedulingGates":[' + up_to(few, counted(b'{"name":"g%d"}')) + b"]"
    hosts = b',"hostAliases":[' + up_to(few, counted(b'{"ip":"1.2.3.4","hostnames":["h%d"]}')) + b"]"
    spread = (
        b',"topologySpreadConstraints":['
        + up_to(few, counted(b'{"maxSkew":1,"topologyKey":"t%d","whenUnsatisfiable":"DoNotSchedule"}'))
        + b"]"
    )
    claims = b',"imagePullSecrets":[' + up_to(few, counted(b'{"name":"s%d"}')) + b"]"
    specs = (tolerations, volumes, affinity, selector, gates, hosts, spread, claims)
    return Plan([create(dry(f"{CORE}/pods"), pod(b"long", b"", spec)) for spec in specs])


@attack("containers", EDITOR)
def containers(size: int) -> Plan:
    head = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"many"},"spec":{"containers":['
    few = size // 2 - 8192
    many = head + up_to(few, counted(b'{"name":"c%d","image":"i"}')) + b"]}}"
    ports = head + b'{"name":"c","image":"i","ports":[' + up_to(few, counted(b'{"containerPort":%d}')) + b"]}]}}"
    mounts = head + b'{"name":"c","image":"i","volumeMounts":[' + up_to(few, counted(b'{"name":"v","mountPath":"/%d"}')) + b"]}]}}"
    mounts = mounts[:-2] + b',"volumes":[{"name":"v","emptyDir":{}}]}}'
    arguments = head + b'{"name":"c","image":"i","args":[' + up_to(few, (b'"$(A)"' for _ in range(size))) + b"]}]}}"
    amounts = head + b'{"name":"c","image":"i","resources":{"limits":{' + up_to(few, counted(b'"e.com/r%d":"1"')) + b"}}}]}}"
    quantity = head + b'{"name":"c","image":"i","resources":{"limits":{"cpu":"' + b"9" * few + b'"}}}]}}'
    bodies = (many, ports, mounts, arguments, amounts, quantity)
    return Plan([create(dry(f"{CORE}/pods"), body) for body in bodies])


@attack("machines", EDITOR)
def machines(size: int) -> Plan:
    head = b'{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"m"},"spec":{"runStrategy":"Always",'
    few = size // 2 - 8192

    def machine(devices: bytes, volumes: bytes = b"", more: bytes = b"") -> bytes:
        domain = b'"domain":{"devices":{' + devices + b'},"memory":{"guest":"1Gi"}' + more + b"}"
        return head + b'"template":{"spec":{' + domain + b',"volumes":[' + volumes + b"]}}}}"

    disks = b'"disks":[' + up_to(few // 2, counted(b'{"name":"d%d"}'), values=VALUES // 3) + b"]"
    volumes = up_to(few // 2, counted(b'{"name":"d%d","emptyDisk":{"capacity":"1Gi"}}'), values=VALUES // 2)
    unknown = up_to(size, counted(b'"diskz%d":1'))
    interfaces = b'"interfaces":[' + up_to(few, counted(b'{"name":"n%d","masquerade":{}}')) + b"]"
    features = b',"cpu":{"model":"x","features":[' + up_to(few, counted(b'{"name":"f%d"}')) + b"]}"
    bodies = (machine(disks, volumes), machine(disks), machine(unknown), machine(interfaces), machine(b"", b"", features))
    return Plan([create(dry(MACHINES), body) for body in bodies])


@attack("our-selectors", OWNER)
def our_selectors(size: int) -> Plan:
    """Pools and policies select by labels."""
    few = size // 2 - 8192
    pools = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachinepools"
    kind = b'{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachinePool",'
    head = kind + b'"metadata":{"name":"p"},"spec":{"replicas":0,"selector":{'
    labels = up_to(few // 2, counted(b'"k%d":"v"'), values=VALUES // 3)
    template = b'"virtualMachineTemplate":{"metadata":{"labels":{' + labels + b'}},"spec":{"template":{"spec":{"domain":{}}}}}'
    body = head + b'"matchLabels":{' + labels + b"}}," + template + b"}}"
    terms = (
        head
        + b'"matchExpressions":['
        + up_to(few, counted(b'{"key":"k%d","operator":"Exists"}'), values=VALUES // 3)
        + b"]},"
        + template
        + b"}}"
    )
    return Plan([create(dry(pools), one) for one in (body, terms)])


@attack("events", EDITOR)
def events(size: int) -> Plan:
    head = b'{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"%s"},"involvedObject":{"namespace":"%s"},' % (
        (NAMESPACE.encode(),) * 2
    )
    message = head + b'"message":"' + b"x" * (size - 300) + b'"}'
    source = head + b'"source":{' + up_to(size - 300, counted(b'"component%d":""')) + b"}}"
    path = f"{CORE}/events"
    return Plan([create(dry(path), body) for body in (message, source)])


@attack("secrets", EDITOR)
def secrets(size: int) -> Plan:
    head = b'{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},'
    many = head + b'"data":{' + up_to(size, counted(b'"k%d":""')) + b"}}"
    texts = head + b'"stringData":{' + up_to(size, counted(b'"k%d":""')) + b"}}"
    large = head + b'"data":{"k":"' + b"A" * (size // 4 * 4 - 400) + b'"}}'
    broken = head + b'"data":{' + up_to(size, counted(b'"k%d":"?"')) + b"}}"
    path = dry(f"{CORE}/secrets")
    return Plan([create(path, body) for body in (many, texts, large, broken)])
