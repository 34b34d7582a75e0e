"""Public data brought to the data folder: whole, checked, and only when somebody asks for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from halfseen.checks import check_parameters, one_of
from halfseen.data.catalogue import SOURCES
from halfseen.data.drafts import moved_when_whole
from halfseen.data.parcels import Parcel, Tell, bring, copied
from halfseen.data.shelf import Source, StoredFile, data_folder, paths_of, plain
from halfseen.errors import DataError, DataWarning


def tell_nobody(so_far: int, total: int | None) -> None:
    """For who does not want to be told."""


def fetch(name: str, *, tell: Tell = tell_nobody) -> list[Path]:
    """Bring public data to the data folder from where they are published, and give the paths of their files.

    Every file is checked by its sha256 where one is known, and appears when all of them are whole; what is there
    already and right is not fetched again. See `source(name).terms` for what you may do with them. Some sets are to be
    had by hand only, from pages that ask who you are: the refusal says what to save where. `tell` is told how many
    bytes have come, and of how many.
    """
    check_parameters({"name": name}, {"name": one_of(*SOURCES)})
    source = SOURCES[name]
    if is_there(source):
        return paths_of(source)
    if not source.downloads:
        raise DataError(f"The data {source.title!r} must be fetched by hand: no address gives them. {by_hand(source)}")
    folder = data_folder()
    with _room(folder), TemporaryDirectory(prefix=".fetching-", dir=folder) as place, ExitStack() as drafts:
        parcels = list(_brought(source, Path(place), tell))
        for file in source.wanted:
            path = folder / plain(file.path)
            drafts.enter_context(_made(path.parent))
            _unpack(file, parcels, drafts.enter_context(moved_when_whole(path)), source)
    return paths_of(source)


def is_there(source: Source) -> bool:
    """Whether all files of a dataset lie in the data folder, with the contents that are known here."""
    try:
        with warnings.catch_warnings(action="error", category=DataWarning):
            return bool(paths_of(source, source.wanted))
    except (DataError, DataWarning):
        return False


def by_hand(source: Source) -> str:
    """What to save where."""
    files = [f"the file {PurePosixPath(plain(file.path)).name} as {_place(file)}" for file in source.files]
    hint = f" {source.hint}" if source.hint else ""
    return f"Open {source.address} in a browser and save {', and '.join(files)}.{hint}"


def _brought(source: Source, place: Path, tell: Tell) -> Iterator[Parcel]:
    for number, download in enumerate(source.downloads):
        try:
            yield bring(download, place / str(number), tell)
        except DataError as error:
            raise DataError(f"{error} {by_hand(source)}") from None


def _unpack(file: StoredFile, parcels: Sequence[Parcel], draft: Path, source: Source) -> None:
    """Copy a file out of whichever parcel holds it, and check it by its own sha256, or by that of the parcel."""
    name = PurePosixPath(plain(file.path)).name
    for parcel in parcels:
        with parcel.opened(name) as contents:
            if contents is None:
                continue
            digest = copied(contents, draft)
        known = file.digests(file.path) - {None}
        if known:
            _check(digest, known, name, parcel, source)
        elif parcel.of.sha256 is not None:
            _check(parcel.sha256, {parcel.of.sha256}, parcel.name, parcel, source)
        return
    addresses = " and ".join(parcel.of.address for parcel in parcels)
    raise DataError(f"The file {name} must be in what {addresses} gives. It is not. {by_hand(source)}")


def _check(found: str, known: set[str | None], name: str, parcel: Parcel, source: Source) -> None:
    if found not in known:
        raise DataError(
            f"{name} must hold the data that are known here, of sha256 {' or '.join(sorted(map(str, known)))}. "
            f"Found {found} at {parcel.of.address}; nothing was kept. Try again; if the publisher has changed it, look "
            f"at it yourself. {by_hand(source)}"
        )


def _place(file: StoredFile) -> Path:
    return data_folder() / plain(file.path)


@contextmanager
def _room(folder: Path) -> Iterator[None]:
    """The data folder; that it can't be written to is a sentence."""
    try:
        with _made(folder):
            yield
    except OSError as error:
        raise DataError(
            f"The data folder must be writable, with room enough. Found {str(folder)!r}: {error.strerror or error}. "
            "Make room, or set HALFSEEN_DATA to another folder; nothing was kept."
        ) from None


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """The folder, made if need be; of those that were made none is left empty in the end."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for one in new:
            if one.exists() and not any(one.iterdir()):
                one.rmdir()
