"""Folder of the Pulumi project, and paths as settings and messages write them."""

from pathlib import Path

from berth.components.core.errors import BadInputError


def project_folder() -> Path:
    """Return the nearest folder upward with a Pulumi.yaml, else berth's own clone."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    return Path(__file__).resolve().parent.parent.parent


def shown_path(path: Path) -> str:
    """Return a path from the project's folder; the whole path for a user who is elsewhere."""
    root = project_folder()
    if path.is_relative_to(root) and Path.cwd().is_relative_to(root):
        return str(path.relative_to(root))
    return str(path)


def path_of_setting(text: str) -> Path:
    """Return the path that a setting gives: from the project's folder, or from `~`, the home.

    Raises:
        BadInputError: there is no such home.
    """
    try:
        return project_folder() / Path(text).expanduser()
    except RuntimeError:
        raise BadInputError(
            f"there is no home folder {text.partition('/')[0]!r}; write the whole path"
        ) from None
