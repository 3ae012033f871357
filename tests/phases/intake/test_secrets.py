"""Secrets are gone before anything is stored; what is no secret stays as it was."""

# ruff: noqa: E501 - tables and scripts read best with one case a line

from __future__ import annotations

import string
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phases.intake import secrets
from tests.phases.intake.making import (
    AWS,
    GITHUB,
    PEM,
    PEM_BODY,
    SLACK,
    folder,
    intake,
    report,
    request,
    write,
)

DRAWN = "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW1xY2zA3bC4dE5fG6hI7jK8lM9nO0pQ1rS2tU3vW4xY5zA6bC7dE8fG9hI0"
KEYS = {
    "aws_access_key": AWS,
    "github_token": GITHUB,
    "github_token 2": "github_pat_" + DRAWN[:22] + "_" + DRAWN[:59],
    "gitlab_token": "glpat-" + DRAWN[:20],
    "slack_token": SLACK,
    "slack_webhook": "https://hooks.slack.com/services/" + "T012AB3CD/B045EF6GH/" + DRAWN[:24],
    "google_api_key": "AIza" + DRAWN[:35],
    "google_oauth_token": "ya29." + DRAWN[:60],
    "google_client_secret": "GOCSPX-" + DRAWN[:28],
    "anthropic_key": "sk-ant-" + "api03-" + DRAWN[:80],
    "openai_key": "sk-" + DRAWN[:48],
    "openai_key 2": "sk-proj-" + DRAWN[:64],
    "stripe_key": "sk_live_" + DRAWN[:24],
    "jwt": "eyJ" + DRAWN[:20] + ".eyJ" + DRAWN[5:40] + "." + DRAWN[:43],
    "npm_token": "npm_" + DRAWN[:36],
    "pypi_token": "pypi-" + "AgEIcHlwaS5vcmc" + DRAWN[:60],
    "sendgrid_key": "SG." + DRAWN[:22] + "." + DRAWN[:43],
    "huggingface_token": "hf_" + (string.ascii_letters * 2)[3:37],
    "digitalocean_token": "dop_v1_" + "0123456789abcdef" * 4,
    "shopify_token": "shpat_" + "0123456789abcdef" * 2,
    "vault_token": "hvs." + DRAWN + DRAWN[:10],
    "azure_storage_key": "AccountKey=" + DRAWN[:86] + "==",
    "telegram_token": "123456789:AA" + DRAWN[:20] + "_" + DRAWN[:12],
    "age_key": "AGE-SECRET-KEY-1" + (DRAWN.upper())[:58],
}
SPOKEN = {
    "password=hunter2 in": "hunter2",
    "PASSWORD: Tr0ub4dor&3": "Tr0ub4dor",
    '{"password": "correct horse"}': "correct horse",
    "{'db_passwd': 'geheim99'}": "geheim99",
    "token: 8f14e45fceea167a": "8f14e45fceea167a",
    "api_key=9b2e77af01": "9b2e77af01",
    "CLIENT_SECRET='zX81kk20pq'": "zX81kk20pq",
    "Authorization: Bearer abc123def456ghi": "abc123def456ghi",
    "authorization: Basic dXNlcjpnZWhlaW0=": "dXNlcjpnZWhlaW0=",
    "postgres://app:s3kr3t@db:5432/x": "s3kr3t",
    "Cookie: sessionid=ab12cd34ef56": "ab12cd34ef56",
    "Cookie: theme=dark; auth=qwertzuiop": "qwertzuiop",
    "Set-Cookie: sid=abcdefgh; Path=/; HttpOnly": "abcdefgh",
    'set-cookie: a="quoted; value"; b=second': "second",
    '{"Cookie": "remember=abcdefgh"}': "abcdefgh",
    "curl -H 'cookie: remember=abcdefgh' https://example.org": "abcdefgh",
    "$ curl -s -u alice:wonderland https://example.org/x": "wonderland",
    "curl -X POST -fsSu 'alice:wonder land' https://example.org": "wonder land",
    "curl https://example.org --user=alice:wonderland": "wonderland",
    "curl --user alice:wonderland https://example.org": "wonderland",
    "<password>open sesame</password>": "open sesame",
    '<db.Password type="text">sesame</db.Password>': "sesame",
    "<ns:passwd><![CDATA[sesame]]></ns:passwd>": "sesame",
    "password: opensesame": "opensesame",
    "Passwort: SommerRegen!": "SommerRegen",
    "Kennwort: sommer(regen)x": "regen",
    "pwd: letmein, then": "letmein",
    "db_password => swordfish": "swordfish",
}
NOT_SECRET = [
    "password=password", "http://user:pass@proxy:3128", "password: the one you chose", "Unexpected token: IDENTIFIER",
    "token: None", "token = next(tokens)", "http://batch:<password>@proxy", "AKIA" + "X" * 16, "AKIAIOSFODNN7" + "EXAMPLE",
    "ghp_" + "x" * 36, "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----", "password=${DB_PASSWORD}",
    "password=[secret:password]", "sk-" + "a" * 48, "the bearer of this letter", "https://example.org:8080/a@b", "secret: yes",
    "AKIA1234", "eyJhbGciOiJIUzI1NiJ9.x.y", "Author: someone@example.org", "std::string auth: required",
    "Cookie: too large", "the cookie: it was gone", "Cookie: [secret:cookie]", "curl -u http://x.example/y", "docker run -u 1000:1000 x",
    "curl -u alice:$PASSWORD https://x.example", "<password></password>", "<password>********</password>", "use <password> here",
    "password: string", "Password: required.", "password: Optional[str]", "pwd: /home/alice/app", "Passwort: falsch!",
    "password: ${DB_PASSWORD}", "password: <your password>", "password: ********", "Passwort: ungültig",
]  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_in_source_is_masked_at_equal_length(kind: str) -> None:
    key = KEYS[kind]
    line = f'KEY = "{key}"  # zürich\n'.encode()
    cleaned = secrets.mask(b"first\n" + line + b"last\n")
    assert [hit.kind for hit in cleaned.hits] == [kind.split()[0]]
    assert key[-12:].encode() not in cleaned.data
    assert len(cleaned.data) == len(b"first\n" + line + b"last\n")
    assert cleaned.data.endswith('"  # zürich\nlast\n'.encode())
    assert cleaned.hits[0].line == 2
    assert secrets.mask(cleaned.data) == (cleaned.data, ())  # masked is masked


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_in_a_report_becomes_a_marker(kind: str) -> None:
    cleaned = secrets.mark(f"we used {KEYS[kind]}, then".encode())
    name = kind.split()[0]
    assert f"[secret:{name}]".encode() in cleaned.data
    assert cleaned.data.endswith(b", then")
    assert secrets.mark(cleaned.data) == (cleaned.data, ())


@pytest.mark.parametrize("said", SPOKEN)
def test_what_context_tells_is_replaced_in_prose_and_left_in_source(said: str) -> None:
    data = f"a\n  {said}\nb\n".encode()
    cleaned = secrets.mark(data)
    assert len(cleaned.hits) == 1
    assert cleaned.hits[0].line == 2
    assert SPOKEN[said].encode() not in cleaned.data
    assert cleaned.data.count(b"\n") == 3
    assert secrets.mask(data) == (data, ())


@pytest.mark.parametrize("said", NOT_SECRET)
def test_what_is_no_secret_stays(said: str) -> None:
    assert secrets.mark(said.encode()) == (said.encode(), ())


@pytest.mark.parametrize("before", ["", "2025-01-01 INFO key: ", "    ", '"'])
def test_a_private_key_loses_its_body_and_keeps_its_lines(before: str) -> None:
    data = "".join(before + line + "\n" for line in PEM.splitlines()).encode()
    for clean in (secrets.mark, secrets.mask):
        cleaned = clean(data)
        assert [hit.kind for hit in cleaned.hits] == ["private_key"]
        assert PEM_BODY[:16].encode() not in cleaned.data
        assert b"BEGIN PRIVATE KEY" in cleaned.data
        assert cleaned.data.count(b"\n") == data.count(b"\n")


def test_a_private_key_in_a_string_keeps_its_escapes() -> None:
    data = ("KEY = '" + PEM.replace("\n", "\\n") + "'\n").encode()
    masked = secrets.mask(data).data
    assert masked.count(b"\\n") == data.count(b"\\n")
    assert len(masked) == len(data)
    compile(masked, "x", "exec")


def test_a_password_on_a_line_of_its_own_keeps_the_lines() -> None:
    data = (
        b"<password>\n  open sesame\n</password>\ncurl \\\n  -u alice:wonderland \\\n  https://x\n"
    )
    marker = b"[secret:password]"
    expected = data.replace(b"open sesame", marker).replace(b"wonderland", marker)
    assert secrets.mark(data).data == expected
    assert [hit.line for hit in secrets.mark(data).hits] == [2, 5]


@pytest.mark.parametrize(
    "piece",
    ["curl ", "<password ", "<password>x", "Cookie: a=", 'cookie: a="', "password: ", "curl -u a:"],
)
def test_a_long_line_of_beginnings_is_no_slower_than_its_length(piece: str) -> None:
    def seconds(size: int) -> float:
        data = (piece * (size // len(piece))).encode()
        begin = time.perf_counter()
        secrets.mark(data)
        return time.perf_counter() - begin

    seconds(1000)
    assert seconds(1 << 21) < 100 * max(seconds(1 << 17), 0.01)  # 16 times the text, or 256


def test_a_cut_off_private_key_is_replaced_too() -> None:
    cleaned = secrets.mark(PEM[:120].encode() + b"\nand the log goes on\n")
    assert PEM_BODY[:16].encode() not in cleaned.data
    assert cleaned.data.endswith(b"log goes on\n")


def test_lines_end_as_everywhere_in_a_case() -> None:
    data = f"a\r\nb\rc\n\x0c{AWS}\r{AWS}\r\n {GITHUB}".encode()
    assert [(h.line, h.column) for h in secrets.mask(data).hits] == [(4, 2), (5, 1), (6, 2)]


def test_places_are_lines_and_character_columns() -> None:
    data = f"ä {AWS} ö {GITHUB}\nü {AWS}".encode()
    assert [(h.line, h.column) for h in secrets.mask(data).hits] == [(1, 3), (1, 26), (2, 3)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "latin-1", "cp932"])
def test_any_encoding_stays_the_encoding_it_was(encoding: str) -> None:
    data = f"x = '{AWS}'\n".encode(encoding)
    cleaned = secrets.in_encoding(data, encoding, secrets.mask)
    assert AWS not in cleaned.data.decode(encoding)
    assert len(cleaned.data) == len(data)
    assert cleaned.hits[0][1:] == (1, 6)


@given(
    st.lists(
        st.sampled_from([*KEYS.values(), *SPOKEN, *NOT_SECRET, PEM, "\n", " ", "ü", "="]),
        max_size=12,
    )
)
def test_lines_stay_lines_and_no_key_survives(pieces: list[str]) -> None:
    data = " ".join(pieces).encode()
    marked, masked = secrets.mark(data).data, secrets.mask(data).data
    assert marked.count(b"\n") == masked.count(b"\n") == data.count(b"\n")
    assert [len(line) for line in masked.split(b"\n")] == [len(line) for line in data.split(b"\n")]
    for name in ("aws_access_key", "github_token", "npm_token"):
        assert KEYS[name].encode() not in marked
        assert KEYS[name].encode() not in masked


def test_every_replacement_is_an_event_without_the_value(tmp_path: Path) -> None:
    source = folder(tmp_path, keys__py=f"A = '{AWS}'\nB = '{AWS}'\nC = '{GITHUB}'\n")
    result = intake(
        request(
            tmp_path,
            source,
            report=report(tmp_path, f"# It fails\n\nwith password=hunter2 and {AWS}\n"),
            logs=(write(tmp_path / "a.log", f"INFO Bearer {DRAWN[:30]}\n"),),
            observations=(f"token={GITHUB}",),
        )
    )
    found = [(e.artifact, e.kind, e.count, e.path) for e in result.secrets()]
    assert found == [
        ("S1", "aws_access_key", 1, ""), ("S1", "password", 1, ""),
        ("S2", "aws_access_key", 2, "keys.py"), ("S2", "github_token", 1, "keys.py"),
        ("S3", "bearer_token", 1, ""), ("S4", "github_token", 1, ""),
    ]  # fmt: skip
    assert result.secrets()[2].places == ({"line": 1, "column": 6}, {"line": 2, "column": 6})
    everything = b"".join(result.payloads.values()) + repr(result.events).encode()
    for value in (AWS, GITHUB, "hunter2", DRAWN[:30]):
        assert value.encode() not in everything
    assert any("secrets replaced, github_token: 2" in line for line in result.summary.render())


def test_secrets_are_kept_on_request_and_it_is_said(tmp_path: Path) -> None:
    source = folder(tmp_path, keys__py=f"A = '{AWS}'\n")
    result = intake(request(tmp_path, source, keep_secrets=True))
    assert AWS.encode() in result.file("keys.py")
    assert not result.secrets()
    assert result.one("source").provenance["secrets"] == "kept"
