"""Writes a package of StableHLO programs: a zip file whose members are stored uncompressed."""

import os
import pathlib
import tempfile
import zipfile

from disttrain.exporting.errors import ExportError


def write(path, members):
    """Writes the file. If that fails, a file that was there before stays as it was. members: bytes by name."""
    path = pathlib.Path(path)
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as package:
                    for name, content in members.items():
                        # Without a date of its own, the same model makes the same bytes.
                        package.writestr(zipfile.ZipInfo(name), content)
                file.flush()
                umask = os.umask(0)
                os.umask(umask)
                os.fchmod(file.fileno(), 0o666 & ~umask)
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise ExportError(f"export_jax: can't write {path}: {error.strerror}") from None
