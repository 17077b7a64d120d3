// A whole look as numbers and one table of texts: thousands of elements go out at once, and most of their texts repeat.
const HUGE_PAGE_KEEPS = 2000;
const MOST_FRAMES = 20;
const SEEN_BITS = {
  visible: 1, dialog: 2, modal: 4, main: 8, nav: 16, control: 32, primary: 64, link: 128, unique: 256,
  nearComposer: 512, composer: 1024, submitter: 2048, posts: 4096, disabled: 8192, checked: 16384, expanded: 32768,
  required: 65536, invalid: 131072, newtab: 262144, footer: 524288, aside: 1048576, next: 2097152,
  changes: 4194304, card: 8388608,
};
const SIDE_BITS = { contentinfo: SEEN_BITS.footer, complementary: SEEN_BITS.aside };

const makeTable = () => {
  const texts = [""];
  const known = new Map([["", 0]]);
  const put = (text) => {
    let at = known.get(text);
    if (at === undefined) {
      at = texts.push(text) - 1;
      known.set(text, at);
    }
    return at;
  };
  return { texts, put };
};

// At the top of a page what is seen comes first in the document or, for layers, last; only a scrolled page has to be
// measured as a whole.
const viewportFirst = (list, limit) => {
  if (view.y === 0 && view.x === 0) return [...list.slice(0, limit - 500), ...list.slice(-500)];
  const inside = [];
  const outside = [];
  for (const el of list) (inViewport(boxOf(el)) ? inside : outside).push(el);
  const kept = new Set([...inside, ...outside].slice(0, limit));
  return list.filter((el) => kept.has(el));
};

const stateBits = (el, place) => {
  let bits = 0;
  for (const flag of flagsOf(el, place)) bits |= SEEN_BITS[flag];
  return bits;
};

const placeBits = (place) =>
  (place.dialog !== null ? SEEN_BITS.dialog : 0) | (place.modal ? SEEN_BITS.modal : 0) | (place.main ? SEEN_BITS.main : 0) |
  (place.nav ? SEEN_BITS.nav | (SIDE_BITS[place.side] ?? 0) : 0);

const NEXT_PAGE = /(^|\s)next(\s|$)/i;
const rowBits = (el, facts, place, form, halo) => {
  const submitter = isSubmitter(el, facts.owner);
  let bits = placeBits(place) | stateBits(el, place);
  if (form !== null) bits |= SEEN_BITS.main;
  if (CONTROLS.has(facts.role)) bits |= SEEN_BITS.control;
  if (facts.type === "submit" || PRIMARY.test(attr(el, "class") ?? "")) bits |= SEEN_BITS.primary;
  if (leadsSomewhere(el)) bits |= SEEN_BITS.link;
  if (halo.size > 0 && nearComposer(el, halo)) bits |= SEEN_BITS.nearComposer;
  if (submitter) bits |= SEEN_BITS.submitter | (postsAnyway(el) ? SEEN_BITS.posts : 0);
  if (submitsByScript(el)) bits |= facts.owner === null ? SEEN_BITS.changes : SEEN_BITS.submitter;
  if (sendsChange(el)) bits |= SEEN_BITS.changes;
  if (nearCard(el)) bits |= SEEN_BITS.card;
  if (NEXT_PAGE.test(attr(el, "rel") ?? "")) bits |= SEEN_BITS.next;
  return bits;
};

// A text that occurs once tells its element apart; generated ids tell nothing tomorrow.
const markUnique = (rows) => {
  const count = new Map();
  const add = (key) => count.set(key, (count.get(key) ?? 0) + 1);
  const keys = rows.map(({ facts }) => [
    facts.id && `#${facts.id}`, facts.testid && `t${facts.testid}`, facts.nameAttr && `n${facts.nameAttr}`,
    facts.name && `r${facts.role}\n${facts.name}`,
  ]);
  for (const list of keys) for (const key of list) if (key) add(key);
  rows.forEach((row, index) => {
    const [id, ...others] = keys[index];
    if ((id && count.get(id) === 1 && !looksGenerated(row.facts.id)) || others.some((key) => key && count.get(key) === 1)) row.bits |= SEEN_BITS.unique;
  });
};

const CAN_ANSWER = new Set(["button", "menuitem", "link"]);
const seenRow = (el, box, visible, tools) => {
  const { places, halo, forms } = tools;
  const place = places.placeOf(el);
  const role = roleOf(el);
  const facts = identityOf(el, places, role);
  facts.owner = places.ownerOf(el);
  const form = facts.owner ?? place.form;
  if (form !== null && !forms.has(form)) forms.set(form, formFacts(form));
  const says = saysWithoutRole(el, role, false);
  return {
    el, facts, bits: rowBits(el, facts, place, form, halo) | (visible ? SEEN_BITS.visible : 0), value: valueOf(el), box,
    form: form === null ? 0 : numberOf(form), says,
    menu: places.menuName(el), reads: otherReadings(el, facts.tag, says === "" ? role : "button", says || facts.name),
    question: place.dialog !== null && CAN_ANSWER.has(role) ? askedBy(place.dialog) : "",
  };
};

// One flat list of numbers, as many per element as the host expects; texts by their place in the table.
const written = (rows, put) => {
  const numbers = [];
  for (const { el, facts, bits, value, box, form, says, menu, reads, question } of rows)
    numbers.push(
      numberOf(el), bits, put(facts.tag), put(facts.role), put(facts.name), put(facts.type), put(facts.id),
      put(facts.testid), put(facts.nameAttr), put(facts.href), put(facts.row), put(value), Math.round(box.left),
      Math.round(box.top), Math.round(box.width), Math.round(box.height), form, put(says), put(menu),
      put(reads), put(question),
    );
  return numbers;
};

// -- frames: those of the same origin are asked here and now, by their own script

const iframeWindow = getter(HTMLIFrameElement.prototype, "contentWindow");
const frameWindow = getter(HTMLFrameElement.prototype, "contentWindow");
const windowIn = (el) => (tagOf(el) === "iframe" ? iframeWindow(el) : frameWindow(el));
const ownProperty = Object.getOwnPropertyDescriptor;
// Names the host gave to frames; a frame keeps its name through all its documents.
const frameNames = new WeakMap();
let unnamedFrames = [];
let unnamedStamp = 0;

// Undefined for a frame of another origin, null for one that has no script yet.
const scriptIn = (el) => {
  try {
    return ownProperty(windowIn(el), "__nova")?.value ?? null;
  } catch {
    return undefined;
  }
};

const frameSeen = (el, before, places, args) => {
  const [x, y] = throughFrame(el, 0, 0);
  const outer = boxOf(el);
  const inner = windowIn(el);
  const script = scriptIn(el);
  const scale = outer.width / (offsetWidthOf(el) || 1);
  if (!frameNames.has(inner)) unnamedFrames.push([el, frameNames]);
  const seen = {
    n: numberOf(el), id: frameNames.get(inner) ?? null, before, x: Math.round(x), y: Math.round(y), scale,
    w: Math.round(outer.width), h: Math.round(outer.height), bits: placeBits(places.placeOf(el)), same: script !== undefined,
    scan: script && args.millis > 0 ? script.ask("scan", args) : null,
  };
  if (seen.scan !== null) unnamedFrames.push(...script.ask("unnamed"));
  return seen;
};

const framesSeen = (found, before, places, budget) => {
  const frames = [];
  for (const [el, at] of found) {
    if (frames.length >= budget.frames || !rendered(el)) continue;
    const box = boxOf(el);
    if (box.width < 2 || box.height < 2 || offPage(box) || windowIn(el) === null) continue;
    const args = { ...budget.args, frames: budget.frames - frames.length - 1, millis: budget.deadline - now() };
    const seen = frameSeen(el, before(at), places, args);
    frames.push(seen);
    budget.frames -= seen.scan?.frames.length ?? 0;
  }
  return frames;
};

// The host asks for them right after a look; a later look makes an earlier list void.
questions.unnamed = () => unnamedFrames;
questions.unnamedFrames = ({ stamp }) => (stamp === unnamedStamp ? unnamedFrames.map(([el]) => el) : []);
questions.nameFrames = ({ stamp, names }) => {
  if (stamp !== unnamedStamp) return;
  unnamedFrames.forEach(([el, known], index) => {
    const inner = windowIn(el);
    if (inner !== null && names[index]) known.set(inner, names[index]);
  });
  unnamedFrames = [];
};

// -- the look

// What the last look said of roles and names, for the selectors that are asked for right after it.
let lastLook = null;
let looked = 0;
const remember = (rows) => {
  const [counts, names] = [new Map(), new WeakMap()];
  for (const { el, facts, bits } of rows) {
    names.set(el, facts.name);
    if (bits & SEEN_BITS.visible && INTERACTIVE.has(facts.role)) {
      const key = `${facts.role}\n${facts.name}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  lastLook = { id: ++looked, counts, names, at: now(), rows: rows.map(({ el, facts }) => [el, facts.name]) };
  return lastLook.id;
};
const rememberedLook = (id) => (lastLook !== null && lastLook.id === id ? lastLook : null);

// What the boxes around a control leave to be seen of it: nothing when they are faded, clipped, or folded up.
const [OPEN, FOLDED, FOLDED_WHOLE, GONE] = [0, 1, 2, 3];
const shutStep = (el, outer) => {
  if (outer === GONE) return GONE;
  const style = styleOf(el);
  const { position } = style;
  // What is placed freely leaves a folded box that is not placed itself.
  const around = position === "fixed" || (position === "absolute" && outer === FOLDED) ? OPEN : outer;
  if (style.display === "contents") return around;
  if (faded(style) || clippedAway(style)) return GONE;
  const box = boxOf(el);
  if ((style.clipPath !== "none" && insetAway(style, box)) || (standsFast(el, position) && beyond(el, box, position, null))) return GONE;
  const folded = (box.height < 3 && style.overflowY !== "visible") || (box.width < 3 && style.overflowX !== "visible");
  return folded && style.display !== "inline" ? (position === "static" ? FOLDED : FOLDED_WHOLE) : around;
};

const makeShut = () => {
  const known = new Map();
  const shutAt = (el) => {
    const chain = [];
    let node = el;
    let shut;
    while (node !== null && (shut = known.get(node)) === undefined) {
      chain.push(node);
      node = composedParent(node);
    }
    shut ??= OPEN;
    for (let i = chain.length - 1; i >= 0; i -= 1) known.set(chain[i], (shut = shutStep(chain[i], shut)));
    return shut;
  };
  // Boxes to tick and the like are often put out of sight and drawn anew beside themselves.
  return (el) => !(tagOf(el) === "input" && CUSTOM_DRAWN.has(inputType(el))) && shutAt(el) !== OPEN;
};

const rowsOf = (controls, visibleOnly, deadline, tools) => {
  const seen = { rows: [], kept: [], total: 0, truncated: false };
  for (let i = 0; i < controls.length; i += 1) {
    if ((i & 63) === 0 && now() > deadline) {
      seen.truncated = true;
      seen.total += controls.length - i;
      break;
    }
    const el = controls[i];
    const box = boxOf(el);
    const visible = visibleIn(el, box) && !tools.shut(el);
    seen.kept.push(seen.rows.length);
    if (visibleOnly && !visible) continue;
    seen.total += 1;
    seen.rows.push(seenRow(el, box, visible, tools));
  }
  return seen;
};

const scanned = ({ visibleOnly = true, limit = LIMITS.elements, within = null, millis = LIMITS.millis, frames = MOST_FRAMES }) => {
  const scope = within === null ? DOC : nodeOf(within);
  if (scope === null || !isConnected(scope)) return { gone: true };
  [unnamedFrames, unnamedStamp] = [[], unnamedStamp + 1];
  const deadline = now() + millis;
  const found = collect(scope, { ...LIMITS, millis: millis * 0.6 });
  const places = makePlaces();
  const tools = { places, halo: composerHalo(), forms: new Map(), shut: makeShut() };
  const crowded = found.controls.length > limit;
  // Past the limit the list is a sample anyway; a smaller one answers in time.
  const controls = crowded ? viewportFirst(found.controls, Math.min(limit, HUGE_PAGE_KEEPS)) : found.controls;
  const seen = rowsOf(controls, visibleOnly, deadline, tools);
  markUnique(seen.rows);
  const { texts, put } = makeTable();
  const truncated = found.truncated || crowded || seen.truncated;
  const before = (at) => (crowded ? seen.rows.length : seen.kept[at] ?? seen.rows.length);
  const budget = { frames, deadline, args: { visibleOnly, limit: Math.max(0, limit - seen.rows.length), inner: true } };
  return {
    ...pageFacts(), rows: written(seen.rows, put), texts, total: seen.total + found.controls.length - controls.length,
    scanTruncated: truncated, forms: [...tools.forms.values()], closedRoots: found.closed,
    headings: shownHeadings(found.headings, 200).map(headingFacts).filter((heading) => heading.text),
    landmarks: found.landmarks.filter(rendered).slice(0, 60).map((el) => ({ role: roleOf(el), name: cut(nameOf(el, roleOf(el)), 60) })),
    layers: found.layers.filter(visibleControl).slice(0, 5).map(layerFacts),
    frames: framesSeen(found.frames, before, places, budget), stamp: unnamedStamp,
    look: within === null && !truncated ? remember(seen.rows) : (lastLook = null, 0),
  };
};

questions.scan = (args) => scanned(args);

// Sent as one text: the driver walks through every value of an object it carries.
questions.summary = (args) => JSON.stringify(scanned(args));

// Asked together with a look, so that the host reads the one while the page works on the other. Names of a moment ago
// still stand.
const STILL_FRESH_MS = 100;
questions.around = () => {
  if (lastLook !== null && now() - lastLook.at < STILL_FRESH_MS) for (const [el, name] of lastLook.rows) once("name", el, () => name);
  if (lastLook !== null) lastLook.rows = [];
  return aroundIt();
};
