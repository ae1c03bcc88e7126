"""Real peers for tests and the demo: a scripted model server over HTTP.

`ScriptedServer` in process, `python -m holdfast.testing serve SCRIPT --log FILE` as a process. The
script format is described in `holdfast.adapters.models.script`.
"""

from holdfast.testing.server import Call, ScriptedServer

__all__ = ["Call", "ScriptedServer"]
