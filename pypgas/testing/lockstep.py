# SPDX-License-Identifier: Apache-2.0
"""Randomness and hypothesis on all PEs in lock-step.

PE 0 draws hypothesis's examples and tells them to the others, so the PEs cannot drift
apart: whatever it draws, and however it shrinks, every PE runs the same example, and an
example counts as failed if it fails on any PE.
"""

from __future__ import annotations

import functools
import inspect
import pickle
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pypgas.testing import side

if TYPE_CHECKING:
    import hypothesis

__all__ = ["given", "lockstep_settings", "shared_random"]


def shared_random(seed: int = 0) -> np.random.Generator:
    """A random generator that gives every PE the same numbers."""
    return np.random.default_rng(seed)


def lockstep_settings(**changes: Any) -> hypothesis.settings:
    """The settings :func:`given` uses: reproducible, without a time limit or database.

    ``changes`` are further arguments of ``hypothesis.settings``, such as ``max_examples``.
    """
    import hypothesis

    fixed: dict[str, Any] = {
        "derandomize": True,
        "deadline": None,
        "database": None,
        "report_multiple_bugs": False,
        "phases": [hypothesis.Phase.explicit, hypothesis.Phase.generate, hypothesis.Phase.shrink],
        "suppress_health_check": list(hypothesis.HealthCheck),
    }
    return hypothesis.settings(**(fixed | changes))


def given(
    *strategies: Any, settings: hypothesis.settings | None = None, **named_strategies: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """``hypothesis.given`` for a test that runs on every PE of a job.

    Examples must pickle. In a process that is no job this is hypothesis's own decorator.
    ``settings`` comes from :func:`lockstep_settings`.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        import hypothesis

        parameters = list(inspect.signature(test).parameters)
        drawn = set(named_strategies) | set(parameters[len(parameters) - len(strategies) :])
        leaders: list[_Leader] = []  # of the run in progress, if it is one in a job

        @functools.wraps(test)
        def run_example(*args: Any, **kwargs: Any) -> None:
            __tracebackhide__ = True
            if leaders:
                leaders[-1].lead(args, kwargs)
            else:
                test(*args, **kwargs)

        engine: Any = hypothesis.given(*strategies, **named_strategies)
        engine = (settings or lockstep_settings())(engine(run_example))

        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            __tracebackhide__ = True
            pe, n = side.place()
            if n == 1 and side.deadline() is None:
                engine(*args, **kwargs)
            elif pe == 0:
                leaders.append(_Leader(test, drawn))
                try:
                    leaders[-1].run(engine, args, kwargs)
                finally:
                    leaders.pop()
            else:
                _follow(test, args, kwargs)

        # pytest sees the fixtures only, as with hypothesis's own decorator.
        run.__signature__ = inspect.signature(engine)  # type: ignore[attr-defined]
        return run

    return decorate


_SHRINK_PATIENCE = 30.0  # s


class ExampleFailedElsewhereError(AssertionError):
    """The example at hand failed on other PEs; they report how."""


class _LeaveEngineError(BaseException):
    """Leaves hypothesis's engine at once, with the error to report.

    It is no Exception, so hypothesis lets it through.
    """

    def __init__(self, error: BaseException, *, in_step: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.in_step = in_step  # whether the PEs can still run an example


class _Leader:
    """PE 0's part of a test: has every PE run the examples that hypothesis draws here."""

    def __init__(self, test: Callable[..., None], drawn: set[str]) -> None:
        self._test = test
        self._drawn = drawn
        self._smallest: dict[str, Any] | None = None  # failing example
        self._shrink_until = float("inf")

    def run(self, engine: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        __tracebackhide__ = True
        try:
            engine(*args, **kwargs)
        except _LeaveEngineError as left:
            if left.in_step:
                side.exchange(None)
            raise left.error from None
        except BaseException:
            side.exchange(None)
            raise
        side.exchange(None)

    def lead(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run one example on all PEs; raises here if it failed anywhere."""
        import hypothesis

        __tracebackhide__ = True
        example = {name: value for name, value in kwargs.items() if name in self._drawn}
        if self._smallest is not None and time.monotonic() > self._shrink_until:
            self._stop_shrinking(args, kwargs)
        error, verdicts = self._run_everywhere(args, kwargs, example)
        if error is not None:
            if self._smallest is None:
                self._shrink_until = _shrink_deadline()
            self._smallest = example
            raise error
        hypothesis.assume(all(verdict == "ok" for verdict, _ in verdicts))

    def _stop_shrinking(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # Once more, so that all PEs end with the error of the same example.
        assert self._smallest is not None
        error, _ = self._run_everywhere(args, kwargs | self._smallest, self._smallest)
        if error is None:
            error = AssertionError("the example failed before, but not when it was run again")
        error.add_note(f"The smallest example found in the time given: {self._smallest!r}")
        raise _LeaveEngineError(error, in_step=True)

    def _run_everywhere(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], example: dict[str, Any]
    ) -> tuple[BaseException | None, list[tuple[str, str]]]:
        __tracebackhide__ = True
        try:
            pickle.dumps(example)
        except Exception as unpicklable:
            text = f"given: an example must pickle to reach the other PEs: {unpicklable}"
            raise TypeError(text) from unpicklable
        try:
            side.exchange(example)
        except side.ExchangeRefusedError as refused:
            raise _LeaveEngineError(refused, in_step=False) from None
        error, verdicts = _run_example(self._test, args, kwargs, example)
        failed = [f"PE {pe}: {text}" for pe, (verdict, text) in enumerate(verdicts) if verdict == "failed"]
        if error is None and failed:
            error = ExampleFailedElsewhereError("the example failed on other PEs\n" + "\n".join(failed))
        return error, verdicts


def _shrink_deadline() -> float:
    """Until when to look for a smaller example: the report must come before the test's time limit."""
    now = time.monotonic()
    limit = side.deadline()
    return now + _SHRINK_PATIENCE if limit is None else now + min(_SHRINK_PATIENCE, (limit - now) / 2)


def _follow(test: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Run the leader's examples until it has no more."""
    __tracebackhide__ = True
    last: BaseException | None = None
    while True:
        example = side.exchange(None)[0]
        if example is None:
            break
        last, _ = _run_example(test, args, kwargs | example, example)
    if last is not None:
        raise last


def _run_example(
    test: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any], example: dict[str, Any]
) -> tuple[BaseException | None, list[tuple[str, str]]]:
    """This PE's error, if it failed, and every PE's verdict."""
    from hypothesis.errors import UnsatisfiedAssumption

    __tracebackhide__ = True
    error: BaseException | None = None
    verdict = ("ok", "")
    try:
        test(*args, **kwargs)
    except UnsatisfiedAssumption:
        verdict = ("rejected", "")
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as raised:  # noqa: BLE001 -- pytest's outcomes are no Exceptions
        error = raised
        verdict = ("failed", "".join(traceback.format_exception_only(raised)).strip())
    try:
        return error, side.exchange(verdict, failed=error is not None)
    except side.ExchangeRefusedError as refused:
        lost = error or refused
        lost.add_note(f"The example was: {example!r}")
        if side.place()[0] == 0:
            raise _LeaveEngineError(lost, in_step=False) from None
        raise lost from None
