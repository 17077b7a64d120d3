// One look at the page: controls, headings, landmarks, open dialogs.
const CONTROL_TAGS = new Set(["button", "select", "textarea", "summary"]);
const maybeControl = (el) => {
  const tag = tagOf(el);
  if (CONTROL_TAGS.has(tag)) return true;
  if (tag === "a" || tag === "area" || tag === "svg:a") return hasAttribute(el, "href") || hasAttribute(el, "role");
  if (tag === "input") return inputType(el) !== "hidden";
  if (tag === "option") return false;
  const role = attr(el, "role");
  if (role !== null && INTERACTIVE.has(role.trim().toLowerCase())) return true;
  if (hasAttribute(el, "contenteditable")) return isEditableHost(el);
  if (hasAttribute(el, "onclick")) return true;
  const tab = attr(el, "tabindex");
  return tab !== null && Number(tab) >= 0 && role !== null;
};

const HUGE_PAGE_KEEPS = 2000;
const HEADING_TAG = /^h[1-6]$/;
const inViewport = (box) => box.bottom > 0 && box.right > 0 && box.top < view.height && box.left < view.width;

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

const makeUniqueness = (elements) => {
  const count = new Map();
  const add = (key) => count.set(key, (count.get(key) ?? 0) + 1);
  const keysOf = (facts) => [
    facts.id && `#${facts.id}`, facts.testid && `t${facts.testid}`, facts.nameAttr && `n${facts.nameAttr}`,
    facts.name && `r${facts.role}\n${facts.name}`,
  ].filter(Boolean);
  for (const facts of elements) keysOf(facts).forEach(add);
  return (facts) => keysOf(facts).some((key) => count.get(key) === 1 && !(key[0] === "#" && looksGenerated(key.slice(1))));
};

const collect = (root, limits = LIMITS) => {
  const found = { controls: [], headings: [], landmarks: [], layers: [], frames: [] };
  const state = walk(root, (el) => {
    const tag = tagOf(el);
    if (IGNORED.has(tag)) return "skip";
    if (maybeControl(el)) found.controls.push(el);
    else if (HEADING_TAG.test(tag) || attr(el, "role") === "heading") found.headings.push(el);
    else if (tag === "iframe" || tag === "frame") found.frames.push(el);
    else if (tag === "dialog" || hasAttribute(el, "role") || tag === "main" || tag === "nav" || tag === "aside" || tag === "header" || tag === "footer" || tag === "section") {
      const role = roleOf(el);
      if (DIALOG_ROLES.has(role)) found.layers.push(el);
      else if (LANDMARKS.has(role)) found.landmarks.push(el);
    }
    return undefined;
  }, limits);
  return { ...found, ...state };
};

const headingFacts = (el) => {
  const level = attr(el, "aria-level") ?? (HEADING_TAG.test(tagOf(el)) ? tagOf(el)[1] : "2");
  return { level: Number(level) || 2, text: cut(squash(namedText(el, 0, { left: 100 })), 100) };
};

const shownText = (el) => rendered(el) && opaque(el) && !inkless(el) && !offPage(boxOf(el));

const layerFacts = (el) => ({
  n: numberOf(el), role: roleOf(el), name: nameOf(el, roleOf(el)),
  modal: attr(el, "aria-modal") === "true" || (tagOf(el) === "dialog" && matches(el, ":modal")),
});

const deepActive = () => {
  let el = documentActive(DOC);
  while (el !== null) {
    const shadow = openShadow(el);
    const inner = shadow === null ? null : shadowActive(shadow);
    if (inner === null) break;
    el = inner;
  }
  if (el === null || el === documentBody(DOC) || el === documentElement(DOC)) return null;
  return el;
};

const pageFacts = () => {
  const root = documentElement(DOC);
  const height = root === null ? 0 : scrollHeightOf(root);
  return {
    url: WIN.location.href, origin: WIN.location.origin, title: cut(squash(documentTitle(DOC)), 200),
    readyState: readyState(DOC), lang: root === null ? "" : cut(attr(root, "lang") ?? "", 20),
    viewport: [WIN.innerWidth, WIN.innerHeight],
    scroll: { above: Math.round(WIN.scrollY), below: Math.max(0, Math.round(height - WIN.scrollY - WIN.innerHeight)) },
  };
};
const scrollHeightOf = getter(Element.prototype, "scrollHeight");

questions.state = () => {
  const places = makePlaces();
  const active = deepActive();
  const layers = [];
  for (const el of queryAll(DOC, "dialog[open],[role=dialog],[role=alertdialog]"))
    if (layers.length < 5 && visibleControl(el)) layers.push(layerFacts(el));
  return { ...pageFacts(), active: active === null ? null : factsOf(active, places), layers };
};

questions.info = () => {
  const places = makePlaces();
  const active = deepActive();
  return {
    ...pageFacts(), active: active === null ? null : factsOf(active, places), frameCount: WIN.length,
    domNodes: allByTag(DOC, "*").length,
  };
};

// Thousands of elements go out at once; what is empty is left out.
const lean = (facts) => {
  const short = {};
  for (const key in facts) {
    const value = facts[key];
    if (value !== "" && value !== false && !(Array.isArray(value) && value.length === 0)) short[key] = value;
  }
  return short;
};

const summary = ({ visibleOnly = true, limit = LIMITS.elements, within = null }) => {
  const scope = within === null ? DOC : nodeOf(within);
  if (scope === null) return { gone: true };
  const deadline = now() + LIMITS.millis;
  const seen = collect(scope, { ...LIMITS, millis: LIMITS.millis * 0.6 });
  const places = makePlaces();
  const halo = composerHalo();
  let truncated = seen.truncated;
  let total = 0;
  let controls = seen.controls;
  if (controls.length > limit) {
    // Past the limit the list is a sample anyway; a smaller one answers in time.
    const kept = Math.min(limit, HUGE_PAGE_KEEPS);
    truncated = true;
    total = controls.length - kept;
    controls = viewportFirst(controls, kept);
  }
  const elements = [];
  const forms = new Map();
  for (let i = 0; i < controls.length; i += 1) {
    if ((i & 63) === 0 && now() > deadline) {
      truncated = true;
      total += controls.length - i;
      break;
    }
    const el = controls[i];
    if (visibleOnly && !visibleControl(el)) continue;
    total += 1;
    const facts = factsOf(el, places);
    const form = formOwner(el) ?? places.placeOf(el).form;
    if (form !== null && !forms.has(facts.form)) forms.set(facts.form, formFacts(form));
    elements.push({ ...facts, ...commitExtras(el, halo) });
  }
  const isUnique = makeUniqueness(elements);
  for (const facts of elements) facts.unique = isUnique(facts);
  return {
    ...pageFacts(), elements: elements.map(lean), total, scanTruncated: truncated, forms: [...forms.values()], closedRoots: seen.closed,
    headings: seen.headings.filter(shownText).slice(0, 80).map(headingFacts).filter((heading) => heading.text),
    landmarks: seen.landmarks.filter(rendered).slice(0, 40).map((el) => ({ role: roleOf(el), name: cut(nameOf(el, roleOf(el)), 60) })),
    layers: seen.layers.filter(visibleControl).slice(0, 5).map(layerFacts),
    frames: seen.frames.filter(rendered).slice(0, 20).map((el) => numberOf(el)),
  };
};

// Sent as one text: the driver walks through every value of an object it carries.
questions.summary = (args) => JSON.stringify(summary(args));
