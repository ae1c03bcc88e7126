"""The bundle: the exact, budgeted, immutable context a take was given, with a reason for each item.

A bundle is everything an attempt's conversation begins with and depends on: rendered prompts, tool
specs, model, seed and the task with its policy. It is stored once, by content; nothing of it is
rendered again, so new prompt files or settings never change a take that has begun.

Owns who gets budget and how an item looks; `context.shorten` owns what is left of one that is too
long. Invariants: the rendered text is never over budget, headings included, by the counter given;
the same candidates give the same bytes in whatever order they come; under fenced rules no item's
text can look like a heading or end its own fence, and no tier can starve the ones below it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Literal

from holdfast.context.pack import Rival, knapsack, share
from holdfast.context.shorten import Fits, first_words, head_and_tail, head_only, summary
from holdfast.context.tokens import count_tokens
from holdfast.context.words import terms
from holdfast.domain.model import ContextOptions, TaskSpec
from holdfast.domain.ports import ToolSpec
from holdfast.errors import Refused
from holdfast.frozen import frozen

FORMAT = 1
INDEX_RULES = "index_rules"
TOO_SMALL = "budget_too_small"
ItemKind = Literal[
    "task",
    "index",
    "pin",
    "reflection",
    "file",
    "requires",
    "refers",
    "plan",
    "retrieved",
    "map",
    "tree",
]
Fate = Literal["whole", "cut", "summary", "out"]
Counter = Callable[[str], int]

# Who gets budget first; a floor keeps a big tier from starving the others.
TIERS: tuple[ItemKind, ...] = (
    "index",
    "pin",
    "reflection",
    "requires",
    "file",
    "refers",
    "plan",
    "retrieved",
    "map",
    "tree",
)
ORDERS: Mapping[str, tuple[ItemKind, ...]] = {
    "default": TIERS,
    "dependencies_first": (
        "index",
        "reflection",
        "requires",
        "refers",
        "plan",
        "retrieved",
        "map",
        "pin",
        "file",
        "tree",
    ),
}
FLOOR_TOKENS = 150
INDEX_TOKENS_MAX = 600
INDEX_TOKENS_MIN = 100  # of its text, or all of a shorter one: what every bundle shows

# What stands behind an item: how far a model may believe it.
TRUST: Mapping[ItemKind, str] = {
    "task": "the task itself",
    "index": "rules of this goal",
    "pin": "chosen by a person",
    "reflection": "recorded by Holdfast",
    "file": "the repository",
    "requires": "a model's output",
    "refers": "a model's output",
    "plan": "the plan",
    "retrieved": "a model's output, found by words",
    "map": "the repository, found by words",
    "tree": "the repository",
}


@frozen
class Candidate:
    """Something that could be shown: where it comes from, why, and its full text.

    `cite` is the id a model quotes it by, `rank` its place within its tier, `worth` its relevance,
    above 0 to 1, for what competes by it. At least `must_tokens` of the text are shown, or all of a
    shorter one. `excluded` says who or what keeps it out, and why; it is explained in the bundle
    but never shown.
    """

    source: str
    kind: ItemKind
    reason: str
    text: str
    cite: str = ""
    rank: int = 0
    worth: float = 0.0
    must_tokens: int = 0
    excluded: str = ""


@frozen
class Item:
    """What became of a candidate: shown whole, cut, summed up, or left out, and why.

    What is shown stands in the rendered text at `at`, `chars` characters long with its heading;
    `cite` is the id that a model quotes it by. The whole would take `of_tokens`.
    """

    source: str
    kind: ItemKind
    reason: str
    tokens: int
    fate: Fate
    of_tokens: int = 0
    cite: str = ""
    at: int = 0
    chars: int = 0


@frozen
class Summary:
    """A model's summary of a text, or the `problem` that there is none."""

    by: str
    text: str = ""
    problem: str = ""


_NOTHING: frozenset[str] = frozenset()


def _nobody(text: str, room_tokens: int) -> Summary | None:
    return None


@frozen
class Rules:
    """How candidates compete and look. `query` is what a summary keeps.

    `fenced` marks every item off with its kind, citation and trust, so that text inside cannot pose
    as another item, and shows the items before the task, between the two texts of `frame`; without
    it items look as they did before there were rules. `without` are kinds that nobody asked for; a
    pin brings one of their items back. `summaries` gives a model's summary of a text that does not
    fit, for so many tokens; None leaves it to the extract.
    """

    order: tuple[ItemKind, ...] = TIERS
    fenced: bool = False
    frame: tuple[str, str] = ("", "")
    query: str = ""
    without: frozenset[ItemKind] = frozenset()
    summaries: Callable[[str, int], Summary | None] = _nobody


PLAIN = Rules()


@frozen
class Bundle:
    """See the module. `templates` are prompts that later turns need, by name.

    `options` and `order` are those it was made by, settings resolved; `tokens` is the size of
    `user` as `counter` counts it.
    `conversation_tokens` is what a conversation may grow to before it is compacted, 0 without end.
    `undo` is for a compensating task: the trees to walk back, from the newest to the oldest.
    """

    task: TaskSpec
    goal: str
    model: str
    seed: int
    system: str
    user: str
    tools: tuple[ToolSpec, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    budget_tokens: int = 0
    tokens: int = 0
    counter: str = "pieces"
    options: ContextOptions | None = None
    order: str = ""
    conversation_tokens: int = 0
    undo: tuple[str, ...] = ()
    format: int = FORMAT

    @property
    def index_rules(self) -> str:
        """The rules of the goal's INDEX.md that the task's output must keep; empty for none."""
        return self.templates.get(INDEX_RULES, "")


def prompt_type(kind: ItemKind) -> str:
    """The name of an item's kind as prompts and routes say it."""
    return "manual" if kind == "pin" else kind


def fit(
    head: str,
    candidates: Sequence[Candidate],
    *,
    budget_tokens: int,
    rules: Rules = PLAIN,
    count: Counter = count_tokens,
) -> tuple[str, tuple[Item, ...]]:
    """Render `head` and as many candidates as fit, headings included; returns text and fates.

    Tiers are served in order, each first up to its floor, then with what is left; so are the items
    of a tier, unless they have a worth: those are packed by it. `head`, never cut, and what must be
    shown of candidates are mandatory: a budget below them is `Refused` with the smallest that
    works. Where no item fits, nothing of the frame is shown either.
    """
    ordered = sorted(candidates, key=lambda item: _place(item, rules))
    musts = [_must(item, rules, count) for item in ordered]
    smallest = count(_render(head, [text for text, _ in musts], rules)[0])
    if smallest > budget_tokens:
        pages = [_line(item.source) for item, must in zip(ordered, musts, strict=True) if must[0]]
        raise _too_small(budget_tokens, smallest, count(head), pages)
    costs = [
        0 if item.excluded else _cost(_section(item, item.text, rules.fenced), count)
        for item in ordered
    ]
    wishes = [
        min(cost, INDEX_TOKENS_MAX) if item.kind == "index" else cost
        for item, cost in zip(ordered, costs, strict=True)
    ]
    room = max(0, budget_tokens - count(_joined(*rules.frame, head)))
    while True:
        grants = _grants(ordered, wishes, rules, room)
        shown = [
            max(_shown(item, cost, grant, rules, count), must, key=lambda one: len(one[0]))
            for item, cost, grant, must in zip(ordered, costs, grants, musts, strict=True)
        ]
        rendered, places = _render(head, [text for text, _ in shown], rules)
        over = count(rendered) - budget_tokens
        if over <= 0:
            return rendered, tuple(
                _item(item, text, fate, at, cost, count)
                for item, (text, fate), at, cost in zip(ordered, shown, places, costs, strict=True)
            )
        room = max(0, room - over)  # for a must over its grant, and counts that do not quite add up


def _must(item: Candidate, rules: Rules, count: Counter) -> tuple[str, Fate]:
    """The part of an item that no budget leaves out; nothing for most."""
    if item.excluded or not item.must_tokens:
        return "", "out"

    def fits(text: str) -> bool:
        return count(text) <= item.must_tokens

    if fits(item.text):
        return _section(item, item.text, rules.fenced), "whole"
    short = head_only(item.text, fits) or first_words(item.text, fits)
    return (_section(item, short, rules.fenced), "cut") if short else ("", "out")


def _too_small(budget_tokens: int, smallest: int, own: int, pages: Sequence[str]) -> Refused:
    """Says what would work, also with the `pages` excluded that must be shown."""
    names = " and ".join(pages)
    with_, without = f" with {names}", f", or {own} without {names}: holdfast context exclude"
    return Refused(
        f"the task's own text{with_ if pages else ''} is {smallest} tokens, over the bundle's"
        f" {budget_tokens}",
        hint=f"bundle_tokens must be at least {smallest}{without if pages else ''}",
        code=TOO_SMALL,
    )


def _grants(
    ordered: Sequence[Candidate], wishes: Sequence[int], rules: Rules, room: int
) -> list[int]:
    """What each item gets: tiers share the room, and the items of a tier what it got.

    Without fences all items are one tier, as they were before there were rules.
    """
    tiers: dict[str, list[int]] = {}
    for index, item in enumerate(ordered):
        tiers.setdefault(item.kind if rules.fenced else "", []).append(index)
    sizes = [sum(wishes[index] for index in tier) for tier in tiers.values()]
    granted = [0] * len(ordered)
    for tier, most in zip(tiers.values(), share(sizes, FLOOR_TOKENS, room), strict=True):
        grants = _tier([ordered[index] for index in tier], [wishes[index] for index in tier], most)
        for index, grant in zip(tier, grants, strict=True):
            granted[index] = grant
    return granted


def _tier(items: Sequence[Candidate], wishes: Sequence[int], room: int) -> list[int]:
    """What each item of a tier gets of it: what was found competes, what was named takes turns."""
    if sum(wishes) <= room or not any(item.worth for item in items):
        return share(wishes, FLOOR_TOKENS, room)
    rivals = [
        Rival(wish=wish, worth=item.worth, terms=frozenset(terms(item.text)) if wish else _NOTHING)
        for item, wish in zip(items, wishes, strict=True)
    ]
    return knapsack(rivals, FLOOR_TOKENS, room)


def _render(head: str, sections: Sequence[str], rules: Rules) -> tuple[str, list[int]]:
    """The whole text, and where each section begins in it (0 for one that is not shown)."""
    if not any(sections):
        return head, [0] * len(sections)
    before, after = (rules.frame[0], (rules.frame[1], head)) if rules.fenced else (head, ())
    places, rendered = [], before
    for section in sections:
        whole = _joined(rendered, section)
        places.append(len(whole) - len(section) if section else 0)
        rendered = whole
    return _joined(rendered, *after), places


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _place(item: Candidate, rules: Rules) -> tuple[float | str, ...]:
    """Its place in the text: total, so that the order in which candidates come cannot matter."""
    tier = rules.order.index(item.kind)
    named = item.source, item.text, item.reason, item.cite, item.excluded
    return tier, item.rank, *named, item.worth, item.must_tokens


def _cost(section: str, count: Counter) -> int:
    """What a section takes of the budget, with the blank line that sets it off."""
    return count(f"\n\n{section}")


def _item(item: Candidate, text: str, fate: Fate, at: int, of_tokens: int, count: Counter) -> Item:
    tokens = count(text)
    why = item.excluded or f"no room for any of its {of_tokens} tokens"
    return Item(
        source=item.source,
        kind=item.kind,
        reason=f"{item.reason}; left out: {why}" if fate == "out" else item.reason,
        tokens=tokens,
        fate=fate,
        of_tokens=tokens if fate == "whole" else of_tokens,
        cite=item.cite,
        at=at,
        chars=len(text),
    )


def _shown(
    item: Candidate, cost: int, grant: int, rules: Rules, count: Counter
) -> tuple[str, Fate]:
    """The item within its grant: whole, shortened with a line that says so, or nothing."""
    if item.excluded:
        return "", "out"
    if cost <= grant:
        return _section(item, item.text, rules.fenced), "whole"

    def fits(text: str) -> bool:
        return _cost(_section(item, text, rules.fenced), count) <= grant

    fate: Fate = "cut"
    if item.kind in ("map", "tree", "plan"):  # half a name is another one
        short = head_only(item.text, fits)
    elif rules.fenced and item.kind in ("requires", "refers", "retrieved"):
        short, fate = _summed_up(item, rules, grant, fits), "summary"
    else:
        lines = head_and_tail if rules.fenced or item.kind in ("index", "pin") else head_only
        short = lines(item.text, fits) or first_words(item.text, fits)
    return (_section(item, short, rules.fenced), fate) if short else ("", "out")


def _summed_up(item: Candidate, rules: Rules, grant: int, fits: Fits) -> str:
    """A model's summary where one is ready and fits, else an extract that says why."""
    made = rules.summaries(item.text, grant)
    if made is None:
        return summary(item.text, rules.query, fits, whole=item.cite)
    where = f"; the whole is {item.cite}" if item.cite else ""
    text = f"[summary by {made.by}{where}]\n{made.text}"
    if made.text and fits(text):
        return text
    problem = made.problem or "it is too long"
    why = f"{item.cite}; no summary by {made.by or 'a model'}: {problem}"
    return summary(item.text, rules.query, fits, whole=why)


def _section(item: Candidate, text: str, fenced: bool) -> str:
    if not fenced:
        source, reason = (_line(part, "") for part in (item.source, item.reason))
        return f"## {source} ({reason})\n\n{text}"
    cite = f" [{_line(item.cite)}]" if item.cite else ""
    title = f"## {_line(item.source)}{cite} · {prompt_type(item.kind)} · {_line(item.reason)}"
    return f"{title} · trust: {TRUST[item.kind]}\n\n{between_fences(text)}"


def between_fences(text: str) -> str:
    """A text between two lines of tildes that nothing in it can be taken for."""
    longest = max((len(run) for run in re.findall("~+", text)), default=0)
    fence = "~" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _line(text: str, barred: str = "·") -> str:
    """One printable line: no name or reason can begin a line or a field of its own."""
    return "".join(char if char.isprintable() and char not in barred else " " for char in text)
