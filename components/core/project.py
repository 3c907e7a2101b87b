"""Folder of the Pulumi project, and paths as settings and messages write them."""

from pathlib import Path

from berth.components.core.errors import BadInputError


class NoProjectError(BadInputError):
    """Working folder outside of any Pulumi project."""

    def __init__(self) -> None:
        super().__init__(
            "no Pulumi.yaml here or above, so berth does not know which stacks are meant",
            "cd into your repository, or make one: berth new FOLDER",
        )


def project_or_none() -> Path | None:
    """Return the nearest folder upward with a Pulumi.yaml; None outside of a project."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    return None


def project_folder() -> Path:
    """Return the nearest folder upward with a Pulumi.yaml.

    Raises:
        NoProjectError: there is none.
    """
    folder = project_or_none()
    if folder is None:
        raise NoProjectError
    return folder


def shown_path(path: Path) -> str:
    """Return a path from the project's folder; the whole path of a file that is elsewhere."""
    root = project_or_none()
    return str(path.relative_to(root) if root and path.is_relative_to(root) else path)


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
