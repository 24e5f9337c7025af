"""Cards and their pictures: loaded only when looked at, sharp where the slide is at hand; thumbs and keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from qtpy.QtCore import QEvent, QPoint, QRect, Qt
from qtpy.QtGui import QColor, QHelpEvent
from qtpy.QtWidgets import QLabel, QStyle, QStyleOptionViewItem, QToolTip

from napari_fish._napari.layers.query_layers import Contribution, colours
from napari_fish._napari.results.card import SIZES
from napari_fish._napari.results.explain_panel import ExplainPanel
from napari_fish._napari.results.gallery_model import GalleryModel
from napari_fish._napari.results.gallery_order import Heading
from napari_fish._napari.results.gallery_view import GalleryView
from napari_fish._napari.results.hover import FieldPreview
from napari_fish._napari.results.picture_loader import PictureLoader, field_key
from napari_fish._napari.results.regions_table import ICON, fate_in_words
from napari_fish._napari.results.vote_strip import VoteStrip, vote_in_words
from napari_fish.database import Database
from napari_fish.search import Feedback, Results
from napari_fish.search.output.page_parts import FATES
from napari_fish.store import Box
from tests._napari.results.archive import AT_HAND, KEPT, SHARP, answer, make_database
from tests.search.made_results import answer as made
from tests.search.made_results import fate, hit


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with make_database(tmp_path_factory.mktemp("results")) as opened:
        yield opened


@pytest.fixture
def results(database: Database) -> Results:
    return answer(database)


@pytest.fixture
def loader(qtbot: Any) -> Iterator[PictureLoader]:
    loader = PictureLoader()
    yield loader
    loader.close()


@pytest.fixture
def model(loader: PictureLoader, results: Results) -> GalleryModel:
    model = GalleryModel(loader)
    model.show(results)
    return model


@pytest.fixture
def view(qtbot: Any, model: GalleryModel) -> GalleryView:
    view = GalleryView(model)
    qtbot.addWidget(view)
    view.resize(500, 600)
    view.show()
    qtbot.waitExposed(view)
    return view


def colour(image: Any, x: float = 0.5, y: float = 0.5) -> tuple[int, int, int]:
    pixel = image.pixelColor(int(x * (image.width() - 1)), int(y * (image.height() - 1)))
    return pixel.red(), pixel.green(), pixel.blue()


def near(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return all(abs(a - b) < 12 for a, b in zip(one, other, strict=True))


def test_a_kept_picture_comes_first_and_a_sharp_one_later(
    qtbot: Any, loader: PictureLoader, results: Results
) -> None:
    here = next(one for one in results.hits if one.slide == AT_HAND)
    away = next(one for one in results.hits if one.slide != AT_HAND)
    loader.use(results.pictures)
    came: list[Any] = []
    loader.ready.connect(came.append)
    seen = []
    for one in (here, away):
        box = one.matches[0].hit_box
        assert loader.region(one.slide, box) is None
        qtbot.waitUntil(lambda one=one, box=box: loader.region(one.slide, box) is not None)
        seen.append(colour(loader.region(one.slide, box)))
        qtbot.waitUntil(lambda one=one, box=box: loader.known(("hit", one.slide, box)))
        seen.append(colour(loader.region(one.slide, box)))
    kept_here, sharp_here, kept_away, still_kept = seen
    assert near(kept_here, KEPT) and near(sharp_here, SHARP)
    assert near(kept_away, KEPT) and near(still_kept, KEPT)
    assert not loader.busy and came[0][0] == "thumbnail"


def test_pictures_of_an_answer_that_is_not_shown_any_more_are_not_shown(
    qtbot: Any, loader: PictureLoader, results: Results
) -> None:
    came: list[Any] = []
    loader.ready.connect(came.append)
    loader.use(results.pictures)
    box = results.hits[0].matches[0].hit_box
    loader.region(results.hits[0].slide, box)
    loader.use(None)
    qtbot.wait(100)
    assert not came and not loader.busy and loader.region(results.hits[0].slide, box) is None


def test_a_picture_that_cannot_be_read_is_known_not_to_exist(qtbot: Any, loader: PictureLoader) -> None:
    class Broken:
        def query(self, index: int) -> bytes:
            if index:
                raise OSError("the disk is away")
            return b"no jpeg"

    loader.use(Broken())  # type: ignore[arg-type]
    for index in (0, 1):
        assert loader.query(index) is None
        qtbot.waitUntil(lambda index=index: loader.known(("query", index)))
        assert loader.query(index) is None


def test_the_model_has_a_row_a_hit_and_headings_cannot_be_chosen(model: GalleryModel) -> None:
    assert model.rowCount() == 8 and all(model.hit(model.index(row)) for row in range(8))
    model.arrange("rank", "diagnosis")
    headings = [row for row in range(model.rowCount()) if isinstance(model.item(row), Heading)]
    assert headings[0] == 0 and model.rowCount() == 8 + len(headings)
    for row in range(model.rowCount()):
        selectable = bool(model.flags(model.index(row)) & Qt.ItemFlag.ItemIsSelectable)
        assert selectable == (row not in headings)
    assert "bits" in model.data(model.index(1), Qt.ItemDataRole.AccessibleTextRole)
    model.show(None)
    assert model.rowCount() == 0


def test_only_the_pictures_of_cards_that_are_seen_are_loaded(
    qtbot: Any, view: GalleryView, loader: PictureLoader, results: Results
) -> None:
    view.set_size("huge")
    view.resize(300, 330)
    qtbot.wait(50)
    view.model().show(results)
    qtbot.wait(50)
    qtbot.waitUntil(lambda: not loader.busy)
    shown = [view.visualRect(view.model().index(row)).intersects(view.viewport().rect()) for row in range(8)]
    boxes = [(view.model().item(row).slide, view.model().item(row).matches[0].hit_box) for row in range(8)]
    assert shown[0] and not shown[-1]
    assert loader.known(("thumbnail", *boxes[0])) and not loader.known(("thumbnail", *boxes[-1]))


@pytest.mark.parametrize("size", SIZES)
def test_thumbs_can_be_pressed_on_cards_of_every_size(qtbot: Any, view: GalleryView, size: str) -> None:
    view.set_size(size)
    qtbot.wait(30)
    said: list[tuple[str, bool]] = []
    opened: list[Any] = []
    view.judged.connect(lambda one, relevant: said.append((one.slide, relevant)))
    view.opened.connect(opened.append)
    index = view.model().index(0)
    card = view.cards.card(view.visualRect(index))
    assert (
        card.rect.contains(card.picture)
        and card.picture.contains(card.up)
        and card.picture.contains(card.down)
    )
    assert not card.up.intersects(card.down)
    assert all(card.rect.contains(line) and not line.intersects(card.picture) for line in card.lines)
    for rect in (card.up, card.down):
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    slide = view.model().hit(index).slide
    assert said == [(slide, True), (slide, False)]
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=card.picture.center() - QPoint(0, 20))
    assert len(said) == 2 and view.current_hit().slide == slide and not opened


def test_a_double_click_opens_and_keys_judge_and_open(qtbot: Any, view: GalleryView) -> None:
    said, opened = [], []
    view.judged.connect(lambda one, relevant: said.append((one.rank, relevant)))
    view.opened.connect(lambda one: opened.append(one.rank))
    at = view.cards.card(view.visualRect(view.model().index(1))).picture.center() - QPoint(0, 20)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert opened == [2]
    qtbot.keyClick(view, Qt.Key.Key_Right)
    for key in "+-":
        qtbot.keyClicks(view, key)
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert said == [(3, True), (3, False)] and opened == [2, 3]


def test_thumbs_and_words_have_tooltips_and_pictures_have_none(qtbot: Any, view: GalleryView) -> None:
    index = view.model().index(0)
    option = QStyleOptionViewItem()
    option.rect = view.visualRect(index)
    card = view.cards.card(option.rect)
    for at, words in (
        (card.up.center(), "Relevant"),
        (card.down.center(), "Not relevant"),
        (card.lines[0].center(), view.model().hit(index).name),
    ):
        event = QHelpEvent(QEvent.Type.ToolTip, at, view.viewport().mapToGlobal(at))
        assert view.cards.helpEvent(event, view, option, index)
        qtbot.waitUntil(lambda words=words: words in QToolTip.text())
    QToolTip.hideText()


def test_headings_take_all_of_the_width(qtbot: Any, view: GalleryView) -> None:
    view.model().arrange("rank", "diagnosis")
    for width in (500, 380):
        view.resize(width, 600)
        qtbot.wait(50)
        rects = [view.visualRect(view.model().index(row)) for row in range(view.model().rowCount())]
        for row, rect in enumerate(rects):
            if isinstance(view.model().item(row), Heading):
                assert rect.width() > view.viewport().width() - 20
                assert row == 0 or rect.top() > rects[row - 1].bottom()
                assert rects[row + 1].top() > rect.bottom()
            assert rect.right() <= view.viewport().width()


def test_thumbs_that_were_given_are_shown(model: GalleryModel, results: Results) -> None:
    changed: list[Any] = []
    model.dataChanged.connect(lambda *args: changed.append(args))
    first, second, third = results.hits[:3]
    model.mark(Feedback().judge(first, True).judge(second, False))
    assert [model.verdict(one) for one in (first, second, third)] == [True, False, None] and changed


def test_the_wider_field_is_read_from_the_slide_and_says_so_when_it_is_away(
    qtbot: Any, loader: PictureLoader, results: Results
) -> None:
    loader.use(results.pictures)
    preview = FieldPreview(loader)
    qtbot.addWidget(preview)
    for slide, words in ((AT_HAND, "4 times wider"), ("s8", "not at hand")):
        one = next(one for one in results.hits if one.slide == slide)
        preview.show_hit(one, QRect(10, 10, 100, 100))
        assert preview.caption == "Reading the slide …"
        qtbot.waitUntil(lambda one=one: loader.known(field_key(one.slide, one.matches[0].hit_box)))
        assert words in preview.caption
        qtbot.waitUntil(lambda: not loader.busy)
        preview.grab()
    here = next(one for one in results.hits if one.slide == AT_HAND)
    field = loader.field(AT_HAND, here.matches[0].hit_box)
    # A patch at the upper rim of the slide: above it there is glass only.
    assert near(colour(field), SHARP) and near(colour(field, y=0.05), (255, 255, 255))


def test_the_field_is_centred_on_the_region(results: Results) -> None:
    assert results.pictures is not None
    assert results.pictures.field("s8", Box(0, 0, 100, 100), 4, 64) is None
    assert results.pictures.field(AT_HAND, Box(0, 0, 0, 0), 4, 64) is None
    assert results.pictures.field("nobody", Box(0, 0, 9, 9), 4, 64) is None


def test_the_strip_says_who_votes_for_what(qtbot: Any) -> None:
    strip = VoteStrip()
    qtbot.addWidget(strip)
    told = made(hit(1), fates=(fate(0), fate(1), fate(2, "PRAD", 1.0, KIRC=1.0, PRAD=1.0)))
    strip.show_results(told)
    assert strip.votes is not None
    words = [vote_in_words(vote, strip.votes) for vote in strip.votes.votes]
    assert words == ["KIRC 2 of 3 regions, certain", "PRAD 1 of 3 regions, uncertain"]
    assert all(text in strip.toolTip() for text in words)
    strip.resize(300, strip.sizeHint().height())
    picture = strip.grab().toImage()
    left, right = colour(picture, 0.3, 0.1), colour(picture, 0.95, 0.1)
    assert not near(left, right)
    strip.show_results(made())
    assert strip.votes is None and not strip.toolTip()


def test_the_panel_shows_each_pair_and_what_became_of_each_region(
    qtbot: Any, loader: PictureLoader, results: Results
) -> None:
    panel = ExplainPanel(loader)
    qtbot.addWidget(panel)
    loader.use(results.pictures)
    panel.show_results(results)
    panel.show_hit(results.hits[0])
    panel.show()
    words = panel._words.text()
    assert results.hits[0].name in words and "not calibrated" in words and "within the threshold" in words
    pairs = [panel._flow.itemAt(i).widget() for i in range(panel._flow.count())]
    assert len(pairs) == len(results.hits[0].matches)
    jumped: list[Any] = []
    panel.jumped.connect(lambda *args: jumped.append(args))
    qtbot.mouseClick(pairs[-1], Qt.MouseButton.LeftButton)
    assert jumped == [(results.hits[0], results.hits[0].matches[-1])]
    panel.setCurrentIndex(1)
    regions = panel._regions
    assert regions.rowCount() == len(results.explanation.lists) == 4
    shown = {
        int(regions.data(regions.index(row, 0))): regions.data(regions.index(row, 1)) for row in range(4)
    }
    assert shown == {one.query_index: FATES[one.fate][0] for one in results.explanation.lists}
    qtbot.waitUntil(lambda: all(loader.known(("query", i)) for i in range(4)))
    assert near(colour(regions.data(regions.index(0, 0), Qt.ItemDataRole.DecorationRole).toImage()), KEPT)
    panel.show_results(None)
    assert regions.rowCount() == 0 and panel._flow.count() == 0


def test_votes_have_columns_only_where_labels_vote(qtbot: Any, loader: PictureLoader) -> None:
    panel = ExplainPanel(loader)
    qtbot.addWidget(panel)
    panel.show_results(made(hit(1), fates=(fate(0), fate(1, "PRAD", 0.5))))
    assert not panel._table.isColumnHidden(2) and panel._regions.data(panel._regions.index(1, 2)) == "PRAD"
    panel.show_results(made(hit(1), fates=(replace(fate(0), entropy=None),)))
    assert panel._table.isColumnHidden(2) and panel._table.isColumnHidden(4)


def test_figures_of_regions_have_columns_only_where_there_is_room(qtbot: Any, loader: PictureLoader) -> None:
    panel = ExplainPanel(loader)
    qtbot.addWidget(panel)
    panel.show_results(made(hit(1), fates=(fate(0), fate(1, "PRAD", 0.5))))
    panel.setCurrentIndex(1)
    panel.show()
    for width, figures in ((330, False), (600, True)):
        panel.resize(width, 250)
        assert [panel._table.isColumnHidden(column) for column in range(5)] == [False] * 3 + [not figures] * 2
        assert panel._table.columnWidth(1) > 90
    said = panel._regions.data(panel._regions.index(1, 1), Qt.ItemDataRole.ToolTipRole)
    assert "votes for PRAD" in said and "entropy 0.50 bits" in said


def test_numbers_of_regions_are_not_cut_off(qtbot: Any, loader: PictureLoader) -> None:
    panel = ExplainPanel(loader)
    qtbot.addWidget(panel)
    panel.show_results(made(hit(1), fates=(fate(0), fate(888))))
    panel.setCurrentIndex(1)
    panel.show()
    wide = panel._table.fontMetrics().horizontalAdvance("888")
    margins = 2 * 2 * (panel._table.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin) + 1)
    assert panel._table.columnWidth(0) >= ICON + wide + margins


def test_the_colours_of_regions_on_the_slide_are_explained(qtbot: Any, loader: PictureLoader) -> None:
    panel = ExplainPanel(loader)
    qtbot.addWidget(panel)
    legend = panel.findChild(QLabel, "results.legend").text()
    drawn = colours([contribution("kept", 1.0), contribution("kept", 0.0), contribution("vote", 0.0)])
    for rgba in drawn:
        assert QColor.fromRgbF(*map(float, rgba[:3])).name() in legend
    assert len({tuple(row) for row in drawn}) == 3


def contribution(fate: str, share: float) -> Contribution:
    return Contribution(0, 0, 0, 10, 10, share, 1, fate, "", "", 0.0, 1)


def test_a_dropped_region_says_why() -> None:
    assert fate_in_words(fate(0)) == "counted"
    assert fate_in_words(fate(0, kind="distance")) == "dropped: why"
