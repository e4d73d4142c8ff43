"""Stores of several hosts merged into one, and a sweep on a cluster of three hosts of which one is killed."""

import sqlite3

import pytest
from click.testing import CliRunner

from selfeval.cache import Store
from selfeval.cli import main
from selfeval.errors import InputError
from selfeval.recordings import canonical, key_of

# Merging


def fill(path, names, reply="text"):
    store = Store(path, recorded=path.parent / "none")
    for name in names:
        request = canonical({"model": name, "messages": [], "provider": {"provider": "openai"}})
        store.put(key_of(request), request, {"text": f"{reply} {name}", "usage": {}}).result()
    store.record_attempt(key_of(str(names)), "throttled", f"once for {names}").result()
    return store


def contents(store):
    rows = store._reader.execute("SELECT key, outcome, detail FROM attempts ORDER BY 1, 2, 3").fetchall()
    return [(key, response) for key, _, response in store.rows()], rows


def test_merging_keeps_every_reply_and_attempt_once_and_ours_where_both_have_one(tmp_path):
    ours = fill(tmp_path / "ours.sqlite", "abc", "ours")
    theirs = fill(tmp_path / "theirs.sqlite", "cde", "theirs")  # still open: half of it is in the log of SQLite
    assert ours.merge(theirs.path) == (2, 1)
    assert ours.outcomes() == {"throttled": 2}
    texts = [response for _, response in contents(ours)[0]]
    assert sum("ours c" in text for text in texts) == 1 and not any("theirs c" in text for text in texts)
    first = contents(ours)
    theirs.copy(tmp_path / "shared" / "copy.sqlite")
    theirs.close()
    for again in (theirs.path, tmp_path / "shared" / "copy.sqlite"):
        assert ours.merge(again) == (0, 3)
        assert contents(ours) == first
    theirs.copy(tmp_path / "later.sqlite", since=2e10)
    assert ours.merge(tmp_path / "later.sqlite") == (0, 0)
    with pytest.raises(InputError, match="is the store itself"):
        ours.merge(ours.path)
    ours.close()


def test_a_file_that_is_no_store_or_was_tampered_with_is_refused(tmp_path):
    ours = fill(tmp_path / "ours.sqlite", "a")
    (tmp_path / "text").write_text("no database at all, but long enough to be taken for one" * 20)
    with pytest.raises(InputError, match="is no response store"):
        ours.merge(tmp_path / "text")
    fill(tmp_path / "theirs.sqlite", "b").close()
    with sqlite3.connect(tmp_path / "theirs.sqlite") as connection:
        connection.execute("UPDATE replies SET request = replace(request, 'b', 'a')")
    connection.close()
    with pytest.raises(InputError, match="is not that of its request"):
        ours.merge(tmp_path / "theirs.sqlite")
    assert len(contents(ours)[0]) == 1
    ours.close()


def test_the_command_merges_and_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "ours.sqlite"))
    files = [str(fill(tmp_path / f"{name}.sqlite", name).path) for name in ("ab", "bc")]
    said = CliRunner().invoke(main, ["store", "merge", *files]).output
    assert "ab.sqlite: 2 new replies, 0 already stored" in said and "bc.sqlite: 1 new replies, 1 already" in said
