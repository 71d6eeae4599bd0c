"""Ctrl-C within a transaction of the ledger: nobody waits for it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from isotone.batch import database
from isotone.batch.ledger import Ledger
from isotone.batch.open_tasks import OpenTasks


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PATIENCE_S", 0.2)


def interrupted(ledger: Ledger) -> None:
    ledger.claim("a")
    ledger._db.execute("BEGIN IMMEDIATE")
    raise KeyboardInterrupt


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "COMMIT"])
def test_an_interrupt_at_the_ends_of_a_transaction_leaves_none_open(
    statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed = False

    class Interrupted(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            nonlocal armed
            hit, armed = armed and sql == statement, armed and sql != statement
            if hit and statement == "COMMIT":
                raise KeyboardInterrupt  # before it, else there is nothing to roll back
            done = super().execute(sql, *values)
            if hit:
                raise KeyboardInterrupt
            return done

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **more, factory=Interrupted))
    with Ledger(tmp_path) as ledger:
        ledger.claim("a")
        armed = True
        with pytest.raises(KeyboardInterrupt):
            ledger.claim("b")
        with Ledger(tmp_path) as other:
            assert other.claim("b") == ["b"]


def test_the_end_of_a_run_does_not_wait_for_an_open_transaction(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        planner: Any = SimpleNamespace(ledger=ledger)
        with pytest.raises(KeyboardInterrupt), OpenTasks([], planner, lambda _: None, []):
            interrupted(ledger)
        with Ledger(tmp_path) as other:
            assert other.claim("c") == ["c"]


def test_a_ledger_is_closed_with_an_open_transaction(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Ledger(tmp_path) as ledger:
        interrupted(ledger)
    with Ledger(tmp_path) as other:
        assert other.claim("a") == ["a"], "its claims are released"
