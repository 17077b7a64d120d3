// From a selector or a node to a point that can be pressed, with the shield up.
const UNTYPABLE = new Set(["button", "submit", "reset", "image", "checkbox", "radio", "file", "color", "range", "hidden", "date", "time", "month", "week", "datetime-local"]);
const isTypable = (el) => {
  const tag = tagOf(el);
  if (tag === "textarea") return !hasAttribute(el, "readonly");
  if (tag === "input") return !UNTYPABLE.has(inputType(el)) && !hasAttribute(el, "readonly");
  return isEditableHost(el);
};

// Fields that take a value as a whole, in the form their type prescribes; keys would go to their parts one by one.
const SETTABLE = new Set(["date", "time", "month", "week", "datetime-local", "color", "range"]);
const isSettable = (el) => tagOf(el) === "input" && SETTABLE.has(inputType(el)) && !hasAttribute(el, "readonly");

const deepHit = (x, y) => {
  let el = documentPoint(DOC, x, y);
  for (let depth = 0; el !== null && depth < 20; depth += 1) {
    const shadow = openShadow(el);
    if (shadow === null) break;
    const inner = shadowPoint(shadow, x, y);
    if (inner === null || inner === el) break;
    el = inner;
  }
  return el;
};

const EMBEDDING = new Set(["iframe", "frame", "object", "embed", "fencedframe"]);
const hits = (accepted, hit) => hit !== null && closest(hit, (node) => accepted.has(node)) !== null;

// Where a point of a frame lies in the document that holds it, and whether it can be reached there. Frames may be scaled.
const offsetWidthOf = getter(HTMLElement.prototype, "offsetWidth");
const offsetHeightOf = getter(HTMLElement.prototype, "offsetHeight");
const throughFrame = (el, x, y) => {
  const box = boxOf(el);
  const style = styleOf(el);
  const [sx, sy] = [box.width / (offsetWidthOf(el) || 1), box.height / (offsetHeightOf(el) || 1)];
  return [
    box.left + (parseFloat(style.borderLeftWidth) + parseFloat(style.paddingLeft) + x) * sx,
    box.top + (parseFloat(style.borderTopWidth) + parseFloat(style.paddingTop) + y) * sy,
  ];
};
const scrollWindow = WIN.scrollBy.bind(WIN);
const onScreen = (x, y) => x >= 0 && y >= 0 && x < WIN.innerWidth && y < WIN.innerHeight;

questions.holder = ({ el, x, y, arm }) => {
  let [px, py] = throughFrame(el, x, y);
  if (arm && deepHit(px, py) !== el) {
    if (!onScreen(px, py)) scrollWindow({ left: px - WIN.innerWidth / 2, top: py - WIN.innerHeight / 2, behavior: "instant" });
    [px, py] = throughFrame(el, x, y);
    if (!onScreen(px, py)) scrollIntoView(el, { block: "center", inline: "nearest", behavior: "instant" });
    [px, py] = throughFrame(el, x, y);
  }
  const hit = deepHit(px, py);
  if (arm && hit === el) raise(el, "click", { x: px, y: py, hit: el });
  const blocker = hit === null || hit === el ? null : factsOf(describable(hit), makePlaces());
  return { x: px, y: py, covered: hit !== el, blocker, layer: arm && hit === el ? layerAround(el) : null };
};

const clip = (box) => ({
  left: Math.max(0, box.left), top: Math.max(0, box.top), right: Math.min(WIN.innerWidth, box.right), bottom: Math.min(WIN.innerHeight, box.bottom),
});

const pointsIn = (box) => {
  const seen = clip(box);
  const [width, height] = [seen.right - seen.left, seen.bottom - seen.top];
  if (width < 1 || height < 1) return [];
  const at = (fx, fy) => [seen.left + width * fx, seen.top + height * fy];
  return [at(0.5, 0.5), at(0.25, 0.5), at(0.75, 0.5), at(0.5, 0.25), at(0.5, 0.75)];
};

const targetBoxes = (el, accepted) => {
  const boxes = [];
  for (const node of [el, ...accepted]) {
    const parts = boxesOf(node);
    if (parts.length > 1) for (let i = 0; i < Math.min(parts.length, 4); i += 1) boxes.push(parts[i]);
    else boxes.push(boxOf(node));
  }
  return boxes.filter((box) => box.width >= 1 && box.height >= 1);
};

// An ancestor is never the cover of what stands in it: where it is hit, nothing lies there at all.
const findPoint = (el, accepted) => {
  const pressable = new Set([...accepted, ...bearersOf(el)]);
  let blocker = null;
  for (const box of targetBoxes(el, accepted)) {
    for (const [x, y] of pointsIn(box)) {
      const hit = deepHit(x, y);
      // What lies inside a frame is another page's business: a press there is seen by nobody here.
      if (hits(pressable, hit) && !EMBEDDING.has(tagOf(hit))) {
        return { x, y, hit };
      } else if (hit !== null && (hit === el || !composedContains(hit, el))) blocker ??= hit;
    }
  }
  return { blocker };
};

const sameIdentity = (left, right) => Object.keys(left).every((key) => left[key] === right[key]);

const SCROLLS = ["center", "nearest", "end", "start"];

// One look: either a reason why not yet, or the rectangle and the point.
const inspect = (el, want, attempt) => {
  if (!isConnected(el)) return { why: "detached" };
  const accepted = acceptedFor(el);
  const shown = visibleControl(el) || [...accepted].some((node) => node !== el && visibleControl(node));
  if (!shown) return { why: "not_visible" };
  const disabled = isDisabled(el);
  if (disabled !== null) return { why: "disabled", detail: disabled };
  if (want.editable && !isTypable(el) && !isSettable(el)) return { why: "not_editable" };
  let spot = findPoint(el, accepted);
  if (spot.x === undefined) {
    scrollIntoView(el, { block: SCROLLS[attempt % SCROLLS.length], inline: "nearest", behavior: "instant" });
    spot = findPoint(el, accepted);
  }
  if (spot.x === undefined) return { why: spot.blocker === null ? "not_visible" : "obstructed", blocker: spot.blocker };
  const box = boxOf(el);
  return { spot, rect: [box.left, box.top, box.width, box.height] };
};

const boxMoved = (el, rect) => {
  const box = boxOf(el);
  return [box.left, box.top, box.width, box.height].some((value, index) => Math.abs(value - rect[index]) >= 0.5);
};

// A page in the background draws no frames. The wait for one is long, because positions stand still between frames and
// a busy machine would otherwise make a moving element look at rest.
const nextFrame = () =>
  new Promise((resolve) => {
    const timer = later(resolve, 1000);
    frame(() => {
      never(timer);
      resolve();
    });
  });
const pause = (millis) => new Promise((resolve) => later(resolve, millis));

const pick = (want) => {
  if (want.node !== undefined && want.node !== null) {
    const el = nodeOf(want.node);
    return el === null || !isConnected(el) ? { state: "gone" } : { el };
  }
  let found;
  try {
    found = select(want.selector);
  } catch (error) {
    if (error instanceof SelectorError) return { state: "invalid", message: error.message };
    throw error;
  }
  const shown = found.filter((el) => visibleControl(el) || [...acceptedFor(el)].some((node) => node !== el && visibleControl(node)));
  if (want.nth !== undefined && want.nth !== null)
    return want.nth < shown.length ? { el: shown[want.nth] } : { state: "not_found", matchCount: shown.length };
  if (shown.length > 1) return { state: "ambiguous", list: shown };
  if (shown.length === 1) return { el: shown[0] };
  return found.length ? { el: found[0], several: found.length } : { state: "not_found", matchCount: 0 };
};

const wordsOf = (text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []);
const nearMatches = (selector, places) => {
  const wanted = wordsOf(selector);
  const scored = [];
  const seen = collect(DOC);
  for (const el of seen.controls.slice(0, 1500)) {
    if (!visibleControl(el)) continue;
    const facts = identityOf(el, places);
    let score = 0;
    for (const word of wordsOf(`${facts.tag} ${facts.role} ${facts.name} ${facts.id} ${facts.testid} ${facts.nameAttr}`)) if (wanted.has(word)) score += 1;
    if (score > 0) scored.push([score, el]);
  }
  scored.sort((left, right) => right[0] - left[0]);
  return scored.slice(0, 3).map(([, el]) => factsOf(el, places));
};

const unready = (look, el, places) => ({
  state: "unready", why: look.why, detail: look.detail ?? null, element: isConnected(el) ? factsOf(el, places) : null,
  blocker: look.blocker ? factsOf(describable(look.blocker), places) : null,
});

// Name the layer rather than the speck of it that was hit.
const describable = (el) => closest(el, (node) => INTERACTIVE.has(roleOf(node)) || DIALOG_ROLES.has(roleOf(node)) || attr(node, "id")) ?? el;

questions.prepare = async (want) => {
  const end = now() + (want.waitMs ?? 0);
  let attempt = 0;
  let outcome = null;
  for (;;) {
    const places = makePlaces();
    const picked = pick(want);
    if (picked.state === "invalid" || picked.state === "ambiguous" || picked.state === "gone") {
      const list = (picked.list ?? []).slice(0, 5).map((el) => factsOf(el, places));
      return { state: picked.state, message: picked.message ?? "", matchCount: picked.list?.length ?? 0, candidates: list, atOnce: attempt === 0 };
    }
    if (picked.el) {
      const el = picked.el;
      if (want.expect && !sameIdentity(want.expect, identityOf(el, places))) return { state: "identity_changed", atOnce: attempt === 0 };
      const first = inspect(el, want, attempt);
      // Text goes to the focus, wherever the field moves to; only a pointer needs it to stand still.
      if (first.spot && want.editable) return ready(el, first, want);
      if (first.spot) {
        await nextFrame();
        const moved = isConnected(el) && boxMoved(el, first.rect);
        await nextFrame();
        const second = moved ? { why: "unstable" } : inspect(el, want, attempt);
        const identity = isConnected(el) ? identityOf(el, makePlaces()) : null;
        if (want.expect && (identity === null || !sameIdentity(want.expect, identity))) return { state: "identity_changed" };
        if (second.spot && !boxMoved(el, first.rect)) return ready(el, second, want);
        outcome = unready(second.spot ? { why: "unstable" } : second, el, places);
      } else outcome = unready(first, el, places);
    } else outcome = { state: "not_found", matchCount: picked.matchCount };
    attempt += 1;
    if (now() >= end || outcome.why === "not_editable") break;
    await pause(Math.min(100, Math.max(0, end - now())));
  }
  if (outcome.state === "not_found") outcome.near = want.selector ? nearMatches(want.selector, makePlaces()) : [];
  return outcome;
};

const ready = (el, look, want) => {
  const places = makePlaces();
  raise(el, want.editable ? "type" : "click", look.spot);
  startTracking(el);
  const [acting, ...alsoActing] = commitRoads(el, want.editable ? null : look.spot.hit, places);
  const anchor = closest(el, (node) => tagOf(node) === "a" && hasAttribute(node, "href"));
  return {
    state: "ready", x: look.spot.x, y: look.spot.y, element: factsOf(el, places),
    acting, alsoActing, standing, href: anchor === null ? null : cut(anchorHref(anchor), 2000),
    secret: isSecret(el), url: pageAddress(), recentPaths: recentPaths(), layer: want.editable ? null : layerAround(el),
    items: want.editable ? null : itemsNear(el),
  };
};

// Asked when the pointer stands on the point and nothing has been pressed: pages that answer to the pointer have done so.
// What a picture does while it loads, or a row while it unfolds, is over soon: one more look before it counts as a cover.
const RETEST_MS = 250;
questions.aimed = async () => {
  const first = aimedAt();
  if (first.aimed || first.gone) return first;
  await pause(RETEST_MS);
  return aimedAt();
};

const aimedAt = () => {
  const armed = shield.armed;
  if (armed === null || !isConnected(armed.target)) return { aimed: false, gone: true, foreign: null };
  const hit = deepHit(armed.spot.x, armed.spot.y);
  const foreign = hit !== null && hits(armed.accepted, hit) && !EMBEDDING.has(tagOf(hit)) ? strayRoad(armed, hit) : hit ?? documentElement(DOC);
  const roads = foreign === null ? commitRoads(armed.target, hit, makePlaces()) : [];
  if (foreign !== null && foreign !== armed.target && composedContains(foreign, armed.target) && !hits(armed.accepted, hit))
    return { aimed: false, moved: true, roads, foreign: null };
  return { aimed: foreign === null, roads, foreign: foreign === null ? null : factsOf(describable(foreign), makePlaces()) };
};

// Paths fetched in the last five seconds: a poll that happens to fall into the window is not an effect.
const resources = performance.getEntriesByType.bind(performance);
const recentPaths = () => {
  const since = now() - 5000;
  const paths = new Set();
  for (const entry of resources("resource").slice(-200)) {
    if (entry.startTime < since) continue;
    try {
      paths.add(new URL(entry.name.slice(0, MOST_ADDRESS)).pathname);
    } catch {
      continue;
    }
  }
  return [...paths].slice(0, 50);
};

// -- refs

questions.ref = ({ node, expect }) => {
  const places = makePlaces();
  const el = nodeOf(node);
  if (el !== null && isConnected(el)) return { url: pageAddress(), node: factsOf(el, places), matches: [] };
  const found = [];
  const seen = collect(DOC);
  const pool = expect.tag === "iframe" ? seen.frames : seen.controls;
  for (const other of pool) {
    if (tagOf(other) !== expect.tag || roleOf(other) !== expect.role) continue;
    if (sameIdentity(expect, identityOf(other, places))) found.push(factsOf(other, places));
    if (found.length >= 5) break;
  }
  return { url: pageAddress(), node: null, matches: found };
};

questions.find = ({ selector, nth = null, limit = 5 }) => {
  const places = makePlaces();
  const picked = pick({ selector, nth });
  if (picked.state) {
    const list = (picked.list ?? []).slice(0, limit).map((el) => factsOf(el, places));
    const near = picked.state === "not_found" ? nearMatches(selector, places) : [];
    return { state: picked.state, message: picked.message ?? "", matchCount: picked.matchCount ?? picked.list?.length ?? 0, candidates: list, near };
  }
  return { state: "found", element: factsOf(picked.el, places) };
};

// -- pictures

// Whether something lies over all of an element that can be seen; what is not on the screen can't be told.
questions.uncovered = ({ node }) => {
  const el = nodeOf(node);
  if (el === null || !isConnected(el)) return { there: false };
  const box = boxOf(el);
  const points = pointsIn(box);
  const free = points.some(([x, y]) => {
    const hit = deepHit(x, y);
    return hit === null || composedContains(el, hit) || composedContains(hit, el) || !opaque(hit);
  });
  return { there: visibleControl(el), free: free || points.length === 0, box: [box.left, box.top, box.width, box.height] };
};

// -- typing

const focusOn = uncurry(HTMLElement.prototype.focus);
const selectInput = uncurry(HTMLInputElement.prototype.select);
const selectArea = uncurry(HTMLTextAreaElement.prototype.select);
const inputRange = uncurry(HTMLInputElement.prototype.setSelectionRange);
const areaRange = uncurry(HTMLTextAreaElement.prototype.setSelectionRange);
const selection = WIN.getSelection.bind(WIN);

const caretToEnd = (el) => {
  const tag = tagOf(el);
  const end = rawValue(el).length;
  if (tag === "textarea") areaRange(el, end, end);
  else if (tag === "input") {
    try {
      inputRange(el, end, end);
    } catch {
      // Number and email fields have no caret that script could set; a key has to do it.
      return false;
    }
  } else {
    const chosen = selection();
    chosen.selectAllChildren(el);
    chosen.collapseToEnd();
  }
  return true;
};

questions.focus = ({ clear }) => {
  const el = shield.armed?.target;
  if (!el || !isConnected(el)) return { focused: false };
  focusOn(el, { preventScroll: true });
  const active = deepActive() ?? documentActive(DOC);
  if (active === null || !composedContains(el, active)) return { focused: false };
  shield.armed.before = clear ? "" : rawValue(el);
  let caret = true;
  if (!clear) caret = caretToEnd(el);
  else if (tagOf(el) === "input") selectInput(el);
  else if (tagOf(el) === "textarea") selectArea(el);
  else selection().selectAllChildren(el);
  return { focused: true, empty: rawValue(el) === "", caret, whole: isSettable(el) };
};

const putValue = uncurry(Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set);
questions.setWhole = ({ text }) => {
  const el = shield.armed?.target;
  if (!el || !isConnected(el)) return { lost: true };
  putValue(el, text);
  fire(el, new Event("input", { bubbles: true, composed: true }));
  fire(el, new Event("change", { bubbles: true }));
  return { lost: false };
};

const plain = (text) => text.replace(/\r\n?/g, "\n").replace(/\u00a0/g, " ");

const readBack = (el, expected) => {
  const editable = tagOf(el) !== "input" && tagOf(el) !== "textarea";
  const value = plain(rawValue(el));
  const same = editable ? value.replace(/\n+$/, "").replace(/\n{2,}/g, "\n") === plain(expected).replace(/\n+$/, "").replace(/\n{2,}/g, "\n") : value === plain(expected);
  return { matches: same, value: isSecret(el) ? "•••" : cut(value.toWellFormed(), 200), secret: isSecret(el), chars: value.length };
};

questions.readBack = async ({ text, frames = 1 }) => {
  const el = shield.armed?.target;
  if (!el) return { lost: true };
  for (let i = 0; i < frames; i += 1) await nextFrame();
  if (!isConnected(el)) return { lost: true };
  const before = shield.armed.before ?? "";
  return { ...readBack(el, before + text), untouched: plain(rawValue(el)) === plain(before), effect: effectSoFar() };
};
