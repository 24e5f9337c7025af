"""How a database is made; every option of the command line and of the widget comes from here."""

from __future__ import annotations

from dataclasses import dataclass

from napari_fish.names import Preset, Strictness


@dataclass(frozen=True)
class BuildParams:
    """What a database depends on besides its slides.

    Attributes
    ----------
    encoder : str or None
        Id or path of the encoder; by default the one the database has, or ``fish-lite``.
    preset : {"default", "paper", "released"} or None
        Which patches stand for a slide: default, paper or released; by default what the database has.
    patches : bool or None
        The slides are images in folders named after their class, each of them one patch.
    artefacts : {"strict", "normal", "off"} or None
        How strictly pen ink, folds, debris and blur are left out: strict, normal or off; by default what each slide,
        or the database, has.
    mpp : float or None
        Micrometres per level-0 px of all slides, instead of what their files say.
    patient : str or None
        A column of the labels file, or a regular expression to be found in the file name whose first group is the
        patient; by default the column ``patient``.
    device : str
        Where to compute: auto, cuda, mps, xpu or cpu.
    store_codes : bool
        Keep the latent codes, 4 kB a patch before compression.
    mask : str or None
        Where the tissue of slides is marked: a folder with an image or a GeoJSON file for each, named like its slide; a
        column of the labels file that names these files; or the file itself for one slide. In slides without a mask the
        tissue is found.
    mask_class : str or None
        Which annotations of GeoJSON masks count: their classes, separated by commas; by default all.
    thumbnail_px : int
        Side of the pictures kept of patches, in px; 0 keeps none.
    batch : int
        Patches computed at once; 0 for what suits the device.
    workers : int
        Programs that read and encode slides at a time, each on a GPU of its own or on its share of the processor; 0 for
        as many as suit this computer.
    cluster : str or None
        Encode on a cluster: the address of a scheduler that was started with dask's own tools, tls://HOST:PORT, or the
        file it wrote; by default on this computer.
    map_path : tuple of str
        Where the workers of a cluster have what lies here, HERE=THERE.
    insecure : bool
        Allow a connection to the scheduler of another computer that is not encrypted.
    """

    encoder: str | None = None
    preset: Preset | None = None
    patches: bool | None = None
    mpp: float | None = None
    patient: str | None = None
    device: str = "auto"
    store_codes: bool = False
    mask: str | None = None
    mask_class: str | None = None
    thumbnail_px: int = 128
    batch: int = 0
    artefacts: Strictness | None = None
    workers: int = 0
    cluster: str | None = None
    map_path: tuple[str, ...] = ()
    insecure: bool = False
