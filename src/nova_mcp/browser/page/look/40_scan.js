// One look at the page: controls, headings, landmarks, open dialogs, frames.
const CONTROL_TAGS = new Set(["button", "select", "textarea", "summary"]);
const isControl = (el, tag) => {
  if (CONTROL_TAGS.has(tag)) return true;
  if (tag === "a" || tag === "area" || tag === "svg:a") return hasAttribute(el, "href") || hasAttribute(el, "role");
  if (tag === "input") return inputType(el) !== "hidden";
  if (tag === "option" || !hasAttributes(el)) return false;
  const role = explicitRole(el);
  if (role !== null && INTERACTIVE.has(role)) return true;
  if (hasAttribute(el, "contenteditable")) return isEditableHost(el);
  if (hasAttribute(el, "onclick")) return true;
  const tab = attr(el, "tabindex");
  return tab !== null && Number(tab) >= 0 && hasAttribute(el, "role");
};
const maybeControl = (el) => isControl(el, tagOf(el));

const HEADING_TAG = /^h[1-6]$/;
const inViewport = (box) => box.bottom > 0 && box.right > 0 && box.top < view.height && box.left < view.width;

const SECTIONS = new Set(["dialog", "main", "nav", "aside", "header", "footer", "section", "search"]);
const collect = (root, limits = LIMITS) => {
  const found = { controls: [], headings: [], landmarks: [], layers: [], frames: [] };
  const state = walk(root, (el) => {
    const tag = tagOf(el);
    if (IGNORED.has(tag)) return "skip";
    if (isControl(el, tag)) found.controls.push(el);
    else if (HEADING_TAG.test(tag) || attr(el, "role") === "heading") found.headings.push(el);
    else if (tag === "iframe" || tag === "frame") found.frames.push([el, found.controls.length]);
    else if (SECTIONS.has(tag) || hasAttribute(el, "role")) {
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

const shownText = (el) => checkVisible(el, PLAINLY_SHOWN) && !inkless(el) && !offPage(boxOf(el));

// A heading is shown when nothing around it hides it and its own letters, or those of a part of it, have ink.
const shownHeadings = (found, most) => {
  const [shown, known] = [[], new Map()];
  for (const el of found) {
    if (shown.length >= most) break;
    const around = shownText(el) ? sightAround(el, known) : null;
    const sight = around === null ? null : sightOf(el, styleOf(el), around);
    if (sight !== null && !(sight.mute && firstElementIn(el) === null)) shown.push(el);
  }
  return shown;
};

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

// Bright or dark by what is painted behind everything; a page that paints nothing leaves it open.
const GROUND = /^rgba?\((\d+), (\d+), (\d+)/;
const themeOf = (root) => {
  if (root === null) return "";
  const grounds = [documentBody(DOC), root].filter((el) => el !== null).map((el) => styleOf(el).backgroundColor);
  const painted = grounds.find((color) => !isTransparent(color));
  const parts = painted === undefined ? null : GROUND.exec(painted);
  if (parts === null) return /^(only )?dark$/.test(styleOf(root).colorScheme) ? "dark" : "";
  const light = (0.2126 * Number(parts[1]) + 0.7152 * Number(parts[2]) + 0.0722 * Number(parts[3])) / 255;
  return light < 0.25 ? "dark" : light > 0.75 ? "light" : "";
};

// What the server said when it sent this document; the host may not have been listening then.
const timings = performance.getEntriesByType.bind(performance);
const documentStatus = () => {
  const status = timings("navigation")[0]?.responseStatus;
  return Number.isInteger(status) && status >= 100 ? status : null;
};

const pageFacts = () => {
  const root = documentElement(DOC);
  const height = root === null ? 0 : scrollHeightOf(root);
  return {
    status: documentStatus(), url: pageAddress(), origin: WIN.location.origin, title: pageTitle(200),
    readyState: readyState(DOC), lang: root === null ? "" : cut(attr(root, "lang") ?? "", 20), theme: themeOf(root),
    viewport: [WIN.innerWidth, WIN.innerHeight],
    scroll: { above: Math.round(WIN.scrollY), below: Math.max(0, Math.round(height - WIN.scrollY - WIN.innerHeight)) },
  };
};
const scrollHeightOf = getter(Element.prototype, "scrollHeight");

const openLayers = () => {
  const layers = [];
  for (const el of queryAll(DOC, "dialog[open],[role=dialog],[role=alertdialog]"))
    if (layers.length < 5 && visibleControl(el)) layers.push(layerFacts(el));
  return layers;
};

// What lies over the page and whether somebody is signed in; both answers come from other parts of this script.
const aroundIt = () => ({ auth: questions.auth(), blockers: blockersSeen() });

const blockersSeen = () => {
  const found = typeof blockersNow === "function" ? blockersNow() : [];
  if (found.length === 0) return [];
  const places = makePlaces();
  const known = (number) => {
    const el = nodeOf(number);
    return el === null ? null : factsOf(el, places);
  };
  return found.slice(0, 5).map(({ kind, blocking, node, name, controls, inside }) => ({
    kind, blocking, name: cut(name ?? "", 80), element: known(node), inside: inside ?? [],
    controls: Object.fromEntries(Object.entries(controls ?? {}).map(([what, number]) => [what, known(number)])),
  })).filter((blocker) => blocker.element !== null);
};

const activeFacts = (places) => {
  const active = deepActive();
  return active === null ? null : factsOf(active, places);
};

questions.page = () => ({ ...pageFacts(), layers: openLayers() });

questions.state = () => ({ ...pageFacts(), active: activeFacts(makePlaces()), layers: openLayers(), ...aroundIt() });

questions.info = () => ({
  ...pageFacts(), active: activeFacts(makePlaces()), layers: openLayers(), auth: questions.auth(), frameCount: WIN.length,
  domNodes: allByTag(DOC, "*").length,
});
