"""The story in one moving picture: a slide, a box, its answer, the comparison."""

from __future__ import annotations

from pathlib import Path

from PIL import Image
from screenshots.common import BOX, OTHER_BOX, in_few_colours, put_box, scene, wait_until

SHOWN = (896, 576)
"""Size of the moving picture in px."""
SECONDS = {"slide": 1.6, "box": 1.2, "answer": 3.2, "moved": 2.4, "compared": 3.6}


def box_to_results(file: Path) -> None:
    """Write the frames as a GIF."""
    from napari_fish._napari.compare import comparison_of
    from napari_fish._napari.docks import show_widget
    from napari_fish._napari.session import session_of

    frames: dict[str, Image.Image] = {}
    with scene(results=False) as (viewer, search, _):
        viewer.window._qt_viewer.dockLayerControls.hide()
        viewer.window._qt_viewer.dockLayerList.hide()

        def take(name: str) -> None:
            wait_until(lambda: True)
            picture = Image.fromarray(viewer.screenshot(canvas_only=False, flash=False)).convert("RGB")
            frames[name] = picture.resize(SHOWN, Image.Resampling.LANCZOS)

        def fit() -> None:
            wait_until(lambda: True)
            viewer.fit_to_view(layers=[search.query.layer], margin=0.03)

        fit()
        take("slide")
        search.query.live.setChecked(False)
        search.query.box.put(search.query.layer, BOX)
        take("box")
        search.search_box()
        session = session_of(viewer)
        wait_until(lambda: session.current is not None and not session.busy)
        results = show_widget(viewer, "Results")
        wait_until(lambda: not results.loading)
        fit()
        take("answer")
        search.query.live.setChecked(True)
        put_box(viewer, search, results, OTHER_BOX)
        take("moved")
        results.compare()
        comparison = comparison_of(viewer)
        wait_until(lambda: comparison.shown and not comparison.busy)
        take("compared")
        comparison.clear()
    _write(frames, file)


def _write(frames: dict[str, Image.Image], file: Path) -> None:
    pictures = [in_few_colours(frame, 128, Image.Dither.NONE) for frame in frames.values()]
    durations = [round(1000 * SECONDS[name]) for name in frames]
    pictures[0].save(
        file, save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True
    )


PICTURES = {"box-to-results.gif": box_to_results}
