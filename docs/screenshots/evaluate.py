"""Pictures of the Evaluate widget on the demo database."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from screenshots.common import demo_database, wait_until


def picture(
    file: Path, *, tab: int = 0, theme: str = "dark", run: bool = True, within: str = "", down: int = 0
) -> None:
    """Take a picture of the widget in a viewer: a tab of the results, of a full evaluation, scrolled down by some px."""
    import napari
    from napari_fish._napari.evaluate_widget import EvaluateWidget
    from qtpy.QtCore import Qt
    from qtpy.QtWidgets import QCheckBox, QComboBox, QScrollArea

    from napari_fish._napari.session import session_of
    from napari_fish._napari.show import take_picture

    viewer = napari.Viewer(title="napari-fish", show=False)
    viewer.theme = theme
    widget = EvaluateWidget(viewer)
    dock = viewer.window.add_dock_widget(widget, name="Evaluate", area="right")
    viewer.show()
    viewer.window.resize(1250, 900)
    viewer.window._qt_window.resizeDocks([dock], [430], Qt.Orientation.Horizontal)
    if run:
        session = session_of(viewer)
        session.open(demo_database())
        wait_until(lambda: session.database is not None and not session.busy)
        for name in ("ablation", "speed"):
            widget.findChild(QCheckBox, f"evaluate.{name}").setChecked(True)
        if within:
            widget.findChild(QComboBox, "evaluate.within").setCurrentText(within)
        widget.run()
        wait_until(lambda: widget.evaluation is not None)
        widget._tabs.setCurrentIndex(tab)
        for area in widget._tabs.currentWidget().parentWidget().findChildren(QScrollArea):
            area.verticalScrollBar().setValue(down)
    wait_until(lambda: True)
    take_picture(viewer, file)
    viewer.close()


PICTURES = {
    "evaluate": picture,
    "evaluate-parts": partial(picture, down=2000),
    "evaluate-labels": partial(picture, tab=1, within="site"),
    "evaluate-examples": partial(picture, tab=2, theme="light"),
    "evaluate-speed": partial(picture, tab=3),
}
