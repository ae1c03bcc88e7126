"""The one redactor: what every event, export, log and stored reply passes before it is used.

Owns the decision what is a secret and the mark that takes its place: `[redacted:<reason>]`, where
the secret stood, with no record of what was removed. Does not own the table of key formats
(`formats`) nor what a value looks like when described (`describe`).

Two modes. With `guess` (events, logs, exports) four things hide text: a configured credential, a
known key format, a name that says so (`api_key`, `authorization`; by whole segments, so `tokens_in`
never), and a weakly suspicious name (`token`, `key`) whose value also looks random. Without it
(*content*: a tool's output, a file, a model's reply) only the first two do, so that honest bytes
pass unchanged.

Invariants: a mark is never redacted again, so redacting twice equals redacting once; no expression
backtracks, so time is linear in the text; a cut comes after redaction, never before, else half a
secret would no longer look like one. Who must bound memory before (a stream) keeps at least
`MARGIN` more characters on each side of a cut than it will show, and drops them after redaction.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import quote

from holdfast.trace.formats import FORMATS

# The longest secret the table knows is a private key; a cut this far away cannot halve one unseen.
MARGIN = 20_480
CREDENTIAL_CHARS_MIN = 4
FORMAT_CHARS_MIN = 20
ENVIRONMENT_CHARS_MIN = 8
DEPTH_MAX = 64
NAME_CHARS_MAX = 200
ROUNDS_MAX = 8
SHORT_CHARS = 40

Suspicion = Literal["strong", "weak", "none"]
_Hint = tuple[str, bool, tuple[tuple[str, str], ...]]

# What is part of keys that need no long word; in the others all signs are of `_APART`.
_SHORT = ("://", "-----BEGIN", "xox", "ecretAccessKey", "earer ", "EARER ", "asic ")
_APART = bytes(
    byte if byte > 127 or chr(byte).isalnum() or chr(byte) in "_-+/=.:%~" else 32
    for byte in range(256)
)
_SOLID = bytes(32 if byte == 32 else 97 for byte in range(256))
_LONG = re.compile(b"a" * FORMAT_CHARS_MIN + b"a*")  # a literal, which the engine is fast at
_MARK = re.compile(r"\[redacted:[A-Za-z0-9_]{1,40}(?::[A-Za-z0-9_]{1,80})?\]")


def mark(reason: str, detail: str = "") -> str:
    """The text that stands where a secret stood."""
    return f"[redacted:{reason}:{detail}]" if detail else f"[redacted:{reason}]"


def has_mark(text: str) -> bool:
    """Whether something was taken out of this text; such text must not be written back to files."""
    return "[redacted:" in text and _MARK.search(text) is not None


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Values of variables whose names say that they are secret, at least 8 characters long.

    A weakly suspicious name (`GITHUB_TOKEN` is strong, `SESSION_KEY` weak) needs a random value.
    """
    found: dict[str, str] = {}
    for name, value in environ.items():
        if len(value) >= ENVIRONMENT_CHARS_MIN:
            suspicion = suspect(name)
            if suspicion == "strong" or (suspicion == "weak" and looks_random(value)):
                found[name] = value
    return found


class Redactor:
    """Takes secrets out of text and plain values. Immutable and safe to share between threads.

    `secrets` maps names to exact values, found also where they are percent-encoded or escaped as
    JSON; values shorter than 4 characters are ignored, because hiding them would destroy the text.
    """

    def __init__(
        self, secrets: Mapping[str, str] = MappingProxyType({}), *, guess: bool = True
    ) -> None:
        self._guess = guess
        self._credentials: dict[str, str] = {}
        for name, secret in secrets.items():
            label = re.sub(r"[^A-Za-z0-9_]", "_", name)[:80]
            for form in _forms(secret) if len(secret) >= CREDENTIAL_CHARS_MIN else ():
                self._credentials.setdefault(form, mark("credential", label))
        longest_first = sorted(self._credentials, key=len, reverse=True)
        self._any_credential = re.compile(
            "|".join([_MARK.pattern, *(re.escape(form) for form in longest_first)])
        )

        # Names of models, tools, agents and values come again and again.
        self._short = lru_cache(maxsize=256)(self._redacted)

    def text(self, text: str) -> str:
        """The text with marks where secrets were. Idempotent; linear in the length."""
        return self._short(text) if len(text) <= SHORT_CHARS else self._redacted(text)

    def _redacted(self, text: str) -> str:
        """A mark is a boundary behind which a glued secret shows itself, hence the rounds.

        What does not come to rest (a long chain of secrets without any separator) is hidden whole.
        """
        for _ in range(ROUNDS_MAX):
            redacted = self._once(text)
            if redacted == text:
                return text
            text = redacted
        return mark("chain")

    def _once(self, text: str) -> str:
        if len(text) < CREDENTIAL_CHARS_MIN:
            return text
        if self._credentials and any(form in text for form in self._credentials):
            text = self._any_credential.sub(self._credential_mark, text)
        words = _long_words(text)
        for hint, wide, rows in _hints() if _any_head().search(words) else _wide_hints():
            if hint in (text if wide else words):
                for head, reason in rows:
                    if head in text:
                        text = _pattern(head, reason).sub(_hide_format(reason), text)
        return _hide_assignments(text) if self._guess else text

    def value(self, value: Any, name: str = "") -> Any:
        """A copy with secrets hidden in strings, bytes, keys, and (guessing) under telling names.

        Recurses through dicts, lists and tuples; anything deeper than 64 levels, or cyclic, becomes
        a mark. Other objects are returned as they are: describe them first.
        """
        return self._walk(value, suspect(name) if self._guess else "none", name, 0)

    def _walk(self, value: Any, suspicion: Suspicion, name: str, depth: int) -> Any:
        if depth > DEPTH_MAX:
            return mark("depth")
        match value:
            case str():
                return self._leaf(value, suspicion, name)
            case bytes():
                text = value.decode("utf-8", "surrogateescape")
                return self._leaf(text, suspicion, name).encode("utf-8", "surrogateescape")
            case dict():
                return {
                    self._key(key): self._walk(item, *self._below(key, suspicion, name), depth + 1)
                    for key, item in value.items()
                }
            case list():
                return list(self._items(value, suspicion, name, depth))
            case tuple():
                return tuple(self._items(value, suspicion, name, depth))
            case int() | float() if suspicion == "strong" and not isinstance(value, bool):
                return mark("name", _judge(name)[1])
            case _:
                return value

    def _items(
        self, values: Iterable[Any], suspicion: Suspicion, name: str, depth: int
    ) -> Iterator[Any]:
        """The items of a sequence; in a list of arguments the one after `--password` is its value.

        `--password=x` is an assignment, which `text` hides.
        """
        flag = ""
        for item in values:
            inherited, of = self._below(flag, suspicion, name) if flag else (suspicion, name)
            yield self._walk(item, inherited, of, depth + 1)
            flag = item if isinstance(item, str) and item.startswith("-") else ""

    def _below(self, key: Any, above: Suspicion, name: str) -> tuple[Suspicion, str]:
        """What a dict's key says, unless the dict's own name already said that all in it is."""
        if not self._guess or not isinstance(key, str):
            return above, name
        if above == "strong":
            return above, name
        # Judged as it will be shown, so that a second pass says the same: a mark tells nothing.
        shown = _MARK.sub(" ", self.text(key))
        return suspect(shown), shown

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _leaf(self, text: str, suspicion: Suspicion, name: str) -> str:
        if suspicion == "none" or _MARK.fullmatch(text) or not text:
            return self.text(text)
        if suspicion == "weak" and not looks_random(text):
            return self.text(text)
        redacted = self.text(text)
        # A mark that says more than the name does (which key, whose credential) is kept.
        return redacted if _MARK.fullmatch(redacted) else mark("name", _judge(name)[1])

    def _credential_mark(self, match: re.Match[str]) -> str:
        found = match.group()
        return self._credentials.get(found, found)


# --- key formats ----------------------------------------------------------------------------------


def _long_words(text: str) -> str:
    """The words of a text that are long enough to be a key, each once, in no order, in ASCII right.

    A tenth of a source file, so that ruling out the table costs a tenth, too.
    """
    if len(text) < FORMAT_CHARS_MIN:
        return ""
    apart = text.encode("utf-8", "surrogatepass").translate(_APART)
    found = {apart[slice(*match.span())] for match in _LONG.finditer(apart.translate(_SOLID))}
    return b"\n".join(found).decode("latin-1")


@cache
def _any_head() -> re.Pattern[str]:
    """Any head that is searched in long words, its first letter apart: few letters begin one."""
    narrow = sorted(head for _, wide, heads in _hints() if not wide for head, _ in heads)
    same = groupby(narrow, lambda head: head[0])
    rests = ((one, "|".join(re.escape(head[1:]) for head in heads)) for one, heads in same)
    return re.compile("|".join(f"{re.escape(one)}(?:{rest})" for one, rest in rests))


@cache
def _wide_hints() -> tuple[_Hint, ...]:
    return tuple(each for each in _hints() if each[1])


@cache
def _hints() -> tuple[_Hint, ...]:
    """In the table's order what to search for, where, and the heads that hold it.

    What is wide is searched in the text, the rest in its long words.
    """
    hints: list[_Hint] = []
    for row in FORMATS:
        heads = [head.replace("␣", " ") for head in row.heads.split()]
        for hint, same in groupby(heads, lambda one: next((h for h in _SHORT if h in one), one)):
            hints.append((hint, hint in _SHORT, tuple((head, row.reason) for head in same)))
    return tuple(hints)


@cache
def _pattern(head: str, reason: str) -> re.Pattern[str]:
    """The expression of one head, compiled on the first text that contains the head.

    The boundary is checked behind the head, so that the engine searches for a literal. A word
    character before it is no boundary, unless it ends an escape: `\\n`, `%3D` or a colour code.
    """
    row = next(row for row in FORMATS if row.reason == reason)
    literal = re.escape(head)
    boundary = (
        ""
        if row.anywhere
        else "|".join(
            [
                rf"(?<![A-Za-z0-9]{literal})",
                rf"(?<=\\[nrt]{literal})",
                rf"(?<=%[0-9A-Fa-f][0-9A-Fa-f]{literal})",
                rf"(?<=[0-9\[]m{literal})",
            ]
        )
    )
    return re.compile(f"{literal}(?:{boundary}){row.tail}")


@cache
def _hide_format(reason: str) -> Any:
    sign = mark(reason)

    def hide(match: re.Match[str]) -> str:
        if "s" not in match.re.groupindex:
            return sign
        whole, start = match.group(), match.start()
        return whole[: match.start("s") - start] + sign + whole[match.end("s") - start :]

    return hide


def _forms(secret: str) -> Iterator[str]:
    """How one secret can be spelled: as it is, percent-encoded, escaped inside a JSON string."""
    yield secret
    yield quote(secret, safe="")
    yield secret.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# --- names ----------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STRONG = _words("""
    password passwords passwd passphrase secret secrets authorization apikey apikeys credential
    credentials cookie cookies privatekey accesskey secretkey authtoken accesstoken
    api_key api_keys api_token api_secret access_key access_token auth_token auth_key bearer_token
    refresh_token session_token id_token private_key secret_key signing_key encryption_key
    master_key client_key service_key deploy_key ssh_key pgp_key github_token gitlab_token gh_token
    hf_token npm_token pypi_token bot_token security_token csrf_token db_pwd user_pwd db_pass
    user_pass
""")
_WEAK = _words("""
    token key auth bearer jwt pass pwd pin otp salt signature sig session cred creds dsn cert
    webhook nonce
""")
# A name that ends like this speaks about a secret, it does not hold one.
_ABOUT = _words("""
    id ids name names count counts len length size limit max min ttl expiry expires expiration at
    in out total type kind url uri path file dir env var policy hint field fields prefix label ref
    sock socket mode enabled required reset error errors missing index version
""")
# Part of every telling word, so that a text with none of them needs no closer look.
_STEMS = tuple(
    sorted(
        _words("""
    pass secret auth key cred cookie token bearer jwt pwd pin otp salt sig session dsn cert webhook
    nonce
""")
    )
)
_NO_SECRETS = _words("none null true false undefined str string int bytes required")
_TOKEN = re.compile(r"[A-Za-z0-9+/=_.~-]+")
_SEGMENT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def suspect(name: str) -> Suspicion:
    """What a name says about its value, judged by whole segments: `tokens_in` says nothing."""
    return _judge(name)[0]


@lru_cache(maxsize=4096)
def _judge(name: str) -> tuple[Suspicion, str]:
    """The suspicion and the word that raised it. Names longer than 200 characters are no names."""
    if len(name) > NAME_CHARS_MAX or not _telling(name):
        return "none", ""
    segments = [part.lower() for part in _SEGMENT.findall(name)]
    if not segments or segments[-1] in _ABOUT:
        return "none", ""
    pairs = [f"{first}_{second}" for first, second in pairwise(segments)]
    for word in (*pairs, *segments):
        if word in _STRONG:
            return "strong", word
    return ("weak", segments[-1]) if segments[-1] in _WEAK else ("none", "")


def _telling(text: str) -> bool:
    """Whether any telling word is part of a text."""
    lowered = text.lower()
    return any(stem in lowered for stem in _STEMS)


def mark_of_name(name: str) -> str:
    """The mark for whatever a strongly suspicious name holds, else an empty text."""
    suspicion, word = _judge(name)
    return mark("name", word) if suspicion == "strong" else ""


def looks_random(text: str) -> bool:
    """Whether a text could be generated: 16 to 512 token characters, mixed, over 3 bits each.

    English identifiers and paths stay below or lack digits; hexadecimal keys reach 3 to 4 bits.
    """
    if not 16 <= len(text) <= 512 or not _TOKEN.fullmatch(text) or text.startswith(("/", ".")):
        return False
    if not (re.search("[0-9]", text) and re.search("[A-Za-z]", text)):
        return False
    size = len(text)
    bits = -sum(n / size * math.log2(n / size) for n in Counter(text).values())
    return bits > 3.0


# --- assignments in text --------------------------------------------------------------------------

# name = value, "name": "value", name: value, --name value, --name=value; each name is tried once.
_ASSIGNMENT = re.compile(
    r"""(?<![\w-])(?P<flag>--?)?(?P<name>[A-Za-z_][\w.-]{0,199}+)
        (?:[\"']?\]?\s{0,3}+(?:=>|:=|==?|:)\s{0,3}+|(?(flag)[ ]{1,3}+|(?!)))
        (?>(?:(?:Bearer|Basic|Token|Digest)[ ]{1,3}+)?)
        (?: \"(?P<double>(?>(?:[^\"\\\n]|\\.){1,4096}))\"
          | '(?P<single>(?>(?:[^'\\\n]|\\.){1,4096}))'
          | (?P<bare>(?>(?:(?!\[redacted:)[^\s\"'`,;&<>(){}\[\]\\]){4,4096})) )""",
    re.VERBOSE | re.IGNORECASE,
)


def _hide_assignments(text: str) -> str:
    may_assign = "=" in text or ":" in text or "-" in text
    return _ASSIGNMENT.sub(_hide_assignment, text) if may_assign and _telling(text) else text


def _hide_assignment(match: re.Match[str]) -> str:
    suspicion, word = _judge(match["name"])
    kind = match.lastgroup or ""
    secret = match[kind]
    if suspicion == "none" or secret.casefold() in _NO_SECRETS or _MARK.search(secret):
        return match.group()
    if suspicion == "weak" and not looks_random(secret):
        return match.group()
    whole, start = match.group(), match.start()
    return (
        whole[: match.start(kind) - start] + mark("name", word) + whole[match.end(kind) - start :]
    )
