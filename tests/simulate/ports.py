"""The ports of the simulated tasks: what a model, a tool, a check and a person answer.

Everything they say holds the secret of the world, and passes the real redaction of the real port
(`replies.seal` for models, `diffs.told` for files), so that I9 judges those. How a port fails is
told by the world; what it looks like to the engine is decided here. Deterministic: the same act
gives the same bytes in every attempt.
"""

from collections import Counter
from collections.abc import Callable

from holdfast.adapters import diffs
from holdfast.adapters.models import failures, replies
from holdfast.agent import evidence
from holdfast.agent.conversation import encode
from holdfast.agent.journal import Performed
from holdfast.domain.model import CheckResult
from holdfast.domain.ports import Message, ModelRequest, Observation, ToolCall, Usage
from holdfast.trace.redact import Redactor
from simulate.faults import SimClock
from simulate.scripts import SECRET, Act

SPOKEN = SECRET.decode()
SLOW_MS = 6_000
_CHANGED = f"diff --git a/key b/key\n--- a/key\n+++ b/key\n@@ -0,0 +1 @@\n+{SPOKEN}\n".encode()
_REQUEST = ModelRequest(model="scripted:x", messages=(Message(role="user", content="go on"),))


class Ports:
    """The ports of one world. `slow` and `malformed` are how many of the next replies are that."""

    def __init__(self, clock: SimClock, happened: Counter[str]) -> None:
        self._clock, self._happened = clock, happened
        self.redact: Callable[[str], str] = Redactor({"SIMULATED": SPOKEN}, guess=False).text
        self.slow = self.malformed = 0

    def perform(self, act: Act) -> Performed:
        """What an act gives. Raises `ModelError` for a reply that cannot be read."""
        return self._complete(act) if act.kind == "model" else self._call(act)

    def checked(self, verdict: str) -> CheckResult:
        output = self.redact(f"the token is {SPOKEN}")
        return CheckResult(command="c", verdict=verdict, output=output)  # type: ignore[arg-type]

    def _complete(self, act: Act) -> Performed:
        if self.slow:
            self.slow -= 1
            self._happened["model was slow"] += 1
            self._clock.advance(SLOW_MS)
        if self.malformed:
            self.malformed -= 1
            self._happened["model was malformed"] += 1
            raise failures.malformed(f"{{ {SPOKEN}", self.redact)
        said = replies.Draft(
            text=f"I use {SPOKEN}",
            thinking=f"{SPOKEN}?",
            calls=(ToolCall(id="1", name="f", arguments=f'{{"key":"\\u0020{SPOKEN}"}}'),),
        )
        reply = replies.seal(said, _REQUEST, price=None, redact=self.redact)
        return Performed(
            result=encode(reply),
            usage=Usage(tokens_in=act.tokens),
            events=(evidence.llm_call(act.key, reply, 1),),
        )

    def _call(self, act: Act) -> Performed:
        seen = Observation(tool="f", success=True, output=self.redact(f"it is {SPOKEN}"))
        events = [evidence.tool_output(act.key, seen)]
        if act.effect == "compensable":
            changed = diffs.told(_CHANGED, (1, 1, 0), self.redact)
            events.append(evidence.git_diff(act.key, 1, changed))
        return Performed(result=encode(seen), events=tuple(events))
