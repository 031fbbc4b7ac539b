"""Amounts of resources: `quantity("1.5Gi").isLessThan(quantity("2Gi"))`."""

from __future__ import annotations

from herder.api import quantity as quantities
from herder.api.quantity import Quantity, parse_quantity
from herder.server.schema.cel.errors import CelError
from herder.server.schema.cel.functions import function
from herder.server.schema.cel.values import checked, register_type

register_type(Quantity, "kubernetes.Quantity")


@function("quantity(string) quantity")
def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except ValueError as error:
        raise CelError(str(error)) from None


@function("isQuantity(string) bool")
def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


@function("sign(quantity) int")
def _sign(one: Quantity) -> int:
    return one.sign


@function("quantity.isGreaterThan(quantity) bool")
def _greater(one: Quantity, other: Quantity) -> bool:
    return one > other


@function("quantity.isLessThan(quantity) bool")
def _less(one: Quantity, other: Quantity) -> bool:
    return one < other


@function("quantity.compareTo(quantity) int")
def _compare(one: Quantity, other: Quantity) -> int:
    return (one > other) - (one < other)


@function("quantity.add(quantity) quantity")
def _add(one: Quantity, other: Quantity) -> Quantity:
    return one + other


@function("quantity.add(int) quantity")
def _add_int(one: Quantity, other: int) -> Quantity:
    return one + quantities.of(other)


@function("quantity.sub(quantity) quantity")
def _sub(one: Quantity, other: Quantity) -> Quantity:
    return one - other


@function("quantity.sub(int) quantity")
def _sub_int(one: Quantity, other: int) -> Quantity:
    return one - quantities.of(other)


@function("quantity.isInteger() bool")
def _is_integer(one: Quantity) -> bool:
    return one == quantities.of(one.value()) and -(2**63) <= one.value() < 2**63


@function("quantity.asInteger() int")
def _as_integer(one: Quantity) -> int:
    if not _is_integer(one):
        raise CelError("cannot convert value to integer")
    return checked(one.value())


@function("quantity.asApproximateFloat() double")
def _as_float(one: Quantity) -> float:
    return one.nanos / 1e9
