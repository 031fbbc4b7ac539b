"""When Python looks for garbage that goes round in a circle. All other garbage goes at once."""

import gc

# Reading one pod makes hundreds of objects and drops nearly all of them again: with Python's own 700, looking for circles among
# them took a quarter of the engine's time and a tenth of the controllers'. So few of each age that a search takes milliseconds.
COLLECT_AT = (10_000, 5, 20)


def look_seldom() -> None:
    """From now on; and no more at what is there already, such as caches that know everything: it stays until it is replaced. Each
    object of it still goes when nobody holds it any more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AT)
