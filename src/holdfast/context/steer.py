"""Steering by people: a pin promotes a source, an exclusion keeps it out; both say who and why.

Pure: which steers hold is read elsewhere. A source is named as the bundle's items name it, or as
they cite it; `named` brings what people type to that form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from holdfast.context.bundle import Candidate
from holdfast.frozen import frozen

TASK = re.compile(r"task +([0-9]+)", re.IGNORECASE)


@frozen
class Steer:
    """What a person decided about one source of one task."""

    verb: Literal["pin", "exclude"]
    source: str
    author: str
    reason: str

    @property
    def words(self) -> str:
        return f"by {self.author}: {self.reason}"


def named(source: str) -> str:
    """A source as items name it: `task 7` is `Task 7`, `./a.py` is `a.py`."""
    task = TASK.fullmatch(source)
    return f"Task {task[1]}" if task else source.removeprefix("./")


def steered(candidates: Sequence[Candidate], steers: Sequence[Steer]) -> list[Candidate]:
    """The candidates with pins promoted and exclusions marked, in the order given."""
    by_source = {steer.source: steer for steer in steers}
    found = []
    for item in candidates:
        steer = by_source.get(item.source) or by_source.get(_citation(item))
        if steer is None:
            found.append(item)
        elif steer.verb == "exclude":
            found.append(replace(item, excluded=f"excluded {steer.words}"))
        else:
            why = f"{item.reason}; pinned {steer.words}"
            gone = "" if item.text else item.excluded  # nothing can be shown of an empty text
            found.append(replace(item, kind="pin", reason=why, excluded=gone))
    return found


def unseen(candidates: Sequence[Candidate], steers: Sequence[Steer]) -> list[Steer]:
    """The steers whose source no candidate has, in the order given."""
    known = {name for item in candidates for name in (item.source, _citation(item))}
    return [steer for steer in steers if steer.source not in known]


def _citation(item: Candidate) -> str:
    """`Task 7` names the output of task 7 wherever it was found."""
    return item.cite.capitalize()
