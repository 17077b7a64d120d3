// Layers that lie over the page: which there are, what they ask for, which of their controls does what.
// `PLATFORMS` comes with the bundle: what is known of the large consent platforms, of bot checks and of chat windows.
const CONSENT_ROOTS = PLATFORMS.platforms.flatMap((one) => one.roots).join(",");
// Ids are looked up; everything else costs a walk through the whole document for each selector.
const isPlainId = (css) => /^#[\w-]+$/.test(css);
const ROOT_IDS = PLATFORMS.platforms.flatMap((one) => one.roots).filter(isPlainId).map((css) => css.slice(1));
const OTHER_ROOTS = PLATFORMS.platforms.flatMap((one) => one.roots).filter((css) => !isPlainId(css)).join(",");
const CONSENT_FRAMES = PLATFORMS.platforms.flatMap((one) => one.frames ?? []).join(",");
const NAMED_ABOUT = PLATFORMS.generic.about.map((word) => `[id*="${word}" i],[class*="${word}" i]`).join(",");
const CHALLENGE_CSS = PLATFORMS.challenge.join(",");
const CHAT_CSS = PLATFORMS.chat.join(",");
const [ABOUT_PART, SHAPE_PART] = [PLATFORMS.generic.about, PLATFORMS.generic.shape].map((words) => new RegExp(words.join("|"), "i"));

const MOST_LAYERS = 8;
const SMALLEST_ROOT = [150, 24];
const pointStack = uncurry(Document.prototype.elementsFromPoint);

// -- which layers there are

const layerPositions = new Set(["fixed", "absolute", "sticky"]);
const isLayer = (el) => {
  const style = styleOf(el);
  if (!layerPositions.has(style.position)) return false;
  return style.position === "fixed" || Number(style.zIndex) >= 1;
};

const hitsOf = (points) =>
  points.map(([x, y]) => {
    const hit = deepHit(x, y);
    const layers = [];
    for (let node = hit; node !== null; node = composedParent(node)) {
      const tag = tagOf(node);
      if (tag !== "body" && tag !== "html" && isLayer(node)) layers.push(node);
    }
    return { x, y, hit, layers };
  });

const onView = (fx, fy) => [WIN.innerWidth * fx, WIN.innerHeight * fy];
const probeHits = () => hitsOf(PROBE_POINTS.map(([fx, fy]) => onView(fx, fy)));
// Whatever takes a third of the view lies under one of the five points; bars lie at the edges.
const EDGE_POINTS = [[0.5, 0.02], [0.5, 0.98], [0.12, 0.95], [0.88, 0.95]];
const edgeHits = () => hitsOf(EDGE_POINTS.map(([fx, fy]) => onView(fx, fy)));

const shareOfView = (el) => {
  const seen = clip(boxOf(el));
  return (Math.max(0, seen.right - seen.left) * Math.max(0, seen.bottom - seen.top)) / (WIN.innerWidth * WIN.innerHeight);
};

const mainOf = () => queryAll(DOC, MAIN_CSS);
const shownMain = () => [...mainOf()].find((el) => rendered(el) && boxOf(el).width >= 1 && boxOf(el).height >= 1) ?? null;

const STANDING = new Set(["navigation", "banner", "contentinfo", "complementary", "search", "menubar", "toolbar"]);
const isThePage = (el, main) => {
  if (matches(el, MAIN_CSS) || elementAll(el, MAIN_CSS).length > 0) return true;
  if (main !== null || DIALOG_ROLES.has(roleOf(el))) return false;
  const all = documentAll(DOC, CONTROL_CSS).length;
  const inner = queryDeep(el, "dialog,[role=dialog],[role=alertdialog]", 5).some(seenByEye);
  return all > 0 && !inner && elementAll(el, CONTROL_CSS).length * 2 > all;
};

// A part of the layout that is placed by hand lies beside the rest; a layer lies over it.
const liesOver = (el, points) => {
  for (const { x, y } of points) {
    const under = [...pointStack(DOC, x, y)].find((node) => !composedContains(el, node) && !composedContains(node, el));
    if (under !== undefined) return true;
  }
  if (shareOfView(el) < 0.9) return false;
  const body = documentBody(DOC);
  return body !== null && squash(textContentOf(el)).length * 2 < squash(textContentOf(body)).length;
};

const isVeil = (el) => queryDeep(el, `${CHOICE_CSS},iframe,img,video,canvas,svg,input`, 1).length === 0 && shownTextOf(el, textBudget(60)).length < 3;

// A bar at the edge that asks for consent is known by its words, whatever it is called.
const asksForConsent = (el) => {
  const text = textContentOf(el);
  return text.length > 20 && text.length < 6000 && among("consent_text", longWords(text)) && closest(el, (node) => matches(node, MAIN_CSS)) === null;
};

const coveringLayers = (main) => {
  const [probed, edges] = [probeHits(), edgeHits()];
  const owned = new Map();
  const owns = (layer) => owned.get(layer) ?? owned.set(layer, { probes: 0, points: [] }).get(layer);
  for (const point of probed) for (const layer of point.layers) {
    owns(layer).probes += 1;
    owns(layer).points.push(point);
  }
  for (const point of edges) for (const layer of point.layers) owns(layer).points.push(point);
  const found = new Map();
  for (const [layer, { probes: count, points }] of owned) {
    const large = count < 3 && shareOfView(layer) >= 0.3 && !STANDING.has(roleOf(layer));
    if ((count >= 3 || large) && !isThePage(layer, main) && liesOver(layer, points)) found.set(layer, "layer");
    else if (count < 3 && !large && asksForConsent(layer) && !isThePage(layer, main)) found.set(layer, "named");
  }
  return found;
};

// A container without a box of its own stands for the first thing in it that is seen.
const standIn = (el) => {
  const fits = (node) => {
    const box = boxOf(node);
    return rendered(node) && opaque(node) && box.width >= SMALLEST_ROOT[0] && box.height >= SMALLEST_ROOT[1] && inViewport(box);
  };
  if (fits(el)) return el;
  const queue = [el];
  for (let seen = 0; queue.length && seen < 200; seen += 1) {
    const node = queue.shift();
    if (node !== el && fits(node)) return node;
    for (const child of composedChildren(node)) if (isElement(child) && !IGNORED.has(tagOf(child))) queue.push(child);
  }
  return null;
};

const namedForConsent = (el) => {
  const tag = tagOf(el);
  if (tag === "body" || tag === "html" || tag === "main" || maybeControl(el)) return false;
  const tokens = `${attr(el, "id") ?? ""} ${attr(el, "class") ?? ""}`.slice(0, 400).split(/\s+/);
  return tokens.some((token) => ABOUT_PART.test(token) && SHAPE_PART.test(token.replace(ABOUT_PART, "")));
};

// Layers hang near the top of the tree, at the beginning or the end of it; in a huge document nobody looks further.
const HUGE_TREE = 10000;
const SHALLOW = { levels: 5, ends: 30, nodes: 1500 };
const shallowNodes = () => {
  const found = [];
  let level = [documentBody(DOC)].filter((el) => el !== null);
  for (let depth = 0; depth < SHALLOW.levels && level.length && found.length < SHALLOW.nodes; depth += 1) {
    const next = [];
    for (const el of level) {
      const inner = [...composedChildren(el)].filter((node) => isElement(node) && !IGNORED.has(tagOf(node)));
      next.push(...(inner.length <= SHALLOW.ends * 2 ? inner : [...inner.slice(0, SHALLOW.ends), ...inner.slice(-SHALLOW.ends)]));
      if (next.length > SHALLOW.nodes) break;
    }
    found.push(...next);
    level = next;
  }
  return found.slice(0, SHALLOW.nodes);
};
const rootQuery = () => {
  if (allByTag(DOC, "*").length <= HUGE_TREE) return (css, most) => queryDeep(DOC, css, most);
  const near = shallowNodes();
  return (css, most) => near.filter((el) => matches(el, css)).slice(0, most);
};

const knownRoots = () => {
  const query = rootQuery();
  const roots = new Map();
  const put = (el, known) => {
    const shown = standIn(el);
    if (shown !== null && !(roots.get(shown) ?? false)) roots.set(shown, known);
  };
  for (const id of ROOT_IDS) for (const scope of [DOC, ...rootsNow()]) {
    const el = idIn(scope, id);
    if (el !== null) put(el, true);
  }
  for (const el of query(OTHER_ROOTS, 40)) put(el, true);
  if (CONSENT_FRAMES !== "") for (const el of query(CONSENT_FRAMES, 10)) put(el, true);
  for (const el of query(NAMED_ABOUT, 300)) if (namedForConsent(el) && closest(el, (node) => matches(node, MAIN_CSS)) === null) put(el, false);
  return roots;
};

const isModalNow = (el) => tagOf(el) === "dialog" && matches(el, ":modal");

const layerCandidates = (main) => {
  const found = new Map();
  for (const el of queryDeep(DOC, "dialog:modal", 10)) if (seenByEye(el)) found.set(el, "modal");
  for (const el of queryDeep(DOC, "[aria-modal=true]", 20)) if (!found.has(el) && DIALOG_ROLES.has(roleOf(el)) && seenByEye(el)) found.set(el, "declared");
  for (const [el, sure] of knownRoots()) {
    if (sure ? elementAll(el, MAIN_CSS).length > 0 : isThePage(el, main)) continue;
    if (sure) found.set(el, found.get(el) === "modal" ? "known modal" : "known");
    else if (!found.has(el)) found.set(el, "named");
  }
  for (const [el, why] of coveringLayers(main)) if (!found.has(el)) found.set(el, why);
  return found;
};

// One blocker for each nest of candidates: `body` is the part that speaks, `root` everything that belongs to it.
const WEIGHT = ["known modal", "known", "modal", "declared", "named", "layer"];
const nested = (found) => {
  const all = [...found.keys()];
  const holds = (outer, inner) => outer !== inner && !found.get(inner).endsWith("modal") && composedContains(outer, inner);
  const groups = [];
  for (const root of all.filter((el) => !all.some((other) => holds(other, el)))) {
    const inside = all.filter((el) => holds(root, el));
    const telling = inside.filter((el) => found.get(el) !== "layer");
    const speaking = telling.filter((el) => !telling.some((other) => holds(other, el)));
    const grouped = (outer, body, parts) => {
      const whys = parts.map((part) => found.get(part));
      groups.push({ root: outer, body, why: WEIGHT.find((why) => whys.includes(why)), sure: whys.some((why) => why.startsWith("known")) });
    };
    if (found.get(root) !== "layer" || speaking.length === 0) grouped(root, root, [root, ...inside]);
    else if (speaking.length === 1) grouped(root, speaking[0], [root, ...inside]);
    else for (const one of speaking) grouped(one, one, [one, ...inside.filter((el) => holds(one, el))]);
  }
  return groups;
};

// -- what a layer is about

const wordsIn = (root) => longWords(`${nameOf(root, roleOf(root))} ${shownTextOf(root, textBudget(1500))}`);
const fieldsIn = (root) => queryDeep(root, "input,textarea", 60).filter((el) => tagOf(el) === "textarea" || TYPED.has(inputType(el)) || inputType(el) === "search").filter(visibleControl);
const ASKED = new Set(["accept", "reject", "manage", "save"]);

const kindOf = (root, group, choices) => {
  const words = wordsIn(root);
  const says = (list) => among(list, words);
  if (queryDeep(root, CHALLENGE_CSS, 5).some(rendered) || says("challenge_text")) return "challenge";
  if (group.sure) return "consent";
  const fields = fieldsIn(root);
  if (says("age_text")) return "age_gate";
  if (fields.some((el) => typedAs(el) === "password") || (fields.length > 0 && (loginForms(root)[0]?.score ?? 0) >= 0.5)) return "login_wall";
  const asks = choices.some((one) => ASKED.has(one.label) || (group.why === "named" && one.label === "close"));
  if (asks && says("consent_text")) return "consent";
  if (says("paywall_text")) return "paywall";
  if (says("login_text") || (loginForms(root)[0]?.score ?? 0) >= 0.5) return "login_wall";
  if (matches(root, CHAT_CSS) || queryDeep(root, CHAT_CSS, 1).length > 0 || (fields.length > 0 && says("chat_text"))) return "chat";
  if (says("newsletter_text")) return "newsletter";
  return group.why === "modal" || group.why === "declared" || DIALOG_ROLES.has(roleOf(root)) ? "modal" : "unknown";
};
const typedAs = (el) => (tagOf(el) === "input" ? inputType(el) : "");

// A page that is nothing but a check whether a person is there.
const challengePage = () => {
  const body = documentBody(DOC);
  if (body === null || documentAll(DOC, CONTROL_CSS).length > 8) return null;
  const text = squash(textContentOf(body));
  if (text.length > 3000) return null;
  const checks = queryDeep(DOC, CHALLENGE_CSS, 3).some(rendered) || among("challenge_text", longWords(`${documentTitle(DOC)} ${shownTextOf(body, textBudget(600))}`));
  return checks ? body : null;
};

// Points of the main content, and which of them can't be reached because of a layer.
const contentPoints = (main) => {
  const seen = main === null ? null : clip(boxOf(main));
  if (seen === null || seen.right - seen.left < 8 || seen.bottom - seen.top < 8) return PROBE_POINTS.map(([fx, fy]) => onView(fx, fy));
  return PROBE_POINTS.map(([fx, fy]) => [seen.left + (seen.right - seen.left) * fx, seen.top + (seen.bottom - seen.top) * fy]);
};

const liesWithin = (roots, hit) => hit !== null && roots.some((root) => composedContains(root, hit));
const isBlocking = (group, hits) => {
  if (hits.length === 0) return null;
  if (isModalNow(group.body) || isModalNow(group.root)) return true;
  // What is drawn before or after an element that holds the layer is hit as that element.
  const drawnAround = (hit) => hit !== null && !isRoot(hit) && composedContains(hit, group.body) && !liesWithin([hit], shownMain());
  return hits.filter(({ hit }) => liesWithin([group.root, ...group.veils], hit) || drawnAround(hit)).length * 2 > hits.length;
};

// Points that a layer takes from the page; when it is gone they must reach something else.
const takenBy = (group) => {
  const roots = [group.root, group.body, ...group.veils];
  const own = [...pointsIn(boxOf(group.body)), ...PROBE_POINTS.map(([fx, fy]) => onView(fx, fy))];
  return own.filter(([x, y]) => liesWithin(roots, deepHit(x, y))).slice(0, 12);
};

// Some layers take being closed for a yes, and say so.
const closingAccepts = (root) => among("closing_accepts", wordsIn(root));

const labelledChoices = (root) => layerChoices(root).map((el) => {
  const facts = pressFacts(el);
  return { el, facts, label: labelFor(facts) };
});

const SPEAKS = new Set(["accept", "reject", "decline", "close", "manage", "save"]);
const layersNow = () => {
  if (WIN.innerWidth < 1 || WIN.innerHeight < 1) return [];
  measure();
  const main = shownMain();
  const groups = nested(layerCandidates(main)).slice(0, 20);
  const veils = groups.filter((group) => group.why === "layer" && isVeil(group.root));
  const speaking = groups.filter((group) => !veils.includes(group));
  const hits = groups.length === 0 ? [] : hitsOf(contentPoints(main));
  const found = [];
  for (const group of speaking.length ? speaking : veils) {
    const holder = { ...group, veils: speaking.length ? veils.map((veil) => veil.root) : [] };
    const choices = labelledChoices(group.root);
    const framed = queryDeep(group.root, "iframe", 5).filter(rendered);
    if (tagOf(group.root) === "iframe") framed.push(group.root);
    const kind = kindOf(group.root, group, choices);
    if (kind === "consent" && closingAccepts(group.root)) for (const one of choices) if (one.label === "close") one.label = "accept";
    if (group.why === "named" && (kind !== "consent" || !choices.some((one) => SPEAKS.has(one.label)))) continue;
    found.push({ ...holder, kind, choices, framed, blocking: isBlocking(holder, hits) });
  }
  const check = found.length === 0 ? challengePage() : null;
  if (check !== null) found.push({ root: check, body: check, why: "page", veils: [], kind: "challenge", choices: [], framed: [], blocking: true });
  const rank = (one) => (isModalNow(one.body) ? 0 : one.blocking ? 1 : 2);
  found.sort((left, right) => rank(left) - rank(right));
  for (const one of found) layerMemory.set(one.body, { root: one.root, veils: one.veils, points: one.why === "page" ? [] : takenBy(one) });
  return found.slice(0, MOST_LAYERS);
};
const layerMemory = new WeakMap();

const settledLabel = (label, kind) => (label === "decline" ? (kind === "consent" ? "reject" : "close") : label);
const NAMES_ALL = (one) => one.facts.texts.some((text) => among("consent_everything", foldWords(text)));
// The control that speaks for the whole layer; of several alike the one that says all, or none.
const speaksFor = (layer, label) => {
  const found = layer.choices.filter((one) => settledLabel(one.label, layer.kind) === label);
  if (found.length <= 1 || label !== "reject") return found[0] ?? null;
  return found.find((one) => one.facts.platform === "reject") ?? found.find(NAMES_ALL) ?? (found.length <= 2 ? found[0] : null);
};

const layerName = (layer) => cut(nameOf(layer.body, roleOf(layer.body)) || shownTextOf(layer.body, textBudget(80)), 80);

// Controls that can be used although the layer covers the page.
const insideOf = (layer) => queryDeep(layer.root, CONTROL_CSS, 80).map(numberOf);

// What perceive tells: at most five, those that block first.
const blockersNow = () => layersNow().slice(0, 5).map((layer) => {
  const controls = {};
  for (const label of ["reject", "close", "manage", "accept"]) {
    const one = speaksFor(layer, label);
    if (one !== null) controls[label] = numberOf(one.el);
  }
  return {
    kind: layer.kind, blocking: layer.blocking, node: numberOf(layer.body), name: layerName(layer), controls,
    inside: insideOf(layer),
  };
});
