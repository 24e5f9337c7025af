"""Synthetic H&E slides: deterministic, labelled, and with exactly known tissue and artefacts.

Six "diagnoses" differ in architecture; each patient has a stain of their own.

>>> from napari_fish.slides.demo import demo_specs, write_demo
>>> write_demo("slides", demo_specs())  # doctest: +SKIP
"""

from __future__ import annotations

from napari_fish.slides.demo.files import write_demo, write_demo_slide, write_glass
from napari_fish.slides.demo.image import DemoImage, Truth, render
from napari_fish.slides.demo.specs import ARTEFACTS, DIAGNOSES, GLASS, SITE_OF, DemoSpec, demo_specs

__all__ = [
    "ARTEFACTS",
    "DIAGNOSES",
    "GLASS",
    "SITE_OF",
    "DemoImage",
    "DemoSpec",
    "Truth",
    "demo_specs",
    "render",
    "write_demo",
    "write_demo_slide",
    "write_glass",
]
