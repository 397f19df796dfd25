"""The subcommands of `napari-agglo`, one file each."""
