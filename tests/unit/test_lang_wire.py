"""State between turns through JSON: functions are stored as source and work again."""

import json
from typing import Any

import pytest

from holdfast.lang import wire
from holdfast.lang.api import LangError
from holdfast.lang.run import run
from holdfast.lang.values import Stored, keyword


class Session:
    """Turns whose memory and history go through JSON text, as between processes."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}
        self.history: tuple[Any, ...] = ()

    def __call__(self, source: str) -> Any:
        result = run(source, memory=self.memory, history=self.history)
        assert result.error is None, result.error.render()
        memory = json.dumps(wire.encode_memory(result.memory))
        self.memory = wire.decode_memory(json.loads(memory))
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
