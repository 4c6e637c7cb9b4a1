"""Debian's Chromium without a screen: what a page looks like in a frame of some width, and its pixels."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

SECONDS = 120
_HARNESS = """\
<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0 }} iframe {{ border: 0; width: {width}px; height: 6000px }}
</style><iframe srcdoc="{page}"></iframe><pre id="seen"></pre><script>
addEventListener("load", () => {{
  const page = document.querySelector("iframe").contentDocument;
  const box = each => {{ const it = each.getBoundingClientRect(); return [it.left, it.top, it.right, it.bottom]; }};
  const all = (where, what) => [...where.querySelectorAll(what)];
  const seen = {{
    width: page.documentElement.scrollWidth, height: page.documentElement.scrollHeight,
    dark: matchMedia("(prefers-color-scheme: dark)").matches, scripts: all(page, "script").length,
    paper: getComputedStyle(page.body).backgroundColor, ink: getComputedStyle(page.body).color,
    table: box(page.querySelector(".table")), text: page.body.innerText,
    asking: all(page, "[src], [href], object, embed").length,
    colours: Object.fromEntries(
      all(page, ".key span").map(each => [each.className, getComputedStyle(each).backgroundColor])),
    figures: all(page, "figure").map(figure => ({{
      title: figure.innerText, svg: box(figure.querySelector("svg")),
      lines: all(figure, "polyline").map(each => [each.className.baseVal, ...box(each)]),
      points: all(figure, "circle").map(each => [each.className.baseVal, ...box(each)]),
      texts: all(figure, "text").map(each => [each.textContent, ...box(each)]),
    }})),
  }};
  document.getElementById("seen").textContent = JSON.stringify(seen);
}});
</script>"""


def chromium() -> str | None:
    """Return the path of Chromium, None where it isn't installed."""
    return shutil.which("chromium")


def looked_at(page: str, folder: Path, *, width: int, dark: bool = False) -> dict[str, Any]:
    """Return what a page measures in a frame of `width` pixels: boxes are left, top, right, bottom."""
    harness = folder / "harness.html"
    harness.write_text(_HARNESS.format(page=html.escape(page), width=width), encoding="utf-8")
    out = _run(folder, *_scheme(dark=dark), "--window-size=1200,800", "--dump-dom", harness.as_uri())
    found = re.search(r'<pre id="seen">(.*?)</pre>', out, re.DOTALL)
    assert found, out
    return dict(json.loads(html.unescape(found[1])))


def colours_drawn(page: str, folder: Path, *, dark: bool = False) -> Counter[tuple[int, ...]]:
    """Return how many pixels of each colour a window of the page has."""
    path, picture = folder / "page.html", folder / "page.png"
    path.write_text(page, encoding="utf-8")
    _run(folder, *_scheme(dark=dark), "--window-size=900,1800", f"--screenshot={picture}", path.as_uri())
    return _pixels(picture.read_bytes())


def printed(page: str, folder: Path) -> bytes:
    """Return the page as PDF."""
    path, paper = folder / "page.html", folder / "page.pdf"
    path.write_text(page, encoding="utf-8")
    _run(folder, f"--print-to-pdf={paper}", path.as_uri())
    return paper.read_bytes()


def _scheme(*, dark: bool) -> tuple[str, ...]:
    return (f"--blink-settings=preferredColorScheme={0 if dark else 1}",)


def _run(folder: Path, *arguments: str) -> str:
    program = chromium()
    assert program is not None
    own = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile")
    env = {**os.environ, "HOME": str(folder)}
    done = subprocess.run([program, *own, *arguments], capture_output=True, timeout=SECONDS, check=True, env=env)
    return done.stdout.decode()


def _pixels(png: bytes) -> Counter[tuple[int, ...]]:
    """Return the colours of a PNG with 8 bits a channel, as Chromium writes it."""
    at, data, size, channels = 8, b"", (0, 0), 0
    while at < len(png):
        length, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            size = int.from_bytes(body[:4]), int.from_bytes(body[4:8])
            assert (body[8], body[12]) == (8, 0)
            channels = {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            data += body
        at += length + 12
    rows, stride = zlib.decompress(data), size[0] * channels
    before, found = bytes(stride), Counter[tuple[int, ...]]()
    for start in range(0, len(rows), stride + 1):
        before = _unfiltered(rows[start], rows[start + 1 : start + 1 + stride], before, channels)
        found.update(zip(before[::channels], before[1::channels], before[2::channels], strict=True))
    return found


def _unfiltered(kind: int, line: bytes, above: bytes, channels: int) -> bytes:
    """Return a line as it was before PNG's filter; most of a page are lines as the one above, which cost nothing."""
    if kind == 0 or (kind == 2 and not any(line)):
        return above if kind else line
    if kind == 2:
        return bytes((value + up) & 255 for value, up in zip(line, above, strict=True))
    made = bytearray(channels) + line
    corners = bytes(channels) + above
    for index, up in enumerate(above):
        left = made[index]
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up) // 2
        else:
            guess = _paeth(left, up, corners[index])
        made[index + channels] = (made[index + channels] + guess) & 255
    return bytes(made[channels:])


def _paeth(left: int, above: int, corner: int) -> int:
    if left == above == corner:
        return left
    ahead = left + above - corner
    return min((left, above, corner), key=lambda each: abs(ahead - each))
