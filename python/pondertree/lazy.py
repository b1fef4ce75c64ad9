"""What is made when it is first asked for, and then kept.

`functools.cached_property` does the same, but in Python 3.11 it takes a lock each time, which costs more than most of
what is made here. Two threads that ask at once may both make it, and get equal things.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:  # noqa: N801 (it stands where `cached_property` would)
        """A method that is called once; what it gave is from then on an attribute of the object."""

        def __init__(self, make):
            self.make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, thing, owner=None):
            if thing is None:
                return self
            made = thing.__dict__[self.name] = self.make(thing)
            return made


__all__ = ["lazy"]
