"""A fuzzer for the reader and the analyser: texts that almost are programs, for so many seconds.

It holds the front of the language to its promise: any text is either a program or a LangError with
a place inside that text, soon. A finding is shrunk and printed with the seed that made it.
`make fuzz-lisp` runs it through its test with more time.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.lang.api import LangError

Front = Callable[[str], object]
SLOW_S = 5.0
_PIECES = (
    "( ) [ ] { } #{ #( #\" \" \\ ; #_ #' ' ` ~ ~@ @ ^ % %& %1 %21 & : :: :a/b / . .. -> nil true"
    " ##Inf ## #inst #?( \n \t \r \x00 \x0b \u2028 \ufeff \ud800 é 𝓮 ＿ 1e400 1e-400 0x1 -0 +1 1N"
    " 1/2 .5 5. 1.2.3 --1 (fn [] ) (let [ ] ) (def x ) (loop [i 0] (recur i)) (recur) (if) (cond)"
    " (case 1) (for [x [1]] x) (-> 1 inc) {:keys [a] :or {a 1} :as m} [a & b] data/x tool/x"
    ' budget/remaining *1 (task "a" 1) (return) (fail) (pmap inc [1]) #(+ % %2) \\newline \\u0041'
    ' \\o101 \\ab "\\q" "\\u12" :a.b :% : a:b'
)
PIECES = tuple(_PIECES.split(" "))
SEEDS = (
    "(+ 1 2)",
    "(let [{:keys [a b] :or {b 2}} {:a 1}] (+ a b))",
    "(defn f [x & more] (if (empty? more) x (apply f more))) (f 1 2 3)",
    "(->> data/rows (filter :active) (group-by :region) (map (fn [[k v]] [k (count v)])))",
    '(loop [i 0 acc []] (if (< i 10) (recur (inc i) (conj acc #"a+")) {:acc acc "s" #{1 2}}))',
    "(for [x (range 3) :let [y (* x x)] :when (odd? y)] (case y 1 :one :else))",
    '(pmap (fn [x] (task (str "t" x) (tool/echo {:x x}))) [1 2 3])',
)


@dataclass(frozen=True)
class Finding:
    """A text that broke the promise, as small as shrinking made it."""

    seed: int
    source: str
    complaint: str


def hunt(front: Front, seconds: float, seed: int) -> tuple[int, Finding | None]:
    """Feed `front` mutated texts until time is up or one breaks the promise; says how many."""
    chance = random.Random(seed)
    pool = list(SEEDS)
    end, tried = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        source = mutate(chance, chance.choice(pool))
        tried += 1
        if complaint := judge(front, source):
            small = shrink(front, source)
            return tried, Finding(seed, small, judge(front, small) or complaint)
        if len(pool) < 5_000 and chance.random() < 0.1:
            pool.append(source[:4_000])
    return tried, None


def judge(front: Front, source: str) -> str:
    """What is wrong with how `front` took a text; empty if nothing is."""
    start = time.monotonic()
    try:
        front(source)
    except LangError as error:
        lines = source.split("\n")
        if not 0 <= error.line <= len(lines):
            return f"line {error.line} of {len(lines)}: {error}"
        if error.line and not 1 <= error.column <= len(lines[error.line - 1]) + 1:
            return f"column {error.column} is outside of line {error.line}: {error}"
        if not error.code or not error.message:
            return f"an error without words: {error!r}"
        error.render()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}"[:500]
    took = time.monotonic() - start
    return f"took {took:.1f} s" if took > SLOW_S else ""


def mutate(chance: random.Random, source: str) -> str:
    """A few edits: cut, copy, swap, repeat, or put in a piece that has a meaning."""
    for _ in range(chance.randint(1, 6)):
        at, to = sorted((chance.randint(0, len(source)), chance.randint(0, len(source))))
        match chance.randint(0, 7):
            case 0:
                source = source[:at] + source[to:]
            case 1:
                source = source[:to] + source[at:to] + source[to:]
            case 2 | 3 | 4:
                source = source[:at] + chance.choice(PIECES) + " " + source[at:]
            case 5:
                source = (
                    source[:at]
                    + chr(chance.choice((chance.randint(0, 127), chance.randint(0, 0x2FFF))))
                    + source[at:]
                )
            case 6:
                run = chance.choice(PIECES) * chance.choice((2, 20, 200))
                source = source[:at] + run + source[at:]
            case _:
                frame = chance.choice(("({}", "{})", "[{}]", "#({})", "(do {} {})", "'{}"))
                source = frame.replace("{}", source)
        source = source[:20_000]
    return source


def shrink(front: Front, source: str) -> str:
    """Cut pieces, large to small, for as long as the rest still breaks the promise."""
    size = max(len(source) // 2, 1)
    end = time.monotonic() + 30
    while size and time.monotonic() < end:
        at = 0
        while at < len(source):
            shorter = source[:at] + source[at + size :]
            if judge(front, shorter):
                source = shorter
            else:
                at += size
        size //= 2
    return source
