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

// Hit far from its own place: something in it that nobody can look into lies there.
const MAY_HIDE_A_TREE = new Set(["div", "section", "aside", "article", "span"]);
const standsInFor = (el, x, y) => {
  const tag = tagOf(el);
  if ((!tag.includes("-") && !MAY_HIDE_A_TREE.has(tag)) || tag.startsWith("svg:") || openShadow(el) !== null) return false;
  const box = boxOf(el);
  return x < box.left || x > box.right || y < box.top || y > box.bottom;
};

const hitsOf = (points) =>
  points.map(([x, y]) => {
    const hit = deepHit(x, y);
    const layers = [];
    for (let node = hit; node !== null; node = composedParent(node)) {
      const tag = tagOf(node);
      if (tag !== "body" && tag !== "html" && (isLayer(node) || (node === hit && standsInFor(node, x, y)))) layers.push(node);
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

const hasBox = (el) => rendered(el) && boxOf(el).width >= 1 && boxOf(el).height >= 1;
// By its tag the main part is found at once; only by its role it costs a walk through the document.
const shownMain = () => [...allByTag(DOC, "main")].find(hasBox) ?? [...queryAll(DOC, "[role=main]")].find(hasBox) ?? null;

const STANDING = new Set(["navigation", "banner", "contentinfo", "complementary", "search", "menubar", "toolbar"]);
// How much there is to read in a part of the page, as far as it matters.
const readable = (el, most) => {
  let length = 0;
  walk(el, (node) => {
    if (length > most) return "stop";
    if (SKIPPED.has(tagOf(node))) return "skip";
    for (let child = firstChild(node); child !== null; child = nextSibling(child)) if (isText(child)) length += dataOf(child).trim().length;
    return undefined;
  }, { nodes: 20000, millis: 30 });
  return length;
};

// An application may sit in a fixed frame as a whole. Without a main part it is known by holding most of what there is
// to press and to read; what is small, or asks for consent over something else, is not the page.
const isThePage = (el, main, points = []) => {
  if (matches(el, MAIN_CSS) || elementAll(el, MAIN_CSS).length > 0) return true;
  if (main !== null || DIALOG_ROLES.has(roleOf(el))) return false;
  const all = documentAll(DOC, CONTROL_CSS).length;
  if (all === 0 || elementAll(el, CONTROL_CSS).length * 2 <= all) return false;
  if (queryDeep(el, "dialog,[role=dialog],[role=alertdialog]", 5).some(seenByEye)) return false;
  const lifted = isLayer(el);
  if (lifted && shareOfView(el) < 0.3) return false;
  const own = readable(el, 20000);
  if (lifted && readable(documentBody(DOC), own * 2) > own * 2) return false;
  return !(lifted && asksForConsent(el) && liesOnSomething(el, points));
};

const liesOnSomething = (el, points) =>
  points.some(({ x, y }) => [...pointStack(DOC, x, y)].some((node) => !composedContains(el, node) && !composedContains(node, el)));

// A part of the layout that is placed by hand lies beside the rest; a layer lies over it.
const liesOver = (el, points) => {
  if (liesOnSomething(el, points)) return true;
  if (shareOfView(el) < 0.9) return false;
  const [body, own] = [documentBody(DOC), readable(el, 20000)];
  return body !== null && readable(body, own * 2) > own * 2;
};

const isVeil = (el) => queryDeep(el, `${CHOICE_CSS},iframe,img,video,canvas,svg,input`, 1).length === 0 && shownTextOf(el, textBudget(60)).length < 3;

// A bar at the edge that asks for consent is known by its words, whatever it is called.
const asksForConsent = (el) => {
  const length = textContentOf(el).length;
  if (length <= 20 || length >= 6000 || closest(el, (node) => matches(node, MAIN_CSS)) !== null) return false;
  return among("consent_text", longWords(shownTextOf(el, textBudget(400))));
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
    if ((count >= 3 || large) && !isThePage(layer, main, points) && liesOver(layer, points)) found.set(layer, "layer");
    else if (count < 3 && !large && asksForConsent(layer) && !isThePage(layer, main, points)) found.set(layer, "worded");
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

// A banner that takes its place among the rest comes before or after everything else; a page about cookies is the rest.
const inTheFlow = (el) => closest(el, isLayer) === null;
const MOST_BESIDE = 60;
const nothingBeside = (el, next) => {
  for (let node = el, seen = 0; node !== null && node !== documentBody(DOC); node = composedParent(node))
    for (let other = next(node); other !== null; other = next(other)) {
      if ((seen += 1) > MOST_BESIDE) return false;
      if (isElement(other) ? !IGNORED.has(tagOf(other)) && seenByEye(other) : isText(other) && dataOf(other).trim() !== "") return false;
    }
  return true;
};
const standsApart = (el) => elementAll(el, "h1").length === 0 && nothingBeside(el, previousSibling) !== nothingBeside(el, nextSibling);

const namedForConsent = (el) => {
  const tag = tagOf(el);
  if (tag === "body" || tag === "html" || tag === "main" || maybeControl(el)) return false;
  const tokens = `${attr(el, "id") ?? ""} ${attr(el, "class") ?? ""}`.slice(0, 400).split(/\s+/);
  return tokens.some((token) => ABOUT_PART.test(token) && SHAPE_PART.test(token.replace(ABOUT_PART, "")));
};

// Layers hang near the top of the tree, at the beginning or the end of it; in a huge document nobody looks further.
const HUGE_TREE = 10000;
const SHALLOW = { levels: 5, ends: 30, nodes: 1500 };
const lastChild = getter(Node.prototype, "lastChild");
const endsOf = (parent) => {
  const found = new Set();
  for (const [first, next] of [[firstChild, nextSibling], [lastChild, previousSibling]]) {
    let left = SHALLOW.ends;
    for (let node = first(parent); node !== null && left > 0; node = next(node))
      if (isElement(node) && !IGNORED.has(tagOf(node))) {
        found.add(node);
        left -= 1;
      }
  }
  return found;
};
const shallowNodes = () => {
  const found = [];
  let level = [documentBody(DOC)].filter((el) => el !== null);
  for (let depth = 0; depth < SHALLOW.levels && level.length && found.length < SHALLOW.nodes; depth += 1) {
    const next = [];
    for (const el of level) {
      next.push(...endsOf(openShadow(el) ?? el));
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
  for (const el of query(NAMED_ABOUT, 300))
    if (namedForConsent(el) && closest(el, (node) => matches(node, MAIN_CSS)) === null && (!inTheFlow(el) || standsApart(el))) put(el, false);
  return roots;
};

const isModalNow = (el) => tagOf(el) === "dialog" && matches(el, ":modal");

const layerCandidates = (main) => {
  const found = new Map();
  const dialogs = [...allByTag(DOC, "dialog")].concat(rootsNow().filter(isConnected).flatMap((root) => [...fragmentAll(root, "dialog")]));
  for (const el of dialogs.slice(0, 200)) if (isModalNow(el) && seenByEye(el)) found.set(el, "modal");
  for (const el of queryDeep(DOC, "[aria-modal=true]", 20)) if (!found.has(el) && DIALOG_ROLES.has(roleOf(el)) && seenByEye(el)) found.set(el, "declared");
  for (const [el, sure] of knownRoots()) {
    if (sure ? elementAll(el, MAIN_CSS).length > 0 : isThePage(el, main)) continue;
    if (sure) found.set(el, found.get(el) === "modal" ? "known modal" : "known");
    else if (!found.has(el)) found.set(el, "named");
  }
  const covering = coveringLayers(main);
  for (const [el, why] of covering) if (!found.has(el)) found.set(el, why);
  return { found, covers: (el) => covering.get(el) === "layer" };
};

// One blocker for each nest of candidates: `body` is the part that speaks, `root` everything that belongs to it.
const WEIGHT = ["known modal", "known", "modal", "declared", "named", "worded", "layer"];
const nested = ({ found, covers }) => {
  const all = [...found.keys()];
  const holds = (outer, inner) => outer !== inner && !found.get(inner).endsWith("modal") && composedContains(outer, inner);
  const groups = [];
  for (const root of all.filter((el) => !all.some((other) => holds(other, el)))) {
    const inside = all.filter((el) => holds(root, el));
    const telling = inside.filter((el) => found.get(el) !== "layer");
    const speaking = telling.filter((el) => !telling.some((other) => holds(other, el)));
    const grouped = (outer, body, parts) => {
      const whys = parts.map((part) => found.get(part));
      groups.push({ root: outer, body, why: WEIGHT.find((why) => whys.includes(why)), covers: parts.some(covers), sure: whys.some((why) => why.startsWith("known")) });
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
  const fields = fieldsIn(root);
  if (group.sure) return fields.some((el) => typedAs(el) === "password") ? "login_wall" : "consent";
  if (says("age_text")) return "age_gate";
  if (fields.some((el) => typedAs(el) === "password")) return "login_wall";
  // An address and "sign up" make a newsletter as well as an account; what the layer says of itself decides.
  const entersHere = () => (loginForms(root)[0]?.score ?? 0) >= 0.5 && (says("login_text") || !says("newsletter_text"));
  if (fields.length > 0 && entersHere()) return "login_wall";
  const excused = () => choices.some((one) => one.label === "excuse") && !says("newsletter_text");
  const asks = choices.some((one) => ASKED.has(one.label)) || (group.why === "named" && choices.length > 0) || excused();
  if (asks && says("consent_text")) return "consent";
  if (says("paywall_text")) return "paywall";
  if (says("login_text") || entersHere()) return "login_wall";
  if (matches(root, CHAT_CSS) || queryDeep(root, CHAT_CSS, 1).length > 0 || (fields.length > 0 && says("chat_text"))) return "chat";
  if (says("newsletter_text")) return "newsletter";
  return group.why === "modal" || group.why === "declared" || DIALOG_ROLES.has(roleOf(root)) ? "modal" : "unknown";
};
const typedAs = (el) => (tagOf(el) === "input" ? inputType(el) : "");

// A page that is nothing but a check whether a person is there: little to read and hardly a link to follow.
const CHECK_PAGE = { nodes: 3000, controls: 8, links: 4, text: 1500 };
const challengePage = () => {
  const body = documentBody(DOC);
  if (body === null || allByTag(DOC, "*").length > CHECK_PAGE.nodes || documentAll(DOC, CONTROL_CSS).length > CHECK_PAGE.controls) return null;
  if (readable(body, CHECK_PAGE.text * 2) > CHECK_PAGE.text * 2) return null;
  if (queryDeep(DOC, CHALLENGE_CSS, 3).some(rendered)) return body;
  if (documentAll(DOC, "a[href]").length > CHECK_PAGE.links) return null;
  const shown = shownTextOf(body, textBudget(600));
  return shown.length <= CHECK_PAGE.text && among("challenge_text", longWords(`${pageTitle(400)} ${shown}`)) ? body : null;
};

// Points of the main content, and which of them can't be reached because of a layer.
const contentPoints = (main) => {
  const seen = main === null ? null : clip(boxOf(main));
  if (seen === null || seen.right - seen.left < 8 || seen.bottom - seen.top < 8) return PROBE_POINTS.map(([fx, fy]) => onView(fx, fy));
  return PROBE_POINTS.map(([fx, fy]) => [seen.left + (seen.right - seen.left) * fx, seen.top + (seen.bottom - seen.top) * fy]);
};

const liesWithin = (roots, hit) => hit !== null && roots.some((root) => composedContains(root, hit));
const isBlocking = (group, hits, main) => {
  if (hits.length === 0) return null;
  if (isModalNow(group.body) || isModalNow(group.root)) return true;
  // What is drawn before or after an element that holds the layer is hit as that element.
  const drawnAround = (hit) => hit !== null && !isRoot(hit) && composedContains(hit, group.body) && !liesWithin([hit], main);
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
const BY_WORDS = new Set(["named", "worded"]);
const ANSWERS = new Set(["accept", "reject", "decline"]);
const OFFER_LABELS = { decline: ["reject", "close"], excuse: ["unknown", "close"] };
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
    // What was only guessed by its name has to speak for itself, unless it lies over the page anyway.
    if (BY_WORDS.has(group.why) && !group.covers && (kind !== "consent" || !choices.some((one) => SPEAKS.has(one.label)))) continue;
    if (group.why === "named" && !group.covers && inTheFlow(group.root) && !choices.some((one) => ANSWERS.has(one.label))) continue;
    found.push({ ...holder, kind, choices, framed, blocking: isBlocking(holder, hits, main) });
  }
  const check = found.length === 0 ? challengePage() : null;
  if (check !== null) found.push({ root: check, body: check, why: "page", veils: [], kind: "challenge", choices: [], framed: [], blocking: true });
  const rank = (one) => (isModalNow(one.body) ? 0 : one.blocking ? 1 : 2);
  found.sort((left, right) => rank(left) - rank(right));
  return found.slice(0, MOST_LAYERS);
};
const layerMemory = new WeakMap();
// Only for a layer that is about to be pressed: a look at the page alone needs no points, and each costs a hit test.
const remembered = (one) => {
  layerMemory.set(one.body, { root: one.root, veils: one.veils, points: one.why === "page" ? [] : takenBy(one) });
  return one;
};

const settledLabel = (label, kind) => OFFER_LABELS[label]?.[kind === "consent" ? 0 : 1] ?? label;
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
