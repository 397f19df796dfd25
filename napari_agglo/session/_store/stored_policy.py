"""Policies of a session folder: a reference in JSON, and a file for a learned policy."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from napari_agglo._data_warnings import warn_caller
from napari_agglo.errors import (
    AggloError,
    DataWarning,
    Install,
    InvalidInput,
    Remedy,
    SetOption,
    sentence,
)
from napari_agglo.features import feature_blocks
from napari_agglo.graph import RegionGraph, graph_of_pairs, sample_of_pairs
from napari_agglo.policy import (
    CallablePolicy,
    LearnedPolicy,
    NamedFunction,
    Policy,
    checked_scores,
    load_policy,
    policies,
    policy_features,
)
from napari_agglo.policy._file import INSTALL_PACKAGE, FeaturesMissing, encode_policy
from napari_agglo.session._store.journal import Journal, Record
from napari_agglo.session._store.manifest import digest_bytes
from napari_agglo.session._store.store_errors import PackageMissing, SessionDamaged
from napari_agglo.volumes import _replace_file as files

FIRST = "policy.npz"
_NAME = re.compile(r"policy(-[0-9a-f]{12})?\.npz")
# In a reference: the package that has the policy, if that is not this one, and its version.
_PACKAGE, _VERSION = "package", "package_version"


def keep(folder: Path, policy: Policy, name: str | None = None) -> dict[str, Any]:
    """Write a policy to the folder, and return the reference that `recall` takes.

    Without a `name`, the file is named after its content: the same policy is written once.
    """
    package = package_of(policy)
    more = {} if package is None else {_PACKAGE: package, **_version_of(package)}
    if policy.name != LearnedPolicy.name:  # only a learned policy has a file
        return {**policy.to_json(), **more}
    data = encode_policy(policy)
    checksum = digest_bytes(data)
    file = name or f"policy-{checksum[:12]}.npz"
    try:
        files.write_whole(folder / file, data)
    except BaseException:  # the file may be in place, but not on the disk for certain
        forget(folder, file)
        raise
    return {"kind": policy.name, "file": file, "checksum": checksum, **more}


_SAMPLE = 64  # boundaries that a policy and its copy must score alike


def check_storable(policy: Policy, graph: RegionGraph) -> None:
    """Refuse a policy of another package that a session could not make again from its JSON.

    A class that no entry point names is accepted: it is passed to `Session.open`.
    """
    if _is_ours(policy):
        return
    kind, name = type(policy).__name__, policy.name

    def refuse(problem: str, remedy: str, cause: Exception | None = None) -> NoReturn:
        raise InvalidInput(
            f"A session cannot store the policy {name!r}: {problem}",
            argument="policy",
            remedy=remedy,
        ) from cause

    entry = policies.entry_name(type(policy))
    if entry is not None and entry != name:
        refuse(
            f"the name of its class {kind} is {name!r}, and that of its entry point {entry!r}",
            "give both the same name",
        )
    words = policy.to_json()
    if not isinstance(words, dict) or words.get("kind") != name:
        refuse(
            f"{kind}.to_json must return a dict with 'kind': {name!r}, got {words!r:.80}",
            "return the name of the policy as its kind, and its parameters",
        )
    for key, value in words.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            number = ", such as float(value)" if isinstance(value, np.generic) else ""
            refuse(
                f"{kind}.to_json returns {type(value).__module__}.{type(value).__name__} as "
                f"{key!r}, which JSON has not",
                f"return plain numbers, texts and lists{number}",
                error,
            )
    if name not in policies:
        return
    if not hasattr(policies[name], "from_json"):
        refuse(
            f"{kind} has no from_json, by which it is made when the session is opened",
            "write the class method from_json(cls, words)",
        )
    plain = json.loads(json.dumps(words))
    rows = graph_of_pairs(graph, sample_of_pairs(graph, _SAMPLE))
    one = checked_scores(policy, rows)
    try:
        other = checked_scores(policies[name].from_json(plain), rows)
    except Exception as error:
        refuse(
            f"{kind}.from_json({plain!r:.80}) does not make it again: {error}",
            "let from_json take what to_json returns",
            error,
        )
    wrong = np.flatnonzero(~np.isclose(one, other, 1e-6, 1e-9))
    if len(wrong):
        k = int(wrong[0])
        refuse(
            f"made again from {plain!r:.80}, it scores a boundary {other[k]:.6g} instead of "
            f"{one[k]:.6g}",
            f"let {kind}.to_json return all parameters, and from_json read them",
        )


def warn_of_unnamed(policy: Policy) -> None:
    """Warn of a function that no name stands for: only the program that has it can pass it again.

    Examples
    --------
    >>> from napari_agglo._data_warnings import keep_warnings
    >>> with keep_warnings() as told:
    ...     warn_of_unnamed(CallablePolicy(lambda graph: graph.contact_area()))
    >>> len(told)
    1
    """
    if isinstance(policy, CallablePolicy) and "<" in policy.name:
        problem = (
            f"The session stores the name {policy.name} of its policy, which cannot be imported, "
            "as it is that of a lambda or of a function inside another: unless the function is "
            "passed as `policy`, the session opens read-only"
        )
        remedy = "define the function with def at the top of a module"
        warn_caller(DataWarning(problem, argument="policy", remedy=remedy))


def needs_code(policy: Policy) -> bool:
    """Return whether code that is not of this package scores by a policy."""
    return isinstance(policy, CallablePolicy) or not _is_ours(policy) or bool(package_of(policy))


def must_be_passed(policy: Policy) -> bool:
    """Return whether `Session.open` needs a policy, as neither a file nor an entry point has it."""
    return can_score(policy) and policy.name != LearnedPolicy.name and policy.name not in policies


def can_score(policy: Policy) -> bool:
    """Return whether the code of a policy is there, as it is not for an `AbsentPolicy`."""
    return not isinstance(policy, AbsentPolicy)


def _is_ours(policy: Policy) -> bool:
    ours = type(policy).__module__.partition(".")[0] == __name__.partition(".")[0]
    return ours and not isinstance(policy, NamedFunction)


def package_of(policy: Policy) -> str | None:
    """Return the package that a policy, or a feature that it reads, comes from; None for ours."""
    features = policy_features(policy)
    blocks = () if features is None else features.blocks
    for block in blocks:
        if (package := feature_blocks.package_of(block.name)) is not None:
            return package
    return None if _is_ours(policy) else policies.package_of(policy.name)


def words_of(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reference as the policy itself gave it."""
    return {key: value for key, value in reference.items() if key not in (_PACKAGE, _VERSION)}


def _version_of(package: str) -> dict[str, str]:
    try:
        return {_VERSION: metadata.version(package)}
    except metadata.PackageNotFoundError:
        return {}


@dataclass(frozen=True, repr=False)
class AbsentPolicy:
    """The place of a policy whose code is not there, or cannot be used: it refuses to score.

    Merges that are known need no scores, so that a session can be read as far as they reach.
    """

    reference: Mapping[str, Any]
    problem: str
    remedy: Remedy | str

    def __repr__(self) -> str:
        return f"{in_words(self)}: not available. {sentence(self.problem, self.remedy)}"

    @property
    def name(self) -> str:
        """Name of the policy that is not there."""
        return function_of(self.reference) or str(self.reference["kind"])

    @property
    def needed_function(self) -> str | None:
        """The function ``module:function`` that would be the policy, if it can be imported."""
        return str(self.remedy.value) if isinstance(self.remedy, SetOption) else None

    @property
    def probabilistic(self) -> bool:
        """Whether its priorities are known to be probabilities."""
        return self.name == LearnedPolicy.name

    def check(self, graph: RegionGraph) -> None:
        """Refuse any graph."""
        self.score(graph)

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Refuse any graph."""
        raise PackageMissing(self.problem, argument="policy", remedy=self.remedy)

    def kernel(self, graph: RegionGraph) -> None:
        """Return None: there is none."""

    def to_json(self) -> dict[str, Any]:
        """Return the reference without its package."""
        return words_of(self.reference)


def forget(folder: Path, file: Any) -> None:
    """Remove the file of a policy, unless a journal, or a damaged part of one, names it.

    A failure is ignored: an unused file does no harm.
    """
    if not isinstance(file, str) or file == FIRST or not _NAME.fullmatch(file):
        return
    with suppress(OSError):
        name = file.encode()
        if not any(name in journal.read_bytes() for journal in folder.glob("journal*")):
            files.remove(folder / file)


def recall(folder: Path, reference: Any) -> Policy:
    """Return the policy for which `keep` returned this reference.

    No function is imported because a file names it. `PackageMissing` is raised for code that is not
    there, is broken or has changed: the folder is whole.
    """
    kind = reference.get("kind") if isinstance(reference, dict) else None
    if (name := function_of(reference)) is not None:
        unnamed = "<" in name or name.startswith("__main__:")
        raise PackageMissing(
            f"The policy of {folder} is the Python function {name}, which is imported only if you "
            "pass it, because a file must not run code",
            argument="policy",
            remedy="pass the function itself as `policy` when the session is opened"
            if unnamed
            else SetOption("policy", name),
        )
    if isinstance(kind, str) and kind in policies:
        try:
            made = policies[kind]
        except InvalidInput as error:  # its package is installed, and broken
            raise PackageMissing(
                f"The policy of {folder} cannot be used: {error.problem}",
                argument="path",
                remedy=error.remedy or INSTALL_PACKAGE,
            ) from error
        try:
            return made.from_json(words_of(reference))
        except InvalidInput as error:
            if _PACKAGE in reference:
                raise changed(folder, reference, error.problem) from error
            raise SessionDamaged(
                f"{folder} names a policy that cannot be used: {error.problem}",
                argument="path",
                remedy=error.remedy,
            ) from error
        except Exception as error:  # of the code of another package
            raise changed(folder, reference, f"its from_json raises {error!r}") from error
    if isinstance(kind, str) and kind != LearnedPolicy.name:
        if _PACKAGE not in reference:  # as of a class that was passed
            raise PackageMissing(
                f"The policy of {folder} cannot be used: it is {in_words(reference)}, which no "
                "installed package names in an entry point",
                argument="policy",
                remedy=("pass it as `policy` when the session is opened", INSTALL_PACKAGE),
            )
        raise _missing(folder, reference, f"{kind!r} is of a package that is not installed")
    name = reference.get("file") if kind == LearnedPolicy.name else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SessionDamaged(
            f"{folder} names an unknown policy: {reference!r}",
            argument="path",
            remedy=INSTALL_PACKAGE,
        )
    return _loaded(folder / name, reference)


def _missing(folder: Path, reference: Mapping[str, Any], why: str) -> PackageMissing:
    package = reference.get(_PACKAGE)
    if not isinstance(package, str) or not re.fullmatch(r"[\w.-]+", package):
        package = None
    return PackageMissing(
        f"The policy of {folder} cannot be used: {why}",
        argument="path",
        remedy=INSTALL_PACKAGE if package is None else Install(package),
    )


def changed(folder: Path, reference: Mapping[str, Any], why: str) -> PackageMissing:
    """Return the error of a policy whose code is not that with which the session was made."""
    kind, package = reference.get("kind"), reference.get(_PACKAGE)
    where = f" of the package {package}" if isinstance(package, str) else ""
    if where and kind == LearnedPolicy.name:  # it is of this package
        where = f" with features{where}"
    version = reference.get(_VERSION)
    same = isinstance(package, str) and _version_of(package).get(_VERSION) == version
    older = "restore the code with which it was made"
    if isinstance(version, str) and same:
        why += f" (the version of {package}, {version}, is the same, but its code is not)"
    elif isinstance(version, str):
        older = f"install version {version} of {package} with which it was made"
    return PackageMissing(
        f"The policy {kind!r}{where} is not that with which {folder} was made: {why}",
        argument="path",
        remedy=(older, "make a new session"),
    )


def check_passed(folder: Path, policy: Policy, reference: Mapping[str, Any]) -> None:
    """Refuse a policy that a user passes to a session that was created with another."""
    words, given = words_of(reference), policy.to_json()
    with suppress(TypeError, ValueError):
        given = json.loads(json.dumps(given))  # as a file has it: lists for tuples
    kind = words["kind"]
    if kind != LearnedPolicy.name and given == words:
        return
    remedy: Remedy | str = "leave it out"
    if (name := function_of(reference)) is not None:
        remedy = SetOption("policy", name)
    elif kind != LearnedPolicy.name and kind not in policies:
        remedy = f"pass {in_words(reference)}"
    differing = [key for key in {**words, **given} if given.get(key) != words.get(key)]
    if kind in (LearnedPolicy.name, CallablePolicy.kind) or given.get("kind") != kind:
        problem = f"`policy` is {in_words(policy)}, and {folder} was created with "
        problem += in_words(reference)
    else:
        values = [f"{key}={given.get(key)!r} instead of {words.get(key)!r}" for key in differing]
        problem = f"`policy` {kind!r} is not that of {folder}: it has {', '.join(values)}"
    raise InvalidInput(problem, argument="policy", remedy=remedy)


def in_words(policy: Policy | Mapping[str, Any]) -> str:
    """Return a policy, or the reference of one, as its name and parameters.

    Examples
    --------
    >>> in_words({"kind": "power", "exponent": 2.0, "package": "powers"})
    'power(exponent=2.0)'
    """
    reference = policy if isinstance(policy, Mapping) else policy.to_json()
    if (name := function_of(reference)) is not None:
        return f"the function {name}"
    kind = str(reference.get("kind"))
    if kind == LearnedPolicy.name:
        return "a learned policy"
    own = [f"{key}={value!r}" for key, value in words_of(reference).items() if key != "kind"]
    return f"{kind}({', '.join(own)})"


def function_of(reference: Any) -> str | None:
    """Return the Python function that is the policy of a reference, by name; None of others."""
    kind = reference.get("kind") if isinstance(reference, Mapping) else None
    name = reference.get("function") if kind == CallablePolicy.kind else None
    return name if isinstance(name, str) else None


def _loaded(path: Path, reference: Mapping[str, Any]) -> LearnedPolicy:
    try:
        data = path.read_bytes()
        if digest_bytes(data) != reference.get("checksum"):
            raise InvalidInput(f"{path} has a wrong checksum")
        return load_policy(path)
    except (OSError, InvalidInput) as error:
        problem = error.problem if isinstance(error, InvalidInput) else str(error)
        remedy = error.remedy if isinstance(error, InvalidInput) else None
        if isinstance(error.__cause__, FeaturesMissing):  # it names the features
            why = error.__cause__.problem
            if remedy in (None, INSTALL_PACKAGE):
                raise _missing(path.parent, reference, why) from error
            raise PackageMissing(
                f"The policy of {path.parent} cannot be used: {why}", argument="path", remedy=remedy
            ) from error
        raise SessionDamaged(
            f"The policy of the session cannot be used: {problem}",
            argument="path",
            remedy="restore the file from a copy of the session or of the policy",
        ) from error


@dataclass(frozen=True)
class LostPolicy:
    """An entry whose policy is missing or damaged, and whether the entry is live."""

    seq: int
    file: str
    live: bool


def do_without_lost(folder: Path, journal: Journal) -> list[str]:
    """Cut a journal off before the first live entry whose policy is missing or damaged.

    All later entries were made on the hierarchy of that policy. An undone entry stays, since it
    needs its policy only to be redone; the sentences returned name it.
    """
    while live := [lost for lost in lost_policies(folder, journal.records) if lost.live]:
        first, n = live[0], len(journal.records) - live[0].seq + 1
        journal.cut_off(
            first.seq,
            f"Entry {first.seq} of the journal learned the policy {first.file}, which is missing "
            f"or damaged: the entries before it ({first.seq - 1}) are intact, those from it on "
            f"cannot be used and are lost ({n}). To restore them from a copy of {first.file}, put "
            "it back and append the file named below to the journal before any other change.",
        )
    return [
        f"Entry {lost.seq}, which learned the policy {lost.file}, was undone and cannot be redone, "
        "since that file is missing or damaged; all other entries are intact."
        for lost in lost_policies(folder, journal.records)
    ]


def lost_policies(folder: Path, records: Sequence[Record]) -> list[LostPolicy]:
    """Return the entries, live or redoable, whose policies are lost, oldest first.

    Examples
    --------
    >>> learned = Record(1, "", {"action": "relearn", "policy": {"kind": "learned"}}, "")
    >>> undone = Record(2, "", {"action": "undo", "of": 1}, "")
    >>> [lost.live for lost in lost_policies(Path("a.agglo"), [learned, undone])]
    [False]
    """
    lost = []
    for live, numbers in zip((True, False), _done_and_undone(records), strict=True):
        for number in numbers:
            reference = records[number - 1].entry.get("policy")
            if reference is not None:
                try:
                    recall(folder, reference)
                except PackageMissing:  # it is whole: its package can be installed
                    continue
                except AggloError:
                    file = reference.get("file") if isinstance(reference, dict) else None
                    lost.append(LostPolicy(number, str(file or "of unknown name"), live))
    return sorted(lost, key=lambda one: one.seq)


def _done_and_undone(records: Sequence[Record]) -> tuple[list[int], list[int]]:
    """Return the numbers of the live entries, and of those that can be redone."""
    done: list[int] = []
    undone: list[int] = []
    for record in records:
        kind = record.entry.get("action")
        if kind in ("undo", "redo"):
            source, target = (done, undone) if kind == "undo" else (undone, done)
            if source:
                target.append(source.pop())
        else:
            done.append(record.seq)
            undone.clear()
    return done, undone
