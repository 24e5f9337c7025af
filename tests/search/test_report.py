"""The page is whole, safe and honest, with pictures and without."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from napari_fish.search import Query, Results, SearchParams, search, to_html
from napari_fish.search.output.page_style import DARK, LIGHT, Palette
from napari_fish.search.verdict import bits, closeness
from napari_fish.store import Box, MemoryStore
from napari_fish.texts import Note

JPEG = b"\xff\xd8 not really \xff\xd9"
HOSTILE = "</title><script>alert('1')</script> \"A&B\" <img src=x onerror='y'>"
_VOID = {"meta", "img", "br"}


class _Page(HTMLParser):
    """Checks that tags balance, and keeps text, addresses and names of tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)
        assert len({name for name, _ in attrs}) == len(attrs)
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} has a handler"
            if name in ("src", "href", "srcset", "data", "action"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.text += data


class _Fake:
    """Pictures that remember what was asked for."""

    def __init__(self, size: tuple[int, int] | None = (50_000, 30_000)) -> None:
        self.size = size
        self.asked: list[object] = []

    def query(self, index: int) -> bytes | None:
        self.asked.append(index)
        return JPEG

    def query_overview(self) -> bytes | None:
        return JPEG

    def query_size(self) -> tuple[int, int] | None:
        return self.size

    def hit(self, slide: str, box: Box) -> bytes | None:
        self.asked.append((slide, box))
        return JPEG

    def overview(self, slide: str) -> bytes | None:
        return None


@pytest.fixture(scope="module")
def results(store: MemoryStore, query: Query) -> Results:
    """An answer that had to be filled in, with regions that counted and others that did not."""
    made = search(store, query, SearchParams(k=12))
    assert any(hit.filled for hit in made.hits) and made.notes
    return made


@pytest.mark.parametrize("pictures", [None, _Fake(), _Fake(None)])
def test_the_page_needs_nothing_from_elsewhere(results: Results, pictures: _Fake | None) -> None:
    page = to_html(replace(results, pictures=pictures))
    parsed = _Page(page)
    assert "script" not in parsed.tags and "link" not in parsed.tags and "iframe" not in parsed.tags
    assert all(link.startswith("data:image/jpeg;base64,") for link in parsed.links)
    assert bool(parsed.links) == (pictures is not None)
    assert not re.search(r"https?:|url\(|@import", page)
    assert "default-src 'none'" in page


def test_every_slide_note_and_mosaic_is_there(results: Results) -> None:
    text = _Page(to_html(results, database="kidneys")).text
    for hit in results.hits:
        assert hit.name in text and f"patient {hit.patient}" in text and hit.diagnosis in text
    assert all(note.text in text for note in results.notes)
    assert text.count("filled in from exact search: ") == sum(hit.filled for hit in results.hits)
    assert "kidneys" in text and f"12 of {results.k} asked for" in text
    assert f"{results.threshold} bits" in text and results.mode in text and results.ranking in text
    reasons = [fate.reason for fate in results.explanation.lists if fate.fate != "kept"]
    assert reasons and all(f"dropped: {reason}" in text for reason in reasons)
    assert text.count("counted") >= len(results.explanation.lists) - len(reasons)
    assert "Research use only, not a diagnostic device" in text


def test_hostile_names_are_only_text(results: Results) -> None:
    hits = tuple(
        replace(hit, name=HOSTILE, slide=HOSTILE + "2", patient=HOSTILE, site=HOSTILE, diagnosis=HOSTILE)
        for hit in results.hits
    )
    told = results.explanation
    lists = tuple(replace(fate, vote=HOSTILE, votes={HOSTILE: 1.0}, reason=HOSTILE) for fate in told.lists)
    told = replace(told, lists=lists, prediction=HOSTILE, skipped_steps=(HOSTILE,))
    bad = replace(
        results, query=HOSTILE, hits=hits, notes=(Note("query", HOSTILE),), explanation=told, mode=HOSTILE, ranking=HOSTILE,
        pictures=_Fake(),
    )  # fmt: skip
    for page in (to_html(bad, database=HOSTILE), to_html([bad, bad], title=HOSTILE)):
        parsed = _Page(page)
        assert "script" not in parsed.tags and "<script" not in page
        assert parsed.text.count(HOSTILE) > 5 * len(hits)


def test_a_name_that_is_not_unicode_does_not_cost_the_answer(results: Results, tmp_path: Path) -> None:
    odd = replace(results, query="slide \udcff.svs")
    for ending in ("html", "json", "csv", "geojson"):
        assert odd.save(tmp_path / f"a.{ending}").stat().st_size


def test_pictures_are_those_of_the_pairs_and_each_mosaic_is_fetched_once(results: Results) -> None:
    fake = _Fake()
    text = _Page(to_html(replace(results, pictures=fake))).text
    regions = [asked for asked in fake.asked if isinstance(asked, int)]
    assert sorted(regions) == list(range(len(results.explanation.lists)))
    pairs = [(hit.slide, match.hit_box) for hit in results.hits for match in hit.matches[:5]]
    assert [asked for asked in fake.asked if not isinstance(asked, int)] == pairs
    for hit in results.hits:
        for match in hit.matches[:5]:
            assert f"region {match.query_index} · {bits(match.distance)}" in text


def test_boxes_are_drawn_where_the_mosaics_lie(results: Results, query: Query) -> None:
    page = to_html(replace(results, pictures=_Fake()))
    assert 'viewBox="0 0 50000 30000"' in page
    for x, y, width, height in query.boxes.tolist():
        assert f'<rect x="{x}" y="{y}" width="{width}" height="{height}"' in page
    from_elsewhere = (Box(0, 0, 0, 0), *results.query_boxes[1:])
    drawn = to_html(replace(results, query_boxes=from_elsewhere, pictures=_Fake()))
    assert "<title>Region 1:" in drawn and "<title>Region 0:" not in drawn
    assert "<title>Region" not in to_html(replace(results, query_boxes=()))


def test_a_batch_lists_all_its_queries(results: Results) -> None:
    names = [f"query {i} of <many>" for i in range(4)]
    batch = [replace(results, query=name) for name in names]
    batch[2] = replace(batch[2], hits=(), notes=(Note("short", "0 of 12 slides: nothing there."),))
    parsed = _Page(to_html(batch))
    assert "Answers to 4 queries" in parsed.text
    assert all(parsed.text.count(name) >= 3 for name in names)
    anchors = [link[1:] for link in parsed.links if link.startswith("#")]
    assert set(anchors) <= set(parsed.ids) and len([a for a in anchors if a != "top"]) == 4
    assert "No slide was found." in parsed.text
    assert "Answers to 0 queries" in _Page(to_html([])).text


def test_slides_that_are_all_far_are_not_passed_off_as_near(results: Results) -> None:
    far = replace(results, threshold=min(m.distance for hit in results.hits for m in hit.matches) - 1)
    assert "none of them is near" in to_html(far)
    assert "none of them is near" not in to_html(results)


@pytest.mark.parametrize(
    ("percentile", "words"),
    [
        (None, "not calibrated: how close that is cannot be said"),
        (0.0, "closer than every random pair that was measured"),
        (0.004, "closer than 99.99 % of random pairs"),
        (0.1, "closer than 99.90 % of random pairs"),
        (5.0, "closer than 95.0 % of random pairs"),
        (25.0, "closer than 75 % of random pairs"),
        (80.0, "closer than only 20 % of random pairs"),
        (99.5, "closer than fewer than 1 % of random pairs"),
        (100.0, "no closer than any random pair that was measured"),
    ],
)
def test_a_percentile_is_put_into_words(percentile: float | None, words: str) -> None:
    """The percentile counts pairs at most so far apart; those left are farther."""
    assert closeness(percentile) == words


def test_a_diagnosis_has_one_colour_whatever_its_case(results: Results) -> None:
    palette = Palette([results])
    assert palette.of("KIRC") == palette.of("kirc") != palette.of("BLCA")
    assert palette.of("") == palette.of("unheard of") == "var(--none)"


def test_colours_stand_out_from_the_page_behind_them() -> None:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for colours, behind in ((LIGHT, "#ffffff"), (DARK, "#1e2227")):
        for colour in colours:
            one, two = sorted((light(colour), light(behind)))
            assert (two + 0.05) / (one + 0.05) >= 3, colour


def test_an_answer_is_saved_as_a_page(results: Results, tmp_path: Path) -> None:
    page = results.save(tmp_path / "schöne Seite.HTML").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and results.hits[0].name in page
    assert "pictures" not in repr(replace(results, pictures=_Fake()))
    assert replace(results, pictures=_Fake()) == results
