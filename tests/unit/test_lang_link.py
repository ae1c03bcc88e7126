"""Functions of earlier turns: wherever they were kept, they run as functions of this turn."""

from dataclasses import replace
from typing import Any

import pytest

from holdfast.lang import wire
from holdfast.lang.api import LangError, Limits
from holdfast.lang.run import run
from holdfast.lang.values import Stored

KEPT = {
    "closure": "(defn add [n] (fn [x] (step (+ x n)))) (def f (add 4))",
    "vector": "(def v [step]) (defn f [x] ((first v) (+ x 4)))",
    "map value": "(def m {:k step}) (defn f [x] ((:k m) (+ x 4)))",
    "map key": "(def m {step 4}) (defn f [x] ((key (first (seq m))) (+ x (val (first (seq m))))))",
    "entry": "(def e (first (seq {:k step}))) (defn f [x] ((val e) (+ x 4)))",
    "set": "(def s #{step}) (defn f [x] ((first (seq s)) (+ x 4)))",
    "vector in a set": "(def s #{[step]}) (defn f [x] ((first (first (seq s))) (+ x 4)))",
    "made": "(def f (comp step (partial + 4)))",
    "made of made": "(def f (comp (comp identity identity) (comp step (partial + 4))))",
    "named": "(def f (fn again [x] (if (< x 4) (again (step x)) (step (+ x 4)))))",
    "overloads": "(defn f ([] 0) ([x] (step (+ x 4))))",
    "mutual": "(letfn [(a [x] (if (< x 4) (b (step x)) (step (+ x 4)))) (b [x] (a x))] (def f a))",
}
STEP = "(defn step [x] (+ x by)) (def by 1)"


def turn(source: str, memory: Any, limits: Limits | None = None) -> Any:
    result = run(source, memory=memory, limits=limits)
    assert result.error is None, result.error.render()
    return result


@pytest.mark.parametrize("how", KEPT)
@pytest.mark.parametrize("sent", [False, True], ids=["in process", "as a pool sends them"])
def test_a_kept_function_sees_the_definitions_and_the_fuel_of_the_turn_it_runs_in(
    how: str, sent: bool
) -> None:
    memory: Any = turn(f"{STEP} {KEPT[how]}", {}).memory
    if sent and how == "mutual":
        with pytest.raises(LangError, match="cannot be sent"):
            wire.encode_all(memory)
        return
    if sent:
        memory = wire.decode_all(wire.encode_all(memory))
    assert turn("(f 5)", memory).value in (9, 10)
    assert turn("(def by 100) (f 5)", memory).value > 100
    busy = "(reduce (fn [n _] (f n) n) 5 (range 3000))"
    refused = run(busy, memory=memory, limits=replace(Limits(), fuel=4_000)).error
    assert refused is not None
    assert refused.details == {"limit": "fuel"}


def test_a_definition_that_changes_is_seen_by_every_kept_function_but_not_by_a_kept_value() -> None:
    memory = turn("(def by 1) (defn step [x] (+ x by)) (def v [step]) (def seen by)", {}).memory
    assert turn("(def by 10) [((first v) 1) (step 1) seen]", memory).value == (11, 11, 1)


@pytest.mark.parametrize(
    "text",
    ["(tool/echo {})", "(do 1)", "1", "", "(fn [x] x) (fn [y] y)", "(comp (fn [] 1))", "[inc]"],
)
def test_a_stored_function_that_is_more_than_a_function_is_not_revived(text: str) -> None:
    result = run("(f 1)", memory={"f": Stored(text, {})})
    assert isinstance(result.error, LangError)
    assert result.error.code in ("type_error", "unknown_tool")


def test_history_and_recorded_values_hold_functions_too() -> None:
    kept = run("(fn [x] (* x 2))")
    assert run("(*1 21)", history=kept.history).value == 42
    sent = tuple(wire.decode(wire.encode(value)) for value in kept.history)
    assert run("(*1 21)", history=sent).value == 42
