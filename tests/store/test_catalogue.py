"""The SQLite file keeps every finished slide, whole, whatever happens."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_fish.errors import DatabaseError
from napari_fish.search.calibrate import calibrate
from napari_fish.store import EncodedSlide, MemoryStore
from napari_fish.store.sqlite.catalogue import FILE, SqliteCatalogue
from tests.search.archives import demo_slides

BUILD = """
import sys
from pathlib import Path
import numpy as np
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from tests.search.archives import demo_slides
truth = SqliteCatalogue.open(Path(sys.argv[1]))
have = {record.slide for _, record in truth.slides()}
with truth.changing():
    for slide in demo_slides(np.random.default_rng(0), n=60, patches=100):
        if slide.record.slide not in have:
            truth.commit(slide)
            print(slide.record.slide, flush=True)
"""


@pytest.fixture(scope="module")
def slides() -> list[EncodedSlide]:
    return list(demo_slides(np.random.default_rng(1), n=6))


@pytest.fixture
def truth(tmp_path: Path) -> SqliteCatalogue:
    return SqliteCatalogue.create(tmp_path / "a ü.fish", words=4, encoder="fish-lite", weights_hash="abc")


def test_barcodes_longer_than_their_distances_can_be_kept_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="another encoder"):
        SqliteCatalogue.create(tmp_path / "long.fish", words=1024, encoder="long", weights_hash="abc")
    assert not (tmp_path / "long.fish").exists()
    SqliteCatalogue.create(tmp_path / "long.fish", words=1023, encoder="long", weights_hash="abc").close()


def test_slides_come_back_as_they_were(truth: SqliteCatalogue, slides: list[EncodedSlide]) -> None:
    for slide in slides:
        truth.commit(slide)
    truth.close()
    again = SqliteCatalogue.open(truth.folder, read_only=True)
    assert (again.encoder, again.weights_hash, again.words) == ("fish-lite", "abc", 4)
    assert [record for _, record in again.slides()] == [slide.record for slide in slides]
    found = again.patches()
    for number, slide in zip((n for n, _ in again.slides()), slides, strict=True):
        mine = found.numbers == number
        assert np.array_equal(found.keys[mine], slide.keys)
        assert np.array_equal(found.barcodes[mine], slide.barcodes)
        assert np.array_equal(found.boxes[mine], slide.boxes)
    assert again.digest() == MemoryStore(4, reversed(slides)).digest()
    assert again.integrity() == []


def test_a_replaced_slide_is_there_once_and_counts_as_new(
    truth: SqliteCatalogue, slides: list[EncodedSlide]
) -> None:
    for slide in slides:
        truth.commit(slide)
    before = truth.generation
    changed = replace(
        slides[2], keys=slides[2].keys[:5], barcodes=slides[2].barcodes[:5], boxes=slides[2].boxes[:5]
    )
    number = truth.commit(changed)
    assert truth.generation == before + 1
    assert number == max(n for n, _ in truth.slides()) and len(truth.slides()) == 6
    later = truth.patches(after=before)
    assert len(later.keys) == 5 and set(later.numbers.tolist()) == {number}
    assert len(truth.patches().keys) == 5 * 25 + 5


def test_a_removed_slide_is_gone_and_its_number_never_used_again(
    truth: SqliteCatalogue, slides: list[EncodedSlide]
) -> None:
    numbers = [truth.commit(slide) for slide in slides[:3]]
    truth.remove(["s2"])
    assert truth.commit(slides[3]) > max(numbers)
    assert "s2" not in {record.slide for _, record in truth.slides()}
    before = truth.generation
    with pytest.raises(DatabaseError, match="s2"):
        truth.remove(["s2"])
    assert truth.generation == before


def test_calibration_is_kept_beside_the_content(truth: SqliteCatalogue, slides: list[EncodedSlide]) -> None:
    assert truth.calibration is None
    for slide in slides:
        truth.commit(slide)
    digest, made = truth.digest(), calibrate(MemoryStore(4, slides), pairs=1000)
    truth.calibration = made
    kept = truth.calibration
    assert kept is not None and kept.threshold == made.threshold
    assert np.array_equal(kept.histogram, made.histogram)
    assert truth.digest() == digest


def test_barcodes_of_another_encoder_are_refused(truth: SqliteCatalogue, slides: list[EncodedSlide]) -> None:
    with pytest.raises(DatabaseError, match="fish-lite"):
        truth.commit(replace(slides[0], barcodes=np.zeros((25, 16), np.uint64)))
    assert truth.slides() == []


def test_a_second_builder_gets_a_clear_message(truth: SqliteCatalogue, slides: list[EncodedSlide]) -> None:
    other = SqliteCatalogue.open(truth.folder)
    other._connection.execute("PRAGMA busy_timeout = 50")
    truth._connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError, match="another program is writing"):
        other.commit(slides[0])
    truth._connection.execute("ROLLBACK")
    other.commit(slides[0])


def test_a_read_only_database_says_so(truth: SqliteCatalogue, slides: list[EncodedSlide]) -> None:
    truth.commit(slides[0])
    with pytest.raises(DatabaseError, match="cannot be written to"):
        SqliteCatalogue.open(truth.folder, read_only=True).commit(slides[1])


def _foreign_table(path: Path) -> None:
    sqlite3.connect(path).execute("CREATE TABLE guest (x)")


def _trigger(path: Path) -> None:
    sqlite3.connect(path).execute("CREATE TRIGGER t AFTER INSERT ON slides BEGIN DELETE FROM slides; END")


def _newer(path: Path) -> None:
    sqlite3.connect(path).execute("PRAGMA user_version = 7")


def _not_ours(path: Path) -> None:
    sqlite3.connect(path).execute("PRAGMA application_id = 7")


def _not_sqlite(path: Path) -> None:
    path.write_bytes(b"no database at all, just text " * 100)


def _missing(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_foreign_table, "not those"),
        (_trigger, "not those"),
        (_newer, "newer"),
        (_not_ours, "not a database of napari-fish"),
        (_not_sqlite, "damaged"),
        (_missing, "no database here"),
    ],
)
def test_what_is_not_exactly_ours_is_refused(
    truth: SqliteCatalogue, damage: Callable[[Path], None], said: str
) -> None:
    truth.close()
    damage(truth.folder / FILE)
    with pytest.raises(DatabaseError, match=said):
        SqliteCatalogue.open(truth.folder)


def test_a_database_is_not_made_over_another(truth: SqliteCatalogue) -> None:
    with pytest.raises(DatabaseError, match="already"):
        SqliteCatalogue.create(truth.folder, words=4, encoder="x", weights_hash="y")


def test_a_finished_build_is_one_file(truth: SqliteCatalogue, slides: list[EncodedSlide]) -> None:
    with truth.changing():
        truth.commit(slides[0])
        assert (truth.folder / (FILE + "-wal")).exists()
    assert [p.name for p in truth.folder.iterdir()] == [FILE]


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is for POSIX")
def test_a_killed_build_keeps_every_finished_slide_and_ends_the_same(truth: SqliteCatalogue) -> None:
    truth.close()
    dice = np.random.default_rng(4)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(["src", ".", os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", BUILD, str(truth.folder)]
    finished: list[str] = []
    for _ in range(2):
        build = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        assert build.stdout is not None
        finished.append(build.stdout.readline().strip())
        time.sleep(float(dice.uniform(0, 0.02)))
        build.send_signal(signal.SIGKILL)
        finished += build.stdout.read().split()
        build.wait()
        after = SqliteCatalogue.open(truth.folder)
        assert after.integrity() == []
        assert set(finished) <= {record.slide for _, record in after.slides()}
        assert len(after.patches().keys) == 100 * len(after.slides())
        after.close()
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)
    undisturbed = MemoryStore(4, demo_slides(np.random.default_rng(0), n=60, patches=100))
    assert SqliteCatalogue.open(truth.folder).digest() == undisturbed.digest()


@pytest.mark.parametrize(
    ("sql", "ask"),
    [
        ("UPDATE parameters SET value = '{\"half'", lambda truth: truth.parameters),
        (
            "UPDATE parameters SET value = replace(hex(zeroblob(5000)), '00', '[')",
            lambda truth: truth.parameters,
        ),
        ("UPDATE state SET threshold = 3, histogram = x'0102'", lambda truth: truth.calibration),
        ("UPDATE state SET threshold = 3, histogram = zeroblob(16)", lambda truth: truth.calibration),
        ("UPDATE mosaics SET barcode = x'01'", lambda truth: truth.digest()),
        ("UPDATE slides SET name = CAST(x'ff00fe' AS TEXT)", lambda truth: truth.slides()),
        ("DELETE FROM state", lambda truth: truth.generation),
    ],
)
def test_values_that_make_no_sense_are_named_as_damage(
    truth: SqliteCatalogue, slides: list[EncodedSlide], sql: str, ask: Callable[[SqliteCatalogue], object]
) -> None:
    truth.commit(slides[0])
    truth.rows(sql)
    with pytest.raises(DatabaseError, match=r"fish\.sqlite is damaged.*restore it from a copy"):
        ask(truth)


def test_a_file_whose_tables_have_names_that_are_no_text_is_refused_in_words(truth: SqliteCatalogue) -> None:
    truth.close()
    path = truth.folder / "fish.sqlite"
    content = path.read_bytes()
    assert b"CREATE TABLE state" in content
    path.write_bytes(content.replace(b"CREATE TABLE state", b"CREATE \xff\xfe\x80\x81\x82 state"))
    with pytest.raises(DatabaseError, match=r"fish\.sqlite"):
        SqliteCatalogue.open(truth.folder)


def test_a_file_closed_while_another_thread_asks_it_is_closed_when_that_has_its_answer(
    tmp_path: Path,
) -> None:
    truth = SqliteCatalogue.create(tmp_path / "a.fish", words=1, encoder="tiny", weights_hash="none")
    with truth.transaction() as run:
        closer = threading.Thread(target=truth.close)
        closer.start()
        closer.join(20)
        assert not closer.is_alive()
        run("UPDATE state SET generation = 7")
    with pytest.raises(DatabaseError, match="closed"):
        truth.rows("SELECT 1")
    again = SqliteCatalogue.open(tmp_path / "a.fish")
    assert again.generation == 7
    again.close()


class Watched:
    """A connection that knows how many questions are asked of it at the same time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.asked, self.at_once, self.most = connection, 0, 0, 0

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Watched:
        self.asked, self.at_once = self.asked + 1, self.at_once + 1
        self.most = max(self.most, self.at_once)
        time.sleep(0.01)
        self.cursor = self.connection.execute(sql, values)
        return self

    def fetchall(self) -> list[Any]:
        self.at_once -= 1
        return self.cursor.fetchall()


def test_threads_that_ask_the_same_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteCatalogue.create(tmp_path / "x.fish", words=4, encoder="a", weights_hash="b").close()
    with closing(SqliteCatalogue.open(tmp_path / "x.fish")) as truth:
        watched = Watched(truth._connection)
        monkeypatch.setattr(truth, "_connection", watched)
        with ThreadPoolExecutor(4) as pool:
            found = list(
                pool.map(lambda _: truth.rows("SELECT words FROM encoder WHERE words = ?", (4,)), range(12))
            )
        monkeypatch.undo()
    assert found == [[(4,)]] * 12 and watched.asked == 12 and watched.most == 1
