"""`import holdfast.trace.auto` traces this program if `AGENTLOG` says so; else it does nothing.

The one module of the package whose import has an effect, because that is what it is for.
"""

from __future__ import annotations

from holdfast import trace

_recorder = trace.active()
if _recorder is not None:
    _recorder.session_id()
