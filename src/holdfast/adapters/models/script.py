"""The script of a model that is played, not asked: what the test server and `scripted:FILE` share.

Owns the file format and the choice of a reply. It speaks no HTTP and raises no fault: the server
and the in-process model do, each in its own way. Invariant: the reply is a pure function of the
conversation. The first rule whose `when` occurs in the first user message answers, and the number
of assistant messages so far is the number of its reply, so a repeated request gets the same reply.

A script is TOML or JSON:

    chunk_bytes = 3                  # the server splits its bodies every so many bytes; 0: never
    [[rules]]
    when = "failing test"            # absent: always
    [[rules.replies]]
    text = "Let me look."
    calls = [{ name = "read_file", arguments = { path = "a.py" } }]   # or raw text
    usage = { in = 100, out = 20 }   # absent: counted; `reported = false`: not sent
    [[rules.replies]]
    text = "Done."
    status = 429                     # a fault, for the first `times` requests of this reply
    retry_after = 2                  # seconds, or an HTTP date
    times = 1                        # absent: every time

Other faults: `delay_s`, `cut_after_bytes`, `malformed` (a raw body with status 200), `body`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from holdfast.adapters.models.replies import canonical_json
from holdfast.context.tokens import count_tokens
from holdfast.errors import Refused
from holdfast.frozen import frozen

ReplyFinish = Literal["", "stop", "length", "tool_calls", "content_filter"]


class ScriptedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`arguments` given as text goes out as it is, valid JSON or not."""

    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)

    @property
    def arguments_text(self) -> str:
        raw = self.arguments
        return raw if isinstance(raw, str) else canonical_json(raw)


class ScriptedUsage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Token counts to report; `reported` false plays a server that sends none."""

    tokens_in: int | None = msgspec.field(default=None, name="in")
    tokens_out: int | None = msgspec.field(default=None, name="out")
    tokens_cached: int = msgspec.field(default=0, name="cached")
    tokens_written: int = msgspec.field(default=0, name="written")
    tokens_reasoning: int = msgspec.field(default=0, name="reasoning")
    reported: bool = True


class ScriptedReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One assistant turn, and the faults that come before or instead of it."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: ScriptedUsage = ScriptedUsage()
    finish_reason: ReplyFinish = ""
    delay_s: float = 0.0
    cut_after_bytes: int | None = None
    malformed: str | None = None
    status: int = 0
    retry_after: float | str | None = None
    body: str = ""
    times: int | None = None

    @property
    def finish(self) -> Literal["stop", "length", "tool_calls", "content_filter"]:
        return self.finish_reason or ("tool_calls" if self.calls else "stop")

    def healthy(self) -> ScriptedReply:
        """This reply without its faults."""
        return msgspec.structs.replace(
            self, delay_s=0.0, cut_after_bytes=None, malformed=None, status=0
        )


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    replies: tuple[ScriptedReply, ...]
    when: str = ""

    def label(self, position: int) -> str:
        return f"rule {position}" + (f" (when {self.when!r})" if self.when else "")


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole script. `models` are the names the server knows, `api_key` what it demands if set."""

    rules: tuple[Rule, ...]
    models: tuple[str, ...] = ("scripted",)
    context_tokens: int = 32_768
    chunk_bytes: int = 0
    api_key: str = ""


@frozen
class Cue:
    """Where a conversation stands in the script. `reply` is None when the script has run off."""

    rule: str
    turn: int
    reply: ScriptedReply | None
    problem: str = ""


class Prompter:
    """Answers conversations from one script and counts down its faults, one count per reply."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._played: dict[tuple[int, int], int] = {}

    def cue(self, messages: Sequence[tuple[str, str]]) -> Cue:
        """The reply for a conversation of (role, content) pairs; asking again uses up a fault."""
        turn = sum(1 for role, _ in messages if role == "assistant")
        first = next((content for role, content in messages if role == "user"), "")
        for position, rule in enumerate(self._script.rules):
            if rule.when in first:
                label = rule.label(position)
                if turn < len(rule.replies):
                    return Cue(rule=label, turn=turn, reply=self._play(position, turn))
                problem = f"script_exhausted: {label} has {len(rule.replies)} replies, asked for "
                return Cue(rule=label, turn=turn, reply=None, problem=f"{problem}{turn + 1}")
        return Cue(rule="", turn=turn, reply=None, problem="script_exhausted: no rule matches")

    def _play(self, position: int, turn: int) -> ScriptedReply:
        reply = self._script.rules[position].replies[turn]
        if reply.times is None or reply == reply.healthy():
            return reply
        played = self._played.get((position, turn), 0)
        self._played[position, turn] = played + 1
        return reply if played < reply.times else reply.healthy()


def load_script(path: Path) -> Script:
    """Read a script; `.json` files as JSON, all others as TOML. Raises `Refused` with the place."""
    try:
        text = path.read_text(encoding="utf-8")
        data = msgspec.json.decode(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"the script {path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:  # msgspec's own is a ValueError too
        raise Refused(f"the script {path} is not valid: {error}") from error
    return parse_script(data, where=str(path))


def parse_script(data: Mapping[str, Any], *, where: str = "the script") -> Script:
    """A script from plain values."""
    try:
        return msgspec.convert(data, Script)
    except msgspec.ValidationError as error:
        raise Refused(f"{where} is not a script: {error}") from error


def scripted_usage(reply: ScriptedReply, texts: Sequence[str]) -> tuple[int, int]:
    """(tokens in, tokens out) of a reply to `texts`, counted where the script does not say."""
    usage = reply.usage
    tokens_in = sum(map(count_tokens, texts)) if usage.tokens_in is None else usage.tokens_in
    said = [reply.text, reply.thinking, *(call.name + call.arguments_text for call in reply.calls)]
    tokens_out = sum(map(count_tokens, said)) if usage.tokens_out is None else usage.tokens_out
    return tokens_in, tokens_out
