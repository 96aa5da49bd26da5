# SPDX-License-Identifier: Apache-2.0
"""Contexts, teams and locks in the form shmem4py has them.

A :class:`Ctx` or a :class:`Team` is a name for a pypgas object, for a predefined one or for
none (``CTX_INVALID``, ``TEAM_INVALID``); copies are aliases, and equal if they name the same.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import TracebackType
from typing import TypeAlias

import numpy as np

import pypgas as pg
from pypgas.errors import InvalidTypeError, InvalidValueError
from pypgas.shmem._enums import CTX


class InvalidHandleError(InvalidValueError, RuntimeError):
    """The context or team is invalid, or was destroyed. Also a ``RuntimeError``."""


class _Predefined(enum.Enum):
    """Handles that name no object of their own. The objects exist only while initialised."""

    INVALID = "invalid"
    DEFAULT = "default"
    WORLD = "world"
    SHARED = "shared"


class Team:
    """A set of PEs, numbered from 0."""

    ob_team: pg.Team | _Predefined
    _config: dict[str, int]

    def __new__(cls, team: Team | pg.Team | None = None) -> Team:
        """Return an alias of ``team``; of ``TEAM_INVALID`` if ``None``."""
        self = super().__new__(cls)
        self._config = {"num_contexts": 0}
        if team is None:
            self.ob_team = _Predefined.INVALID
        elif isinstance(team, Team):
            self.ob_team = team.ob_team
            self._config = team._config
        elif isinstance(team, (pg.Team, _Predefined)):
            self.ob_team = team
        else:
            raise InvalidTypeError(f"a Team is made of a Team, not of {type(team).__name__}")
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Team):
            return NotImplemented
        return self.ob_team is other.ob_team

    def __bool__(self) -> bool:
        return self.ob_team is not _Predefined.INVALID

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    def destroy(self) -> None:
        """Destroy the team. Collective over it. Predefined and invalid teams stay as they are."""
        if self is TEAM_WORLD or self is TEAM_SHARED or self is TEAM_INVALID:
            return
        team, self.ob_team = self.ob_team, _Predefined.INVALID
        if isinstance(team, pg.Team):
            team.destroy()

    def split_strided(
        self,
        start: int = 0,
        stride: int = 1,
        size: int | None = None,
        config: Mapping[str, int] | None = None,
        **kwargs: int,
    ) -> Team:
        """Return a new team of every ``stride``-th PE from ``start``. Collective over this team.

        Args:
            start: the first PE, as this team counts.
            stride: the distance between neighbours; may be negative.
            size: the number of PEs; as many as there are if ``None``.
            config: settings; the only one is ``num_contexts``.
            kwargs: the same settings as keywords.

        Returns:
            The team; one equal to ``TEAM_INVALID`` on PEs that are not in it.

        Raises:
            InvalidValueError: on every PE, if ``start``, ``stride`` and ``size`` leave the team.
        """
        parent = resolve_team(self)
        settings = {key.lower(): value for key, value in {**(config or {}), **kwargs}.items()}
        unknown = sorted(settings.keys() - {"num_contexts"})
        if unknown:
            raise InvalidValueError(
                f"PE {pg.my_pe()}: a team has no setting {unknown[0]!r}, only num_contexts"
            )
        if size is None:
            size = len(range(start, parent.n_pes if stride > 0 else -1, stride))
        new = Team(parent.split_strided(start, stride, size))
        new._config = {"num_contexts": 0, **settings}
        return new

    def get_config(self) -> dict[str, int]:
        """Return the settings the team was made with."""
        resolve_team(self)
        return dict(self._config)

    def my_pe(self) -> int:
        """Return this PE's number in the team."""
        return resolve_team(self).my_pe

    def n_pes(self) -> int:
        """Return the number of PEs in the team."""
        return resolve_team(self).n_pes

    def translate_pe(self, pe: int | None = None, team: Team | None = None) -> int:
        """Return the number that ``pe`` of this team has in ``team``.

        Args:
            pe: number in this team; this PE's if ``None``.
            team: the other team; the world if ``None``.

        Raises:
            InvalidHandleError: ``pe`` is not in both teams (a ``RuntimeError``).
        """
        mine = resolve_team(self)
        other = resolve_team(TEAM_WORLD if team is None else team)
        number = mine.translate_pe(mine.my_pe if pe is None else pe, other)
        if number is None:
            raise InvalidHandleError(f"PE {pg.my_pe()}: PE {pe} is not in both teams")
        return number

    def create_ctx(self, options: int = 0) -> Ctx:
        """Return a new context on the team. See :meth:`Ctx.create`."""
        return Ctx.create(options, self)

    def sync(self) -> None:
        """Wait until all PEs of the team have called this. Completes local stores only."""
        pg.sync(member_team(self))


TEAM_WORLD = Team(_Predefined.WORLD)  # type: ignore[arg-type]
TEAM_SHARED = Team(_Predefined.SHARED)  # type: ignore[arg-type]
TEAM_INVALID = Team()


def resolve_team(team: Team | None) -> pg.Team:
    """Return the pypgas team that ``team`` names; the world's if ``None``. See :func:`member_team`.

    Raises:
        InvalidTypeError: not a :class:`Team`.
        InvalidHandleError: the team is invalid or was destroyed.
    """
    if team is None:
        return pg.TEAM_WORLD
    if not isinstance(team, Team):
        raise InvalidTypeError(f"PE {pg.my_pe()}: a team is a shmem.Team, not {type(team).__name__}")
    handle = team.ob_team
    if isinstance(handle, pg.Team):
        return handle
    if handle is _Predefined.WORLD:
        return pg.TEAM_WORLD
    if handle is _Predefined.SHARED:
        return pg.TEAM_SHARED
    raise InvalidHandleError(f"PE {pg.my_pe()}: the team is invalid or was destroyed")


def member_team(team: Team | None) -> pg.Team | None:
    """Return what pypgas takes as ``team=`` for ``team``; ``None``, which is quick, for the world's."""
    return None if team is None or team is TEAM_WORLD else resolve_team(team)


class Ctx:
    """A communication context: operations are ordered and completed within it."""

    ob_ctx: pg.Context | _Predefined
    _team: Team

    def __new__(cls, ctx: Ctx | pg.Context | None = None) -> Ctx:
        """Return an alias of ``ctx``; of ``CTX_INVALID`` if ``None``."""
        self = super().__new__(cls)
        self._team = TEAM_WORLD
        if ctx is None:
            self.ob_ctx = _Predefined.INVALID
        elif isinstance(ctx, Ctx):
            self.ob_ctx = ctx.ob_ctx
            self._team = ctx._team
        elif isinstance(ctx, (pg.Context, _Predefined)):
            self.ob_ctx = ctx
        else:
            raise InvalidTypeError(f"a Ctx is made of a Ctx, not of {type(ctx).__name__}")
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ctx):
            return NotImplemented
        return self.ob_ctx is other.ob_ctx

    def __bool__(self) -> bool:
        return self.ob_ctx is not _Predefined.INVALID

    def __enter__(self) -> Ctx:
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()

    @staticmethod
    def create(options: int = 0, team: Team | None = None) -> Ctx:
        """Return a new context.

        Args:
            options: a :class:`CTX` combination; accepted for compatibility.
            team: the team whose PE numbers operations on the context use; the world if ``None``.
        """
        if options & ~int(CTX.PRIVATE | CTX.SERIALIZED | CTX.NOSTORE):
            raise InvalidValueError(f"PE {pg.my_pe()}: {options!r} is no combination of shmem.CTX")
        ctx = Ctx(pg.Context(resolve_team(team)))
        ctx._team = TEAM_WORLD if team is None else Team(team)
        return ctx

    def destroy(self) -> None:
        """Complete the context's operations and destroy it."""
        if self is CTX_DEFAULT or self is CTX_INVALID:
            return
        ctx, self.ob_ctx = self.ob_ctx, _Predefined.INVALID
        if isinstance(ctx, pg.Context):
            ctx.destroy()

    def get_team(self) -> Team:
        """Return the team of the context.

        Raises:
            InvalidHandleError: the context is invalid (a ``RuntimeError``).
        """
        resolve_ctx(self)
        return Team(self._team)

    def fence(self) -> None:
        """Order the context's operations to each PE: earlier ones are delivered first."""
        fence(self)

    def quiet(self) -> None:
        """Complete all operations that this PE started on the context."""
        quiet(self)


CTX_DEFAULT = Ctx(_Predefined.DEFAULT)  # type: ignore[arg-type]
CTX_INVALID = Ctx()


def resolve_ctx(ctx: Ctx | None) -> pg.Context | None:
    """Return the pypgas context that ``ctx`` names; ``None`` for the default context.

    Raises:
        InvalidTypeError: not a :class:`Ctx`.
        InvalidHandleError: the context is invalid or was destroyed.
    """
    if ctx is None:
        return None
    if not isinstance(ctx, Ctx):
        raise InvalidTypeError(f"PE {pg.my_pe()}: a context is a shmem.Ctx, not {type(ctx).__name__}")
    handle = ctx.ob_ctx
    if isinstance(handle, pg.Context):
        return handle
    if handle is _Predefined.DEFAULT:
        return None
    raise InvalidHandleError(f"PE {pg.my_pe()}: the context is invalid or was destroyed")


def fence(ctx: Ctx | None = None) -> None:
    """Order a context's operations to each PE: earlier ones are delivered first.

    The default context if ``None``; nothing for an invalid one.
    """
    if ctx is None or ctx:
        pg.fence(resolve_ctx(ctx))


def quiet(ctx: Ctx | None = None) -> None:
    """Complete all operations that this PE started on a context.

    The default context if ``None``; nothing for an invalid one.
    """
    if ctx is None or ctx:
        pg.quiet(resolve_ctx(ctx))


LockHandle: TypeAlias = pg.Lock


def new_lock() -> LockHandle:
    """Return a new lock for :func:`set_lock` and its kin. Collective over all PEs."""
    return pg.Lock()


def del_lock(lock: LockHandle) -> None:
    """Free a lock. Collective over all PEs."""
    _lock(lock).free()


def set_lock(lock: LockHandle) -> None:
    """Wait until the lock is free and take it."""
    _lock(lock).acquire()


def test_lock(lock: LockHandle) -> bool:
    """Take the lock if it is free. Return ``False`` if it was taken, ``True`` if it was busy."""
    return not _lock(lock).test()


def clear_lock(lock: LockHandle) -> None:
    """Complete the default context's operations and release the lock."""
    _lock(lock).release()


def _lock(lock: LockHandle) -> pg.Lock:
    if not isinstance(lock, pg.Lock):
        raise InvalidTypeError(
            f"PE {pg.my_pe()}: a lock is made by shmem.new_lock(), not {type(lock).__name__}"
        )
    return lock


class Lock:
    """A lock as an object. Making and destroying it are collective over all PEs."""

    def __init__(self) -> None:
        self._lock: LockHandle | None = None
        self._lock = new_lock()

    def destroy(self) -> None:
        """Free the lock; nothing if that was done before."""
        lock, self._lock = self._lock, None
        if lock is not None:
            del_lock(lock)

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, waiting for it if ``blocking``. Return whether it was taken."""
        if blocking:
            set_lock(self._handle())
            return True
        return not test_lock(self._handle())

    def release(self) -> None:
        """Complete the default context's operations and release the lock."""
        clear_lock(self._handle())

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def _handle(self) -> LockHandle:
        if self._lock is None:
            raise InvalidHandleError(f"PE {pg.my_pe()}: the lock was destroyed")
        return self._lock


def pe_number(pe: object) -> int:
    """Return a PE number as an ``int``.

    Raises:
        InvalidTypeError: it is not an integer.
    """
    if not isinstance(pe, (int, np.integer)) or isinstance(pe, bool):
        raise InvalidTypeError(f"PE {pg.my_pe()}: a PE number is an integer, not {type(pe).__name__}")
    return int(pe)
