"""Settings of Sphinx, which builds these pages; run by `make docs`."""

from __future__ import annotations

import os
from pathlib import Path

from napari_agglo import __version__

ROOT = Path(__file__).parents[1]

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
# Links to the pages of other projects need their inventories, which are fetched: only where asked.
if os.environ.get("DOCS_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "pandas": ("https://pandas.pydata.org/docs", None),
    "skimage": ("https://scikit-image.org/docs/stable", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "networkx": ("https://networkx.org/documentation/stable", None),
    "napari": ("https://napari.org/stable", None),
}

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
