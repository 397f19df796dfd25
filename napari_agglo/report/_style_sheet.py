"""Style sheet of the page: light or dark as the reader's system, narrow or wide, self-contained.

In its own file because it is CSS.
"""

from __future__ import annotations

from napari_agglo.report._figures import colour_variables

_LIGHT = {"--page": "#f4f5f7", "--card": "#fefefe", "--rule": "#d9dde2", "--best": "#e3f1ea"}
_DARK = {"--page": "#0d0f13", "--card": "#14171c", "--rule": "#2c323a", "--best": "#12352a"}

_RULES = """
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main, header, footer { max-width: 1240px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 30px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 36px 0 4px; }
p { margin: 0 0 12px; max-width: 92ch; overflow-wrap: anywhere; }
.lead { font-size: 17px; }
.note { max-width: 130ch; }
.note, figcaption, footer, .facts { color: var(--muted); font-size: 13px; }
a { color: var(--text-1); }
.card, figure, details { background: var(--card); border: 1px solid var(--rule);
  border-radius: 10px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 12px; text-align: right; white-space: nowrap; }
thead th { font-size: 12px; line-height: 1.25; color: var(--muted); font-weight: 600;
  vertical-align: bottom; border-bottom: 1px solid var(--rule); white-space: normal; }
tbody tr + tr > * { border-top: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; }
tbody th { font-weight: 600; max-width: 30ch; overflow: hidden; text-overflow: ellipsis; }
tr.own > td { color: var(--muted); font-style: italic; }
tr.reference > * { color: var(--muted); font-weight: 400; }
td.best { background: var(--best); font-weight: 700; }
td.text { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.swatch { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 8px; }
.sem { display: block; line-height: 1.1; color: var(--muted); font-weight: 400; font-size: 12px; }
.plots { display: grid; gap: 14px; margin-top: 10px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 370px), 1fr)); }
.plots.maps { grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr));
  align-items: start; }
.plots > figure { max-width: 720px; }
@supports (grid-template-rows: subgrid) { /* plots of a row begin at one height */
  .plots:not(.maps) > figure { display: grid; grid-row: span 2; grid-template-rows: subgrid;
    row-gap: 0; } }
.errors { display: grid; gap: 14px; margin-top: 10px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 212px), 1fr)); }
figure { margin: 0; padding: 14px; display: flex; flex-direction: column; min-width: 0; }
figcaption { margin-bottom: 8px; }
figcaption b { display: block; color: var(--ink); font-size: 14.5px; overflow-wrap: anywhere; }
figure > svg { width: 100%; display: block; }
svg.plot { height: auto; max-height: 430px; }
svg.pixels { border-radius: 5px; overflow: hidden; background: #000; max-height: 560px; }
.errors svg.pixels { max-height: 320px; }
.pixels image { image-rendering: pixelated; }
.pixels path { fill: none; stroke-linejoin: round; stroke-linecap: round; }
.pixels .gold { stroke: #ffd23f; stroke-width: 2.4; }
.pixels .segmentation { stroke: #2fd0ff; stroke-width: 1; }
.pixels .whole { stroke: #fff; stroke-width: 3; stroke-opacity: .9; }
.pixels .merge { stroke: #ff9e00; stroke-width: 2; }
.pixels .split { stroke: #40b8ff; stroke-width: 2; }
.key { display: inline-block; width: 18px; height: 4px; border-radius: 2px; margin: 0 5px 3px 0;
  vertical-align: middle; }
.key + span { margin-right: 14px; }
.facts { margin-top: 8px; overflow-wrap: anywhere; max-width: none; }
.errors figcaption b { display: flex; flex-wrap: wrap; gap: 2px 4px; align-items: baseline;
  font-size: 13px; white-space: nowrap; }
.cost { margin-left: auto; font-weight: 400; font-size: 12px; white-space: nowrap; }
.kind { display: inline-block; padding: 0 6px; border-radius: 9px; font-size: 11.5px;
  font-weight: 600; color: #14171c; }
.kind.merge { background: #ffb84d; } .kind.split { background: #7fcdfb; }
details { margin-top: 12px; padding: 10px 14px; }
details[open] { padding-bottom: 16px; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
code { font: 13px/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
footer { padding-top: 26px; padding-bottom: 40px; }
.empty { padding: 22px; text-align: center; color: var(--muted); }
@media (max-width: 560px) {
  main, header, footer { padding-left: 12px; padding-right: 12px; }
  h1 { font-size: 22px; } figure { padding: 10px; } th, td { padding: 6px 9px; }
  .scroll thead + tbody th, .scroll thead th:first-child { position: sticky; left: 0;
    min-width: 14ch; max-width: 17ch; white-space: normal; background: var(--card);
    border-right: 1px solid var(--rule); } }
@media print { body { background: none; } figure, tr { break-inside: avoid; } }
"""


def style_sheet() -> str:
    """Return the style sheet of the page.

    Examples
    --------
    >>> "prefers-color-scheme: dark" in style_sheet()
    True
    """
    names = list(colour_variables().values())
    light = {name: value for name, value, _ in names} | _LIGHT
    dark = {name: value for name, _, value in names} | _DARK

    def block(values: dict[str, str]) -> str:
        return ":root { " + " ".join(f"{name}: {value};" for name, value in values.items()) + " }"

    return f"{block(light)}\n@media (prefers-color-scheme: dark) {{ {block(dark)} }}\n{_RULES}"
