// Scrolling: which box moves, how far it went, and what that brought along.
const clientHeightOf = getter(Element.prototype, "clientHeight");
const clientWidthOf = getter(Element.prototype, "clientWidth");
const scrollingRoot = getter(Document.prototype, "scrollingElement");
const moveBy = uncurry(Element.prototype.scrollBy);
const moveTo = uncurry(Element.prototype.scrollTo);
const LOCKED = /^(hidden|clip)$/;
const FAR = 1e7;

const rootScroller = () => scrollingRoot(DOC) ?? documentElement(DOC);
const isWindowBox = (el) => el === rootScroller() || el === documentElement(DOC);
// What is set on the body counts for the window as long as the root says nothing.
const windowOverflow = (axis) => {
  const property = axis === "x" ? "overflowX" : "overflowY";
  const own = styleOf(documentElement(DOC))[property];
  const body = documentBody(DOC);
  return own !== "visible" || body === null ? own : styleOf(body)[property];
};

const rangeOf = (el, axis) => (axis === "x" ? scrollWidthOf(el) - clientWidthOf(el) : scrollHeightOf(el) - clientHeightOf(el));
const canScroll = (el, axis) => {
  if (rangeOf(el, axis) <= 1) return false;
  if (isWindowBox(el)) return !LOCKED.test(windowOverflow(axis));
  // A body that scrolls by itself only does so when the root has a say of its own.
  const style = styleOf(el);
  return SCROLLING.test(axis === "x" ? style.overflowX : style.overflowY) && style.display !== "inline" && rendered(el);
};

// How far from the beginning; boxes that run backwards count below zero.
const positionOf = (el, axis) => {
  const style = styleOf(el);
  const raw = axis === "x" ? scrollLeftOf(el) : scrollTopOf(el);
  const reversed = axis === "x"
    ? (style.direction === "rtl") !== (style.display.endsWith("flex") && style.flexDirection === "row-reverse")
    : style.display.endsWith("flex") && style.flexDirection === "column-reverse";
  return reversed ? raw + rangeOf(el, axis) : raw;
};
const endReached = (el, axis, sign) => (sign >= 0 ? positionOf(el, axis) >= rangeOf(el, axis) - 2 : positionOf(el, axis) <= 1);

const seenArea = (el) => {
  const box = clip(boxOf(el));
  return Math.max(0, box.right - box.left) * Math.max(0, box.bottom - box.top);
};
const scrollersIn = (root, axis) => {
  const found = [];
  walk(root, (el) => {
    if (IGNORED.has(tagOf(el))) return "skip";
    if (!isWindowBox(el) && tagOf(el) !== "textarea" && canScroll(el, axis)) found.push(el);
    return undefined;
  }, { ...LIMITS, millis: 500 });
  return found;
};
const largest = (list) => list.map((el) => [seenArea(el), el]).filter(([area]) => area > 400).sort((left, right) => right[0] - left[0])[0]?.[1] ?? null;

const openDialog = () => {
  const shown = [];
  for (const el of queryAll(DOC, "dialog[open],[role=dialog],[role=alertdialog],[aria-modal=true]")) if (visibleControl(el)) shown.push(el);
  const modal = shown.filter((el) => attr(el, "aria-modal") === "true" || (tagOf(el) === "dialog" && matches(el, ":modal")));
  return modal.at(-1) ?? null;
};

// The box somebody at the page would scroll: inside an open dialog first, then the page, then the largest one in sight.
const mainScroller = (axis) => {
  const dialog = openDialog();
  const inDialog = dialog === null ? null : canScroll(dialog, axis) ? dialog : largest(scrollersIn(dialog, axis));
  if (inDialog !== null) return { el: inDialog };
  const root = rootScroller();
  if (root === null) return { why: "gone" };
  if (canScroll(root, axis) && rangeOf(root, axis) > 100) return { el: root };
  const inner = largest(scrollersIn(root, axis));
  if (inner !== null && (!canScroll(root, axis) || seenArea(inner) * 2 >= WIN.innerWidth * WIN.innerHeight)) return { el: inner };
  if (rangeOf(root, axis) > 1 && !canScroll(root, axis)) return { why: "locked" };
  return { el: root };
};

const namedScroller = (el, axis) => {
  if (tagOf(el) === "body" || isWindowBox(el)) return mainScroller(axis).why === "locked" ? { why: "locked" } : { el: rootScroller() };
  if (canScroll(el, axis)) return { el };
  const inner = largest(scrollersIn(el, axis));
  return inner === null ? { why: "not_scrollable", other: canScroll(el, axis === "x" ? "y" : "x") } : { el: inner };
};

// -- bringing an element into view

const ancestorScrollers = (el) => {
  const found = [];
  for (let node = composedParent(el); node !== null; node = composedParent(node)) {
    const style = styleOf(node);
    if (!isWindowBox(node) && (style.overflowX !== "visible" || style.overflowY !== "visible")) found.push(node);
  }
  return [...found, rootScroller()];
};
const inSight = (el) => {
  const box = boxOf(el);
  let [left, top, right, bottom] = [Math.max(0, box.left), Math.max(0, box.top), Math.min(WIN.innerWidth, box.right), Math.min(WIN.innerHeight, box.bottom)];
  for (const node of ancestorScrollers(el)) {
    if (isWindowBox(node) || tagOf(node) === "body") continue;
    const outer = boxOf(node);
    [left, top, right, bottom] = [Math.max(left, outer.left), Math.max(top, outer.top), Math.min(right, outer.right), Math.min(bottom, outer.bottom)];
  }
  const enough = (seen, whole, room) => seen >= Math.min(whole, room) * 0.9 - 1 && seen > 0;
  return enough(right - left, box.width, WIN.innerWidth) && enough(bottom - top, box.height, WIN.innerHeight * 0.5);
};

// -- one scroll

const scrolling = { run: null };
const measured = (el) => ({ x: scrollLeftOf(el), y: scrollTopOf(el), height: scrollHeightOf(el), width: scrollWidthOf(el) });

const startScroll = (el, target) => {
  endScroll();
  const run = {
    el, target, axis: "y", sign: 1, before: measured(el), box: target === null ? null : boxOf(target), heard: false, fresh: new Set(),
    around: target === null ? [] : ancestorScrollers(target).map((node) => [node, measured(node)]), at: now(), observer: null, hear: null,
  };
  run.observer = new MutationObserver((records) => {
    for (let i = 0; i < Math.min(records.length, RECORDS_PER_BATCH) && run.fresh.size < 5000; i += 1) noteFresh(run, records[i]);
  });
  const scope = isWindowBox(el) ? DOC : el;
  const watched = { childList: true, characterData: true, subtree: true };
  run.observer.observe(scope, watched);
  const host = isWindowBox(el) ? null : rootNode(el);
  if (host !== null && isShadow(host)) run.observer.observe(host, watched);
  run.hear = (event) => {
    if (event.target === el || (event.target === DOC && isWindowBox(el)) || run.around.some(([node]) => node === event.target)) run.heard = true;
  };
  listen(WIN, "scroll", run.hear, { capture: true, passive: true });
  scrolling.run = run;
  return run;
};
const unlisten = uncurry(EventTarget.prototype.removeEventListener);
const endScroll = () => {
  if (scrolling.run === null) return;
  scrolling.run.observer.disconnect();
  unlisten(WIN, "scroll", scrolling.run.hear, { capture: true });
  scrolling.run = null;
};

// What was added, and rows that were given other text; what keeps changing anyway does not count.
const noteFresh = (run, record) => {
  const el = elementOf(record.target);
  if (el === null || restlessAround(el, run.at)) return;
  if (record.type === "characterData") run.fresh.add(el);
  else for (const node of record.addedNodes) run.fresh.add(isElement(node) ? node : el);
};
const countFresh = (run) => {
  let count = 0;
  for (const el of run.fresh) if (isConnected(el) && !(composedParent(el) !== null && run.fresh.has(composedParent(el)))) count += 1;
  return count;
};

const readyToScroll = (run, places) => ({
  state: "ready", page: isWindowBox(run.el), element: factsOf(run.target ?? run.el, places), container: factsOf(run.el, places),
  already: run.target !== null && inSight(run.target), standing, url: pageAddress(), recentPaths: recentPaths(),
});

questions.scrollReady = ({ node = null, container = null, axis = "y" }) => {
  const places = makePlaces();
  const target = node === null ? null : nodeOf(node);
  if (node !== null && (target === null || !isConnected(target))) return { state: "gone" };
  if (target !== null) {
    const box = boxOf(target);
    if (!rendered(target) || (box.width === 0 && box.height === 0)) return { state: "not_visible" };
    const near = ancestorScrollers(target).find((el) => isWindowBox(el) || canScroll(el, "y") || canScroll(el, "x"));
    return readyToScroll(startScroll(near ?? rootScroller(), target), places);
  }
  const named = container === null ? null : nodeOf(container);
  if (container !== null && (named === null || !isConnected(named))) return { state: "gone" };
  const chosen = named === null ? mainScroller(axis) : namedScroller(named, axis);
  if (chosen.el === undefined) return { state: chosen.why, other: chosen.other ?? false };
  return readyToScroll(startScroll(chosen.el, null), places);
};

const PAGE_SHARE = 0.9;
const sendScroll = (run, want, share = PAGE_SHARE) => {
  const { el } = run;
  const behavior = "instant";
  if (run.target !== null) return scrollIntoView(run.target, { block: "center", inline: "nearest", behavior });
  if (want.to === "top" || want.to === "bottom") return moveTo(el, { top: want.to === "top" ? -FAR : FAR, behavior });
  if (want.to !== null) return moveBy(el, { top: (want.to === "next" ? 1 : -1) * clientHeightOf(el) * share, behavior });
  return moveBy(el, { left: want.deltaX ?? 0, top: want.deltaY ?? 0, behavior });
};

const stillness = async (el, millis) => {
  const end = now() + millis;
  let last = measured(el);
  for (;;) {
    await nextFrame();
    await pause(30);
    const here = measured(el);
    if ((here.x === last.x && here.y === last.y) || now() > end) return;
    last = here;
  }
};

const outcomeOf = (run) => {
  const after = measured(run.el);
  const { axis, sign } = run;
  const box = run.target === null || !isConnected(run.target) ? null : boxOf(run.target);
  const [movedX, movedY] = box === null ? [after.x - run.before.x, after.y - run.before.y] : [run.box.left - box.left, run.box.top - box.top];
  const moved = Math.abs(movedX) >= 1 || Math.abs(movedY) >= 1;
  const fresh = countFresh(run);
  const channels = [...(moved ? ["scrolled"] : []), ...(fresh > 0 ? ["dom_mutation"] : [])];
  return {
    lost: false, movedX: Math.round(movedX), movedY: Math.round(movedY), scrollTop: Math.round(after.y), scrollHeight: after.height,
    atEnd: endReached(run.el, axis, sign), grewPx: Math.max(0, Math.round(axis === "x" ? after.width - run.before.width : after.height - run.before.height)),
    newElements: fresh, heard: run.heard, inSight: box !== null && inSight(run.target),
    effect: { channels, newText: [], alerts: [], quietMs: null, proof: { reached: [], stopped: [], standing, alive: alive() } },
  };
};

questions.scrollNow = async (want) => {
  const { run } = scrolling;
  if (run === null || !isConnected(run.el)) return { lost: true };
  run.axis = want.deltaX === null ? "y" : "x";
  run.sign = want.to === null ? Math.sign(want.deltaX ?? want.deltaY ?? 1) || 1 : want.to === "top" || want.to === "prev" ? -1 : 1;
  sendScroll(run, want);
  await nextFrame();
  await pause(want.settleMs);
  await stillness(run.el, 1000);
  // A page that snaps back from less than a whole step takes a whole one.
  if ((want.to === "next" || want.to === "prev") && measured(run.el).y === run.before.y && !endReached(run.el, "y", run.sign)) {
    sendScroll(run, want, 1);
    await nextFrame();
    await stillness(run.el, 1000);
  }
  const told = outcomeOf(run);
  endScroll();
  return told;
};

questions.scrollEnd = () => {
  endScroll();
  return true;
};

// The frame that holds an element has to be in view as well.
questions.scrollHolder = ({ el, x, y }) => {
  let [px, py] = throughFrame(el, x, y);
  if (!onScreen(px, py)) scrollIntoView(el, { block: "center", inline: "nearest", behavior: "instant" });
  [px, py] = throughFrame(el, x, y);
  if (!onScreen(px, py)) scrollWindow({ left: px - WIN.innerWidth / 2, top: py - WIN.innerHeight / 2, behavior: "instant" });
  [px, py] = throughFrame(el, x, y);
  return { x: px, y: py, shown: onScreen(px, py) };
};
