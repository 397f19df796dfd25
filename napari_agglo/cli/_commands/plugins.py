"""`napari-agglo plugins`: the policies, features, exports, cuts and methods of other packages."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from napari_agglo.cli._arguments import add_json
from napari_agglo.cli._terminal import Console, count

NAME = "plugins"
SUMMARY = "list what other packages add, and what is wrong with it"
DESCRIPTION = (
    "List the policies, feature blocks, export kinds, cut methods and methods to choose segments\n"
    "that installed packages add by entry points. Each is loaded, so that a fault is reported here."
)
EXAMPLE = "napari-agglo plugins --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_json(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Load every entry point, and print its group, name and package, or its problem."""
    from napari_agglo._registry import Registry, misspelt_groups
    from napari_agglo.features import feature_blocks
    from napari_agglo.partition import METHODS
    from napari_agglo.policy import policies
    from napari_agglo.session._cut_methods import cut_methods
    from napari_agglo.session._exports import exports

    registries: list[Registry[Any]] = [policies, feature_blocks, exports, cut_methods, METHODS]
    own = {one.group: [*one.own_names()] for one in registries}
    plugins = [plugin for one in registries for plugin in one.plugins()]
    plugins += misspelt_groups(own)
    lines = []
    for plugin in plugins:
        package = plugin.package or "an unknown package"
        lines.append(f"{plugin.group:24} {plugin.name:16} {plugin.value} ({package})")
        if plugin.problem:
            lines.append(f"  not usable: {plugin.problem}")
    broken = sum(bool(plugin.problem) for plugin in plugins)
    lines.append(f"{count(len(plugins), 'plug-in')}, {broken} not usable.")
    for registry in registries:
        lines.append(f"{registry.group} of this package: {', '.join(own[registry.group]) or '-'}")
    data = {"plugins": [asdict(plugin) for plugin in plugins], "own": own}
    console.result("\n".join(lines), data, asked_for=True)
