"""`--storage-reserve`: what guests leave of the file system that volumes share with the store."""

from __future__ import annotations

import click

from herder.rules.disk_space import MOST_BY_DEFAULT, PERCENT_BY_DEFAULT, Reserve, parse_reserve


def _checked(context: click.Context, option: click.Parameter, text: str) -> str:
    try:
        reserve_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return text


def reserve_of(text: str) -> Reserve:
    return parse_reserve(text) if text else Reserve()


storage_reserve_option = click.option(
    "--storage-reserve",
    metavar="AMOUNT|PERCENT",
    default="",
    callback=_checked,
    help=f"Room that guests leave to the store (qemu).  [default: {PERCENT_BY_DEFAULT}%, at most {MOST_BY_DEFAULT >> 30}Gi]",
)
