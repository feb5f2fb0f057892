import hashlib
import json
import os
from pathlib import Path

import pytest

from allyouneed.apps.serve.keys import KeyFile, add_key, read_keys, remove_key
from allyouneed.errors import ConfigError


def test_a_key_is_recognized_and_the_file_does_not_have_it(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key = add_key(path, "weblate", requests_per_minute=60, characters_per_day=1_000)
    assert key not in path.read_text()
    assert hashlib.sha256(key.encode()).hexdigest() in path.read_text()
    entry = KeyFile(path).find(key)
    assert entry is not None
    assert (entry.name, entry.requests_per_minute, entry.characters_per_day) == ("weblate", 60, 1_000)


@pytest.mark.parametrize("wrong", ["", "x", "ayn_", "\x00", "ключ", "\ud800", "k" * 100_000])
def test_any_other_key_is_not(tmp_path: Path, wrong: str) -> None:
    key = add_key(tmp_path / "keys", "one")
    assert KeyFile(tmp_path / "keys").find(wrong) is None
    assert KeyFile(tmp_path / "keys").find(key + wrong + "x") is None


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        add_key(tmp_path / "keys", "one")
    finally:
        os.umask(before)
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o600


def test_a_running_server_sees_new_and_removed_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    one = add_key(path, "one")
    keys = KeyFile(path)
    other = add_key(path, "other")
    assert keys.find(other)
    remove_key(path, "one")
    assert keys.find(one) is None
    assert keys.find(other)


def test_a_damaged_or_removed_file_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    key = add_key(path, "one")
    keys = KeyFile(path)
    path.write_text("{")
    assert keys.find(key) is None
    path.unlink()
    assert keys.find(key) is None
    add_key(path, "two")
    assert keys.find(key) is None


def test_a_file_that_is_back_unchanged_lets_its_keys_in_again(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "keys", tmp_path / "elsewhere"
    key = add_key(path, "one")
    keys = KeyFile(path)
    path.rename(elsewhere)
    assert keys.find(key) is None
    elsewhere.rename(path)
    assert keys.find(key)


def test_keys_differ_and_have_256_random_bits(tmp_path: Path) -> None:
    keys = {add_key(tmp_path / "keys", f"key {number}") for number in range(5)}
    assert len(keys) == 5
    assert {len(key) for key in keys} == {len("ayn_") + 43}  # 43 characters of 6 bits


def test_names_are_used_once_and_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    add_key(path, "one")
    with pytest.raises(ConfigError, match="'one'"):
        add_key(path, "one")
    with pytest.raises(ConfigError, match="'two'; .*'one'"):
        remove_key(path, "two")
    with pytest.raises(ConfigError, match="1 to 64"):
        add_key(path, "a\nb")
    with pytest.raises(ConfigError, match="at least 0"):
        add_key(path, "three", requests_per_minute=-1)
    assert [key.name for key in read_keys(path)] == ["one"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"keys": [{}]}', '{"keys": 1}', "\x00", '{"keys": [[]]}'])
def test_a_file_that_is_no_file_of_keys_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "keys").write_text(content)
    with pytest.raises(ConfigError, match="API keys"):
        KeyFile(tmp_path / "keys")


def test_a_hash_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    add_key(path, "one")
    entry = json.loads(path.read_text())
    entry["keys"][0]["sha256"] = "abc"
    path.write_text(json.dumps(entry))
    with pytest.raises(ConfigError, match="no SHA-256"):
        read_keys(path)
    with pytest.raises(ConfigError, match="read"):
        KeyFile(tmp_path / "missing")
