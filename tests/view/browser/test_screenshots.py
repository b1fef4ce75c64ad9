"""The page in light, dark and on a phone; PONDERTREE_SCREENSHOTS=1 writes the pictures of the documentation."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from tests.view.browser.live import DESKTOP, PHONE

IMAGES = Path(__file__).parents[3] / "docs" / "images"
ITALIAN = ("chess", "--moves", "e4 e5 Nf3 Nc6 Bc4 Bc5 c3 Nf6", "--seed", "1", "--simulations", "60000")
CHESS = ("chess", "--seed", "1", "--simulations", "120000")
CONNECT4 = ("connect4", "--algorithm", "uct", "--moves", "4 4 3", "--seed", "1", "--simulations", "60000")
PICTURES = {
    "view-light": (ITALIAN, DESKTOP, "light", "moves"),
    "view-dark": (CHESS, DESKTOP, "dark", "shares"),
    "view-phone": (CONNECT4, {**PHONE, "height": 1180}, "light", "tree"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_page_in_light_dark_and_on_a_phone(serve, open_page, name):
    arguments, viewport, scheme, tab = PICTURES[name]
    view = open_page(serve(*arguments), viewport=viewport, color_scheme=scheme, device_scale_factor=2)
    page = view.page
    view.press("run")
    view.idle(int(arguments[-1]))
    view.press(f"tab-{tab}")
    view.wait("Number(document.querySelector('#tree-summary').dataset.marks) > 50")
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    page.evaluate("scrollTo(0, 0)")
    page.evaluate("document.activeElement.blur()")
    # The board lies in the window, and the panel below or beside it.
    board = page.locator("#board svg").bounding_box()
    assert board["x"] >= 0
    assert board["x"] + board["width"] <= viewport["width"]
    colours = page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    assert (sum(channels(colours[0])) < sum(channels(colours[1]))) == (scheme == "light")
    if os.environ.get("PONDERTREE_SCREENSHOTS"):
        write(page.screenshot(), IMAGES / f"{name}.png")


def write(png: bytes, path: Path) -> None:
    """Writes a picture with 256 colours, a third of the bytes."""
    image = pytest.importorskip("PIL.Image")
    image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=image.Dither.NONE).save(path, optimize=True)


def channels(colour: str) -> list[int]:
    return [int(number) for number in colour[4:-1].split(",")]


def test_theme_is_chosen_and_kept(serve, open_page):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct"), color_scheme="light")
    assert view.page.evaluate("document.documentElement.dataset.theme") == "light"
    view.page.keyboard.press("d")
    view.wait("document.documentElement.dataset.theme === 'dark'")
    view.page.reload()
    view.wait("document.documentElement.dataset.theme === 'dark'")
