"""Fixtures of the tests in a browser. They are skipped without Playwright, a Chromium or the built page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.view.browser.live import DESKTOP, FLAGS, LiveServer, Watched, chromium, serving, setup_of


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium for a module: while Playwright runs its event loop, no other test can run one."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    pytest.importorskip("uvicorn", reason="needs the extra web")
    pytest.importorskip("starlette", reason="needs the extra web")
    from pondertree.view.app import STATIC

    path = chromium()
    if path is None:
        pytest.skip("needs Chromium, found by name or by PONDERTREE_CHROMIUM")
    if not (STATIC / "index.html").exists():
        pytest.skip("needs the built page: make view")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LiveServer]]:
    """Starts servers for the arguments of `pondertree view`; they end with the test."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(serving(setup_of(monkeypatch, *arguments)))


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Watched]]:
    """Opens pages on servers; at the end, their consoles must be empty."""
    with ExitStack() as stack:
        opened = []

        def open_page(server: LiveServer, **options: Any) -> Watched:
            context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
            stack.callback(context.close)
            watched = Watched(context.new_page())
            opened.append(watched)
            watched.open(server)
            return watched

        yield open_page
        assert [complaint for watched in opened for complaint in watched.complaints] == []
