"""The widgets of a viewer share one database and one history."""

from __future__ import annotations

from napari.components import ViewerModel
from napari.utils._proxies import PublicOnlyProxy

from napari_fish._napari.session.session import session_of


def test_a_viewer_and_its_proxies_share_a_session() -> None:
    viewer, other = ViewerModel(), ViewerModel()
    assert session_of(viewer) is session_of(PublicOnlyProxy(viewer))
    assert session_of(other) is not session_of(viewer)
