// The first listeners on the window: they prove that our input reached its element and stop it anywhere else.
const PRESS = ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu"];
const HOVER = ["pointermove", "mousemove", "pointerover", "mouseover", "pointerenter", "mouseenter"];
const KEYS = ["keydown", "keypress", "keyup", "beforeinput", "input"];
const eventPath = uncurry(Event.prototype.composedPath);
const halt = uncurry(Event.prototype.stopImmediatePropagation);
const cancel = uncurry(Event.prototype.preventDefault);

const shield = { armed: null };
const pressSet = new Set(PRESS);
const hoverSet = new Set(HOVER);

const stop = (event) => {
  halt(event);
  cancel(event);
};

// Whether a press here would set off something that was not there when the element was looked at.
const strayRoad = (armed, hit) => {
  for (const node of activatedBy(hit)) {
    const form = isSubmitter(node, formOwner(node)) ? formOwner(node) : null;
    const leads = form !== null || ((tagOf(node) === "a" || tagOf(node) === "area") && isDestination(attr(node, "href")));
    if (leads && (!armed.roads.has(node) || armed.roads.get(node) !== form)) return node;
  }
  return null;
};

const noteRoads = (hit) => {
  const roads = new Map();
  for (const node of activatedBy(hit)) roads.set(node, isSubmitter(node, formOwner(node)) ? formOwner(node) : null);
  return roads;
};

const guardPointer = (armed, event, path) => {
  const onTarget = path.some((node) => armed.accepted.has(node));
  if (hoverSet.has(event.type)) {
    // Entering an element is announced to each of its ancestors as well; those are not in the way.
    if (!onTarget && !(isElement(path[0]) && composedContains(path[0], armed.target))) stop(event);
    return;
  }
  const first = path.find((node) => node instanceof Element) ?? null;
  const stray = first === null ? null : strayRoad(armed, first);
  if (stray !== null) {
    armed.stopped.push(event.type);
    armed.foreign ??= stray;
    stop(event);
    return;
  }
  if (onTarget) {
    armed.reached.push(event.type);
    if (event.type === "pointerdown" || event.type === "mousedown") armed.pressedAt ??= now();
    return;
  }
  // Once the press arrived, the page may have moved or removed the element: its release and click then go to an
  // ancestor, which is how browsers do it, and nothing foreign is hit.
  if (armed.pressedAt !== null && first !== null && armed.ancestors.has(first)) return;
  armed.stopped.push(event.type);
  if (first !== null) armed.foreign ??= first;
  stop(event);
};

const guardKeys = (armed, event, path) => {
  if (!armed.fenced && path.some((node) => armed.accepted.has(node))) {
    armed.reached.push(event.type);
    armed.pressedAt ??= now();
    return;
  }
  armed.stopped.push(event.type);
  stop(event);
};

const onInput = (event) => {
  const armed = shield.armed;
  if (armed === null || armed.relaxed || !event.isTrusted) return;
  const path = eventPath(event);
  if (armed.mode === "click" && (pressSet.has(event.type) || hoverSet.has(event.type))) guardPointer(armed, event, path);
  else if (armed.mode === "type" && !pressSet.has(event.type) && !hoverSet.has(event.type)) guardKeys(armed, event, path);
};

// `first`: nothing of the page could listen before us. `late`: it could have. `document.open()` removes listeners in
// every world, so the probe tells whether ours are still there.
const PROBE = `x${crypto.getRandomValues(new Uint32Array(2)).join("")}`;
let heard = 0;
const onProbe = () => {
  heard += 1;
};
const installShield = () => {
  for (const type of [...PRESS, ...HOVER, ...KEYS]) listen(WIN, type, onInput, { capture: true, passive: false });
  listen(WIN, PROBE, onProbe, { capture: true });
};
const alive = () => {
  const before = heard;
  fire(WIN, new Event(PROBE));
  return heard > before;
};

const startedEmpty = (() => {
  const root = documentElement(DOC);
  return root === null || (readyState(DOC) === "loading" && firstChild(root) === null);
})();
let standing = startedEmpty ? "first" : "late";
installShield();

const rearm = () => {
  if (alive()) return;
  standing = "late";
  installShield();
};

const ancestorsOf = (el) => {
  const set = new Set();
  for (let node = composedParent(el); node !== null; node = composedParent(node)) set.add(node);
  return set;
};

const acceptedFor = (el) => new Set([el, ...labelsFor(el)]);

// What takes the pointer for an element that lets it through: the group of a drawing that it belongs to, or the control
// that it is the label of. A control of its own that lets the pointer through is switched off, not carried.
const BEARERS = { levels: 4, groupLevels: 3, parts: 40 };
const bearersOf = (el) => {
  if (tagOf(el).startsWith("svg:")) {
    let node = el;
    for (let level = 0; level <= BEARERS.groupLevels && node !== null; level += 1, node = composedParent(node))
      if (tagOf(node) === "svg:g") return elementAll(node, "*").length <= BEARERS.parts ? [node] : [];
    return [];
  }
  if (styleOf(el).pointerEvents !== "none" || INTERACTIVE.has(roleOf(el))) return [];
  let node = composedParent(el);
  for (let level = 0; level < BEARERS.levels && node !== null; level += 1, node = composedParent(node))
    if (INTERACTIVE.has(roleOf(node))) return isDisabled(node) === null && styleOf(node).pointerEvents !== "none" ? [node] : [];
  return [];
};
const pressableFor = (el) => new Set([...acceptedFor(el), ...bearersOf(el)]);

const raise = (el, mode, spot) => {
  rearm();
  shield.armed = {
    target: el, mode, accepted: pressableFor(el), ancestors: ancestorsOf(el), reached: [], stopped: [], foreign: null,
    pressedAt: null, relaxed: false, raisedAt: now(), spot, roads: noteRoads(spot.hit ?? el),
  };
};

const proofOf = (armed) => ({
  reached: armed.reached.slice(0, 20), stopped: armed.stopped.slice(0, 20), standing, alive: alive(),
});
