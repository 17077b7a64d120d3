// Which of the signs that stored knowledge goes by hold on this page now: one pass over the tree, hardly any layout.
// `SIGNS` comes with the bundle: what each sign means, and by which marks a framework is known.
const SIGNAL = { nodes: 12000, chars: 150000, millis: 60, scripts: 400, hits: 8, dom: 1500, text: 800, vendors: 200, plain: 2000 };
// Behind the end of what is read lie, on long pages, the layers: the last part is read as well.
const TAIL = { nodes: 4000, chars: 50000 };
const FRAMEWORK_CSS = Object.entries(SIGNS.frameworks).map(([name, marks]) => [name, marks.join(",")]);
const BORDER = "\u0001";
const documentHead = getter(Document.prototype, "head");
const compatMode = getter(Document.prototype, "compatMode");

// -- the pass: every text, and the ids and classes that occur

const noteTokens = (el, out) => {
  if (!hasAttributes(el)) return;
  const [id, names] = [attr(el, "id"), attr(el, "class")];
  if (id !== null) out.ids.add(id);
  if (names === null || names === "" || out.lists.has(names)) return;
  out.lists.add(names);
  for (const name of names.split(/[ \t\n\f\r]+/)) out.classes.add(name);
};

const notePiece = (node, out, most) => {
  const data = dataOf(node);
  if (data.length < 3 && data.trim() === "") return;
  const text = data.slice(0, most);
  out.pieces.push([node, text.includes(BORDER) ? text.replaceAll(BORDER, " ") : text]);
  out.chars += text.length + 1;
};

const passOver = ([first, next], most, deadline, out) => {
  const body = documentBody(DOC);
  const stack = body === null ? [] : [first(body)].filter((node) => node !== null);
  for (let nodes_ = 0; stack.length > 0; ) {
    const node = stack.pop();
    if ((nodes_ += 1) > most.nodes || out.chars > most.chars || ((nodes_ & 255) === 0 && now() > deadline)) return false;
    const follow = next(node);
    if (follow !== null) stack.push(follow);
    const type = nodeType(node);
    if (type === 3) notePiece(node, out, most.chars);
    if (type !== 1) continue;
    noteTokens(node, out);
    if (SKIPPED.has(tagOf(node))) {
      // Nothing to read in there, but things to find.
      for (const el of elementAll(node, "[id],[class]")) noteTokens(el, out);
      continue;
    }
    const [inner, shadow] = [first(node), openShadow(node)];
    if (inner !== null) stack.push(inner);
    const deep = shadow === null ? null : first(shadow);
    if (deep !== null) stack.push(deep);
  }
  return true;
};

const newPass = () => ({ pieces: [], chars: 0, ids: new Set(), classes: new Set(), lists: new Set() });
const passOverPage = (deadline) => {
  const out = newPass();
  for (const el of [documentElement(DOC), documentBody(DOC)]) if (el !== null) noteTokens(el, out);
  const head = documentHead(DOC);
  if (head !== null) for (const el of elementAll(head, "[id],[class]")) noteTokens(el, out);
  const whole = passOver([firstChild, nextSibling], SIGNAL, deadline, out);
  if (!whole) {
    const tail = newPass();
    passOver([lastChild, previousSibling], TAIL, deadline + SIGNAL.millis / 4, tail);
    const known = new Set(out.pieces.map(([node]) => node));
    out.pieces.push(...tail.pieces.reverse().filter(([node]) => !known.has(node)));
  }
  return { ...out, whole };
};

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

const makeOccurs = (pass) => {
  const values = new Map();
  const valuesOf = (name) => {
    let known = values.get(name);
    if (known === undefined) {
      known = new Set();
      const list = documentAll(DOC, `[${name}]`);
      for (let i = 0; i < list.length; i += 1) known.add(attr(list[i], name));
      values.set(name, known);
    }
    return known;
  };
  // In documents of the old kind ids and classes are compared without case.
  const exact = compatMode(DOC) === "CSS1Compat" && pass.whole;
  return (selector) => {
    const needs = /^\s*(role|text)=/.test(selector) ? null : needsOf(selector);
    if (!exact || needs === null) return true;
    if (!needs.ids.every((id) => pass.ids.has(id)) || !needs.classes.every((name) => pass.classes.has(name))) return false;
    return needs.attributes.every(([name, value]) => valuesOf(name).has(value));
  };
};

// -- texts

const foldedSign = (text) =>
  (PLAIN_LETTERS.test(text) ? text.toLowerCase() : text.toWellFormed().normalize("NFKC").toLowerCase().replace(/ß/g, "ss").replace(/ς/g, "σ")).replace(/\s+/gu, " ");
const tight = (text) => text.replace(/[\s\u0001]+/gu, "");

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

// A text holds when every piece of one place where it stands can be seen.
const makeShows = (pass) => {
  const page = foldedSign(pass.pieces.map(([, text]) => text).join(BORDER));
  const packed = tight(page);
  const maybe = makeTriples(packed);
  const seen = new Map();
  const isSeen = (index) => {
    if (!seen.has(index)) {
      const el = composedParent(pass.pieces[index][0]);
      seen.set(index, el !== null && shownText(el));
    }
    return seen.get(index);
  };
  const bordersIn = (from, to) => {
    let count = 0;
    for (let at = page.indexOf(BORDER, from); at >= 0 && at < to; at = page.indexOf(BORDER, at + 1)) count += 1;
    return count;
  };
  return (text) => {
    const wanted = foldedSign(text).trim();
    const close = tight(wanted);
    if (close === "" || !maybe(close) || !packed.includes(close)) return false;
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

questions.knowledgeSignals = ({ dom = [], text = [], vendors = [] }) => {
  const deadline = now() + SIGNAL.millis;
  const pass = passOverPage(deadline);
  const occurs = makeOccurs(pass);
  const selectors = wantedText(dom, SIGNAL.dom);
  const found = resolveMany(selectors.filter(occurs), deadline);
  const [shown, unread] = [[], []];
  selectors.forEach((selector, index) => {
    const one = found.get(selector);
    if (one?.unread) unread.push(index);
    else if (one !== undefined && meantBy(one.list).visible) shown.push(index);
  });
  const texts = wantedText(text, SIGNAL.text);
  const shows = texts.length === 0 ? null : makeShows(pass);
  const hosts = scriptHosts();
  const there = (vendor) => vendor.hosts.some((host) => servedBy(hosts, host)) || vendor.marks.some((css) => marksHold(css, occurs));
  const root = documentElement(DOC);
  return {
    dom: shown, unread, text: [...texts.keys()].filter((index) => shows(texts[index])),
    vendors: [...vendors.slice(0, SIGNAL.vendors).keys()].filter((index) => there(vendors[index])), ...lyingOver(), whole: pass.whole,
    lang: root === null ? "" : (attr(root, "lang") ?? "").slice(0, 35).toWellFormed(),
    frameworks: FRAMEWORK_CSS.filter(([, css]) => documentAll(DOC, css).length > 0).map(([name]) => name),
  };
};
