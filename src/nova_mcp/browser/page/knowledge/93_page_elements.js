// The elements of a page as candidates for a selector that was lost, and the list that an element is one item of.
const CANDIDATES = { millis: 900, selector: 500 };

// A selector outlives the page like a print: no entered text, no query of an address, nothing secret.
const keptSelector = (el, held, roleCount) => {
  let found = selectorFor(el, held.has(el) ? () => 2 : roleCount);
  if (found !== null && found.kind === "href" && /[?#]/.test(attr(el, "href") ?? "")) {
    const root = rootNode(el);
    const path = nodeType(root) === 9 ? pathFor(root, el, false) ?? pathFor(root, el, true) : null;
    found = path === null ? null : { selector: path };
  }
  if (found === null || found.selector.length > CANDIDATES.selector) return null;
  return withoutSecrets(found.selector) === found.selector ? found.selector : null;
};

const shownControls = (limit, deadline) => {
  const { controls } = collect(DOC, { ...LIMITS, millis: Math.max(1, deadline - now()) });
  const shut = makeShut();
  const found = [];
  // Past the limit the list is a sample: what is in the window first, then what comes first; layers stand at the end.
  const crowded = controls.length > limit * 4;
  for (const el of crowded ? [...controls.slice(0, limit * 3), ...controls.slice(-limit)] : controls) {
    if (now() > deadline) break;
    const box = boxOf(el);
    if (visibleIn(el, box) && !shut(el)) found.push([el, inViewport(box)]);
  }
  if (found.length <= limit) return found.map(([el]) => el);
  const kept = new Set(found.filter(([, near]) => near).concat(found).slice(0, limit * 2).map(([el]) => el));
  return [...kept].slice(0, limit).sort((left, right) => (comparePosition(left, right) & 4 ? -1 : 1));
};

questions.knowledgeElements = ({ limit = KNOWN.elements, millis }) => {
  const [begun, most, given] = [now(), Math.min(Math.max(1, limit), KNOWN.elements), patience(millis, CANDIDATES.millis)];
  shadowRoots.at = -Infinity;
  const elements = shownControls(most, begun + given * 0.5);
  makePlaces();
  const [tools, held, told] = [printTools(), new Set(), []];
  for (const el of elements) {
    if (now() > begun + given * 0.8) break;
    const { print, held: entered } = printOf(el, tools);
    if (entered) held.add(el);
    told.push([el, print]);
  }
  let counts = null;
  const roleCount = (role, name) => (counts ??= makeRoleCounts(elements))(role, name);
  const inTime = () => now() <= begun + given;
  return JSON.stringify(told.map(([el, print]) => ({ n: numberOf(el), print, selector: inTime() ? keptSelector(el, held, roleCount) : null })));
};

// -- items of a list

const ITEMS = { levels: 4, siblings: 1000, fewest: 3, parts: 12 };

// How an element is put together: itself, what it holds, and what that holds; how often something occurs is content.
const writtenClasses = (el) => classesOf(el).join(".");
const buildOf = (el) => {
  const parts = new Set();
  let left = ITEMS.parts;
  for (let child = firstElementIn(el); child !== null && left > 0; child = nextElement(child), left -= 1) {
    const inner = firstElementIn(child);
    parts.add(`${localName(child)}.${writtenClasses(child)}/${inner === null ? "" : localName(inner)}`);
  }
  return `${localName(el)}.${writtenClasses(el)}|${[...parts].sort().join(" ")}`;
};

// Two items of one list may differ in a part or two; most of what they hold is the same.
const alike = (one, other) => {
  const [[self, mine], [name, others]] = [one.split("|"), other.split("|")];
  if (tagIn(self) !== tagIn(name) || (self !== name && mine !== others)) return false;
  if (mine === others) return true;
  const [left, right] = [new Set(mine.split(" ")), new Set(others.split(" "))];
  const both = [...left].filter((part) => right.has(part)).length;
  return both * 2 >= Math.max(left.size, right.size);
};
const tagIn = (build) => build.slice(0, build.indexOf("."));

const itemsBeside = (el) => {
  const up = parentNode(el);
  const first = up === null ? null : firstIn.get(nodeType(up))?.(up) ?? null;
  const [own, found] = [buildOf(el), []];
  for (let node = first; node !== null && found.length < ITEMS.siblings; node = nextElement(node)) if (node === el || alike(own, buildOf(node))) found.push(node);
  return found;
};

const generalSelector = (el, items) => {
  const root = rootNode(el);
  const tag = localName(el);
  const shared = classesOf(el).filter((name) => items.every((item) => tokensOf(attr(item, "class") ?? "").includes(name)));
  const step = tag + shared.map((name) => `.${escapeCss(name)}`).join("");
  const fits = (css) => {
    const found = new Set(cssMatches(splitSteps(css)));
    const most = items.length >= ITEMS.siblings ? Infinity : items.length * 1.5;
    return found.size <= most && items.every((item) => found.has(item));
  };
  if (nodeType(root) === 9 && shared.length > 0 && fits(step)) return step;
  const up = parentNode(el);
  if (up === null || !isElement(up)) return null;
  const anchor = keptSelector(up, new Set([up]), () => 2);
  const css = anchor === null ? null : `${anchor} > ${step}`;
  return css !== null && css.length <= CANDIDATES.selector && fits(css) ? css : null;
};

// The outermost repetition that holds something; a row of bare links or buttons counts only where there is no other.
questions.knowledgeItems = ({ selector }) => itemsAround(meantBy(resolveMany([selector], now() + KNOWN.millis).get(selector).list).el);

const itemsAround = (el) => {
  let node = el;
  let best = null;
  for (let level = 0; node !== null && level <= ITEMS.levels; level += 1) {
    const tag = tagOf(node);
    if (tag === "body" || tag === "html") break;
    const items = itemsBeside(node);
    if (items.length >= ITEMS.fewest && (best === null || firstElementIn(node) !== null)) best = { node, items };
    const up = parentNode(node);
    node = up !== null && isElement(up) ? up : null;
  }
  const css = best === null ? null : generalSelector(best.node, best.items);
  return css === null ? null : { count: best.items.length, selector: css };
};

// Told with every press: only what is marked up as one of several is looked at, and a menu is no list of results.
const ITEM_TAGS = new Set(["li", "tr", "article"]);
const ITEM_ROLES = new Set(["listitem", "row", "article"]);
const itemsNear = (el) => {
  const item = closest(el, (node) => ITEM_TAGS.has(tagOf(node)) || ITEM_ROLES.has(roleOf(node)));
  if (item === null || closest(item, (node) => STANDING.has(roleOf(node)) || layerPositions.has(styleOf(node).position)) !== null) return null;
  return itemsAround(el);
};
