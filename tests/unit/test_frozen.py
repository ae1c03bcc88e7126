"""A frozen class is what a frozen dataclass is, told apart by nothing but the time it takes."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import msgspec
import pytest

from holdfast.frozen import frozen


@frozen
class Ours:
    """A class of ours."""

    name: str
    size: int = 1
    more: list[int] = field(default_factory=list)
    unseen: int = field(default=0, compare=False)

    @cached_property
    def label(self) -> str:
        return f"{self.name}:{self.size}"


@dataclass(frozen=True, kw_only=True)
class Theirs:
    """A class of ours."""

    name: str
    size: int = 1
    more: list[int] = field(default_factory=list)
    unseen: int = field(default=0, compare=False)


@frozen
class Heir(Ours):
    extra: tuple[str, ...] = ()


@frozen
class Key:
    task: int
    attempt: int


@pytest.mark.parametrize("made", [Ours, Theirs])
def test_it_is_a_dataclass_in_all_that_others_ask(made: Any) -> None:
    one = made(name="a", more=[2])
    assert [each.name for each in fields(one)] == ["name", "size", "more", "unseen"]
    assert asdict(one) == {"name": "a", "size": 1, "more": [2], "unseen": 0}
    assert repr(one) == f"{made.__name__}(name='a', size=1, more=[2], unseen=0)"
    assert replace(one, size=2) == made(name="a", size=2, more=[2])
    assert one == replace(one, unseen=9), "what is not compared is not"
    assert one != replace(one, size=2)
    assert one != object()
    assert made(name="a").more is not made(name="a").more
    assert copy.deepcopy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one
    content = msgspec.json.encode(one)
    assert content == b'{"name":"a","size":1,"more":[2],"unseen":0}'
    assert msgspec.json.decode(b'{"more":[2],"name":"a"}', type=made) == one
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"name":1}', type=made)
    for wrong in ({}, {"name": "a", "other": 1}):
        with pytest.raises(TypeError):
            made(**wrong)
    with pytest.raises(TypeError):
        made("a")


@pytest.mark.parametrize("made", [Ours, Theirs])
def test_nothing_of_it_can_be_changed(made: Any) -> None:
    for one in (made(name="a"), msgspec.json.decode(b'{"name":"a"}', type=made)):
        for name in ("name", "size", "other"):
            with pytest.raises(FrozenInstanceError):
                setattr(one, name, "b")
            with pytest.raises(FrozenInstanceError):
                delattr(one, name)
        assert one == made(name="a")


def test_equal_ones_are_one_key_whatever_was_asked_of_them() -> None:
    one, other = Ours(name="a", more=[]), msgspec.json.decode(b'{"size":1,"name":"a"}', type=Ours)
    assert one.label == "a:1"
    assert one == other
    assert {Key(task=1, attempt=2): 1}[Key(attempt=2, task=1)] == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_one_inherits_the_fields_and_is_never_equal_to_the_other() -> None:
    heir = Heir(name="a", extra=("x",))
    assert (heir.size, heir.label) == (1, "a:1")
    assert Heir(name="a") != Ours(name="a")
    with pytest.raises(FrozenInstanceError):
        heir.extra = ()  # type: ignore[misc]  that is the point
