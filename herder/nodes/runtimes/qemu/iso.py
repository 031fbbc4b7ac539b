"""A small ISO 9660 image with Joliet names: what cloud-init and Windows read. The same files give the same bytes, on every node.

Two trees over the same content: one with short names for those who know nothing better, one (Joliet) with the real ones.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import msgspec

SECTOR = 2048
# A record of a folder is at most 255 bytes: 33 before the name, and two for each letter.
LONGEST_NAME = 103
LONGEST_LABEL = 32
_FORBIDDEN = set("*:;?\\")
_FIRST_FREE = 23  # after 16 sectors for boot code, three descriptors and four path tables
_DATE = bytes((100, 1, 1, 0, 0, 0, 0))  # always the same: content alone decides about the bytes
_FOLDER = 2


class _Node(msgspec.Struct):
    name: str
    number: int
    content: bytes | None = None  # None: a folder
    children: list[_Node] = msgspec.field(default_factory=list)
    parent: _Node | None = None
    sector: int = 0


class _Tree:
    """One of the two views."""

    def __init__(self, folders: list[_Node], joliet: bool) -> None:
        self.joliet = joliet
        self.folders = folders
        self.places: dict[int, int] = {}

    def name(self, node: _Node) -> bytes:
        if self.joliet:
            return node.name.encode("utf-16-be")
        return b"F%07d.;1" % node.number if node.content is not None else b"D%07d" % node.number

    def place(self, sector: int) -> int:
        for folder in self.folders:
            self.places[folder.number] = sector
            sector += len(self.records(folder)) // SECTOR
        return sector

    def records(self, folder: _Node) -> bytes:
        """No record crosses from one sector to the next."""
        parent = folder.parent or folder
        records = [self.record(folder, b"\0"), self.record(parent, b"\1")]
        records += [self.record(node, self.name(node)) for node in sorted(folder.children, key=self.name)]
        packed = b""
        for record in records:
            if len(packed) % SECTOR + len(record) > SECTOR:
                packed = _padded(packed)
            packed += record
        return _padded(packed)

    def record(self, node: _Node, name: bytes) -> bytes:
        folder = node.content is None
        # While places are still being given out only the length of the record counts.
        sector = self.places.get(node.number, 0) if folder else node.sector
        size = self._size(node) if folder else len(node.content or b"")
        head = _both(sector) + _both(size) + _DATE + bytes((_FOLDER if folder else 0, 0, 0)) + _both16(1)
        body = b"\0" + head + bytes((len(name),)) + name + (b"" if len(name) % 2 else b"\0")
        return bytes((len(body) + 1,)) + body

    def _size(self, folder: _Node) -> int:
        """Without asking for its own: how long a record is depends on the name alone."""
        filled = 0
        for length in [34, 34, *(33 + len(name) + (len(name) + 1) % 2 for name in sorted(map(self.name, folder.children)))]:
            filled += (-filled % SECTOR if filled % SECTOR + length > SECTOR else 0) + length
        return filled + -filled % SECTOR

    def path_table(self, order: str) -> bytes:
        numbers = {folder.number: place for place, folder in enumerate(self.folders, 1)}
        table = b""
        for folder in self.folders:
            name = self.name(folder) if folder.parent else b"\0"
            parent = numbers[folder.parent.number] if folder.parent else 1
            table += struct.pack(f"{order}BBIH", len(name), 0, self.places[folder.number], parent) + name
            table += b"\0" if len(name) % 2 else b""
        return table

    def descriptor(self, label: str, sectors: int) -> bytes:
        encode = self._text
        size = len(self.path_table("<"))
        first = 21 if self.joliet else 19
        return _padded(
            bytes((2 if self.joliet else 1,)) + b"CD001\x01\0" + encode("", 32) + encode(label, 32) + bytes(8) + _both(sectors)
            + (b"%/E" if self.joliet else b"").ljust(32, b"\0") + _both16(1) * 2 + _both16(SECTOR) + _both(size)
            + struct.pack("<II", first, 0) + struct.pack(">II", first + 1, 0) + self.record(self.folders[0], b"\0")
            + encode("", 128) * 4 + encode("", 37) * 3 + (b"0" * 16 + b"\0") * 4 + b"\x01"
        )  # fmt: skip

    def _text(self, text: str, size: int) -> bytes:
        if not self.joliet:
            return text.encode("ascii", "replace").ljust(size)[:size]
        return (text.encode("utf-16-be")[: size // 2 * 2] + b"\0 " * size)[: size // 2 * 2].ljust(size, b"\0")


def iso_image(files: Mapping[str, bytes], label: str = "") -> bytes:
    """Paths with `/` make folders. Raises ValueError with a sentence about a name that does not fit."""
    if len(label) > LONGEST_LABEL:
        raise ValueError(f"the label {label} is longer than {LONGEST_LABEL} letters")
    nodes = _nodes(files)
    folders = _in_order(nodes[0])
    short, long = _Tree(folders, joliet=False), _Tree(folders, joliet=True)
    sector = long.place(short.place(_FIRST_FREE))
    content = b""
    for node in nodes:
        if node.content:
            node.sector = sector + len(content) // SECTOR
            content += _padded(node.content)
    sectors = sector + len(content) // SECTOR
    head = [bytes(16 * SECTOR), short.descriptor(label, sectors), long.descriptor(label, sectors), _padded(b"\xffCD001\x01")]
    tables = [tree.path_table(order) for tree in (short, long) for order in "<>"]
    if any(len(table) > SECTOR for table in tables):
        raise ValueError("there are too many folders")
    listings = [tree.records(folder) for tree in (short, long) for folder in folders]
    return b"".join([*head, *map(_padded, tables), *listings, content])


def _nodes(files: Mapping[str, bytes]) -> list[_Node]:
    """The root first."""
    root = _Node("", 0)
    nodes, known = [root], {"": root}
    for path in sorted(files):
        *above, _ = parts = path.split("/")
        for name in parts:
            _check(name, path)
        parent = root
        for depth in range(1, len(above) + 1):
            key = "/".join(parts[:depth])
            if key not in known:
                known[key] = _Node(parts[depth - 1], len(nodes), parent=parent)
                nodes.append(known[key])
                parent.children.append(known[key])
            parent = known[key]
        node = _Node(parts[-1], len(nodes), content=files[path], parent=parent)
        nodes.append(node)
        parent.children.append(node)
    return nodes


def _check(name: str, path: str) -> None:
    if not name or name in (".", "..") or _FORBIDDEN & set(name):
        raise ValueError(f"a file cannot be called {path!r} on a CD-ROM")
    if len(name.encode("utf-16-be")) > 2 * LONGEST_NAME:
        raise ValueError(f"the name {name} is longer than {LONGEST_NAME} letters")


def _in_order(root: _Node) -> list[_Node]:
    """Level by level, as a path table wants it."""
    folders = [root]
    for folder in folders:
        folders += sorted((one for one in folder.children if one.content is None), key=lambda one: one.name)
    return folders


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % SECTOR)


def _both(value: int) -> bytes:
    return struct.pack("<I", value) + struct.pack(">I", value)


def _both16(value: int) -> bytes:
    return struct.pack("<H", value) + struct.pack(">H", value)
