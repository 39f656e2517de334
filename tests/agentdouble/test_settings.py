from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from pydantic import Field
from pydantic.fields import FieldInfo

from agentdouble import Emulator
from agentdouble.cli.serving import read_faults
from agentdouble.errors import SettingsError
from agentdouble.settings import OnNodes, Settings

pytestmark = pytest.mark.smoke

SECRET = "hunter2hunter2"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a working directory without a settings file."""
    monkeypatch.chdir(tmp_path)


def refusal(**values: object) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        Settings.load(**values)
    return caught.value


def test_arguments_override_environment_and_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first source with a setting wins; the file is agentdouble.toml."""
    Path("agentdouble.toml").write_text("port = 1\nexec_timeout_s = 1\nmax_instances = 1\n")
    monkeypatch.setenv("AGENTDOUBLE_PORT", "2")
    monkeypatch.setenv("AGENTDOUBLE_EXEC_TIMEOUT_S", "2")

    settings = Settings.load(port=3)

    assert (3, 2, 1) == (settings.port, settings.exec_timeout_s, settings.max_instances)


def test_the_environment_can_name_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """AGENTDOUBLE_CONFIG itself is not a setting."""
    Path("other.toml").write_text("port = 9\n")
    monkeypatch.setenv("AGENTDOUBLE_CONFIG", "other.toml")

    assert 9 == Settings.load().port


def test_an_unknown_argument_suggests_the_nearest() -> None:
    error = refusal(max_instance=1)

    assert (
        "Unknown setting in the arguments: max_instance. Did you mean max_instances?",
        "max_instance",
        "the arguments",
    ) == (str(error), error.key, error.source)


DEEP, LONG = b"x = " + b"[" * 5000, b"x = " + b"9" * 5000


@pytest.mark.parametrize("content", [b"port = ", b"\xff", DEEP, LONG], ids=len)
def test_an_unreadable_file_is_named(content: bytes, tmp_path: Path) -> None:
    """The error for invalid TOML or text names the path."""
    file = tmp_path / "broken.toml"
    file.write_bytes(content)

    with pytest.raises(SettingsError, match=r"broken\.toml cannot be read"):
        Settings.load(file)


@pytest.mark.parametrize("content", [DEEP, LONG], ids=len)
def test_an_unreadable_profile_or_file_of_faults_is_named(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)

    with pytest.raises(SettingsError, match=r"broken\.toml cannot be read"):
        Settings.load(profile=file)
    with pytest.raises(SettingsError, match=r"broken\.toml cannot be read"):
        read_faults(file)


def test_a_variable_nested_too_deeply_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTDOUBLE_FAULTS", "[" * 100_000)

    with pytest.raises(SettingsError, match="AGENTDOUBLE_FAULTS"):
        Settings.load()


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ('isolation = "none"', 'isolation = "none"'),
        ('allow_origins = ["*"]', 'allow_origins = ["*"]'),
        ('allow_hosts = ["a.example"]', 'allow_hosts = ["a.example"]'),
        ('visible_paths = ["/home"]', 'visible_paths = ["/home"]'),
        ("check_signatures = false", "check_signatures = false"),
        ('host = "0.0.0.0"\napi_key = "k"', 'host = "0.0.0.0"'),
        ("insecure = true\nport = 0", "insecure = true"),
    ],
)
def test_a_file_that_lowers_protection_is_named_at_the_start(
    setting: str,
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Such a file may have come with the files of the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agentdouble.toml").write_text(setting)

    with Emulator(pool_size=0):
        pass

    named = [record.getMessage() for record in caplog.records if "lowers" in record.getMessage()]
    file = tmp_path / "agentdouble.toml"
    assert [f"The settings file {file} lowers the protection of this double: {shown}."] == named


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not preload")
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "Cannot import the module 'wrong' of the setting preload: ModuleNotFoundError: "),
        ("1 / 0", "Cannot import the module 'wrong' of the setting preload: ZeroDivisionError: "),
        ("exit(3)", "Cannot import the module 'wrong' of the setting preload: SystemExit: 3"),
        ("import os; os._exit(3)", "A module ended Python with status 3"),
    ],
)
def test_a_preload_that_fails_is_refused_at_the_start(
    source: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each session would fail."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    if source is not None:
        (tmp_path / "wrong.py").write_text(source)

    with pytest.raises(SettingsError, match=re.escape(reason)) as refused:
        Emulator(preload=("json", "wrong"))

    assert "preload" == refused.value.key


def test_a_file_that_lowers_nothing_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments and the environment take precedence, and are of the user."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agentdouble.toml").write_text('isolation = "none"\nallow_origins = []')

    assert "" == Settings.load(isolation="auto").lowered_by
    monkeypatch.setenv("AGENTDOUBLE_ISOLATION", "auto")
    assert "" == Settings.load().lowered_by


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("port", 65536),
        ("port", "http"),
        ("body_limit", 0),
        ("session_ttl_s", 0),
        ("tool_id", "sandbox"),
        ("api_key", ""),
        ("secret_key", ""),
        ("access_key", ""),
        ("access_key", "a/b"),
        ("access_key", "a b"),
        ("access_key", "schlüssel"),
        ("keys", "k"),
        ("start_timeout_s", 0),
        ("max_instances", 0),
    ],
)
def test_an_invalid_value_names_the_setting_and_its_source(key: str, value: object) -> None:
    error = refusal(**{key: value})

    assert (key, "the arguments") == (error.key, error.source)
    assert str(error).startswith(f"The setting {key} from the arguments ")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"access_key": "a,b"}, "keys.0.access_key"),
        ({"access_key": None}, "keys.0.access_key"),
        ({"secret_key": ""}, "keys.0.secret_key"),
        ({"session_token": ""}, "keys.0.session_token"),
        ({"session_token": "a b"}, "keys.0.session_token"),
        ({"session_token": "a\r\nb"}, "keys.0.session_token"),
        ({"session_token": "é"}, "keys.0.session_token"),
        ({"full_access": "perhaps"}, "keys.0.full_access"),
        ({"full-access": True}, "keys.0.full-access"),
        ({"access_key": "own"}, "keys"),
    ],
)
def test_an_invalid_key_pair_is_refused(changes: dict[str, object], key: str) -> None:
    """The error has the field's location and hides secrets."""
    pair = {"access_key": "AK", "secret_key": SECRET, **changes}

    error = refusal(access_key="own", keys=[pair])

    assert key == error.key
    assert SECRET not in str(error)


def test_access_keys_of_key_pairs_must_differ() -> None:
    """The access key decides which pair signed a request."""
    pair = {"access_key": "AK", "secret_key": SECRET}

    assert "the access key AK is there twice" in str(refusal(keys=[pair, pair]))


def test_lists_and_tables_in_the_environment_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTDOUBLE_ALLOW_HOSTS", '["double"]')
    monkeypatch.setenv("AGENTDOUBLE_UNKNOWNS", '{"U-TTL-EXTENDS": "sliding"}')

    settings = Settings.load()

    assert ("double",) == settings.allow_hosts
    assert "sliding" == settings.chosen().answer("U-TTL-EXTENDS").name


@pytest.mark.parametrize(
    ("unknowns", "message"),
    [
        ({"U-TTL-EXTEND": "sliding"}, "Did you mean U-TTL-EXTENDS"),
        ({"U-TTL-EXTENDS": "slide"}, "It has: absolute, sliding"),
        ({"U-RUN-CODE-RETURN": "object"}, "has not built"),
    ],
)
def test_an_invalid_ledger_choice_is_an_invalid_setting(
    unknowns: dict[str, str], message: str
) -> None:
    """It is refused when settings are read."""
    error = refusal(unknowns=unknowns)

    assert "unknowns" == error.key
    assert message in str(error)


@pytest.mark.parametrize("key", ["api_key", "secret_key"])
def test_secrets_are_not_shown(key: str) -> None:
    """Neither settings nor errors about them show a secret."""
    assert SECRET not in repr(Settings.load(**{key: SECRET}))
    assert SECRET not in str(refusal(**{key: {SECRET: SECRET}}))


class _WithMore(Settings):
    """The settings and two new ones."""

    new: str = Field("", description="says nothing about nodes")
    new_for_nodes: OnNodes[str] = Field("", description="says that nodes get it")


def test_a_new_setting_goes_to_no_node_unless_it_says_so() -> None:
    settings = _WithMore(new="a", new_for_nodes="b", memory_limit=2**30)

    assert {"new_for_nodes": "b", "memory_limit": 2**30} == settings.for_nodes()


def test_no_secret_goes_to_a_node() -> None:
    """Neither a setting that can hold one, nor its text."""
    secrets = {name: SECRET for name, f in Settings.model_fields.items() if _may_be_secret(f)}
    settings = Settings(
        **{**secrets, "keys": ({"access_key": "AK", "secret_key": SECRET},)},
        state=f"postgresql://user:{SECRET}@host/db",
        model_scripts=({"when": {"contains": SECRET}, "steps": []},),
        runtimes=({"name": "r", "application": "a:b", "environment": {"KEY": SECRET}},),
        preload=("json",),
    )

    assert {"api_key", "token", "secret_key", "keys"} <= secrets.keys()
    assert {"preload": ["json"]} == settings.for_nodes()


def _may_be_secret(field: FieldInfo) -> bool:
    return "Secret" in repr(field.annotation) or "KeyPair" in repr(field.annotation)


def test_a_node_accepts_all_that_it_gets() -> None:
    """It makes its own settings of them."""
    settings = Settings(isolation="none", visible_paths=("/opt",), preload=("json",))

    received = Settings(**json.loads(json.dumps(settings.for_nodes())))

    assert settings == received
