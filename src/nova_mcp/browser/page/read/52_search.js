// Words on the page: where they stand, which element holds them, and whether anybody sees them there.
const UNSEARCHED = new Set([...SKIPPED].filter((tag) => tag !== "svg:svg"));
for (const tag of ["frame", "svg:style", "svg:script", "svg:defs", "svg:title", "svg:desc", "svg:metadata"]) UNSEARCHED.add(tag);
const INVISIBLE_SIGNS = /[\u00AD\u200B\u2060\uFEFF]/g;
const EVEN = /^[!-~]+(?: [!-~]+)*$/;
const evened = (text) => EVEN.test(text) ? text : drawn(text.toWellFormed()).normalize("NFC").replace(INVISIBLE_SIGNS, "").replace(/\s+/gu, " ");
// Lower case of the same length, so that places in it are places in the text.
const lowered = (text) => {
  const low = text.toLowerCase();
  if (low.length === text.length) return low;
  let same = "";
  for (let i = 0; i < text.length; i += 1) {
    const one = text[i].toLowerCase();
    same += one.length === 1 ? one : text[i];
  }
  return same;
};

// One run is text that is read in one go: a paragraph, a cell, a label. Each piece remembers the element it came from.
class TextRun {
  constructor(label = false) {
    this.parts = [];
    this.length = 0;
    this.pieces = [];
    this.gap = false;
    this.broken = false;
    this.apart = false;
    this.label = label;
  }

  add(owner, raw) {
    const text = evened(raw);
    const bare = text.trim();
    if (bare === "") {
      this.gap ||= text !== "";
      return;
    }
    if (this.length > 0 && (this.gap || text[0] === " ")) this.put(" ");
    this.pieces.push({ owner, start: this.length, end: this.length + bare.length, breaks: this.broken, apart: this.apart });
    this.put(bare);
    [this.gap, this.broken, this.apart] = [text.at(-1) === " ", false, false];
  }

  put(text) {
    this.parts.push(text);
    this.length += text.length;
  }

  text() {
    return this.parts.join("");
  }

  // One line for each box, so that a pattern can be tied to its beginning and end; places stay the same.
  lines() {
    let [text, from] = ["", 0];
    const whole = this.text();
    for (const { start, breaks, apart } of this.pieces) {
      if (start === 0 || !(breaks || apart)) continue;
      text += `${whole.slice(from, start - 1)}\n`;
      from = start;
    }
    return text + whole.slice(from);
  }

  // The same run without what nobody sees: hidden words neither match nor stand in a snippet.
  only(seen) {
    if (this.pieces.every((piece) => seen(piece.owner))) return this;
    const kept = new TextRun(this.label);
    const text = this.text();
    let before = 0;
    for (const piece of this.pieces) {
      kept.gap ||= piece.start > before;
      kept.broken ||= piece.breaks;
      kept.apart ||= piece.apart;
      before = piece.end;
      if (seen(piece.owner)) kept.add(piece.owner, text.slice(piece.start, piece.end));
    }
    return kept;
  }
}

const LABELLED = new Set(["img", "area", "input"]);
const BUTTON_TYPES = new Set(["submit", "button", "reset"]);
const unseenLabel = (el, tag) => {
  const said = attr(el, "aria-label");
  if (said) return said;
  if (tag === "input" && inputValue(el) === "") return attr(el, "placeholder");
  return tag === "img" || tag === "area" ? attr(el, "alt") : tag === "button" || tag === "a" ? attr(el, "title") : null;
};

const MOST_SOUGHT_OPTIONS = 20000;
const MAX_SOUGHT = 5000000;
// Past this length a run ends where a box of its own begins.
const LONG_RUN = 5000;
const gatherRuns = (budget, shownOnly) => {
  const runs = [];
  let run = new TextRun();
  const close = () => {
    if (run.length > 0) runs.push(run);
    run = new TextRun();
  };
  const aside = (el, text) => {
    const own = new TextRun(true);
    own.add(el, text);
    if (own.length > 0) runs.push(own);
  };
  const visit = (el, level) => {
    const tag = tagOf(el);
    if (UNSEARCHED.has(tag) && !LABELLED.has(tag) && tag !== "select" && tag !== "textarea") return;
    if (budget.nodes-- <= 0 || level > MAX_LEVELS || budget.chars > MAX_SOUGHT || ((budget.nodes & 63) === 0 && now() > budget.deadline)) {
      budget.truncated = true;
      return;
    }
    const label = unseenLabel(el, tag);
    if (label) aside(el, label);
    if (tag === "input") {
      if (!BUTTON_TYPES.has(inputType(el))) return;
      run.apart = run.gap = true;
      run.add(el, nameOf(el, "button"));
      run.apart = run.gap = true;
      return;
    }
    if (tag === "select") {
      const options = elementAll(el, "option");
      budget.truncated ||= options.length > MOST_SOUGHT_OPTIONS;
      for (let i = 0; i < Math.min(options.length, MOST_SOUGHT_OPTIONS); i += 1) aside(el, optionText(options[i]));
      return;
    }
    if (tag === "textarea" || isWrittenField(el)) return;
    if (tag === "br") {
      [run.gap, run.broken] = [true, true];
      return;
    }
    const display = styleOf(el).display;
    if (display === "none" && shownOnly) return;
    const flows = display === "inline" || display === "contents" || display === "none";
    const block = !flows && (!display.startsWith("inline-") || run.length > LONG_RUN);
    if (block) close();
    else if (!flows) run.apart = run.gap = true;
    for (const child of composedChildren(el)) {
      if (isElement(child)) visit(child, level + 1);
      else if (isText(child)) {
        const data = dataOf(child);
        budget.chars += data.length;
        run.add(el, data);
      }
    }
    if (block) close();
    else if (!flows) run.apart = run.gap = true;
  };
  const root = documentBody(DOC) ?? documentElement(DOC);
  if (root !== null) visit(root, 0);
  close();
  return runs;
};

const pieceAt = (pieces, place) => {
  let [low, high] = [0, pieces.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pieces[middle].end > place) high = middle;
    else low = middle + 1;
  }
  return low;
};

const sharedHolder = (left, right) => (left === right ? left : closest(left, (node) => composedContains(node, right)));

// The element that holds a stretch of text, and whether the stretch begins and ends with it or with a line of it.
const placeOfHit = (run, start, end) => {
  const pieces = run.pieces;
  const [first, last] = [pieceAt(pieces, start), pieceAt(pieces, end - 1)];
  const el = sharedHolder(pieces[first].owner, pieces[last].owner);
  if (el === null) return null;
  const inside = (index) => index >= 0 && index < pieces.length && composedContains(el, pieces[index].owner);
  return {
    el,
    begins: start === pieces[first].start && (pieces[first].breaks || !inside(first - 1)),
    ends: end === pieces[last].end && (pieces[last + 1]?.breaks || !inside(last + 1)),
  };
};

const ACTED_ON = new Set([
  "button", "link", "option", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "checkbox", "radio", "switch", "treeitem",
]);
const actedOn = (el) => closest(el, (node) => ACTED_ON.has(roleOf(node))) ?? el;

const snippetOf = (text, start, end, around) => {
  const shown = Math.min(end, start + 500);
  const [from, to] = [Math.max(0, start - around), Math.min(text.length, shown + around)];
  return `${from > 0 ? "…" : ""}${text.slice(from, to).trim()}${to < text.length || shown < end ? "…" : ""}`.toWellFormed();
};

// Where this document lies in the page: a frame is part of it only when every document around it may look inside.
const frameChain = () => {
  const chain = [];
  let win = WIN;
  while (win !== win.parent && chain.length < 20) {
    const el = win.frameElement;
    if (el === null) return null;
    chain.push(el);
    win = windowOf(ownerDocument(el));
  }
  return chain;
};
const framePlace = () => {
  const chain = frameChain();
  if (chain === null) return { inline: false };
  let [x, y, shown] = [0, 0, true];
  for (const el of chain) {
    [x, y] = throughFrame(el, x, y);
    const box = boxOf(el);
    shown &&= box.width >= 8 && box.height >= 8 && frameShown(el);
  }
  const top = chain.length ? windowOf(ownerDocument(chain.at(-1))) : WIN;
  return { inline: true, shown, x, y, width: top.innerWidth, height: top.innerHeight };
};
const frameShown = (el) => {
  for (let node = el; node !== null; node = composedParent(node)) if (hiddenBox(node, styleOf(node))) return false;
  return rendered(el) && opaque(el);
};
const onPage = (box, place) =>
  box.bottom + place.y > 0 && box.right + place.x > 0 && box.top + place.y < place.height && box.left + place.x < place.width;

class Hits {
  constructor(want, place, budget) {
    Object.assign(this, { want, place, budget, count: 0, matches: [], sights: new Map(), known: new Map(), places: makePlaces() });
  }

  seen(el) {
    if (!this.place.shown) return false;
    if (!this.sights.has(el)) {
      const around = sightAround(el, this.sights);
      this.sights.set(el, around === null ? null : sightOf(el, styleOf(el), around));
    }
    const sight = this.sights.get(el);
    return sight !== null && !sight.mute;
  }

  take(run, text, start, end) {
    const { match, visibleOnly, maxResults, contextChars } = this.want;
    const found = placeOfHit(run, start, end);
    if (found === null || !isConnected(found.el)) return;
    if ((match === "exact" && !(found.begins && found.ends)) || (match === "starts_with" && !found.begins)) return;
    // Words spread over several elements are seen when both ends are.
    const visible = visibleOnly || [start, end - 1].every((at) => this.seen(run.pieces[pieceAt(run.pieces, at)].owner));
    const el = actedOn(found.el);
    // A name that repeats what the element shows, or what the last snippet shows already, is no further match.
    const last = this.known.get(el);
    if (last !== undefined && (run.label || (last.run === run && start < last.until))) return;
    this.known.set(el, { run, until: end + contextChars });
    this.count += 1;
    if (this.matches.length >= maxResults) return;
    const box = boxOf(el);
    this.matches.push({
      element: factsOf(el, this.places), snippet: snippetOf(text, start, end, contextChars), visible,
      inViewport: visible && onPage(box, this.place),
    });
  }

  told(more = {}) {
    return { inline: true, url: pageAddress(), count: this.count, matches: this.matches, scanTruncated: this.budget.truncated, ...more };
  }
}

const seekIn = (run, hits, sought, caseSensitive) => {
  const text = run.text();
  const hay = caseSensitive ? text : lowered(text);
  for (let at = hay.indexOf(sought); at !== -1; at = hay.indexOf(sought, at + sought.length)) {
    hits.take(run, text, at, at + sought.length);
    if (now() > hits.budget.deadline) {
      hits.budget.truncated = true;
      return;
    }
  }
};

const searchBudget = () => ({ ...newBudget(LIMITS.millis * 2), chars: 0 });

questions.search = (want) => {
  const place = framePlace();
  if (!place.inline) return { inline: false };
  const budget = searchBudget();
  const hits = new Hits(want, place, budget);
  const sought = want.caseSensitive ? evened(want.text).trim() : lowered(evened(want.text).trim());
  if (!place.shown && want.visibleOnly) return hits.told();
  const seen = (el) => hits.seen(el);
  for (const run of gatherRuns(budget, want.visibleOnly)) {
    const text = run.text();
    if (!(want.caseSensitive ? text : lowered(text)).includes(sought)) continue;
    seekIn(want.visibleOnly ? run.only(seen) : run, hits, sought, want.caseSensitive);
  }
  return hits.told();
};

// A pattern is tried elsewhere: the page hands its text out and is told afterwards where something was found.
const searching = { id: 0, runs: [] };
questions.searchRuns = (want) => {
  const place = framePlace();
  if (!place.inline) return { inline: false };
  const budget = searchBudget();
  const hits = new Hits(want, place, budget);
  const all = !place.shown && want.visibleOnly ? [] : gatherRuns(budget, want.visibleOnly);
  searching.runs = want.visibleOnly ? all.map((run) => run.only((el) => hits.seen(el))).filter((run) => run.length > 0) : all;
  const id = (searching.id += 1);
  later(() => {
    if (searching.id === id) searching.runs = [];
  }, 30000);
  return JSON.stringify({ inline: true, id, runs: searching.runs.map((run) => run.lines()), scanTruncated: budget.truncated });
};

questions.searchHits = (want) => {
  if (want.id !== searching.id) return { lost: true };
  const hits = new Hits(want, framePlace(), newBudget());
  for (const [index, start, end] of want.hits) {
    const run = searching.runs[index];
    if (run !== undefined && end <= run.length) hits.take(run, run.text(), start, end);
    if (now() > hits.budget.deadline) hits.budget.truncated = true;
    if (hits.budget.truncated) break;
  }
  searching.runs = [];
  return hits.told();
};
