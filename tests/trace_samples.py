"""Sample secrets for every known key format, put together at run time so that no scanner sees one.

`SECRETS` has at least one true sample per reason; `HARMLESS` has look-alikes that must survive.
None of these is or ever was a real credential.
"""

from __future__ import annotations

_ALNUM = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6"
_UPPER = "A1B2C3D4E5F6G7H8I9J0K1L2M3N4O5P6Q7R8"
_LOWER = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v2w3"
_HEX = "0123456789abcdef" * 8


def _alnum(size: int) -> str:
    return (_ALNUM * 4)[:size]


def _join(*parts: str) -> str:
    return "".join(parts)


_PEM_BODY = "\n".join(_join("MII", _alnum(61)) for _ in range(4))

SECRETS: dict[str, str] = {
    "private_key": _join("-----BEGIN RSA ", "PRIVATE KEY-----\n", _PEM_BODY, "\n-----END RSA ",
                         "PRIVATE KEY-----"),
    "age_key": _join("AGE-SECRET-", "KEY-1", (_UPPER * 2)[:58]),
    "anthropic_key": _join("sk-", "ant-api03-", _alnum(80)),
    "openrouter_key": _join("sk-", "or-v1-", _HEX[:64]),
    "langfuse_key": _join("sk-", "lf-", "01234567-89ab-cdef-0123-456789abcdef"),
    "openai_key": _join("sk-", "proj-", _alnum(60)),
    "github_token": _join("gh", "p_", _alnum(36)),
    "github_pat": _join("github", "_pat_", _alnum(22), "_", _alnum(50)),
    "gitlab_token": _join("gl", "pat-", _alnum(20)),
    "aws_access_key": _join("AK", "IA", _UPPER[:16]),
    "aws_secret_key": _join("aws_secret", "_access_key = ", _alnum(40)),
    "azure_storage_key": _join("Account", "Key=", _alnum(86), "=="),
    "azure_sas": _join("sv=2024&si", "g=", _alnum(43), "%3D"),
    "google_api_key": _join("AI", "za", _alnum(35)),
    "google_oauth_token": _join("ya", "29.", _alnum(60)),
    "google_oauth_secret": _join("GOC", "SPX-", _alnum(28)),
    "google_refresh_token": _join("1/", "/0", _alnum(40)),
    "slack_token": _join("xox", "b-", "123456789012-", _alnum(24)),
    "slack_app_token": _join("xa", "pp-", "1-A0123456789-", _alnum(30)),
    "slack_webhook": _join("https://hooks.slack", ".com/services/", "T00000000/B00000000/",
                           _alnum(24)),
    "discord_webhook": _join("https://discord", ".com/api/webhooks/", "123456789012345678/",
                             _alnum(60)),
    "telegram_token": _join("123456789:", "AA", _alnum(33)),
    "stripe_key": _join("sk_", "live_", _alnum(24)),
    "webhook_secret": _join("wh", "sec_", _alnum(32)),
    "twilio_key": _join("S", "K", _HEX[:32]),
    "sendgrid_key": _join("S", "G.", _alnum(22), ".", _alnum(43)),
    "mailgun_key": _join("ke", "y-", _HEX[:32]),
    "npm_token": _join("np", "m_", _alnum(36)),
    "pypi_token": _join("py", "pi-AgE", _alnum(80)),
    "rubygems_token": _join("ruby", "gems_", _HEX[:48]),
    "crates_token": _join("c", "io", _alnum(32)),
    "docker_token": _join("dckr", "_pat_", _alnum(27)),
    "nuget_key": _join("o", "y2", _LOWER[:43]),
    "huggingface_token": _join("h", "f_", _alnum(34)),
    "replicate_token": _join("r", "8_", _alnum(37)),
    "groq_key": _join("gs", "k_", _alnum(52)),
    "xai_key": _join("xa", "i-", _alnum(80)),
    "perplexity_key": _join("pp", "lx-", _alnum(48)),
    "cerebras_key": _join("cs", "k-", _alnum(48)),
    "nvidia_key": _join("nv", "api-", _alnum(64)),
    "tavily_key": _join("tv", "ly-", _alnum(32)),
    "jina_key": _join("ji", "na_", _alnum(60)),
    "langsmith_key": _join("lsv2", "_pt_", _HEX[:32], "_", _HEX[:10]),
    "databricks_token": _join("da", "pi", _HEX[:32]),
    "digitalocean_token": _join("dop", "_v1_", _HEX[:64]),
    "heroku_key": _join("HR", "KU-", _alnum(40)),
    "fly_token": _join("fm", "2_", _alnum(60)),
    "linear_key": _join("lin", "_api_", _alnum(40)),
    "notion_key": _join("nt", "n_", _alnum(46)),
    "figma_token": _join("fi", "gd_", _alnum(40)),
    "shopify_token": _join("shp", "at_", _HEX[:32]),
    "square_token": _join("sq0", "atp-", _alnum(22)),
    "postman_key": _join("PM", "AK-", _HEX[:24], "-", _HEX[:34]),
    "newrelic_key": _join("NR", "AK-", _UPPER[:27]),
    "grafana_token": _join("gl", "sa_", _alnum(32), "_", _HEX[:8]),
    "sentry_token": _join("sntr", "ys_", _alnum(60)),
    "vault_token": _join("hv", "s.", _alnum(40)),
    "doppler_token": _join("dp", ".pt.", _alnum(43)),
    "pulumi_token": _join("pu", "l-", _HEX[:40]),
    "planetscale_token": _join("pscale", "_tkn_", _alnum(43)),
    "supabase_token": _join("sb", "p_", _HEX[:40]),
    "atlassian_token": _join("ATA", "TT3", _alnum(120)),
    "onepassword_token": _join("ops", "_eyJ", _alnum(150)),
    "tailscale_key": _join("ts", "key-", "auth-", _alnum(17)),
    "netlify_token": _join("nf", "p_", _alnum(36)),
    "alibaba_key": _join("LT", "AI", _alnum(20)),
    "jwt": _join("ey", "JhbGciOiJIUzI1NiJ9.ey", "JzdWIiOiIxMjM0NTY3ODkwIn0.", _alnum(43)),
    "bearer": _join("Authori", "zation: Bear", "er ", _alnum(32)),
    "basic_auth": _join("Bas", "ic ", "dXNlcjpwYXNzd29yZDEyMw=="),
    "url_password": _join("postgres:", "//app:", "Tr0ub4dor", "@db.example.com/app"),
}  # fmt: skip

HARMLESS: dict[str, str] = {
    "private_key": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "age_key": "AGE-SECRET-KEY-1 is the prefix of such keys",
    "anthropic_key": "sk-ant- begins a key",
    "openrouter_key": "sk-or- begins a key",
    "langfuse_key": "pk-lf-short",
    "openai_key": "task-force-for-the-renewal-of-the-plan and sk-learn-estimators-are-not-keys",
    "github_token": "ghp_tooshort",
    "github_pat": "github_pat_short",
    "gitlab_token": "glpat-short",
    "aws_access_key": "AKIAISTHEPREFIXOFALLTHESE",
    "aws_secret_key": "aws_secret_access_key is read from the file",
    "azure_storage_key": "AccountKey=see-the-portal",
    "azure_sas": "config=abcdef&sig=short",
    "google_api_key": "AIzaTooShort",
    "google_oauth_token": "ya29.short",
    "google_oauth_secret": "GOCSPX-short",
    "google_refresh_token": "1//0 is a path",
    "slack_token": "xoxb-short",
    "slack_app_token": "xapp-store-listing",
    "slack_webhook": "https://hooks.slack.com/services/help",
    "discord_webhook": "https://discord.com/api/webhooks/help",
    "telegram_token": "grade:AAA and rating:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "stripe_key": "sk_live_demo",
    "webhook_secret": "whsec_short",
    "twilio_key": "SKIPPED and SK1234",
    "sendgrid_key": "SG.short.form",
    "mailgun_key": "key-value store, key-0123",
    "npm_token": "npm_config_registry",
    "pypi_token": "pypi-AgE",
    "rubygems_token": "rubygems_version",
    "crates_token": "cio and precious",
    "docker_token": "dckr_pat_short",
    "nuget_key": "oy2short",
    "huggingface_token": "hf_hub_download",
    "replicate_token": "r8_short",
    "groq_key": "gsk_short",
    "xai_key": "xai-grok",
    "perplexity_key": "pplx-7b-online",
    "cerebras_key": "csk-short",
    "nvidia_key": "nvapi-short",
    "tavily_key": "tvly-short",
    "jina_key": "jina_embeddings",
    "langsmith_key": "lsv2_pt_short",
    "databricks_token": "dapifoo",
    "digitalocean_token": "dop_v1_short",
    "heroku_key": "HRKU-short",
    "fly_token": "fm2_short",
    "linear_key": "lin_api_short",
    "notion_key": "secret_santa_list_of_the_whole_department_for_this_year",
    "figma_token": "figd_short",
    "shopify_token": "shpat_short",
    "square_token": "sq0atp-short",
    "postman_key": "PMAK-short",
    "newrelic_key": "NRAK-short",
    "grafana_token": "glc_short",
    "sentry_token": "sntrys_short",
    "vault_token": "hvs.short",
    "doppler_token": "dp.pt.short",
    "pulumi_token": "pul-short",
    "planetscale_token": "pscale_tkn_short",
    "supabase_token": "sbp_short",
    "atlassian_token": "ATATT3short",
    "onepassword_token": "ops_eyJshort",
    "tailscale_key": "tskey-auth-short",
    "netlify_token": "nfp_short",
    "alibaba_key": "LTAIshort",
    "jwt": "eyJhbGciOiJIUzI1NiJ9 alone is a header",
    "bearer": "Bearer authentication-is-required here",
    "basic_auth": "Basic understanding of Basic authentication",
    "url_password": "https://example.com:8080/a and git@example.com:a/b",
}


def hidden_part(reason: str) -> str:
    """The part of a sample that must not be seen anywhere; the rest may name its issuer."""
    sample = SECRETS[reason]
    match reason:
        case "url_password":
            return "Tr0ub4dor"
        case "basic_auth":
            return sample.split(" ")[1]
        case "private_key":
            return sample.splitlines()[1]
        case "azure_storage_key":
            return sample.partition("=")[2]
        case "azure_sas":
            return sample[-40:]
        case "aws_secret_key" | "slack_webhook" | "discord_webhook" | "bearer":
            return sample[-24:]
        case _:
            return sample
