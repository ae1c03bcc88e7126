"""State between turns through JSON: functions are stored as source and work again."""

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.lang import wire
from holdfast.lang.api import LangError
from holdfast.lang.portable import from_host
from holdfast.lang.run import run
from holdfast.lang.values import Key, Stored, keyword


class Session:
    """Turns whose memory and history go through JSON text, as between processes."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}
        self.history: tuple[Any, ...] = ()

    def __call__(self, source: str) -> Any:
        result = run(source, memory=self.memory, history=self.history)
        assert result.error is None, result.error.render()
        memory = json.dumps(wire.encode_all(result.memory))
        self.memory = wire.decode_all(json.loads(memory))
        history = json.dumps([wire.encode(value) for value in result.history])
        self.history = tuple(wire.decode(item) for item in json.loads(history))
        return result.value


@pytest.mark.parametrize(
    ("definition", "use", "value"),
    [
        ("(defn f [x] (* 2 x))", "(f 4)", 8),
        ("(def f (let [k 3] (fn [x] (+ x k))))", "(f 4)", 7),
        ("(def f (let [g (let [k 1] #(+ % k))] (fn [x] (g (g x)))))", "(f 1)", 3),
        ("(defn f [n] (if (< n 2) 1 (* n (f (dec n)))))", "(f 5)", 120),
        ("(def f (fn me [n] (if (zero? n) :end (me (dec n)))))", "(= :end (f 3))", True),
        ("(def f inc)", "(f 1)", 2),
        ("(def f (partial + 1 2))", "(f 3)", 6),
        ("(def f (comp inc (partial * 2)))", "(f 3)", 7),
        ("(def f (juxt inc dec))", "(f 3)", (4, 2)),
        ("(def f (where :a > 1))", "(count (filter f [{:a 1} {:a 2}]))", 1),
        ("(def f (all-of (where :a) (complement :b)))", "(f {:a 1})", True),
        ("(def f {:go [(fn [x] x) #{:s}]})", "((first (:go f)) 5)", 5),
        ("(def f (fn ([] 0) ([x] x)))", "[(f) (f 7)]", (0, 7)),
        ("(def f (fn [{:keys [a]} & r] [a r]))", "(f {:a 1} 2)", (1, (2,))),
        ("(def f (loop [i 0 fs []] (if (< i 2) (recur (inc i) (conj fs (fn [] i))) fs)))",
         "(map (fn [g] (g)) f)", (0, 1)),
        ("(def f (some-fn :a :b))", "(f {:b 2})", 2),
        ('(def f #"a+")', '(re-find f "baa")', "aa"),
        ("(def f (first (seq {:a 1})))", "(val f)", 1),
        ('(def f (java.time.Instant/parse "1970-01-01T00:00:01Z"))', "(.toEpochMilli f)", 1000),
    ],
)  # fmt: skip
def test_a_definition_works_again_after_two_journeys(definition: str, use: str, value: Any) -> None:
    turn = Session()
    turn(definition)
    turn("1")
    assert turn(use) == value
    assert turn(f"*1 {use}") == value


def test_functions_in_the_history_work_again() -> None:
    turn = Session()
    turn("(let [k 2] (fn [x] (* k x)))")
    assert turn("(*1 21)") == 42


def test_functions_see_definitions_as_they_are_when_they_run() -> None:
    turn = Session()
    turn("(def k 1) (defn f [] k) (defn g [] (f))")
    turn("(def k 2)")
    assert turn("(g)") == 2


def test_a_parent_keeps_functions_as_text() -> None:
    result = run("(defn f [x] x) f")
    found = wire.decode(wire.encode(result.value))
    assert isinstance(found, Stored)
    assert wire.encode(found) == wire.encode(result.value)
    assert run("1", memory={"f": found}).ok


def test_what_a_function_closes_over_in_a_circle_cannot_be_stored() -> None:
    source = "(letfn [(a [] (b)) (b [] (a))] a)"
    result = run(source)
    with pytest.raises((LangError, RecursionError)):
        wire.encode(result.value)


def test_a_function_whose_source_was_threaded_into_cannot_be_stored() -> None:
    result = run("(->> 5 (fn [x]))")
    with pytest.raises(LangError, match="no source"):
        wire.encode(result.value)


def test_host_objects_cannot_be_sent() -> None:
    with pytest.raises(LangError):
        wire.encode(object())
    with pytest.raises(LangError):
        wire.encode(lambda: 1)


@pytest.mark.parametrize(
    "data",
    [{"$inst": 10**20}, {"$inst": -(10**17)}, {"$instant": 10**30}, {"$date": 10**8},
     {"$date": -(10**6)}, {"$duration": 10**30}],
)  # fmt: skip
def test_a_time_that_could_not_be_shown_is_no_encoded_value(data: dict[str, int]) -> None:
    with pytest.raises(LangError):
        wire.decode(data)


def test_what_is_encoded_or_decoded_is_text_that_every_file_takes() -> None:
    half, pair = "a\ud800", "\ud83d\ude00"
    for value in (half, (half,), {half: half}, {keyword("k"): pair}, frozenset({half}), f":{half}"):
        json.dumps(wire.encode(value), ensure_ascii=False).encode()
    assert wire.decode([half, pair, {half: 1}]) == ("a\ufffd", "😀", {"a\ufffd": 1})
    assert wire.decode({"$str": f":{half}"}) == ":a\ufffd"


def test_text_that_tells_alike_data_apart() -> None:
    texts = [wire.canonical(each) for each in ([1], [True], [1.0], ["1"], {"b": 1, "a": 2})]
    assert len(set(texts)) == 5
    assert wire.canonical({"b": 1, "a": 2}) == wire.canonical({"a": 2, "b": 1})


class Text(str):
    """A host's own kind of text, equal to a plain one."""


PLAIN_ROW = {"id": 1, "name": "n", "share": 0.5, "on": True, "none": None}
ODD_ROWS: list[dict[Any, Any]] = [
    {}, {"a": ":k"}, {"a": "$s"}, {":a": 1}, {"$num": "NaN"}, {"$str": ":k"}, {"id": "a\ud800"},
    {"a\ud800": 1}, {"\ud83d": "\ude00"}, {"a": float("nan")}, {"a": -float("inf")},
    {"a": 10**400}, {"a": -(10**5000)}, {"a": (1, {"b": 2})}, {"a": [1]}, {"a": {"$str": ":"}},
    {keyword("id"): 1}, {1: 1}, {True: 1}, {1.0: 1}, {None: 1}, {(1, 2): 1}, {Text("id"): 1},
    {"id": Text("n")}, {"id": keyword("k")}, {"id": b"n"}, {b"id": 1}, {"id": object()},
    {"$fn": "f"}, {"$": 1}, {":": ":"}, {"": ""}, OrderedDict(id=1), dict.fromkeys("ab", ""),
]  # fmt: skip


def told(act: Callable[[Any], Any], data: Any) -> str:
    """What comes out with its kinds, which Python's equality would confuse, or the refusal."""
    try:
        return kinds(act(data))
    except (LangError, TypeError) as refusal:
        return repr(refusal)


def kinds(value: Any) -> str:
    if isinstance(value, dict):
        parts = [f"{kinds(key)}: {kinds(item)}" for key, item in value.items()]
    elif isinstance(value, list | tuple):
        parts = [kinds(item) for item in value]
    elif isinstance(value, Key):
        parts = [kinds(value.value)]
    else:
        shown = hex(value) if type(value) is int else repr(value)
        parts = [shown.partition(" at 0x")[0]]
    return f"{type(value).__name__}({', '.join(parts)})"


@pytest.mark.parametrize("odd", ODD_ROWS, ids=range(len(ODD_ROWS)))
@pytest.mark.parametrize("act", [from_host, wire.encode, wire.decode])
def test_rows_are_read_together_as_they_would_be_one_by_one(
    act: Callable[[Any], Any], odd: dict[Any, Any]
) -> None:
    alone = told(act, odd)
    together = told(act, (PLAIN_ROW, odd, PLAIN_ROW))
    if alone.startswith(("LangError", "TypeError")):
        assert together == alone
    else:
        plain, outer = told(act, PLAIN_ROW), type(act(())).__name__
        assert together == f"{outer}({plain}, {alone}, {plain})"


@pytest.mark.parametrize("act", [from_host, wire.encode, wire.decode])
def test_rows_are_copies(act: Callable[[Any], Any]) -> None:
    row = {"id": 1}
    out = act((row,))
    row["id"] = 2
    assert out[0] == {"id": 1}


@pytest.mark.parametrize("act", [wire.encode, wire.decode])
def test_rows_are_as_bounded_in_depth_as_maps_that_are_read_one_by_one(
    act: Callable[[Any], Any],
) -> None:
    def refused(row: dict[str, int], levels: int) -> bool:
        value: Any = (row,)
        for _ in range(levels):
            value = (value,)
        return "nested deeper" in told(act, value)

    found = [(refused({"id": 1}, n), refused({"id": 10**400}, n)) for n in range(190, 205)]
    assert set(found) == {(False, False), (True, True)}
