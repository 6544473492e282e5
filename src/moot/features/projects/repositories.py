"""The repository of each conversation. Statistics can be grouped by repository."""

from __future__ import annotations

import logging
from pathlib import Path

from anyio import to_thread

from moot.errors import StoreError
from moot.features.projects.git import main_checkout
from moot.types.store import OwnerStore

log = logging.getLogger("moot.projects")


async def place_conversations(holdings: OwnerStore) -> None:
    """Determine the repository of each conversation that has a folder but no repository yet."""
    folders = await holdings.projects.unplaced()
    if not folders:
        return
    home = Path.home()
    found = await to_thread.run_sync(lambda: {folder: repository_of(folder, home) for folder in folders})
    try:
        await holdings.projects.place(found)
    except StoreError as error:  # such as a full disk: the statistics can still be read
        log.warning("the repositories of conversations can't be stored: %s", error)


def repository_of(folder: str, home: Path) -> str:
    """Return the main checkout of the repository that contains a folder, or the folder itself if it is not in a repository.

    If the folder, such as a worktree, has been deleted, its closest existing parent is used. A repository directly in the user's home
    folder is ignored, because it usually contains only settings.
    """
    path = Path(folder)
    if not path.is_absolute():
        return folder
    existing = next((above for above in (path, *path.parents) if above.is_dir()), None)
    found = main_checkout(existing) if existing is not None else None
    return folder if found is None or found in (home, *home.parents) else str(found)
