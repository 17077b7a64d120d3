// Selectors both ways: finding elements for one, and finding a good one for an element.
class SelectorError extends Error {}

const splitSteps = (text) => {
  const steps = [];
  let [start, quote, depth] = [0, "", 0];
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i];
    if (char === "\\") i += 1;
    else if (quote) quote = char === quote ? "" : quote;
    else if (char === '"' || char === "'") quote = char;
    else if (char === "[" || char === "(") depth += 1;
    else if (char === "]" || char === ")") depth -= 1;
    else if (depth === 0 && text.startsWith(">>>", i)) {
      steps.push(text.slice(start, i).trim());
      start = i + 3;
      i += 2;
    }
  }
  steps.push(text.slice(start).trim());
  if (steps.some((step) => step === "")) throw new SelectorError("an empty step beside >>>");
  return steps;
};

// Texts are stepped over: on a large page they are half of all nodes.
const firstIn = new Map([
  [1, getter(Element.prototype, "firstElementChild")], [9, getter(Document.prototype, "firstElementChild")],
  [11, getter(DocumentFragment.prototype, "firstElementChild")],
]);
const firstElementIn = firstIn.get(1);
const nextElement = getter(Element.prototype, "nextElementSibling");
const isClosed = (el) => firstChild(el) === null && localName(el).includes("-") && matches(el, ":defined");

const walk = (root, visit, limits = LIMITS) => {
  const state = { nodes: 0, truncated: false, closed: 0 };
  const deadline = now() + limits.millis;
  const outer = nodeType(root) === 1 ? root : (firstIn.get(nodeType(root))?.(root) ?? null);
  const stack = outer === null ? [] : [outer];
  while (stack.length) {
    const el = stack.pop();
    state.nodes += 1;
    if (state.nodes > limits.nodes || ((state.nodes & 255) === 0 && now() > deadline)) {
      state.truncated = true;
      break;
    }
    const verdict = visit(el);
    if (verdict === "stop") break;
    const follow = el === root ? null : nextElement(el);
    if (follow !== null) stack.push(follow);
    if (verdict === "skip") continue;
    const inner = firstElementIn(el);
    if (inner !== null) stack.push(inner);
    const shadow = openShadow(el);
    if (shadow !== null) {
      const first = firstIn.get(11)(shadow);
      if (first !== null) stack.push(first);
    } else if (inner === null && isClosed(el)) state.closed += 1;
  }
  return state;
};

const IGNORED = new Set(["script", "style", "template", "noscript", "head", "meta", "link"]);

const cssMatches = (steps) => {
  let roots = [DOC];
  let found = [];
  steps.forEach((step, index) => {
    found = [];
    for (const root of roots) {
      try {
        const list = queryAll(root, step);
        for (let i = 0; i < list.length; i += 1) found.push(list[i]);
      } catch {
        throw new SelectorError(`"${cut(step, 60)}" is not CSS`);
      }
    }
    if (index < steps.length - 1) roots = found.map((el) => openShadow(el)).filter((root) => root !== null);
  });
  return found;
};

const unquote = (text) => {
  const quoted = /^(["'])([\s\S]*)\1$/.exec(text.trim());
  return quoted ? [quoted[2].replace(/\\(["'\\])/g, "$1"), true] : [text.trim(), false];
};

const ownLabel = (el) => {
  const tag = tagOf(el);
  if (tag === "input") return ["submit", "button", "reset"].includes(inputType(el)) ? squash(nameOf(el, "button")) : "";
  let text = "";
  for (let node = firstChild(el); node !== null; node = nextSibling(node)) if (isText(node)) text += dataOf(node);
  return squash(text);
};

const liftText = (el) => {
  const acting = closest(el, (node) => INTERACTIVE.has(roleOf(node)));
  return acting ?? el;
};

const textMatches = (wanted, limits = LIMITS) => {
  const [text, quoted] = unquote(wanted);
  const aim = squash(text);
  if (aim === "") throw new SelectorError("text= needs some text");
  const low = aim.toLowerCase();
  const [exact, partial] = [new Set(), new Set()];
  walk(DOC, (el) => {
    if (IGNORED.has(tagOf(el))) return "skip";
    const own = ownLabel(el);
    // Text split over inline children is compared as the element's whole name.
    const whole = own === "" || own.toLowerCase().includes(low) ? own : "";
    if (whole !== "" && whole.toLowerCase().includes(low)) {
      if (whole === aim) exact.add(liftText(el));
      else partial.add(liftText(el));
    } else if (INTERACTIVE.has(roleOf(el))) {
      const name = nameOf(el, roleOf(el));
      if (name === aim) exact.add(el);
      else if (name.toLowerCase().includes(low)) partial.add(el);
    }
    return undefined;
  }, limits);
  return exact.size || quoted ? [...exact] : [...partial];
};

const readRole = (text) => {
  const parsed = /^([a-z]+)\s*(?:\[\s*name\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\])?$/i.exec(text.trim());
  if (!parsed) throw new SelectorError('role= reads role=button or role=button[name="Save"]');
  return { role: parsed[1].toLowerCase(), name: parsed[2] === undefined ? null : squash(unquote(parsed[2])[0]) };
};

const roleMatches = (text) => {
  const { role, name } = readRole(text);
  const found = [];
  walk(DOC, (el) => {
    if (IGNORED.has(tagOf(el))) return "skip";
    if (roleOf(el) === role && (name === null || nameOf(el, role) === name)) found.push(el);
    return undefined;
  });
  return found;
};

const select = (selector) => {
  const text = selector.trim();
  if (text.startsWith("text=")) return textMatches(text.slice(5));
  if (text.startsWith("role=")) return roleMatches(text.slice(5));
  return cssMatches(splitSteps(text));
};

// -- from an element to a selector

// The same rule as on the host, which decides what is reported as fragile; here it only orders candidates.
const looksGenerated = (token) => {
  if (/^((css|sc|jsx|svelte|emotion)-|jss)/i.test(token) || /[:«][rR][0-9a-zA-Z]*[:»]/.test(token)) return true;
  if (/(?<![0-9a-z])(?=[0-9a-f]*[0-9])[0-9a-f]{6,}(?![0-9a-z])/i.test(token)) return true;
  return token.length >= 5 && (token.match(/(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])/g) ?? []).length >= 2;
};

const quoteCss = (text) => `"${text.replace(/["\\]/g, "\\$&").replace(/\n/g, "\\a ")}"`;
const escapeCss = CSS.escape.bind(CSS);

const classesOf = (el) => (attr(el, "class") ?? "").split(/\s+/).filter((name) => name && !looksGenerated(name)).slice(0, 3);

const stepFor = (el, positional) => {
  const tag = localName(el);
  if (!positional) {
    const classes = classesOf(el);
    return classes.length ? tag + classes.map((name) => `.${escapeCss(name)}`).join("") : null;
  }
  let index = 1;
  let only = true;
  const up = parentNode(el);
  for (let node = up === null ? null : firstChild(up), seen = false; node !== null; node = nextSibling(node)) {
    if (node === el) seen = true;
    else if (isElement(node) && localName(node) === tag) {
      only = false;
      if (!seen) index += 1;
    }
  }
  return only ? tag : `${tag}:nth-of-type(${index})`;
};

const uniqueCss = (root, css, el) => {
  try {
    const found = queryAll(root, css);
    return found.length === 1 && found[0] === el;
  } catch {
    return false;
  }
};

const anchorStep = (el) => {
  const id = attr(el, "id");
  if (id && !looksGenerated(id)) return `#${escapeCss(id)}`;
  const testid = testidOf(el);
  return testid ? `[${testid[0]}=${quoteCss(testid[1])}]` : null;
};

const pathFor = (root, el, positional) => {
  let css = "";
  let node = el;
  for (let depth = 0; node !== null && isElement(node) && depth < 8; depth += 1) {
    const anchor = depth > 0 ? anchorStep(node) : null;
    const step = anchor ?? stepFor(node, positional);
    if (step === null) {
      if (!css) return null;
    } else {
      css = css ? `${step}${positional && !anchor ? " > " : positional ? " > " : " "}${css}` : step;
      if (uniqueCss(root, css, el)) return css;
    }
    if (anchor && !positional) return null;
    node = parentNode(node);
  }
  return positional && css && uniqueCss(root, css, el) ? css : null;
};

const directCandidates = (el, tag, role, name) => {
  const list = [];
  const id = attr(el, "id");
  if (id) list.push([`#${escapeCss(id)}`, looksGenerated(id) ? "generated_id" : "id"]);
  const testid = testidOf(el);
  if (testid) list.push([`[${testid[0]}=${quoteCss(testid[1])}]`, "testid"]);
  const label = attr(el, "aria-label");
  if (label && label.length <= 60) list.push([`${tag}[aria-label=${quoteCss(label)}]`, "aria"]);
  if (name && name.length <= 60 && INTERACTIVE.has(role)) list.push([null, "role"]);
  const given = attr(el, "name");
  if (given) list.push([`${tag}[name=${quoteCss(given)}]`, "name"]);
  if (given && tag === "input" && attr(el, "value") !== null && ["radio", "checkbox"].includes(inputType(el)))
    list.push([`input[name=${quoteCss(given)}][value=${quoteCss(attr(el, "value"))}]`, "name"]);
  const target = attr(el, "for");
  if (target) list.push([`${tag}[for=${quoteCss(target)}]`, "for"]);
  const href = attr(el, "href");
  if (href && href.length <= 70 && !/^(javascript:|#$)/i.test(href)) list.push([`a[href=${quoteCss(href)}]`, "href"]);
  return list;
};

const UNTIDY = /^\s|\s$|\s\s|[^\S ]|[\ud800-\udfff]/;
// How many visible elements answer to a role and name; one walk answers for all elements asked about.
const makeRoleCounts = (elements) => {
  const counts = new Map();
  for (const el of elements) counts.set(`${roleOf(el)}\n${nameOf(el, roleOf(el))}`, 0);
  const names = new Set([...counts.keys()].map((key) => key.slice(key.indexOf("\n") + 1)));
  // Most controls hold one piece of text; comparing it first spares the full computation of a name.
  const ruledOut = (el, tag) => {
    if (tag !== "button" && tag !== "a") return false;
    // Asking for the text itself, not for its node, makes nothing that has to be collected later.
    if (firstElementIn(el) !== null) return false;
    if (hasAttributes(el) && (hasAttribute(el, "aria-label") || hasAttribute(el, "aria-labelledby"))) return false;
    const said = textContentOf(el);
    const text = UNTIDY.test(said) ? squash(said) : said;
    return text !== "" && !names.has(text) && labelsFor(el).length === 0;
  };
  let whole = null;
  return (role, name) => {
    if (whole === null) {
      whole = !walk(DOC, (el) => {
        const tag = tagOf(el);
        if (IGNORED.has(tag)) return "skip";
        if (tag === "div" && !hasAttribute(el, "role") && !hasAttribute(el, "contenteditable")) return undefined;
        if (ruledOut(el, tag)) return undefined;
        const own = roleOf(el);
        if (!INTERACTIVE.has(own)) return undefined;
        const key = `${own}\n${nameOf(el, own)}`;
        const count = counts.get(key);
        if (count !== undefined && count < 2 && visibleControl(el)) counts.set(key, count + 1);
        return undefined;
      }).truncated;
    }
    // A walk that was cut short proves nothing unique.
    if (!whole) return 2;
    return counts.get(`${role}\n${name}`) ?? 0;
  };
};

const localSelector = (el, roleCount, known) => {
  const root = rootNode(el);
  const [tag, role] = [localName(el), roleOf(el)];
  const name = known?.names.get(el) ?? nameOf(el, role);
  let fallback = null;
  for (const [css, kind] of directCandidates(el, tag, role, name)) {
    if (kind === "role") {
      if (nodeType(root) === 9 && roleCount(role, name) === 1) return [`role=${role}[name=${quoteCss(name)}]`, "role"];
    } else if (uniqueCss(root, css, el)) {
      if (kind !== "generated_id") return [css, kind];
      fallback = [css, kind];
    }
  }
  const classes = pathFor(root, el, false);
  if (classes) return [classes, "class"];
  if (fallback) return fallback;
  const path = pathFor(root, el, true);
  return path ? [path, "positional"] : null;
};

const selectorFor = (el, roleCount, known = null) => {
  const parts = [];
  let kind = null;
  for (let node = el; node !== null; ) {
    const found = localSelector(node, roleCount, known);
    if (found === null) return null;
    parts.unshift(found[0]);
    kind = kind === null || found[1] === "positional" || found[1] === "generated_id" ? found[1] : kind;
    const root = rootNode(node);
    node = isShadow(root) ? shadowHost(root) : null;
    if (node !== null && found[0].startsWith("role=")) return null;
  }
  // A role form names one element in the whole document, so it cannot be a step of a path.
  if (parts.length > 1 && parts[0].startsWith("role=")) {
    const host = pathFor(DOC, shadowHostOf(el), true);
    if (host === null) return null;
    parts[0] = host;
  }
  return { selector: parts.join(" >>> "), kind };
};

const shadowHostOf = (el) => {
  let node = el;
  for (;;) {
    const root = rootNode(node);
    if (!isShadow(root)) return node;
    node = shadowHost(root);
  }
};

questions.selectors = ({ nodes: wanted, look = 0 }) => {
  const elements = wanted.map(nodeOf);
  const known = rememberedLook(look);
  let walked = null;
  const byWalk = (role, name) => (walked ??= makeRoleCounts(elements.filter((el) => el !== null)))(role, name);
  // Options of native lists are no controls of a look, so only a walk can count them.
  const roleCount = known === null ? byWalk : (role, name) => (role === "option" ? byWalk(role, name) : known.counts.get(`${role}\n${name}`) ?? 0);
  return elements.map((el) => (el !== null && isConnected(el) ? selectorFor(el, roleCount, known) : null));
};

// Every way to name an element, in the order of preference, with whether it names that one alone.
questions.candidates = ({ node }) => {
  const el = nodeOf(node);
  if (el === null || !isConnected(el)) return [];
  const roleCount = makeRoleCounts([el]);
  const root = rootNode(el);
  if (isShadow(root)) {
    const best = selectorFor(el, roleCount);
    return best === null ? [] : [{ ...best, unique: true }];
  }
  const role = roleOf(el);
  const name = nameOf(el, role);
  const list = directCandidates(el, localName(el), role, name).map(([css, kind]) =>
    kind === "role"
      ? { selector: `role=${role}[name=${quoteCss(name)}]`, kind, unique: roleCount(role, name) === 1 }
      : { selector: css, kind, unique: uniqueCss(root, css, el) },
  );
  for (const [positional, kind] of [[false, "class"], [true, "positional"]]) {
    const path = pathFor(root, el, positional);
    if (path !== null) list.push({ selector: path, kind, unique: true });
  }
  return list;
};

questions.generated = ({ tokens }) => tokens.map(looksGenerated);
