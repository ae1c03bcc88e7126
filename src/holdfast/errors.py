"""One hierarchy of errors: every one has a code, a hint, a retryable flag and an HTTP status.

Five families. Refused: the caller broke a rule. Stale: the caller lost its lease or holds an old
revision. Exhausted: a budget is spent. Unavailable: the world does not answer. Corrupt: stored
bytes are not what was written. Expected failures of *work* are values (`Outcome`,
`Observation.error`); these exceptions are for callers and for broken environments.
"""

from __future__ import annotations

from typing import Literal

FailureClass = Literal["transient", "logic", "policy", "budget", "cancelled", "unknown"]


class HoldfastError(Exception):
    """Base of every error Holdfast raises on purpose.

    `code` is stable and machine-readable, `hint` is one sentence that says what to do next.
    """

    code = "error"
    remedy = ""  # the hint where none is given
    retryable = False
    http_status = 500

    def __init__(self, message: str, *, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or type(self).remedy
        self.code = code or type(self).code

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Refused(HoldfastError):
    """The caller broke a rule; the same call will be refused again."""

    code = "refused"
    http_status = 400


class NotFound(Refused):
    """The thing named does not exist."""

    code = "not_found"
    http_status = 404


class IllegalTransition(Refused):
    """The lifecycle table has no row for this state and event."""

    code = "illegal_transition"
    http_status = 409


class Stale(HoldfastError):
    """The caller's attempt number, lease or revision is no longer the current one."""

    code = "stale"
    http_status = 409


class Divergence(HoldfastError):
    """A recorded request is not what the code produces now; see `at` for the first difference."""

    code = "divergence"
    http_status = 409

    def __init__(self, message: str, *, step: str, field: str, byte: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.step, self.field, self.byte = step, field, byte


class Exhausted(HoldfastError):
    """A budget is spent: `limit` and `spent` are in the unit that `resource` names."""

    code = "exhausted"
    http_status = 429

    def __init__(self, resource: str, *, limit: float, spent: float, hint: str = "") -> None:
        super().__init__(f"{resource}: {spent:g} of {limit:g} is spent", hint=hint)
        self.resource, self.limit, self.spent = resource, limit, spent


class Unavailable(HoldfastError):
    """Something outside does not answer; trying again later may work."""

    code = "unavailable"
    retryable = True
    http_status = 503


class ModelError(Unavailable):
    """A model call failed. `failure_class` routes it; `retry_after_s` is the server's own wish."""

    code = "model_error"

    def __init__(
        self,
        message: str,
        *,
        failure_class: FailureClass,
        retry_after_s: float | None = None,
        hint: str = "",
        code: str = "",
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.failure_class = failure_class
        self.retry_after_s = retry_after_s
        self.retryable = failure_class == "transient"


class Corrupt(HoldfastError):
    """Stored bytes are damaged or were changed behind the store's back."""

    code = "corrupt"
    remedy = "restore the last backup: holdfast restore"
