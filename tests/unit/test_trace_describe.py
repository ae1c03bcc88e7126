"""Descriptors: bounded, redacted, and not one line of the described program's code runs."""

import datetime as dt
import enum
import math
import os
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PosixPath
from typing import Any
from uuid import UUID

import pytest

from holdfast.trace.describe import Limits, class_name, clip, describe, own_dict
from holdfast.trace.redact import MARGIN, Redactor
from trace_samples import SECRETS

REDACTOR = Redactor()


def d(value: Any, name: str = "", **limits: int) -> dict[str, Any]:
    return describe(value, REDACTOR, name=name, limits=Limits(**limits))


class Mine:
    kept = "class attributes are not the instance's"

    def __init__(self) -> None:
        self.a, self.api_key = 1, "k"


class Slotted:
    __slots__ = ("empty", "x")

    def __init__(self) -> None:
        self.x = 5


@dataclass
class Point:
    x: int
    y: int


class Color(enum.Enum):
    RED = 1


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Real(float):
    pass


class Raw(bytes):
    pass


def a_function() -> None:
    """Described by its name."""


def test_scalars_are_themselves() -> None:
    for value in (None, True, 5, 1.5, "x"):
        assert d(value) == {"type": type(value).__name__, "value": value}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_become_text(value: float) -> None:
    assert d(value) == {"type": "float", "value": str(value)}


def test_huge_integers_are_described_by_their_size() -> None:
    assert d(2**100) == {"type": "int", "value": str(2**100)}
    assert d(10**5000) == {"type": "int", "value": "16610 bits"}


def test_containers_have_length_and_some_items_of_long_sequences_both_ends() -> None:
    assert d([1, 2, 3], items=2) == {
        "type": "list",
        "len": 3,
        "items": [{"type": "int", "value": 1}, {"type": "int", "value": 3}],
    }
    assert [item["value"] for item in d(tuple(range(9)), items=5)["items"]] == [0, 1, 2, 7, 8]
    assert d([1, 2], items=2)["items"][1]["value"] == 2
    assert len(d(set(range(9)), items=5)["items"]) == 5
    assert d({"a": 1, 2: None, b"k": 3, (1,): 4}) == {
        "type": "dict",
        "len": 4,
        "entries": {
            "a": {"type": "int", "value": 1},
            "2": {"type": "NoneType", "value": None},
            "bytes k": {"type": "int", "value": 3},
            "tuple tuple": {"type": "int", "value": 4},
        },
    }
    assert d({1})["type"] == "set"
    assert d(frozenset({1}))["len"] == 1
    assert d((1,))["items"] == [{"type": "int", "value": 1}]
    assert d(OrderedDict(a=1))["entries"] == d(defaultdict(int, a=1))["entries"]


def test_objects_have_their_own_attributes_only() -> None:
    assert d(Mine()) == {
        "type": "Mine",
        "attrs": {
            "a": {"type": "int", "value": 1},
            "api_key": {"type": "str", "value": "[redacted:name:api_key]"},
        },
    }
    assert d(Slotted()) == {"type": "Slotted", "attrs": {"x": {"type": "int", "value": 5}}}
    assert d(Point(1, 2))["attrs"]["y"] == {"type": "int", "value": 2}
    assert d(Color.RED)["attrs"]["_name_"] == {"type": "str", "value": "RED"}
    assert d(object()) == {"type": "object"}


def test_subclasses_of_scalars_keep_their_class_name() -> None:
    assert d(Text("x")) == {"type": "Text", "value": "x"}
    assert d(Whole(3)) == {"type": "Whole", "value": 3}
    assert d(Real(0.5)) == {"type": "Real", "value": 0.5}
    assert d(Raw(b"\xffa")) == {"type": "Raw", "value": "\\xffa", "len": 2}
    assert d(bytearray(b"ab")) == {"type": "bytearray", "value": "ab", "len": 2}


def test_what_the_standard_library_can_write_is_written() -> None:
    assert d(Decimal("1.5"))["value"] == "1.5"
    assert d(dt.date(2026, 1, 2))["value"] == "2026-01-02"
    assert d(PosixPath("/a/b"))["value"] == "/a/b"
    assert d(UUID(int=0))["value"] == "00000000-0000-0000-0000-000000000000"
    assert d(range(3))["value"] == "range(0, 3)"
    assert d(a_function)["value"] == "a_function"
    assert d(len)["value"] == "len"
    assert d(Mine().__init__)["value"] == "Mine.__init__"  # type: ignore[misc]  # a bound method
    assert d([].append)["value"] == "list.append"
    assert d(Mine)["value"] == "Mine"
    assert d(os)["value"] == "os"
    assert d(ValueError("bad", 3))["items"] == [
        {"type": "str", "value": "bad"},
        {"type": "int", "value": 3},
    ]


def test_depth_nodes_and_text_are_bounded() -> None:
    assert d([[[1]]], depth=2)["items"][0]["items"][0] == {"type": "list"}
    assert d([[[1]]], depth=4)["items"][0]["items"][0]["items"][0]["value"] == 1
    wide = d([[0] * 10] * 10, items=10, nodes=15)
    assert wide["items"][-1] == {"type": "list"}
    long = d("x" * 1000, text_chars=30)
    assert long["len"] == 1000
    assert long["value"] == "x" * 20 + "…[970 more]…" + "x" * 10


def test_a_cycle_ends() -> None:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    assert "entries" in d(cycle)["entries"]["self"]


def test_a_name_hides_the_whole_value_and_numbers_of_tokens_survive() -> None:
    assert d({"user": "a"}, name="credentials")["value"] == "[redacted:name:credentials]"
    assert d(5, name="tokens_in")["value"] == 5
    assert d("q7Zk2mX9vB4nL8wR", name="token")["value"] == "[redacted:name:token]"
    assert d("user-list", name="token")["value"] == "user-list"
    assert d(None, name="password")["value"] is None


class HostileMeta(type):
    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("ran")

    def __hash__(cls) -> int:
        raise RuntimeError("ran")

    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError("ran")


class Hostile(metaclass=HostileMeta):
    """Every way in raises."""

    __slots__ = ("__dict__",)

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("ran")

    def __repr__(self) -> str:
        raise RuntimeError("ran")

    __str__ = __repr__

    def __hash__(self) -> int:
        raise RuntimeError("ran")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("ran")

    def __bool__(self) -> bool:
        raise RuntimeError("ran")

    def __len__(self) -> int:
        raise RuntimeError("ran")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("ran")


class HostileDict(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        raise RuntimeError("ran")

    def __len__(self) -> int:
        raise RuntimeError("ran")

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("ran")


class HostileList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("ran")

    def __len__(self) -> int:
        raise RuntimeError("ran")


class HostileText(str):
    __slots__ = ()

    def __getitem__(self, key: Any) -> str:
        raise RuntimeError("ran")

    def __len__(self) -> int:
        raise RuntimeError("ran")

    def __str__(self) -> str:
        raise RuntimeError("ran")


class Property:
    @property
    def x(self) -> int:
        raise RuntimeError("ran")

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("ran")


class Lies:
    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise RuntimeError("ran")


def test_no_code_of_the_program_runs() -> None:
    assert d(Hostile()) == {"type": "Hostile"}
    assert d(HostileDict(a=1))["entries"] == {"a": {"type": "int", "value": 1}}
    assert d(HostileList([1]))["len"] == 1
    assert d(HostileText("abc")) == {"type": "HostileText", "value": "abc"}
    assert d(Property()) == {"type": "Property"}
    assert d(Lies()) == {"type": "Lies"}
    assert d(Hostile)["value"] == "Hostile"
    assert class_name(Hostile) == "Hostile"
    assert own_dict(Property()) is None


def test_if_a_value_finds_a_way_in_the_descriptor_says_so() -> None:
    class Broken(Redactor):
        def text(self, text: str) -> str:
            raise RuntimeError("ran")

    found = describe("x", Broken())
    assert found == {"type": "unknown", "value": "not described: RuntimeError"}


@pytest.mark.parametrize("gap", [0, 1, 100, MARGIN - 60])
def test_a_secret_on_a_cut_is_never_half_shown(gap: int) -> None:
    secret = SECRETS["openai_key"]
    body = ["x"] * (200_000)
    for at in (300, 420 + 2 * MARGIN - gap, 200_000 - 420 - 2 * MARGIN - 30 + gap, 200_000 - 150):
        text = "".join(body[:at]) + " " + secret + " " + "".join(body[at:])
        shown = clip(text, REDACTOR, 420)
        assert not any(secret[i : i + 12] in shown for i in range(len(secret) - 12))
        assert len(shown) < 460


def test_a_slice_that_shrinks_by_redaction_shows_nothing_of_its_edge() -> None:
    key = SECRETS["private_key"]
    chars = 420
    filler = (key + " ") * ((chars + 2 * MARGIN) // len(key))
    half = SECRETS["anthropic_key"]
    at = chars + 2 * MARGIN - 30
    text = filler[:at].ljust(at) + half + "y" * 300_000
    shown = clip(text, REDACTOR, chars)
    assert half[:20] not in shown
