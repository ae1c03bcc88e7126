"""`@frozen`: a frozen dataclass whose fields are given by name, and that is cheap to define.

For one the standard decorator writes six methods as source and compiles each, half a millisecond:
with sixty classes a tenth of every start and of every recovery. Here all classes share these, and
none is compiled. To `fields`, `replace`, `asdict`, `field(compare=False)` and msgspec such a class
is a dataclass like any other.

Invariants: nothing is set after `__init__`; equal values are of one class and have equal hashes. A
frozen class inherits from frozen ones only.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass; see the module."""
    made: Any = dataclass(kw_only=True, init=False, eq=False, repr=False)(cls)
    own = fields(made)
    made.__frozen_names__ = frozenset(each.name for each in own)
    made.__frozen_compared__ = [each.name for each in own if each.compare]
    made.__frozen_values__ = {f.name: f.default for f in own if f.default is not MISSING}
    made.__frozen_makers__ = [
        (f.name, f.default_factory) for f in own if f.default_factory is not MISSING
    ]
    made.__init__, made.__post_init__ = _filled, _completed
    made.__setattr__, made.__delattr__ = _never_set, _never_deleted
    made.__eq__, made.__hash__, made.__repr__ = _equal, _hash, _shown
    return cls


def _filled(self: Any, /, **values: Any) -> None:
    own = self.__dict__
    own.update(self.__frozen_values__, **values)
    for name, make in self.__frozen_makers__:
        if name not in values:
            own[name] = make()
    if own.keys() != self.__frozen_names__:
        wrong = ", ".join(sorted(own.keys() ^ self.__frozen_names__))
        raise TypeError(f"{type(self).__qualname__}() lacks, or does not know: {wrong}")


def _completed(self: Any) -> None:
    """msgspec sets what it reads, and leaves to the class what has a plain default."""
    own = self.__dict__
    for name, value in self.__frozen_values__.items():
        own.setdefault(name, value)


def _never_set(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _never_deleted(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _compared(self: Any) -> list[object]:
    own = self.__dict__
    return [own[name] for name in self.__frozen_compared__]


def _equal(self: Any, other: object) -> bool:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(tuple(_compared(self)))


def _shown(self: Any) -> str:
    values = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self))
    return f"{type(self).__qualname__}({values})"
