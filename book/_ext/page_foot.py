"""Under each page: when it last ran, with which torch, and a link to say that something is wrong.

The link opens an issue with the page's name filled in, in the repository of _config.yml; there is
none while that is the placeholder. Date and version are those of the run whose outputs are shown.
Where notebooks can be opened in Colab, they can be opened in Kaggle as well.
"""

import importlib.metadata
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx

from tools.setup_cell import repository_url

PLACEHOLDER = "/OWNER/"
KAGGLE = "https://kaggle.com/kernels/welcome?src="


def issue_link(repository: str, title: str, page: str) -> str | None:
    """A new issue about a page, with its form begun; None where no repository is set."""
    if PLACEHOLDER in repository or not repository.startswith("https://github.com/"):
        return None
    begun = {"template": "page.yml", "title": f"{title}: ", "page": page}
    return f"{repository}/issues/new?{urlencode(begun, quote_via=quote)}"


def last_run(app: Sphinx, page: str) -> dict | None:
    """When the page's notebook was executed, and with which torch; None where nothing was."""
    data = NbMetadataCollector.get_exec_data(app.env, page)
    if not data or not data.get("mtime"):
        return None
    day = datetime.fromtimestamp(data["mtime"], UTC)
    return {
        "date": day.date().isoformat(),
        "said": f"{day.day} {day:%B %Y}",
        "torch": importlib.metadata.version("torch").partition("+")[0],
    }


def add_foot(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if doctree is None or app.builder.format != "html":
        return
    title = app.env.titles[pagename].astext()
    context["page_issue"] = issue_link(repository_url(), title, pagename)
    context["page_run"] = last_run(app, pagename)


def add_kaggle(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    for group in context.get("header_buttons") or []:
        if group.get("label") == "launch-buttons":
            source = app.env.doc2path(pagename, False)
            link = f"{KAGGLE}{repository_url()}/blob/main/{source}"
            group["buttons"].append(
                {"type": "link", "text": "Kaggle", "tooltip": "Launch on Kaggle", "url": link}
            )


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_foot, priority=400)  # the theme drops empty templates
    app.connect("html-page-context", add_kaggle, priority=600)  # after the theme's buttons
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
