"""The known key formats: one literal table that the redactor reads and the tests enumerate.

Owns what a credential of each issuer looks like. Does not own names, entropy or replacement
(`redact`). Invariants: a row begins with a literal head, so that a plain substring search decides
whether its expression runs at all; every repetition is possessive or bounded, so no text can make
matching slower than linear; the part to hide is the group `s` where a row has one, else the match.
Sources: the issuers' own documentation of their prefixes, and the public rule sets of secret
scanners. Samples live with the tests, never in the package.
"""

from __future__ import annotations

from typing import NamedTuple

_B = r"[A-Za-z0-9_-]"  # base64url
_A = r"[A-Za-z0-9]"
_HEX = r"[0-9a-f]"


class Format(NamedTuple):
    """One row. `heads` are space-separated literals (`␣` stands for a space inside one).

    `tail` is the expression after a head. `anywhere` rows may begin inside a word.
    """

    reason: str
    heads: str
    tail: str
    anywhere: bool = False


# Order matters where two rows share a head: the more particular one comes first.
FORMATS: tuple[Format, ...] = (
    Format(
        "private_key",
        "-----BEGIN",
        r"(?=[A-Z0-9 ]{0,30}PRIVATE KEY)[A-Z0-9 ]{1,40}+-----(?>(?:[^-]|-(?!----)){0,20000})"
        r"(?:-----END[A-Z0-9 ]{1,40}+-----)?",
        anywhere=True,
    ),
    Format("age_key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,70}+"),
    Format("anthropic_key", "sk-ant-", rf"{_B}{{20,}}+"),
    Format("openrouter_key", "sk-or-", rf"{_B}{{32,}}+"),
    Format("langfuse_key", "sk-lf- pk-lf-", rf"{_HEX}{{8}}-[0-9a-f-]{{20,}}+"),
    Format("openai_key", "sk-", rf"(?={_B}{{0,200}}[0-9]){_B}{{20,}}+"),
    Format("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_A}{{36,}}+"),
    Format("github_pat", "github_pat_", r"[A-Za-z0-9_]{22,}+"),
    Format("gitlab_token", "glpat- gldt- glrt- glcbt- glptt- glft- glsoat-", rf"{_B}{{20,}}+"),
    Format("aws_access_key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Format(
        "aws_secret_key",
        "aws_secret_access_key AWS_SECRET_ACCESS_KEY SecretAccessKey secretAccessKey",
        r"[\"']?\s{0,4}+[=:]\s{0,4}+[\"']?(?P<s>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    Format("azure_storage_key", "AccountKey=", r"(?P<s>[A-Za-z0-9/+]{86}==)"),
    Format("azure_sas", "sig=", r"(?P<s>[A-Za-z0-9%+/]{43,120}+)(?<=%3D|%3d)"),
    Format("google_api_key", "AIza", rf"{_B}{{35}}(?!{_B})"),
    Format("google_oauth_token", "ya29.", rf"{_B}{{20,}}+"),
    Format("google_oauth_secret", "GOCSPX-", rf"{_B}{{28,}}+"),
    Format("google_refresh_token", "1//0", rf"{_B}{{30,}}+"),
    Format("slack_token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxc- xoxd- xoxe-", rf"{_B}{{10,}}+"),
    Format("slack_app_token", "xapp-", r"[0-9]-[A-Za-z0-9-]{20,}+"),
    Format("slack_webhook", "hooks.slack.com/services/", r"(?P<s>[A-Za-z0-9/]{30,}+)"),
    Format(
        "discord_webhook",
        "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        rf"[0-9]{{10,25}}+/(?P<s>{_B}{{40,}}+)",
    ),
    Format("telegram_token", ":AA", rf"(?<=[0-9]{{8}}:AA){_B}{{32,34}}(?!{_B})", anywhere=True),
    Format("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_", rf"{_A}{{16,}}+"),
    Format("webhook_secret", "whsec_", r"[A-Za-z0-9+/=]{24,}+"),
    Format("twilio_key", "SK", rf"{_HEX}{{32}}(?!{_A})"),
    Format("sendgrid_key", "SG.", rf"{_B}{{16,32}}+\.{_B}{{16,64}}+"),
    Format("mailgun_key", "key-", rf"{_HEX}{{32}}(?!{_A})"),
    Format("npm_token", "npm_", rf"{_A}{{36}}(?!{_A})"),
    Format("pypi_token", "pypi-AgE", rf"{_B}{{50,}}+"),
    Format("rubygems_token", "rubygems_", rf"{_HEX}{{48}}"),
    Format("crates_token", "cio", rf"{_A}{{32}}(?!{_A})"),
    Format("docker_token", "dckr_pat_ dckr_oat_", rf"{_B}{{27,}}+"),
    Format("nuget_key", "oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    Format("huggingface_token", "hf_ api_org_", rf"{_A}{{34,}}+"),
    Format("replicate_token", "r8_", rf"{_A}{{37}}(?!{_A})"),
    Format("groq_key", "gsk_", rf"{_A}{{40,}}+"),
    Format("xai_key", "xai-", rf"{_A}{{60,}}+"),
    Format("perplexity_key", "pplx-", rf"{_A}{{40,}}+"),
    Format("cerebras_key", "csk-", rf"{_A}{{40,}}+"),
    Format("nvidia_key", "nvapi-", rf"{_B}{{50,}}+"),
    Format("tavily_key", "tvly-", rf"{_B}{{20,}}+"),
    Format("jina_key", "jina_", rf"{_B}{{40,}}+"),
    Format("langsmith_key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f_]{40,}+"),
    Format("databricks_token", "dapi", rf"{_HEX}{{32}}(?:-[0-9])?(?!{_A})"),
    Format("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", rf"{_HEX}{{64}}"),
    Format("heroku_key", "HRKU-", rf"{_B}{{36,}}+"),
    Format("fly_token", "fm2_ fo1_", r"[A-Za-z0-9_+/=-]{40,}+"),
    Format("linear_key", "lin_api_", rf"{_A}{{32,}}+"),
    Format("notion_key", "ntn_ secret_", rf"(?=[A-Za-z]{{0,42}}[0-9]){_A}{{40,}}+"),
    Format("figma_token", "figd_", rf"{_B}{{36,}}+"),
    Format("shopify_token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    Format("square_token", "sq0atp- sq0csp- sq0idp-", rf"{_B}{{22,}}+"),
    Format("postman_key", "PMAK-", rf"{_HEX}{{24}}-{_HEX}{{34}}"),
    Format("newrelic_key", "NRAK-", r"[A-Z0-9]{27}"),
    Format("grafana_token", "glc_ glsa_", r"[A-Za-z0-9+/=_]{32,}+"),
    Format("sentry_token", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{40,}+"),
    Format("vault_token", "hvs. hvb. hvr.", rf"{_B}{{24,}}+"),
    Format("doppler_token", "dp.pt. dp.st. dp.ct. dp.sa.", r"[A-Za-z0-9._-]{40,}+"),
    Format("pulumi_token", "pul-", rf"{_HEX}{{40}}"),
    Format("planetscale_token", "pscale_tkn_ pscale_pw_", r"[A-Za-z0-9_.-]{32,}+"),
    Format("supabase_token", "sbp_", rf"{_HEX}{{40}}"),
    Format("atlassian_token", "ATATT3", r"[A-Za-z0-9_=-]{60,}+"),
    Format("onepassword_token", "ops_eyJ", rf"{_B}{{100,}}+"),
    Format("tailscale_key", "tskey-", r"[a-z]{2,12}+-[A-Za-z0-9-]{16,}+"),
    Format("netlify_token", "nfp_", rf"{_A}{{36,}}+"),
    Format("alibaba_key", "LTAI", rf"{_A}{{16,24}}(?!{_A})"),
    Format("jwt", "eyJ", rf"{_B}{{10,}}+\.eyJ{_B}{{10,}}+\.{_B}{{0,}}+"),
    Format("bearer", "Bearer␣ bearer␣ BEARER␣", r"(?P<s>(?=[^\s]{0,200}[0-9])[\w.~+/=-]{16,}+)"),
    Format(
        "basic_auth",
        "Basic␣ basic␣",
        r"(?P<s>(?=[A-Za-z0-9+/]{0,200}[0-9=])[A-Za-z0-9+/]{12,}+={0,2}+)(?![\w+/])",
    ),
    Format(
        "url_password",
        "://",
        r"[^\s/:@\[\]\"'<>]{0,128}+:(?P<s>(?>(?:(?!\[redacted:)[^\s/@\"'<>]){1,256}))@",
        anywhere=True,
    ),
)
