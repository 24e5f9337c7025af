"""A program killed while it changes a database leaves a journal; whoever opens the database next has it undone."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from napari_fish.errors import DatabaseError
from napari_fish.store.snapshot.store import SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from tests.building.test_faults import mounted
from tests.search.archives import commit
from tests.store.conformance import SLIDES, answers, answers_in_memory
from tests.store.forging import create

# A small cache makes SQLite write pages before the end of the change, as a large change does.
REMOVING = """
import os, signal, sys
from pathlib import Path
from napari_fish.store.sqlite.catalogue import SqliteCatalogue

truth = SqliteCatalogue.open(Path(sys.argv[1]))
truth.rows("PRAGMA cache_size = 1")
with truth.transaction() as run:
    run("UPDATE state SET generation = generation + 1")
    run("DELETE FROM slides")
    run("UPDATE parameters SET value = '0'")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """Return a database in which the removal of all slides was begun."""
    folder = create(tmp_path / "a ü.fish")
    with SnapshotStore(folder, writer=True) as store:
        commit(store, *SLIDES[:6])
    killed = subprocess.run([sys.executable, "-c", REMOVING, str(folder)], check=False)
    assert killed.returncode == -signal.SIGKILL and (folder / "fish.sqlite-journal").stat().st_size
    return folder


def test_a_reader_undoes_what_a_killed_program_had_begun(interrupted: Path) -> None:
    with SnapshotStore(interrupted) as store:
        assert store.catalogue.integrity() == [] and len(store.catalogue.slides()) == 6
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")
    assert not (interrupted / "fish.sqlite-journal").exists()


def test_who_may_not_write_is_told_what_to_do_and_reads_no_half_of_a_change(interrupted: Path) -> None:
    with mounted(interrupted, "--bind", str(interrupted)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(interrupted)], check=True)
        with pytest.raises(DatabaseError, match="copy the whole folder to one of your own"):
            SqliteCatalogue.open(interrupted, read_only=True)
    copy = shutil.copytree(interrupted, interrupted.with_name("copy.fish"))
    with SnapshotStore(copy) as store:
        assert answers(store, "exact") == answers_in_memory(SLIDES[:6], "exact")


def test_a_reader_that_was_open_when_a_program_was_killed_is_told_to_open_again(interrupted: Path) -> None:
    whole = shutil.copytree(interrupted, interrupted.with_name("whole.fish"))
    SqliteCatalogue.open(whole, read_only=True).close()
    reader = SqliteCatalogue.open(whole, read_only=True)
    for name in ("fish.sqlite", "fish.sqlite-journal"):
        (whole / name).write_bytes((interrupted / name).read_bytes())
    with pytest.raises(DatabaseError, match="open it again"):
        reader.slides()
    reader.close()
    again = SqliteCatalogue.open(whole, read_only=True)
    assert len(again.slides()) == 6
    again.close()


def test_the_database_with_a_hot_journal_is_read(real_data: Path, tmp_path: Path) -> None:
    found = real_data / "repro" / "hot-journal.fish"
    for name in ("fish.sqlite", "fish.sqlite-journal"):
        shutil.copyfile(found / name, tmp_path / name)
    truth = SqliteCatalogue.open(tmp_path, read_only=True)
    assert truth.integrity() == [] and len(truth.slides()) == 12
    truth.close()
