"""From a hit to its slide: open it, go to the region, mark what matches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from napari.layers import Image, Layer
from numpy.typing import ArrayLike
from qtpy.QtCore import QTimer

from napari_fish._napari.compare.compare import comparison_of
from napari_fish._napari.jobs.notify import alert_user, in_words, warn_user
from napari_fish._napari.jobs.worker import JobWorker
from napari_fish._napari.layers.coordinates import Extent, LayerData, ToWorld, level0_to_world, to_scene
from napari_fish._napari.layers.hit_layers import (
    KEPT_KEY,
    corners_of,
    level0_to_um,
    matches_layer,
    picture_layer,
)
from napari_fish._napari.layers.mosaic_layers import MOSAIC_KEY
from napari_fish._napari.layers.queries import Pixels
from napari_fish._napari.layers.slide_layers import slide_of
from napari_fish._napari.reader.reader import METADATA_KEY, slide_layer, slide_name, watch
from napari_fish._napari.session.session import Answer, session_of
from napari_fish.database import Database
from napari_fish.errors import FishError
from napari_fish.search import SlideHit
from napari_fish.search.values import Hit
from napari_fish.slides import Slide, open_slide
from napari_fish.store.opening import pictures_of
from napari_fish.store.records import Box, SlideRecord

MATCHES_KEY = "napari_fish_matches"
"""Where the metadata of drawn regions say on which layer they lie."""
FIELD = 0.5
"""Share of the canvas that a region fills when it is gone to."""


def open_hit(
    viewer: Any,
    database: Database,
    hit: SlideHit,
    match: Hit | None = None,
    done: Callable[[Any], None] | None = None,
) -> JobWorker:
    """Open the slide of a hit, go to the region that matches and mark it; returns at once.

    A layer that shows the slide already is used again. Where the slide is not to be found, the user is told
    what to do, and sees the pictures that the database kept of it.

    Parameters
    ----------
    viewer : napari.Viewer
        The viewer, or napari's proxy of it.
    database
        Where the hit was found.
    hit
        The slide.
    match
        Which of its regions; the nearest by default.
    done
        Called with the layer, or None, when it is shown.
    """
    viewer = getattr(viewer, "__wrapped__", viewer)
    comparison_of(viewer).clear()
    worker = JobWorker(_look_for, database, hit, list(viewer.layers))
    match = match or (hit.matches[0] if hit.matches else None)
    worker.returned.connect(partial(_show, viewer, hit, match, done))
    worker.errored.connect(partial(_failed, done))
    worker.start()
    return worker


def open_database_slide(
    viewer: Any, database: Database, slide: str, done: Callable[[Any], None] | None = None
) -> JobWorker:
    """Open a slide of a database as :func:`open_hit` does, all of it and with no region marked."""
    hit = SlideHit(rank=0, slide=slide, name=slide, distance=0.0)

    def fitted(layer: Any) -> None:
        if layer is not None:
            getattr(viewer, "__wrapped__", viewer).fit_to_view(layers=[layer], margin=0.03)
        if done is not None:
            done(layer)

    return open_hit(viewer, database, hit, done=fitted)


def draw_matches(
    viewer: Any,
    answer: Answer,
    hit: SlideHit,
    match: Hit | None = None,
    database: Database | None = None,
    done: Callable[[Any], None] | None = None,
) -> JobWorker | None:
    """Go to a hit, and draw its regions and those of the query that they match: a pair has one number and colour.

    Parameters
    ----------
    viewer, hit, match, done
        As for :func:`open_hit`, which this begins with.
    answer
        What the hit is part of.
    database
        Where it was found; by default the one that is open in the viewer.
    """
    viewer = getattr(viewer, "__wrapped__", viewer)
    database = database or session_of(viewer).database
    if database is None:
        alert_user("Open the database that the hit was found in.")
        return None

    def also_on_query(layer: Any) -> None:
        draw_on_query(viewer, answer, hit, match)
        if layer is not None:
            viewer.layers.selection.active = layer
        if done is not None:
            done(layer)

    return open_hit(viewer, database, hit, match, also_on_query)


def draw_on_query(viewer: Any, answer: Answer, hit: SlideHit, match: Hit | None = None) -> Any:
    """Draw the regions of the query that a hit matches over the layer that was searched; None where it is gone."""
    viewer = getattr(viewer, "__wrapped__", viewer)
    for layer in list(viewer.layers):
        if answer.layer and layer.name == answer.layer and isinstance(layer, Image):
            # Only its size counts, and opening the slide would hold up the viewer.
            slide = Pixels.of(layer) if answer.asked.size is None else Pixels(answer.asked.size)
            drawn = draw_regions(viewer, layer, _to_world(layer, slide), hit.matches, "query", match)
            drawn.visible = layer.visible
            return drawn
    return None


def layer_of(record: SlideRecord, place: Path | None, layers: Sequence[Any]) -> Any:
    """Return the layer that shows a slide already, whoever opened it; None for none."""
    for layer in layers:
        if not isinstance(layer, Image):
            continue
        about = layer.metadata.get(METADATA_KEY)
        if (
            isinstance(about, dict)
            and record.content_hash
            and about.get("content_hash") == record.content_hash
        ):
            return layer
        paths = [layer.source.path, layer.metadata.get("path")]
        if place is not None and any(_is_file(path, place) for path in paths):
            return layer
    return None


def fly_to(viewer: Any, layer: Any, corners: ArrayLike) -> None:
    """Bring a region, given by its corners in the layer's world coordinates, into the middle of the canvas."""
    points = to_scene(viewer, layer, corners)
    low, high = points.min(axis=0), points.max(axis=0)
    camera, size = viewer.scene.camera, np.array(viewer.canvas.size, float)
    camera.center = tuple((low + high) / 2)
    camera.zoom = float(FIELD * (size / np.maximum(high - low, 1e-9)).min())


def draw_regions(
    viewer: Any, layer: Any, to_world: ToWorld, matches: Sequence[Hit], side: str, chosen: Hit | None = None
) -> Any:
    """Draw matching regions over the layer of a slide, in place of those drawn there before.

    Parameters
    ----------
    viewer, layer
        Where.
    to_world
        From level-0 px of the slide to world coordinates in the layer's own units.
    matches, side, chosen
        As for :func:`~napari_fish._napari.layers.hit_layers.matches_layer`.
    """
    for old in [one for one in viewer.layers if one.metadata.get(MATCHES_KEY) == layer.unique_id]:
        viewer.layers.remove(old)
    data, options, kind = matches_layer(matches, side, to_world, f"Matches · {layer.name}", chosen)
    options |= {"units": layer.units[-2:], "metadata": {MATCHES_KEY: layer.unique_id}}
    return viewer.add_layer(Layer.create(data, options, kind))


def _to_world(layer: Any, slide: Extent) -> ToWorld:
    return partial(level0_to_world, layer, slide)


def _is_file(path: Any, place: Path) -> bool:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        return False
    return os.path.normpath(os.path.abspath(path)) == os.path.normpath(os.path.abspath(place))


@dataclass(frozen=True, eq=False)
class _Found:
    """What there is of a hit: its slide with a layer or the data for one, or what was kept of it."""

    record: SlideRecord
    place: Path | None = None
    slide: Slide | None = None
    layer: Any = None
    data: LayerData | None = None
    kept: Sequence[LayerData] = ()
    message: str = ""


def _look_for(
    database: Database, hit: SlideHit, layers: Sequence[Any], progress: object, should_stop: object
) -> _Found:
    record = database.record(hit.slide)
    if record is None:
        raise FishError(f"{hit.slide}: is not in the database any more. Search again.")
    place, message = None, ""
    try:
        place = database.place(record)
    except FishError as error:
        message = f"{error} In the viewer: Database widget, Relocate."
    layer = layer_of(record, place, layers)
    if layer is not None:
        return _Found(record, place, slide_of(layer, layers), layer)
    if place is not None:
        mpp = record.mpp or None
        try:
            # Two of them: one for the layer, which closes it with itself, one to convert coordinates.
            data = slide_layer(open_slide(place, mpp=mpp), slide_name(place))
            return _Found(record, place, open_slide(place, mpp=mpp), data=data)
        except FishError as error:
            message = str(error)
    return _Found(record, kept=_kept(database, record, hit), message=message)


def _kept(database: Database, record: SlideRecord, hit: SlideHit) -> list[LayerData]:
    """Return the pictures that the database kept of a slide and its regions as layers in µm."""
    thumbnails = pictures_of(database.path)
    if thumbnails is None:
        return []
    try:
        overview = thumbnails.overview(hit.slide)
        pictures = [(match.hit_box, thumbnails.patch(hit.slide, match.hit_box)) for match in hit.matches]
    finally:
        thumbnails.close()
    name = record.name or record.slide
    found = [(Box(0, 0, record.width, record.height), overview, f"{name} (slide away: kept overview)")]
    found += [
        (box, jpeg, f"{name} (slide away: kept region {i})") for i, (box, jpeg) in enumerate(pictures, 1)
    ]
    about = {KEPT_KEY: f"{database.path}::{hit.slide}"}
    return [
        picture_layer(box, jpeg, record.mpp or 1.0, title, about)
        for box, jpeg, title in found
        if jpeg and box.width
    ]


def _failed(done: Callable[[Any], None] | None, error: Exception) -> None:
    alert_user(in_words(error))
    if done is not None:
        done(None)


def _show(
    viewer: Any, hit: SlideHit, match: Hit | None, done: Callable[[Any], None] | None, found: _Found
) -> None:
    """Show what was found, in the main thread."""
    layer = found.layer if found.layer in viewer.layers else None
    if found.slide is not None:
        if layer is None and found.data is not None:
            # It may have been opened since: by a second click, or by hand.
            layer = layer_of(found.record, found.place, viewer.layers)
            if layer is None:
                watch(viewer)
                layer = viewer.add_layer(Layer.create(*found.data))
            else:
                found.data[0][0].slide.close()
        if layer is not None:
            _go_to(viewer, [layer], _to_world(layer, found.slide), hit, match)
        found.slide.close()
    elif found.kept:
        about = found.kept[0][1]["metadata"]
        there = {one.name: one for one in viewer.layers if one.metadata == about}
        layers = [there.get(data[1]["name"]) or viewer.add_layer(Layer.create(*data)) for data in found.kept]
        layer = layers[0]
        _go_to(viewer, layers, partial(level0_to_um, mpp=found.record.mpp or 1.0), hit, match)
    if found.message:
        warn_user(found.message)
    if done is not None:
        done(layer)


def _go_to(viewer: Any, layers: Sequence[Any], to_world: ToWorld, hit: SlideHit, match: Hit | None) -> None:
    """Show the layers of a slide alone, with its regions marked, and go to one of them."""
    paths = {layer.source.path for layer in layers} - {None}
    hidden = []
    for layer in viewer.layers:
        if layer in layers or (isinstance(layer, Image) and layer.source.path in paths):
            layer.visible = True
        elif layer.metadata.get(MOSAIC_KEY) == layers[0].unique_id:
            continue
        elif isinstance(layer, Image) or not {MATCHES_KEY, MOSAIC_KEY}.isdisjoint(layer.metadata):
            # Slides lie on top of each other in the viewer.
            hidden += [layer] if layer.visible else []
            layer.visible = False
    _bring_back_after(viewer, layers[0], hidden)
    if hit.matches:
        draw_regions(viewer, layers[0], to_world, hit.matches, "hit", match)
    viewer.layers.selection.active = layers[0]
    if match is not None:
        fly_to(viewer, layers[0], to_world(corners_of(match.hit_box)))


def _lies_on(layer: Any) -> tuple[Any, Any]:
    """Return the layers that marks lie on."""
    return layer.metadata.get(MATCHES_KEY), layer.metadata.get(MOSAIC_KEY)


def _bring_back_after(viewer: Any, slide: Any, hidden: Sequence[Any]) -> None:
    """Once the user deletes a slide, take its marks away and show what it had hidden, unless another one is seen."""

    def removed(event: Any) -> None:
        if event.value is slide:
            viewer.layers.events.removed.disconnect(removed)
            # Not now: others have yet to hear of it.
            QTimer.singleShot(0, bring_back)

    def bring_back() -> None:
        for mark in [one for one in viewer.layers if slide.unique_id in _lies_on(one)]:
            viewer.layers.remove(mark)
        if not any(isinstance(layer, Image) and layer.visible for layer in viewer.layers):
            for layer in hidden:
                layer.visible = True

    viewer.layers.events.removed.connect(removed)
