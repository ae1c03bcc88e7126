"""Where each provider is found: the variables of its key and address, and the extra it needs.

Owns the table and what is said when something of a row is missing. Light on purpose: it is said
before any library of the provider is loaded, which costs up to three seconds. Invariant: an address
or key that no request could carry is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal
from urllib.parse import urlsplit

from holdfast.errors import Refused
from holdfast.frozen import frozen


@frozen
class Host:
    """A row: of `keys` the first that is set is the key, `address` names another server.

    `needs` is what must be set: the key; the key or an address of one's own (`either`), which then
    is not `public`; the address, because there is no public one; or both.
    """

    keys: tuple[str, ...]
    address: str
    extra: str = ""
    needs: Literal["key", "either", "address", "both"] = "key"
    public: str = ""


@frozen
class Endpoint:
    """A row read from an environment; an empty `url` is the SDK's own, an empty `key` none."""

    key: str
    url: str


HOSTS: Mapping[str, Host] = {
    "openai": Host(
        keys=("OPENAI_API_KEY",),
        address="OPENAI_BASE_URL",
        needs="either",
        public="https://api.openai.com/v1",
    ),
    "anthropic": Host(
        keys=("ANTHROPIC_API_KEY",),
        address="ANTHROPIC_BASE_URL",
        extra="anthropic",
        needs="either",
        public="https://api.anthropic.com",
    ),
    "alibaba": Host(keys=("ALIBABA_API_KEY",), address="ALIBABA_BASE_URL"),
    "azure": Host(keys=("AZURE_OPENAI_API_KEY",), address="AZURE_OPENAI_ENDPOINT", needs="both"),
    "azure-responses": Host(
        keys=("AZURE_OPENAI_API_KEY",), address="AZURE_OPENAI_ENDPOINT", needs="both"
    ),
    "bedrock": Host(
        keys=("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"),
        address="BEDROCK_BASE_URL",
        extra="bedrock",
    ),
    "bedrock-mantle": Host(keys=("AWS_BEARER_TOKEN_BEDROCK",), address="BEDROCK_MANTLE_BASE_URL"),
    "cerebras": Host(keys=("CEREBRAS_API_KEY",), address="CEREBRAS_BASE_URL"),
    "cohere": Host(keys=("CO_API_KEY",), address="CO_BASE_URL", extra="cohere"),
    "crusoe": Host(keys=("CRUSOE_API_KEY",), address="CRUSOE_BASE_URL"),
    "deepseek": Host(keys=("DEEPSEEK_API_KEY",), address="DEEPSEEK_BASE_URL"),
    "fireworks": Host(keys=("FIREWORKS_API_KEY",), address="FIREWORKS_BASE_URL"),
    "github-copilot": Host(
        keys=("GITHUB_COPILOT_API_KEY", "COPILOT_GITHUB_TOKEN"),
        address="GITHUB_COPILOT_BASE_URL",
    ),
    "google": Host(
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"), address="GOOGLE_BASE_URL", extra="google"
    ),
    "google-cloud": Host(
        keys=("GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT"),
        address="GOOGLE_CLOUD_BASE_URL",
        extra="google",
    ),
    "groq": Host(keys=("GROQ_API_KEY",), address="GROQ_BASE_URL", extra="groq"),
    "heroku": Host(keys=("HEROKU_INFERENCE_KEY",), address="HEROKU_INFERENCE_URL"),
    "huggingface": Host(keys=("HF_TOKEN",), address="HUGGINGFACE_BASE_URL", extra="huggingface"),
    "litellm": Host(keys=("LITELLM_API_KEY",), address="LITELLM_BASE_URL", needs="address"),
    "meta": Host(keys=("META_API_KEY",), address="META_BASE_URL"),
    "mistral": Host(keys=("MISTRAL_API_KEY",), address="MISTRAL_BASE_URL", extra="mistral"),
    "moonshotai": Host(keys=("MOONSHOTAI_API_KEY",), address="MOONSHOTAI_BASE_URL"),
    "nebius": Host(keys=("NEBIUS_API_KEY",), address="NEBIUS_BASE_URL"),
    "openai-responses": Host(keys=("OPENAI_API_KEY",), address="OPENAI_BASE_URL"),
    "openrouter": Host(keys=("OPENROUTER_API_KEY",), address="OPENROUTER_BASE_URL"),
    "ovhcloud": Host(keys=("OVHCLOUD_API_KEY",), address="OVHCLOUD_BASE_URL"),
    "sambanova": Host(keys=("SAMBANOVA_API_KEY",), address="SAMBANOVA_BASE_URL"),
    "snowflake": Host(keys=("SNOWFLAKE_TOKEN",), address="SNOWFLAKE_BASE_URL"),
    "together": Host(keys=("TOGETHER_API_KEY",), address="TOGETHER_BASE_URL"),
    "vercel": Host(
        keys=("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"), address="VERCEL_BASE_URL"
    ),
    "vllm": Host(keys=("VLLM_API_KEY",), address="VLLM_BASE_URL", needs="address"),
    "xai": Host(keys=("XAI_API_KEY",), address="XAI_BASE_URL", extra="xai"),
    "zai": Host(keys=("ZAI_API_KEY",), address="ZAI_BASE_URL"),
}
# The module that shows whether an extra is installed.
EXTRAS: Mapping[str, str] = {
    "anthropic": "anthropic",
    "bedrock": "boto3",
    "cohere": "cohere",
    "google": "google.genai",
    "groq": "groq",
    "huggingface": "huggingface_hub",
    "mistral": "mistralai",
    "xai": "xai_sdk",
}


def endpoint(spec: str, environ: Mapping[str, str]) -> Endpoint:
    """Key and address for `provider:model`. Raises `Refused`, which says what to set."""
    host = HOSTS[spec.partition(":")[0]]
    key = ""
    for variable in host.keys:
        key = key or _checked_key(environ.get(variable, ""), variable=variable)
    url = environ.get(host.address, "")
    url = checked_url(url, variable=host.address) if url else ""
    elsewhere = bool(url) and urlsplit(url).hostname != urlsplit(host.public).hostname
    if not key and host.needs != "address" and not (host.needs == "either" and elsewhere):
        also = f", or {host.address} for a server of your own" if host.needs == "either" else ""
        raise Refused(
            f"{spec} needs a key, and {host.keys[0]} is not set",
            hint=f"set {' or '.join(host.keys)}{also}",
            code="missing_key",
        )
    if not url and host.needs in ("address", "both"):
        raise Refused(
            f"{spec} needs an address, and {host.address} is not set",
            hint=f"set {host.address} to where it is served",
            code="bad_endpoint",
        )
    return Endpoint(key=key, url=url or host.public)


def missing_extra(spec: str, extra: str) -> Refused:
    return Refused(
        f"{spec} needs a package that is not installed",
        hint=f"pip install 'holdfast[{extra}]'",
        code="missing_extra",
    )


def installed(extra: str) -> bool:
    """Whether an extra's library is there; loads none of it."""
    try:
        return find_spec(EXTRAS[extra]) is not None
    except ModuleNotFoundError:  # not even the package that the module would be in
        return False


def checked_url(url: str, *, variable: str) -> str:
    """`url` without a trailing slash. Raises `Refused` unless it is an http or https address."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise Refused(
            f"{variable}={url!r} is no http or https address",
            hint=f"such as {variable}=http://127.0.0.1:8000/v1",
            code="bad_endpoint",
        )
    return url.rstrip("/")


def _checked_key(key: str, *, variable: str) -> str:
    """`key` without blanks around it. Raises `Refused` when it holds what no header can carry."""
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise Refused(f"{variable} holds characters no key has", code="missing_key")
    return key
