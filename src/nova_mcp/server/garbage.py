"""Loading large parts of the program without looking for garbage among what is going to stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keeping_everything() -> Iterator[None]:
    """Nothing that is loaded inside is ever examined again: what stays until the end needs no collector."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.enable()
