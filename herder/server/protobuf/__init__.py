"""Bodies in protobuf, as Go clients send them for built-in kinds: read into the same documents that JSON gives."""

from herder.server.protobuf.body import MEDIA_TYPE, read_body
from herder.server.protobuf.wire import WireError

__all__ = ["MEDIA_TYPE", "WireError", "read_body"]
