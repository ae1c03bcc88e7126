"""What is said when a provider's key is missing. Light on purpose: it is said before any library of
the provider is loaded, which costs up to three seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import Refused


def missing_key(spec: str, key: str, address: str = "") -> Refused:
    """The refusal of `provider:model`; `address` is the variable of a server that needs no key."""
    return Refused(
        f"{spec} needs a key, and {key} is not set",
        hint=f"set {key}" + (f", or {address} for a server of your own" if address else ""),
        code="missing_key",
    )


def require_key(spec: str, environ: Mapping[str, str], key: str, address: str = "") -> None:
    """Refuse a model that nothing in the environment gives a key or another address for."""
    if not environ.get(key) and not (address and environ.get(address)):
        raise missing_key(spec, key, address)
