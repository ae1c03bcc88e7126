"""`scripted:FILE`: a model played from a script in process, with the faults of a real endpoint.

Owns the playing of faults without HTTP; the format and the choice of the reply are `script`'s.
Invariant: what it raises and returns is what an adapter would have made of the test server's answer
to the same script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from holdfast.adapters.models import failures
from holdfast.adapters.models.prices import Price
from holdfast.adapters.models.replies import Draft, request_texts, seal
from holdfast.adapters.models.script import Prompter, ScriptedReply, load_script, scripted_usage
from holdfast.domain.ports import ModelReply, ModelRequest, ToolCall


class ScriptedModel:
    """A script as a model; see `domain.ports.Model`. Raises `Refused` for a file that is none."""

    def __init__(
        self,
        path: Path,
        *,
        redact: Callable[[str], str],
        timeout_s: float,
        price: Price | None,
        stream: bool = True,
    ) -> None:
        del stream  # a script has no wire
        script = load_script(path)
        self.name = f"scripted:{path}"
        self.context_tokens: int | None = script.context_tokens
        self._prompter = Prompter(script)
        self._redact = redact
        self._timeout_s = timeout_s
        self._price = price

    async def probe(self) -> None:
        """Always well: the script was read when the model was made."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        cue = self._prompter.cue([(each.role, each.content) for each in request.messages])
        if cue.reply is None:
            raise failures.refused_by_server(500, {}, {"error": cue.problem}, redact=self._redact)
        await self._fail(cue.reply)
        return seal(_draft(cue.reply, request), request, price=self._price, redact=self._redact)

    async def aclose(self) -> None:
        """Nothing to close."""

    async def _fail(self, reply: ScriptedReply) -> None:
        if reply.delay_s >= self._timeout_s:
            await asyncio.sleep(self._timeout_s)
            raise failures.timed_out(self._timeout_s)
        await asyncio.sleep(reply.delay_s)
        if reply.status:
            wish = {} if reply.retry_after is None else {"retry-after": str(reply.retry_after)}
            raise failures.refused_by_server(
                reply.status, wish, reply.body.encode(), redact=self._redact
            )
        if reply.malformed is not None:
            raise failures.malformed(reply.malformed, self._redact)
        if reply.cut_after_bytes is not None:
            raise failures.cut(f"after {reply.cut_after_bytes} bytes")


def _draft(reply: ScriptedReply, request: ModelRequest) -> Draft:
    tokens_in, tokens_out = scripted_usage(reply, request_texts(request))
    reported = reply.usage.reported
    return Draft(
        text=reply.text,
        thinking=reply.thinking,
        calls=tuple(
            ToolCall(id="", name=call.name, arguments=call.arguments_text) for call in reply.calls
        ),
        finish_reason=reply.finish,
        model=request.model,
        tokens_in=tokens_in if reported else None,
        tokens_out=tokens_out if reported else None,
        tokens_cached=reply.usage.tokens_cached,
        tokens_written=reply.usage.tokens_written,
        tokens_reasoning=reply.usage.tokens_reasoning,
    )
