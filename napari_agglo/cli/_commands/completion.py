"""`napari-agglo completion`: a script that lets a shell complete commands and options."""

from __future__ import annotations

import argparse
import re

from napari_agglo.cli._terminal import Console

NAME = "completion"
SUMMARY = "print a script for completion in bash, zsh or fish"
DESCRIPTION = (
    "Print a script that completes commands, options and their choices. bash and zsh: add\n"
    '  eval "$(napari-agglo completion bash)"\n'
    "to ~/.bashrc, or zsh in its place to ~/.zshrc. fish:\n"
    "  napari-agglo completion fish > ~/.config/fish/completions/napari-agglo.fish"
)
EXAMPLE = "napari-agglo completion bash"
SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Print the script, made from the parser."""
    from napari_agglo.cli._main import make_parser

    commands = subparsers(make_parser())
    script = _fish(commands) if arguments.shell == "fish" else _bash(commands)
    if arguments.shell == "zsh":
        script = f"autoload -U +X bashcompinit && bashcompinit\n{script}"
    print(script)


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands of a parser by name; of nested ones "session info" is a name.

    Examples
    --------
    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_subparsers().add_parser("demo")
    >>> list(subparsers(parser))
    ['demo']
    """
    commands = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                commands[name] = command
                commands |= {f"{name} {inner}": one for inner, one in subparsers(command).items()}
    return commands


def _words(command: argparse.ArgumentParser) -> list[str]:
    """Return the words that may follow a command: options, choices and further commands."""
    words = [*subparsers(command)]
    for action in command._actions:
        words += action.option_strings
        if not isinstance(action, argparse._SubParsersAction) and not action.option_strings:
            words += map(str, action.choices or ())
    return [word for word in words if " " not in word]


def _choices(command: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return the values of each option that has few."""
    return {
        option: [str(choice) for choice in action.choices]
        for action in command._actions
        for option in action.option_strings
        if action.choices
    }


def _bash(commands: dict[str, argparse.ArgumentParser]) -> str:
    first = " ".join(name for name in commands if " " not in name)
    cases = "\n".join(
        f'        "{name}") words="{" ".join(_words(command))}" ;;'
        for name, command in commands.items()
    )
    values = "\n".join(
        f'        "{name} {option}") words="{" ".join(choices)}" ;;'
        for name, command in commands.items()
        for option, choices in _choices(command).items()
    )
    nested = " ".join(name.partition(" ")[0] for name in commands if " " in name)
    return f"""\
_napari_agglo() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="${{COMP_WORDS[1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{first} --help --version" -- "$current"))
        return
    fi
    case " {nested} " in
        *" $command "*) [ "$COMP_CWORD" -gt 2 ] && command="$command ${{COMP_WORDS[2]}}" ;;
    esac
    case "$command" in
{cases}
    esac
    case "$command $previous" in
{values}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _napari_agglo napari-agglo"""


def _fish(commands: dict[str, argparse.ArgumentParser]) -> str:
    lines = []
    for name, command in commands.items():
        outer, _, inner = name.rpartition(" ")
        words_so_far = " ".join(f"__fish_seen_subcommand_from {word};" for word in name.split())
        condition = words_so_far.rstrip(";").replace("; ", "; and ")
        before = f"__fish_seen_subcommand_from {outer}" if outer else "__fish_use_subcommand"
        summary = (command.description or "").partition("\n")[0]
        lines.append(f"complete -c napari-agglo -n '{before}' -a {inner} -d {_quote(summary)}")
        for action in command._actions:
            if not action.option_strings:
                continue
            flags = [
                f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                for option in action.option_strings
            ]
            value = "" if action.nargs == 0 else " -r"
            if action.choices:
                value = f" -x -a {_quote(' '.join(map(str, action.choices)))}"
            text = _quote(re.sub(r"%\(\w+\)s", "", action.help or ""))
            lines.append(
                f"complete -c napari-agglo -n '{condition}' {' '.join(flags)}{value} -d {text}"
            )
    return "\n".join(lines)


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
