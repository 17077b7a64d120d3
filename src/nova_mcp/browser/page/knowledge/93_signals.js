// Which of the signs that stored knowledge goes by hold on this page now: one pass over the tree, hardly any layout.
// `SIGNS` comes with the bundle: what each sign means, and by which marks a framework is known.
const SIGNAL = { texts: 8000, chars: 150000, values: 20000, soup: 1000000, millis: 250, scripts: 400, hits: 8, dom: 1500, text: 800, vendors: 200, plain: 2000 };
// Behind the end of what is read lie, on long pages, the layers: the last part is read as well.
const TAIL = { texts: 1500, chars: 40000 };
const FRAMEWORKS = Object.entries(SIGNS.frameworks).map(([name, marks]) => [name, marks.join(",")]);
const ANY_FRAMEWORK = FRAMEWORKS.map(([, css]) => css).join(",");
const BORDER = "\u0001";
const compatMode = getter(Document.prototype, "compatMode");

// -- selectors: what they name has to occur at all before the page is searched for it

const IN_BRACKETS = /\[\s*([\w-]+)\s*(?:=\s*(?:"([^"\\\]]*)"|'([^'\\\]]*)'|([\w-]+))\s*)?\]/g;
const EXACT_ATTRIBUTE = /^(data-|aria-)|^(name|role)$/;
const neededBy = (css) => {
  const needed = { ids: [], classes: [], attributes: [] };
  const rest = css.replace(IN_BRACKETS, (_all, name, ...values) => {
    const value = values.slice(0, 3).find((one) => one !== undefined);
    if (value !== undefined && EXACT_ATTRIBUTE.test(name)) needed.attributes.push([name, value]);
    return "[]";
  });
  // Anything that could mean "or" or "not", or is spelled with escapes, is left to the search itself.
  if (!/^[\w\s.#>+~[\]-]*$/.test(rest) || rest.replaceAll("[]", "").includes("[") || rest.includes(">>>")) return null;
  for (const [, sign, token] of rest.matchAll(/([.#])([\w-]+)/g)) (sign === "#" ? needed.ids : needed.classes).push(token);
  return needed;
};
const knownNeeds = new Map();
const needsOf = (css) => {
  let needs = knownNeeds.get(css);
  if (needs === undefined) {
    if (knownNeeds.size > 3000) knownNeeds.clear();
    knownNeeds.set(css, (needs = neededBy(css)));
  }
  return needs;
};

// Every value of an attribute in the document; null where there are too many to be worth the reading.
const valuesIn = (name) => {
  const list = documentAll(DOC, `[${name}]`);
  if (list.length > SIGNAL.values) return null;
  const values = new Set();
  for (let i = 0; i < list.length; i += 1) values.add(attr(list[i], name));
  return values;
};
const classesIn = () => {
  const lists = valuesIn("class");
  if (lists === null) return null;
  const names = new Set();
  for (const list of lists) for (const name of list.split(/[ \t\n\f\r]+/)) names.add(name);
  return names;
};

// A selector by text or name is dear; on most pages its longest word occurs nowhere. A word that only a style sheet
// writes is missed by this.
const SPOKEN = ["aria-label", "title", "alt", "placeholder", "value", "label"];
const makeMentioned = () => {
  let soup = null;
  const read = () => {
    const texts = [documentBody(DOC), ...rootsNow()].map((root) => (root === null ? "" : textContentOf(root).slice(0, SIGNAL.soup)));
    for (const name of SPOKEN) for (const value of valuesIn(name) ?? NONE) texts.push(value.slice(0, LONGEST_SOURCE));
    const all = texts.join(BORDER).toLowerCase();
    const maybe = makeTriples(all);
    return (word) => maybe(word) && all.includes(word);
  };
  const wordOf = (text) => {
    if (text.startsWith("text=")) return longestWord(squash(unquote(text.slice(5))[0]));
    const found = /^role=\s*[a-z]+\s*\[\s*name\s*=\s*(["'].*["'])\s*\]$/i.exec(text);
    return found === null ? "" : longestWord(squash(unquote(found[1])[0]));
  };
  return (text) => (soup ??= read())(wordOf(text).toLowerCase());
};

const makeOccurs = () => {
  const mentioned = makeMentioned();
  const known = new Map();
  const has = (name, value) => {
    if (!known.has(name)) known.set(name, name === "class" ? classesIn() : valuesIn(name));
    return known.get(name)?.has(value) ?? true;
  };
  // In documents of the old kind ids and classes are compared without case.
  const exact = compatMode(DOC) === "CSS1Compat";
  return (selector) => {
    if (/^\s*(role|text)=/.test(selector)) return mentioned(selector.trim());
    if (isPlainId(selector)) return byId(DOC, selector.slice(1)) !== null || !exact;
    const needs = exact ? needsOf(selector) : null;
    if (needs === null) return true;
    if (!needs.ids.every((id) => byId(DOC, id) !== null) || !needs.classes.every((name) => has("class", name))) return false;
    return needs.attributes.every(([name, value]) => has(name, value));
  };
};

// -- texts

const treeNode = uncurry(Object.getOwnPropertyDescriptor(TreeWalker.prototype, "currentNode").get);
const lastInTree = uncurry(TreeWalker.prototype.lastChild);
const previousInTree = uncurry(TreeWalker.prototype.previousNode);
const LONG_PIECE = 300;
const takePiece = (node, most, out) => {
  const data = dataOf(node);
  if (data.length < 2 || !says(data)) return;
  // Scripts are long texts; what is short is asked about only if something is found in it.
  if (data.length > LONG_PIECE && isSilentText(node)) return;
  const text = data.slice(0, most.chars);
  out.pieces.push([node, text.includes(BORDER) ? text.replaceAll(BORDER, " ") : text]);
  out.left.chars -= text.length + 1;
};
const isSilentText = (node) => {
  const up = parentNode(node);
  return up !== null && isElement(up) && SKIPPED.has(tagOf(up));
};
const inBudget = (out, deadline) => (out.left.texts -= 1) >= 0 && out.left.chars > 0 && ((out.left.texts & 127) !== 0 || now() < deadline);

// All texts of the page, those of open shadow trees last; of a page that is too long its beginning and its end.
const textPieces = (deadline) => {
  const out = { pieces: [], left: { ...SIGNAL }, whole: true };
  const body = documentBody(DOC);
  const roots = body === null ? [] : [body, ...rootsNow().filter(isConnected)];
  for (const root of roots) {
    const tree = makeTreeWalker(DOC, root, SHOW_TEXT);
    for (let node = nextInTree(tree); node !== null; node = nextInTree(tree)) {
      if (!inBudget(out, deadline)) {
        out.whole = false;
        break;
      }
      takePiece(node, SIGNAL, out);
    }
    if (!out.whole) break;
  }
  return out.whole ? out : { whole: false, pieces: [...out.pieces, ...tailPieces(body, new Set(out.pieces.map(([node]) => node)), deadline)] };
};

const tailPieces = (body, known, deadline) => {
  const out = { pieces: [], left: { ...TAIL } };
  const tree = makeTreeWalker(DOC, body, SHOW_TEXT | 1);
  while (lastInTree(tree) !== null);
  for (let node = treeNode(tree); node !== null && inBudget(out, deadline + SIGNAL.millis / 4); node = previousInTree(tree))
    if (isText(node) && !known.has(node)) takePiece(node, TAIL, out);
  return out.pieces.reverse();
};

const foldedSign = (text) =>
  (PLAIN_LETTERS.test(text) ? text.toLowerCase() : text.toWellFormed().normalize("NFKC").toLowerCase().replace(/ß/g, "ss").replace(/ς/g, "σ")).replace(/\s+/g, " ");
const tight = (text) => text.replace(/[\s\u0001]+/g, "");

const signPattern = (wanted) => {
  const escape = (sign) => sign.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  return new RegExp([...wanted].map((sign) => (sign === " " ? "[ \\u0001]+" : escape(sign))).join("\\u0001*"), "gu");
};

// Which three signs follow one another anywhere: hardly any text that is not there passes this.
const BUCKETS = 1 << 16;
const tripleAt = (text, at) => (Math.imul(text.charCodeAt(at), 0x9e3779b1) ^ Math.imul(text.charCodeAt(at + 1), 0x85ebca6b) ^ Math.imul(text.charCodeAt(at + 2), 0xc2b2ae35)) >>> 16;
const makeTriples = (text) => {
  const marks = new Uint8Array(BUCKETS);
  for (let at = 0; at + 2 < text.length; at += 1) marks[tripleAt(text, at)] = 1;
  return (part) => {
    for (let at = 0; at + 2 < part.length; at += 1) if (marks[tripleAt(part, at)] === 0) return false;
    return true;
  };
};

// Nearly always none of the texts is there: all text in one string tells that without touching a single node. Null where
// scripts and the like make that string too long.
const textsThere = (texts) => {
  const body = documentBody(DOC);
  if (texts.length === 0 || body === null) return [];
  const whole = [body, ...rootsNow()].map((root) => textContentOf(root)).join(BORDER);
  if (whole.length > SIGNAL.soup) return null;
  const packed = tight(foldedSign(whole));
  const maybe = texts.length > 8 ? makeTriples(packed) : () => true;
  return [...texts.keys()].filter((index) => {
    const close = texts[index].replaceAll(" ", "");
    return close !== "" && maybe(close) && packed.includes(close);
  });
};

// A text holds when every piece of one place where it stands can be seen.
const makeShows = (read) => {
  const page = foldedSign(read.pieces.map(([, text]) => text).join(BORDER));
  const packed = tight(page);
  const seen = new Map();
  const isSeen = (index) => {
    if (!seen.has(index)) {
      const node = read.pieces[index][0];
      const el = composedParent(node);
      seen.set(index, el !== null && !isSilentText(node) && shownText(el));
    }
    return seen.get(index);
  };
  const bordersIn = (from, to) => {
    let count = 0;
    for (let at = page.indexOf(BORDER, from); at >= 0 && at < to; at = page.indexOf(BORDER, at + 1)) count += 1;
    return count;
  };
  // The host has folded what is wanted already.
  return (wanted) => {
    const close = wanted.replaceAll(" ", "");
    if (close === "" || !packed.includes(close)) return false;
    let [times, from, border] = [0, 0, 0];
    for (const found of page.matchAll(signPattern(wanted))) {
      if ((times += 1) > SIGNAL.hits) break;
      border += bordersIn(from, found.index);
      from = found.index;
      const last = border + bordersIn(found.index, found.index + found[0].length);
      let all = true;
      for (let index = border; all && index <= last; index += 1) all = isSeen(index);
      if (all) return true;
    }
    return false;
  };
};

// -- vendors and frameworks

const SOURCE_HOST = /^(?:https?:)?\/\/([^/?#:\\@\s]+)(?:[:/?#]|$)/i;
const scriptHosts = () => {
  const hosts = new Set();
  const scripts = allByTag(DOC, "script");
  for (let i = 0; i < Math.min(scripts.length, SIGNAL.scripts); i += 1) {
    const found = SOURCE_HOST.exec((attr(scripts[i], "src") ?? "").slice(0, 300).trim());
    if (found !== null) hosts.add(found[1].toLowerCase());
  }
  return hosts;
};
// A host below a known one counts.
const servedBy = (hosts, wanted) => hosts.has(wanted) || [...hosts].some((host) => host.endsWith(`.${wanted}`));

const marksHold = (css, occurs) => {
  try {
    return occurs(css) && select(css).length > 0;
  } catch {
    return false;
  }
};

// Frameworks mark what they hang their tree on: the head and the top of the body are enough to look at.
const TOP = { levels: 5, elements: 250, head: 150 };
const topElements = () => {
  const found = [documentElement(DOC), documentBody(DOC)].filter((el) => el !== null);
  for (const tag of ["meta", "link", "script"]) {
    const list = allByTag(DOC, tag);
    for (let i = 0; i < Math.min(list.length, TOP.head); i += 1) found.push(list[i]);
  }
  let level = [documentBody(DOC)].filter((el) => el !== null);
  const most = found.length + TOP.elements;
  for (let depth = 0; depth < TOP.levels && level.length > 0; depth += 1) {
    const next = [];
    for (const el of level)
      for (let child = firstElementIn(el); child !== null && found.length < most; child = nextElement(child)) {
        found.push(child);
        next.push(child);
      }
    level = next;
  }
  return found;
};
const frameworksSeen = () => {
  const marked = topElements().filter((el) => hasAttributes(el) && matches(el, ANY_FRAMEWORK));
  return FRAMEWORKS.filter(([, css]) => marked.some((el) => matches(el, css))).map(([name]) => name);
};

// -- what lies over the page, and where

const scrollLocked = () => {
  const [root, body] = [documentElement(DOC), documentBody(DOC)];
  if (root === null || body === null || Math.max(scrollHeightOf(root), scrollHeightOf(body)) <= view.height + 1) return false;
  const style = styleOf(body);
  return [styleOf(root).overflowY, style.overflowY].some((way) => way === "hidden" || way === "clip") || style.position === "fixed";
};

const LAYER_TAGS = new Set(["dialog"]);
const standsOut = (el) => isLifted(el) || LAYER_TAGS.has(tagOf(el)) || DIALOG_ROLES.has(attr(el, "role"));
const NAVIGATION = "nav,[role=navigation],[role=banner],[role=menubar],[role=search]";
const navigates = (el) => STANDING.has(roleOf(el)) || elementAll(el, NAVIGATION).length > 0;

const layerSigns = (el, out) => {
  const box = clip(boxOf(el));
  const [width, height] = [(box.right - box.left) / view.width, (box.bottom - box.top) / view.height];
  const size = width * height;
  if (width <= 0 || height <= 0) return;
  if (size >= 0.9) out.add("full_overlay");
  const middle = Math.abs(box.left + box.right - view.width) <= 0.2 * view.width && Math.abs(box.top + box.bottom - view.height) <= 0.5 * view.height;
  const [above, below] = [box.top <= 24, box.bottom >= view.height - 24];
  if (middle && !above && !below && size >= 0.03 && size < 0.8) out.add("centered_dialog");
  if (width >= 0.6 && height <= 0.5 && below && !above) out.add("bottom_banner");
  if (width >= 0.6 && height <= 0.5 && above && !below && !navigates(el)) out.add("top_banner");
  if (width <= 0.45 && height <= 0.6 && size >= 0.005 && box.bottom >= view.height - 60 && (box.left <= 60 || box.right >= view.width - 60)) out.add("corner_box");
};

const lyingOver = () => {
  const told = { interaction: [], layout: [] };
  if (view.width < 1 || view.height < 1) return told;
  const layout = new Set();
  const owned = new Map();
  [...PROBE_POINTS, ...EDGE_POINTS].forEach(([fx, fy], index) => {
    for (let node = deepHit(view.width * fx, view.height * fy); node !== null; node = composedParent(node)) {
      const tag = tagOf(node);
      if (tag !== "body" && tag !== "html" && standsOut(node)) owned.set(node, (owned.get(node) ?? 0) + (index < PROBE_POINTS.length ? 1 : 0));
    }
  });
  const layers = [...owned].filter(([el]) => !holdsPage(el));
  for (const [el] of layers) layerSigns(el, layout);
  const modal = [...allByTag(DOC, "dialog")].slice(0, 50).some((el) => isModalNow(el) && seenByEye(el));
  if (scrollLocked()) told.interaction.push("scroll_locked");
  if (modal || layers.some(([, count]) => count >= 3)) told.interaction.push("clicks_covered");
  if (modal) told.interaction.push("modal_open");
  told.layout.push(...layout);
  return told;
};

// -- the answer: which of the wanted ones hold, by their place in the list

const wantedText = (list, most) => list.slice(0, most).map((text) => String(text).slice(0, SIGNAL.plain));

questions.knowledgeSignals = ({ dom = [], text = [], vendors = [], millis }) => {
  const deadline = now() + patience(millis, SIGNAL.millis);
  const selectors = wantedText(dom, SIGNAL.dom);
  const occurs = makeOccurs();
  const found = resolveMany(selectors.filter(occurs), deadline);
  const [shown, unread] = [[], []];
  selectors.forEach((selector, index) => {
    const one = found.get(selector);
    if (one?.unread) unread.push(index);
    else if (one !== undefined && meantBy(one.list).visible) shown.push(index);
  });
  const texts = wantedText(text, SIGNAL.text);
  const there = textsThere(texts) ?? [...texts.keys()];
  const read = there.length === 0 ? { whole: true } : textPieces(deadline);
  const shows = there.length === 0 ? null : makeShows(read);
  const hosts = scriptHosts();
  const isServed = (vendor) => vendor.hosts.some((host) => servedBy(hosts, host)) || vendor.marks.some((css) => marksHold(css, occurs));
  const root = documentElement(DOC);
  return {
    dom: shown, unread, text: there.filter((index) => shows(texts[index])),
    vendors: [...vendors.slice(0, SIGNAL.vendors).keys()].filter((index) => isServed(vendors[index])), ...lyingOver(), whole: read.whole,
    lang: root === null ? "" : (attr(root, "lang") ?? "").slice(0, 35).toWellFormed(),
    frameworks: frameworksSeen(),
  };
};
