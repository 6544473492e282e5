"""Detection of secrets, measured on a labelled corpus. Secrets are made from templates, so that none is in this file."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.guard.detection import core, detect, unescape
from moot.guard.secrets import SHAPES

SETS = {
    "an": string.ascii_letters + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "url": string.ascii_letters + string.digits + "-_",
    "hex": "0123456789abcdef",
    "up": string.ascii_uppercase + string.digits,
    "d": string.digits,
    "pw": string.ascii_letters + string.digits + "!%^*+",
}
SECRETS = (
    # keys and tokens with a shape of their own, in the places where agents meet them
    "export ANTHROPIC_API_KEY=<sk-ant-api03-{url:80}AA>",
    "ANTHROPIC_API_KEY='<sk-ant-oat01-{url:86}AA>'",
    "the key <sk-proj-{an:48}> is in the file",
    'client = OpenAI(api_key="<sk-{an:48}>")',
    "OPENROUTER_API_KEY: <sk-or-v1-{hex:64}>",
    "DEEPSEEK_API_KEY=<sk-{hex:32}>",
    "git clone https://<ghp_{an:36}>@github.com/me/app.git",
    "GH_TOKEN=<gho_{an:36}> gh pr list",
    "https://x-access-token:<ghs_{an:36}>@github.com/me/app",
    "<github_pat_{an:22}_{an:59}>",
    "glab auth login --token <glpat-{url:20}>",
    "aws_access_key_id = <AKIA{up:16}>",
    "AWS_ACCESS_KEY_ID=<ASIA{up:16}>\nAWS_REGION=eu-west-1",
    "aws_secret_access_key = <{b64:40}>",
    '"SecretAccessKey": "<{b64:40}>",',
    "curl -H 'Authorization: Bearer <xoxb-{d:12}-{d:13}-{an:24}>' https://slack.com/api/chat.postMessage",
    "SLACK_APP=<xapp-1-A{up:10}-{d:13}-{hex:64}>",
    "curl -X POST https://<hooks.slack.com/services/T{up:8}/B{up:10}/{an:24}>",
    "https://<discord.com/api/webhooks/{d:18}/{url:68}>",
    'apiKey: "<AIza{url:35}>",',
    '{"access_token": "<ya29.{url:120}>", "expires_in": 3599}',
    "client_secret=<GOCSPX-{url:28}>",
    "HF_TOKEN=<hf_{an:34}>",
    "GROQ_API_KEY=<gsk_{an:52}>",
    "XAI_API_KEY=<xai-{an:80}>",
    "PPLX=<pplx-{an:48}>",
    "REPLICATE_API_TOKEN=<r8_{an:37}>",
    "TAVILY_API_KEY=<tvly-dev-{an:32}>",
    "//registry.npmjs.org/:_authToken=<npm_{an:36}>",
    "password = <pypi-AgEIcHlwaS5vcmc{url:120}>",
    "docker login -u me -p <dckr_pat_{url:27}>",
    "doctl auth init -t <dop_v1_{hex:64}>",
    "SENDGRID_API_KEY=<SG.{url:22}.{url:43}>",
    "STRIPE_SECRET_KEY=<sk_live_{an:24}>",
    "stripe listen: your signing secret is <whsec_{an:32}>",
    "<shpat_{hex:32}>",
    "LINEAR_API_KEY=<lin_api_{an:40}>",
    "NOTION_TOKEN=<ntn_{d:11}{an:35}>",
    "X-Figma-Token: <figd_{url:40}>",
    "DATABRICKS_TOKEN=<dapi{hex:32}>",
    "VAULT_TOKEN=<hvs.{url:90}>",
    "GRAFANA_TOKEN=<glsa_{an:32}_{hex:8}>",
    "SUPABASE_ACCESS_TOKEN=<sbp_{hex:40}>",
    "LANGSMITH_API_KEY=<lsv2_pt_{hex:32}_{hex:10}>",
    "ATLASSIAN_TOKEN=<ATATT3xFfGF0{url:180}>",
    "BRAVE_KEY=<BSA{url:28}>",
    "X-API-Key: <PMAK-{hex:24}-{hex:34}>",
    "SENTRY_AUTH=<sntryu_{hex:64}>",
    "<AGE-SECRET-KEY-1{up:58}>",
    "moot web: sign in with <moot_{url:43}>",
    "https://api.telegram.org/bot<{d:10}:AA{url:33}>/getMe",
    "client.run('<MTk4{an:20}.{url:6}.{url:38}>')",
    "Cookie: session=<{jwt}>",
    'Authorization: Bearer <{jwt}>"',
    # in other encodings and after escape sequences
    '{"text":"first line\\nghp: <ghp_{an:36}>\\nnext"}',
    '{"arguments":"{\\"api_key\\":\\"<sk-{an:48}>\\"}"}',
    "stdout: line\\n<AKIA{up:16}>\\nline",
    "https://example.org/login?next=%2Fkey%3D<AKIA{up:16}>",
    # private keys
    "<-----BEGIN RSA PRIVATE KEY-----\n{pem:12}\n-----END RSA PRIVATE KEY----->",
    "key: |\n<-----BEGIN OPENSSH PRIVATE KEY-----\n{pem:6}\n-----END OPENSSH PRIVATE KEY----->\n",
    '"private_key": "<-----BEGIN PRIVATE KEY-----\\n{jsonpem:10}\\n-----END PRIVATE KEY----->\\n"',
    "    1→<-----BEGIN EC PRIVATE KEY-----\n{numbered:4}\n    6→-----END EC PRIVATE KEY----->",
    "<-----BEGIN RSA PRIVATE KEY-----\n{pem:8}>\n[output cut]",
    # values that only their name gives away
    "DB_PASSWORD=<{pw:16}>",
    'password: "<{pw:12}>"',
    "spring.datasource.password=<{pw:14}9a>",
    "POSTGRES_PASSWORD: <{pw:10}x7>",
    'JWT_SECRET="<{hex:64}>"',
    "SECRET_KEY = '<{an:50}>'",
    "DJANGO_SECRET_KEY=<{an:50}>",
    '"clientSecret": "<{an:8}~{an:32}>"',
    "x-api-key: <{an:40}>",
    "DATADOG_API_KEY=<{hex:32}>",
    "auth_token: <{an:32}>",
    "mytool --password <{pw:14}3b> --user me",
    "mytool --api-key=<{an:32}>",
    "https://api.example.org/v1/items?access_token=<{an:40}>&page=2",
    "encryption_key: <{b64:43}=>",
    "AccountKey=<{b64:86}==>;EndpointSuffix=core.windows.net",
    # passwords in URLs and headers
    "postgres://app:<{pw:12}4z>@db.internal:5432/app",
    "DATABASE_URL=mysql://root:<{an:18}>@10.0.0.5/shop",
    "redis://:<{an:24}>@cache:6379/0",
    "mongodb+srv://me:<{pw:16}>@cluster0.abcde.mongodb.net/",
    "curl -u admin:<{pw:12}7q> https://ci.internal/job",
    "Authorization: Basic <{basic}>",
    "Authorization: Bearer <{an:40}>",
)
HARMLESS = (
    # examples and placeholders of documentation
    "AKIAIOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "OPENAI_API_KEY=sk-...",
    "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ANTHROPIC_API_KEY=sk-ant-your-key-here-0123",
    "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_1234567890abcdefghijklmnopqrstuvwxyz",
    "sk-abcdefghijklmnopqrstuvwxyz0123456789",
    "sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "api_key: YOUR_API_KEY_GOES_HERE_123",
    'api_key="<your-api-key>"',
    "password: ${DB_PASSWORD}",
    "PASSWORD=$(pass show db)",
    "password: {{ vault_db_password }}",
    "token: %s",
    "TOKEN=REDACTED_TOKEN_1234567",
    "secret: [redacted]",
    "password=changeme123",
    "DB_PASSWORD=password123",
    "POSTGRES_PASSWORD=postgres",
    "postgres://user:password@localhost:5432/db",
    "postgres://postgres:postgres@localhost/app",
    "amqp://guest:guest@localhost:5672//",
    "postgres://$USER:$PASSWORD@$HOST/db",
    "https://{user}:{password}@{host}/",
    "https://user:***@example.org/",
    "xoxb-your-token-here",
    "Authorization: Bearer <token>",
    "Authorization: Bearer YOUR_ACCESS_TOKEN_123",
    "Authorization: Bearer $TOKEN",
    "Authorization: Basic dXNlcjpwYXNzd29yZA==",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
    + ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIE<your key here>\n-----END PRIVATE KEY-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo\n-----END PUBLIC KEY-----",
    "grep -r 'BEGIN RSA PRIVATE KEY' .",
    # hashes, ids and encoded data
    "550e8400-e29b-41d4-a716-446655440000",
    "token: 550e8400-e29b-41d4-a716-446655440000",
    "commit 7a95ff70c2d0bd83b0300a6273f1abff3674df98",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "integrity sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==",
    'etag: W/"33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "password_hash = $2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW",
    "token_hash: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    '"signature": "EqQBCkYIBxgCKkDh3pQ7Zk8mV2n9Xw4cRb1sTf6uYj0aLe5oGiHqKdPvMxWzBnCrSt"',
    '"encrypted_content": "gAAAAABoZ3kq8Xv2mN7pRt5wYc1bJh4dKf9gLs6aQe0uTi3oVn8xZrMyWk"',
    "msg_01XFDUDYJgAACzvnptvVoYEL toolu_01A09q90qw90lq917835lq9 chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    "req_011CSHoEeqs5C35K2UUqR7Fy",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIbJKZVjc9y5XQ2WzFhYk3mV8nR4tLpG7sDq1eUaXoBi me@host",
    "0x742d35Cc6634C0532925a3b844Bc454e4438f44e",
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf",
    "1Password item 4d3q5wz7yhgk2vb6xj8ntmrclp",
    "nextPageToken: CAUQAA3fR8sT5kV9xZ2mB7nQ",
    '"continuation_token": "4f3a9c8b7e6d5a4b3c2d1e0f9a8b7c6d"',
    "csrf_token=IjA4ZTc1NmM4MzY5NDRkZjk4NmY5ODU5YjQ3",
    "idempotency-key: 8e03978e-40d5-43e8-bc93-6894a57f9324",
    "public_key: 3Kf9sT5vX8zB2mN7qR4wY6cJ1dH0gL",
    # names of secrets in code, types and prose
    '"input_tokens": 123456, "output_tokens": 789012, "max_tokens": 4096000',
    "tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased-2019x1')",
    "password = getpass.getpass()",
    "password: str | None = None",
    "def login(user: str, password: str) -> Token:",
    "self.password = config.password1",
    "token = request.headers['authorization']",
    "const apiKey = process.env.OPENAI_API_KEY;",
    'api_key=os.environ["OPENAI_API_KEY2"]',
    "secret = generate_secret32(length)",
    "password=form_password2",
    "Enter password: incorrect",
    "Password: must have at least 12 characters",
    "the secret: never give up",
    "error: token expired at 2026-01-31T18:00:00Z",
    "token_type: bearer, expires_in: 3600s00",
    "secretName: my-app-credentials-v2",
    "secret_id: projects/123/secrets/db/versions/4",
    "API_KEY_FILE=/run/secrets/api_key2",
    "--password-stdin registry1.example.org",
    "docker run -u 1000:1000000 image",
    "access_key_path: ~/.config/app/key1.pem",
    "credentials: same-origin, include2",
    "key: claude-3-5-sonnet-20241022",
    "model_api_key_env: ANTHROPIC_API_KEY_2",
    "task-list-2024-complete-overview-of-everything sk-learn-tutorial-2024-part-one",
    "disk-usage-report-2024 risk-assessment-2025-final-version",
    "hf_hub_download_2024 npm_config_registry_url_and_more_settings_1",
    "https://example.org/a:b@c https://host:8080/@scope/package@1.2.3",
    "git@github.com:me/app.git ssh://git@github.com:22/me/app",
    "see http://[::1]:4747/docs and mailto:me@example.org",
    "SG.Utils.Formatting.Helpers and ya29 and hvs.module",
    "MTIzNDU2Nzg5.README.configuration-of-the-program",
    "12345678:ABC is no bot",
    "AKIA is the prefix of access keys, AIza that of Google's",
    "import { sk_live_mode } from './stripe'",
    "bearer tokens are sent in the authorization header",
    "basic authentication is not supported here",
)


def _filled(template: str, seed: int) -> tuple[str, str]:
    """Return the text and the secret in it."""
    letters = random.Random(f"{seed} {template}")

    def some(kind: str, count: int) -> str:
        if kind in ("pem", "jsonpem", "numbered"):
            lines = [some("b64", 64) for _ in range(count)]
            numbered = [f"{number:>5}→{line}" for number, line in enumerate(lines, 2)]
            return "\n".join(numbered) if kind == "numbered" else {"pem": "\n", "jsonpem": "\\n"}[kind].join(lines)
        if kind == "jwt":
            head, claims = ({"alg": "HS256", "typ": "JWT"}, {"sub": some("an", 12), "iat": 1764000000})
            coded = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (head, claims)]
            return ".".join([*coded, some("url", 43)])
        if kind == "basic":
            return base64.b64encode(f"me:{some('an', 14)}1x".encode()).decode()
        return "".join(letters.choices(SETS[kind], k=count))

    text = re.sub(r"\{(\w+)(?::(\d+))?\}(?![\"}])", lambda match: some(match[1], int(match[2] or 0)), template)
    begin, end = text.index("<"), text.rindex(">")
    return text[:begin] + text[begin + 1 : end] + text[end + 1 :], text[begin + 1 : end]


def _found(text: str) -> list[str]:
    data = unescape(text.encode())
    return [data[one.begin : one.end].decode() for one in detect(data)]


def test_precision_and_recall_on_the_labelled_corpus():
    filled = [_filled(template, seed) for seed in range(20) for template in SECRETS]
    missed = [text for text, secret in filled if _found(text) != [unescape(b'{"' + secret.encode() + b'"}')[2:-2].decode()]]
    assert len(missed) <= len(filled) * 0.005, missed  # random letters may look like words
    assert [text for text in HARMLESS if _found(text)] == []


@pytest.mark.parametrize("kind", sorted({shape.kind for shape in SHAPES}))
def test_each_kind_of_key_is_in_the_corpus(kind: str):
    found = {one.kind for template in SECRETS for one in detect(unescape(_filled(template, 1)[0].encode()))}
    assert kind in found - {"private key", "named secret", "password", "password in a URL", "authorization header"}


def test_keys_are_found_next_to_each_other_and_once():
    first, second = (_filled("<ghp_{an:36}>", seed)[1] for seed in (1, 2))
    assert _found(f"TOKEN={first}, token={second};{first}") == [first, second, first]


def test_a_private_key_has_one_core_in_all_spellings():
    plain = _filled("<-----BEGIN RSA PRIVATE KEY-----\n{pem:3}\n-----END RSA PRIVATE KEY----->", 3)[1]
    lines = plain.split("\n")
    spellings = [
        plain,
        "\\n".join(lines),
        "\r\n".join(lines),
        "\n    ".join(lines),
        "\n".join(f"{n}→{line}" for n, line in enumerate(lines)),
    ]
    found = {core(spelling.encode()[one.begin : one.end]) for spelling in spellings for one in detect(spelling.encode())}
    assert found == {"".join(lines[1:-1]).encode()}


def test_only_json_is_unescaped():
    assert unescape(rb'{"a":"C:\\new\n\u0041\u003d\/"}') == b'{"a":"C:\\new\nA=/"}'
    assert unescape(rb"C:\new") == rb"C:\new"
    assert unescape(rb'data: {"a":"x\ty"}') == b'data: {"a":"x\ty"}'


@given(st.binary())
def test_any_bytes_can_be_searched(data: bytes):
    for one in detect(data):
        assert 0 <= one.begin < one.end <= len(data)
    unescape(b"{" + data)


@pytest.mark.parametrize(
    "piece",
    (
        *(
            "a",
            "sk-",
            "eyJ",
            "eyJhbGciOiJIUzI1NiJ9.",
            "-----BEGIN PRIVATE KEY-----",
            "a-",
            "token ",
            "x://",
            "://a:b",
            "secret=",
            "Bearer ",
        ),
        *("1:A", "api_key= ", "_key", "curl -u", "-u a:b", "A/", "MTk4", "password='", "%3D", "\\n", "\\", "secret:", "basic abcd"),
    ),
)
@pytest.mark.slow
def test_the_time_is_linear(piece: str):
    begun = time.process_time()
    detect(piece.encode() * (300_000 // len(piece)))
    assert time.process_time() - begun < 15
