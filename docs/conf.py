"""Settings of Sphinx, which builds these pages; run by `make docs`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.request import urlopen

from numpydoc.xref import DEFAULT_LINKS

from napari_agglo import __version__

project = "napari-agglo"
author = "The napari-agglo developers"
copyright = "The napari-agglo developers"
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
]
PROJECTS = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "pandas": ("https://pandas.pydata.org/docs", None),
    "skimage": ("https://scikit-image.org/docs/stable", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "networkx": ("https://networkx.org/documentation/stable", None),
    "napari": ("https://napari.org/stable", None),
}


def is_reachable(address: str) -> bool:
    """Return whether the inventory of a project can be fetched."""
    try:
        with urlopen(f"{address}/objects.inv", timeout=5):
            return True
    except OSError:
        return False


# Links to the pages of other projects need their inventories. A computer without a network builds
# the pages without these links; DOCS_OFFLINE=1 does so anywhere.
intersphinx_mapping = {
    name: project
    for name, project in PROJECTS.items()
    if not os.environ.get("DOCS_OFFLINE") and is_reachable(project[0])
}
if intersphinx_mapping:
    extensions.append("sphinx.ext.intersphinx")

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "Thumbs.db"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # links to sections, as on the pages of a repository
suppress_warnings = ["myst.header"]  # pages may begin with a second-level heading

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # the numpydoc sections have them
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of a class lists them
default_role = "literal"  # names between single back quotes are code, as on the other pages
toc_object_entries_show_parents = "hide"  # beside the page of a class its name is no news
# The types of parameters are links to other projects, and to the page of names.
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {
    **{name: name for name in DEFAULT_LINKS},  # numpydoc's own show a prefix where they lead nowhere
    **{"DataFrame": "pandas.DataFrame", "Series": "pandas.Series", "ndarray": "numpy.ndarray"},
}
numpydoc_xref_ignore = "all"  # but for the names above and below
_module = ""
for _line in (Path(__file__).parent / "reference.md").read_text(encoding="utf-8").splitlines():
    if _match := re.fullmatch(r"\.\. currentmodule:: (\S+)", _line):
        _module = _match[1]
    elif _match := re.fullmatch(r"   ([A-Z]\w+)", _line):  # classes
        numpydoc_xref_aliases[_match[1]] = f"{_module}.{_match[1]}"

html_theme = "napari_sphinx_theme"
html_title = "napari-agglo"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_sidebars = {"**": ["sidebar-nav-bs"]}
html_theme_options = {
    "navbar_start": ["navbar-logo"],
    "navbar_center": ["navbar-nav"],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],  # the theme's own has links to napari's code, forum and chat
    "footer_end": ["sphinx-version"],
    "logo": {"text": "napari-agglo"},
}
pygments_style = "default"
highlight_language = "none"  # of blocks that name no language: commands, diagrams, messages
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
