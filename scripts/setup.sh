#!/usr/bin/env bash
# Make ready what `make` needs: system libraries, virtual environment, this package with one extra.
#
#   VENV=.venv PYTHON=python3 bash scripts/setup.sh [EXTRA [REQUIREMENT...]]
#
# Further requirements choose one version of many: `setup.sh test-windows PyQt6 napari==0.7.1`.
# Quick when there is nothing to do: pip runs only when setup.cfg or pyproject.toml have changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

extra="${1:-}"
venv="${VENV:-.venv}"
python="${PYTHON:-python3}"

# What napari's window needs on a bare Debian, and a display for tests where there is none.
libraries=(
    xvfb x11-utils libegl1 libgl1 libdbus-1-3 libfontconfig1 libxkbcommon-x11-0
    libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0
    libxcb-render-util0 libxcb-shape0 libxcb-xinerama0 libxcb-xkb1
)

say() { printf '%s\n' "$*" >&2; }

absent() { # the Debian packages among the arguments that are not installed
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
    done
}

apt_install() { # as root only; fails where it cannot
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    export DEBIAN_FRONTEND=noninteractive
    say "Installing by apt-get: $*"
    apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

make_venv() {
    if ! command -v "$python" >/dev/null; then
        apt_install python3 python3-venv || { say "Install Python 3.11 or newer, or say which: make PYTHON=..."; exit 2; }
    fi
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        say "$("$python" --version) is too old: Python 3.11 or newer is needed. Say which: make PYTHON=python3.11 ..."
        exit 2
    fi
    say "Making the virtual environment $venv"
    # Debian keeps ensurepip, which venv needs, in a package of its own.
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
        apt_install python3-venv || { say "Install the package python3-venv, then try again."; exit 2; }
    fi
    "$python" -m venv "$venv"
}

with_uv() { # uv loads and unpacks side by side: a fifth of the waiting; where it fails, pip says why
    local index
    "$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check uv 2>/dev/null || return 1
    index="${PIP_INDEX_URL:-$("$venv/bin/python" -m pip config get global.index-url 2>/dev/null || true)}"
    [ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
    "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" -e ".${extra:+[$extra]}" "$@" 2>/dev/null
}

with_pip() { # most of what the requirements contain is never imported: Python compiles the rest at first use
    "$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check -e ".${extra:+[$extra]}" "$@"
}

install_package() {
    local stamp="$venv/.installed-${extra:-core}"
    local wanted
    # The folder is part of it: an editable installation breaks when the clone moves.
    wanted="$( (pwd; echo "$*"; cat setup.cfg setup.py pyproject.toml) | sha256sum)"
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        say "Installing napari-agglo${extra:+ with what '$extra' needs} into $venv (a few minutes the first time)"
        with_uv "$@" || with_pip "$@"
        printf '%s\n' "$wanted" >"$stamp"
    fi
}

install_libraries() { # only what opens a window needs them, so their absence stops nobody here
    local stamp="$venv/.libraries-tried" missing
    command -v dpkg-query >/dev/null || return 0
    [ ! -e "$stamp" ] || return 0
    mapfile -t missing < <(absent "${libraries[@]}")
    if [ "${#missing[@]}" -gt 0 ] && ! apt_install "${missing[@]}"; then
        say "Going on without some system libraries that napari's window, and tests of it, need. To install them:"
        say "    sudo apt-get install ${missing[*]}"
    fi
    touch "$stamp"
}

[ -x "$venv/bin/python" ] || make_venv
install_libraries
install_package "${@:2}"
