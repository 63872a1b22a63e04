"""What `make docs` does beside MkDocs: the README is the first page, and links out of docs/ hold.

Files of the repository to which pages lead become a part of the site, the help of each command
stands on its page, and a site that fetches anything from elsewhere is not built.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, InclusionLevel
from typer.main import get_command

from panprivacy.cli import app

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")
HELP = re.compile(r"<!-- help: ([\w-]+) -->")
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)[^>]+src=.?(?:https?:)?//|<link[^>]+href=.?https?:"
)


def on_files(files, config):
    """Add the README and what pages lead to outside of docs/."""
    pages = {page.src_uri: Path(page.abs_src_path) for page in files.documentation_pages()}
    pages["index.md"] = ROOT / "README.md"
    while pages:
        found = {}
        for uri, path in pages.items():
            for link in LINK.findall(path.read_text()):
                target = in_repository(uri, link)
                if not target.startswith("docs/") and (ROOT / target).is_file():
                    found[in_site(target)] = ROOT / target
        for uri, path in pages.items():
            if uri not in files.src_uris:
                added = File.generated(config, uri, content=path.read_text())
                added.inclusion = InclusionLevel.NOT_IN_NAV
                files.append(added)
        pages = {}
        for uri, path in found.items():
            if uri in files.src_uris:
                continue
            if path.suffix == ".md":
                pages[uri] = path
            else:
                files.append(File.generated(config, uri, content=path.read_bytes()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Turn links of the repository into links of the site, and say what a command takes."""
    here = page.file.src_uri

    def moved(link):
        target = in_site(in_repository(here, link[1]))
        return relpath(target, dirname(here) or ".")

    return HELP.sub(help_of, LINK.sub(moved, markdown))


def in_repository(uri, link):
    """Where a link of a page leads, from the root of the repository."""
    home = {"index.md": "README.md"}.get(uri, join("docs", uri).replace("docs/repository/", ""))
    return normpath(join(dirname(home), link))


def in_site(path):
    """Where a file of the repository is in the site."""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def help_of(found):
    """What `panprivacy COMMAND --help` prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        get_command(app)([found[1], "--help"], prog_name="panprivacy")
    return f"```text\n{printed.getvalue().strip()}\n```"


def on_post_build(config):
    """Refuse a site that fetches anything from elsewhere when it is read."""
    pages = Path(config.site_dir).rglob("*.html")
    fetching = [page.name for page in pages if FETCHED.search(page.read_text())]
    if fetching:
        message = f"these pages fetch something from elsewhere: {', '.join(fetching)}"
        raise PluginError(message)
