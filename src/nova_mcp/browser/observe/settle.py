"""Waiting until a page has come to rest: loaded, quiet, and nearly nothing on the wire."""

import anyio

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.observe.host_window import HostWindow
from nova_mcp.browser.targets.tab import Tab

QUIET_MS = 500
MAX_IN_FLIGHT = 1
POLL_MS = 100

# Counts mutations per region. A region that changed in four different 250 ms slices is ambient (a clock, a ticker)
# and no longer keeps the page from being at rest. childList only: watching attributes and text is dear in a storm.
_WATCH = """(() => {
  const key = Symbol.for("nova.settling");
  let seen = globalThis[key];
  if (!seen) {
    seen = globalThis[key] = { regions: new WeakMap(), last: performance.now() };
    const parent = (node) => Object.getOwnPropertyDescriptor(Node.prototype, "parentNode").get.call(node);
    const region = (node) => {
      let at = node;
      for (let up = parent(at), depth = 0; up !== null && depth < 200; up = parent(at), depth++) {
        if (up === document.documentElement || parent(up) === document.documentElement) break;
        at = up;
      }
      return at;
    };
    new MutationObserver((records) => {
      const now = performance.now(), slice = Math.floor(now / 250);
      const touched = new Set();
      for (let i = 0; i < records.length && touched.size < 50; i++) touched.add(region(records[i].target));
      for (const place of touched) {
        const past = seen.regions.get(place) ?? { slices: 0, slice: -1 };
        if (past.slice !== slice) { past.slice = slice; past.slices++; }
        seen.regions.set(place, past);
        if (past.slices < 4) seen.last = now;
      }
    }).observe(document, { childList: true, subtree: true });
  }
  return performance.now() - seen.last;
})()"""


async def wait_settled(tab: Tab, window: HostWindow, deadline: float) -> bool:
    """True once the page was quiet for half a second with at most one request open; False at the deadline."""
    while (left := deadline - anyio.current_time()) > 0:
        try:
            quiet = await tab.channel.evaluate(_WATCH, timeout_ms=max(1, min(5000, int(left * 1000))))
        except DocumentChanged:
            continue
        except PageScriptError:
            return False
        if isinstance(quiet, int | float) and quiet >= QUIET_MS and window.in_flight <= MAX_IN_FLIGHT:
            return True
        await anyio.sleep(min(left, POLL_MS / 1000))
    return False
