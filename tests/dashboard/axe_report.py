"""`make axe`: what axe-core finds on every page, in light and dark, as a Markdown table."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import memory_kit
from axe_playwright_python.async_playwright import Axe
from chromium_kit import Look, chromium, serving, signed_in
from dashboard_kit import stand
from filled import fill
from test_memory_pages import every_page

from pages import PAGES

ABOUT = """What axe-core finds on every page of the dashboard, filled with something to show, in both colours and with
everything unfolded. `make axe` writes this file; tests fail on anything that is serious or critical."""
IMPACTS = ("critical", "serious", "moderate", "minor")


async def report() -> None:
    print(f"# Accessibility\n\n{ABOUT}\n")
    print("| page | colours | rules passed | " + " | ".join(IMPACTS) + " |")
    print("|---|---|---|" + "---|" * len(IMPACTS))
    with tempfile.TemporaryDirectory() as folder, stand(Path(folder) / "data") as desk:
        run = memory_kit.everything(desk.db)
        fill(desk, 120)
        paths = [*PAGES, *every_page(run, memory_kit.question(desk.db))]
        engine, total = "", Counter[str]()
        async with serving(desk) as root, chromium() as browser:
            for scheme in ("light", "dark"):
                async with signed_in(browser, root, Look(scheme)) as page:
                    for path in paths:
                        await page.goto(f"/dashboard{path}")
                        await page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
                        found: dict[str, Any] = (await Axe().run(page, options={})).response
                        engine = found["testEngine"]["version"]
                        counts = Counter(one["impact"] for one in found["violations"])
                        total += counts
                        cells = (len(found["passes"]), *(counts[impact] for impact in IMPACTS))
                        shown = path.partition("?")[0].replace(run, "{run}")
                        print(f"| `{shown}` | {scheme} | " + " | ".join(map(str, cells)) + " |", flush=True)
    print(
        f"\naxe-core {engine}, {2 * len(paths)} pages looked at:", ", ".join(f"{total[one]} {one}" for one in IMPACTS)
    )


if __name__ == "__main__":
    anyio.run(report)
