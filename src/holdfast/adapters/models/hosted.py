"""Every other provider that pydantic-ai reaches, each a row of the table in this package.

Owns the making of their clients; the rest is `direct`'s. Invariants: an address that is set is
used, or the model is refused, so that a key never goes to another host than the one that was named;
no client retries by itself. A client that is not built on httpx2 has no bound on a reply's size;
the deadline is ours everywhere. A probe reaches nothing: these protocols have no common list of
models, so the first call tells.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, Unpack
from urllib.parse import urlsplit

from openai import OpenAIError
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model as WireModel
from pydantic_ai.models import infer_model
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings

from holdfast.adapters.models import transport
from holdfast.adapters.models.direct import DirectModel
from holdfast.adapters.models.hosts import Endpoint
from holdfast.adapters.models.prices import Given
from holdfast.errors import Refused
from holdfast.frozen import frozen

Close = Callable[[], Awaitable[None]]


@frozen
class Place:
    """Where a provider is reached: `key` and `url` of its `Endpoint`, and what else it reads."""

    provider: str
    key: str
    url: str
    timeout_s: float
    environ: Mapping[str, str]


class HostedModel(DirectModel):
    """One model of a hosted provider; see `domain.ports.Model`.

    Raises `ImportError` without its SDK, and `Refused` for a name that the SDK does not take.
    """

    def __init__(
        self,
        provider: str,
        model: str,
        *,
        at: Endpoint,
        environ: Mapping[str, str],
        **given: Unpack[Given],
    ) -> None:
        spec, timeout_s = f"{provider}:{model}", given["timeout_s"]
        place = Place(
            provider=provider, key=at.key, url=at.url, timeout_s=timeout_s, environ=environ
        )
        try:
            made, self._close = _MAKERS.get(provider, _plain)(place)
            wire = infer_model(spec, lambda name: made)
        # The SDK's own word on a name or a region.
        except (UserError, OpenAIError, ValueError) as error:
            raise Refused(f"{spec}: {error}", code="unusable_model") from error
        super().__init__(
            spec,
            wire,
            endpoint=at.url or provider,
            **given,
            settings=_settings(wire),
            takes_temperature=not wire.profile.get("openai_supports_reasoning"),
            empty_turns=False,
        )

    async def probe(self) -> None:
        """Nothing to reach: the key is there, and the first call will tell."""

    async def aclose(self) -> None:
        await self._close()


def _settings(wire: WireModel) -> ModelSettings:
    """Prompt caching wherever the provider takes marks; no retries wherever the request says so."""
    settings = ModelSettings(cache=True)
    if "max_retries" not in wire.unsupported_settings:  # the others' clients are made without
        settings["max_retries"] = 0
    return settings


def _class(at: Place) -> Any:
    """pydantic-ai's class of a provider; its common type knows nothing of what each one takes."""
    return infer_provider_class(at.provider)


def _plain(at: Place, **named: Any) -> tuple[Any, Close]:
    """Whoever talks through a client of ours; `named` are what the class calls key and address."""
    client = transport.open_client(at.url, timeout_s=at.timeout_s)
    made = _class(at)(http_client=client, **(named or {"api_key": at.key}))
    if at.url and not named:
        made.client.base_url = at.url
    return made, client.aclose


def _addressed(at: Place, **named: Any) -> tuple[Any, Close]:
    """Whose class takes an address too, under its usual name."""
    return _plain(at, api_key=at.key, base_url=at.url or None, **named)


def _azure(at: Place) -> tuple[Any, Close]:
    version = None if at.url.endswith("/v1") else at.environ.get("OPENAI_API_VERSION") or None
    return _plain(at, api_key=at.key, azure_endpoint=at.url, api_version=version)


def _snowflake(at: Place) -> tuple[Any, Close]:
    account = at.environ.get("SNOWFLAKE_ACCOUNT", "")
    return _plain(at, token=at.key, **({"base_url": at.url} if at.url else {"account": account}))


def _google_cloud(at: Place) -> tuple[Any, Close]:
    """By key in express mode, else in a project with the credentials this machine has for it."""
    project = at.environ.get("GOOGLE_CLOUD_PROJECT")
    who: dict[str, Any] = {"api_key": at.key}
    if project:
        place = at.environ.get("GOOGLE_CLOUD_LOCATION") or "us-central1"
        who = {"project": project, "location": place}
    return _plain(at, **who, base_url=at.url or None)


def _legacy_client(at: Place) -> Any:
    """Two SDKs are still built on httpx, the predecessor of httpx2, and bring it along."""
    make = import_module("httpx").AsyncClient
    return make(timeout=at.timeout_s, trust_env=not transport.is_loopback(at.url))


def _groq(at: Place) -> tuple[Any, Close]:
    cls, client = _class(at), _legacy_client(at)
    made = cls(api_key=at.key, base_url=at.url or None, http_client=client)
    return made, client.aclose


def _cohere(at: Place) -> tuple[Any, Close]:
    cls, client = _class(at), _legacy_client(at)
    make = import_module("cohere").AsyncClientV2
    sdk = make(api_key=at.key, base_url=at.url or None, httpx_client=client)
    return cls(cohere_client=sdk), client.aclose


def _huggingface(at: Place) -> tuple[Any, Close]:
    made = _class(at)(api_key=at.key, **({"base_url": at.url} if at.url else {}))
    return made, made.client.close


def _xai(at: Place) -> tuple[Any, Close]:
    """Over gRPC. A channel belongs to the loop it is made in, so it is made by the first call."""
    # Its core writes to stderr by itself, and may quote the server.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    parts = urlsplit(at.url)
    where = {"api_host": parts.netloc} if at.url else {}
    make = import_module("xai_sdk").AsyncClient
    opened: list[Any] = []
    base = _class(at)

    class Lazy(base):  # type: ignore[misc, valid-type]  # a class known at run time alone
        @cached_property
        def client(self) -> Any:
            client = make(
                api_key=at.key,
                **where,
                timeout=at.timeout_s,
                channel_options=[("grpc.enable_retries", 0)],
                use_insecure_channel=parts.scheme == "http",
            )
            opened.append(client)
            return client

    async def close() -> None:
        while opened:
            await opened.pop().close()

    return Lazy(api_key=at.key), close


def _bedrock(at: Place) -> tuple[Any, Close]:
    """By bearer token, else by the access key that is set. Its SDK waits in threads of its own."""
    core = import_module("botocore.session").Session()
    bearer = bool(at.environ.get("AWS_BEARER_TOKEN_BEDROCK"))
    if bearer and at.url.startswith("http:"):
        raise Refused(
            "bedrock sends a bearer token over https only",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead",
            code="bad_endpoint",
        )
    if not bearer and not at.environ.get("AWS_SECRET_ACCESS_KEY"):
        raise Refused(
            "bedrock needs a secret with its key, and AWS_SECRET_ACCESS_KEY is not set",
            hint="set AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK alone",
            code="missing_key",
        )
    config = import_module("botocore.config").Config(
        read_timeout=at.timeout_s,
        connect_timeout=min(at.timeout_s, transport.CONNECT_S_MAX),
        retries={"total_max_attempts": 1},
        **({"signature_version": "bearer"} if bearer else {}),
        **({"proxies": {}} if transport.is_loopback(at.url) else {}),
    )
    who = {}
    if bearer:  # the token is all there is: no credentials of this machine beside it
        token = import_module("botocore.tokens").FrozenAuthToken(at.key)
        core.get_auth_token, core.get_credentials = (lambda **_: token), (lambda: None)
    else:
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        who = {name: at.environ.get(name.upper()) or None for name in names}
    boto = import_module("boto3")
    session = boto.Session(botocore_session=core, region_name=_region(at), **who)
    client = session.client("bedrock-runtime", config=config, endpoint_url=at.url or None)

    async def close() -> None:
        client.close()

    return _class(at)(bedrock_client=client), close


def _region(at: Place) -> str:
    region = at.environ.get("AWS_REGION") or at.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise Refused(
            f"{at.provider} needs a region, and AWS_REGION is not set",
            hint="such as AWS_REGION=us-east-1",
            code="bad_endpoint",
        )
    return region


_MAKERS: Mapping[str, Callable[[Place], tuple[Any, Close]]] = {
    "azure": _azure,
    "azure-responses": _azure,
    "bedrock": _bedrock,
    "bedrock-mantle": lambda at: _addressed(at, region_name=_region(at)),
    "cohere": _cohere,
    "google": _addressed,
    "google-cloud": _google_cloud,
    "groq": _groq,
    "heroku": _addressed,
    "huggingface": _huggingface,
    "litellm": lambda at: _plain(at, api_key=at.key or None, api_base=at.url),
    "mistral": _addressed,
    "snowflake": _snowflake,
    "vllm": lambda at: _plain(at, api_key=at.key or transport.NO_KEY, base_url=at.url),
    "xai": _xai,
}
