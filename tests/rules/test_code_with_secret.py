"""What of a code mount is somebody's secret, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.rules import check_plan

from tests.jobs import plan_with

BODY = "MC4CAQAwBQYDK2VwBCIEIDs6Ojo6Ojo6Ojo6Ojo6Ojo6Ojo6Ojo6Ojo6Ojo6Ojo6\n"
LETTERS = "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgHiJkLmN"
SECRETS = {
    ".env": "TOKEN=abc\n",
    "conf/.env.production": "TOKEN=abc\n",
    "id_ed25519": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}",
    "deploy.pem": f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{BODY}",
    "key.py": f'KEY = """-----BEGIN PRIVATE KEY-----\n{BODY}-----END PRIVATE KEY-----"""\n',
    ".netrc": "machine example.org password a\n",
    ".aws/credentials": "[default]\n",
    "login.py": f'login(token="hf_{LETTERS[:34]}")\n',
    "push.sh": f"git push https://ghp_{LETTERS[:36]}@github.com/a/b\n",
}
NONE = {
    ".env.example": "TOKEN=abc\n",
    ".env": "",
    "public.pem": f"-----BEGIN CERTIFICATE-----\n{BODY}",
    "keys.pub": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDs6Ojo6Ojo6Ojo6Ojo6Ojo6Ojo6Ojo6\n",
    "find_keys.py": 'return text.startswith("-----BEGIN PRIVATE KEY-----")\n',
    "tokens.txt": "<unk> <s> </s>\n",
    "credentials.py": "class Credentials: ...\n",
    "login.py": f'login(token="hf_{"x" * 34}")  # or $HF_TOKEN\n',
    "aws.py": 'KEY = "AKIAIOSFODNN7EXAMPLE"\n',
    "environment.env.py": "A = 1\n",
}


def said(folder: Path, name: str, text: str) -> list[str]:
    """Return what is said of a code mount with one such file."""
    file = folder / "src" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    code = {"type": "code", "source": "./src", "target": "/workspace"}
    plan = plan_with(folder, "kubernetes", mounts=[code], resources={"cpus": 1, "memory": "4Gi"})
    return [each.message for each in check_plan(plan) if each.code == "TL214"]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_in_code_is_named(tmp_path: Path, name: str) -> None:
    """A ConfigMap, and the rendering that holds it, are read by many."""
    (message,) = said(tmp_path, name, SECRETS[name])
    assert message.startswith(f"./src holds a secret in {name}")
    assert "abc" not in message


@pytest.mark.parametrize("name", NONE)
def test_what_looks_like_a_secret_is_none(tmp_path: Path, name: str) -> None:
    """A warning that is wrong is read once."""
    assert said(tmp_path, name, NONE[name]) == []
