"""An example of a package that extends napari-agglo."""
