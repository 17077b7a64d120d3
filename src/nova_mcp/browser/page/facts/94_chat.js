// Message boxes, conversations and the pickers beside them, read the way a person would.

// -- message boxes

const CHAT_LIMITS = { nodes: 40000, millis: 150 };
const isTextBox = (el) => {
  const tag = tagOf(el);
  return tag === "textarea" || isEditableHost(el) || (tag === "input" && inputType(el) === "text");
};

const marksOf = (el) => [testidOf(el)?.[1] ?? "", attr(el, "id") ?? "", attr(el, "name") ?? ""];
const hintsOf = (el) => ["placeholder", "data-placeholder", "aria-placeholder"].map((name) => attr(el, name) ?? "").filter(Boolean);
const saysMessage = (el) =>
  mentions("message_box", [nameOf(el, roleOf(el)), ...hintsOf(el)].join(" ")) || marksOf(el).some((mark) => inIdentifier("message_box", mark));

const isSearchField = (el) => roleOf(el) === "searchbox" || closest(el, (node) => roleOf(node) === "search") !== null;

// A text field among others belongs to a form that is filled in, not to a conversation.
const sharesForm = (el) => {
  const form = formOwner(el);
  if (form === null || tagOf(form) !== "form") return false;
  const list = formElements(form);
  for (let i = 0; i < Math.min(list.length, 200); i += 1) {
    const tag = tagOf(list[i]);
    const typed = tag === "textarea" || (tag === "input" && TYPED.has(inputType(list[i])));
    if (list[i] !== el && typed && visibleControl(list[i])) return true;
  }
  return false;
};

const BOX_CSS = "textarea,input,[contenteditable]";
const inTextBox = (el) => closest(el, isTextBox) !== null;
const textBoxes = (scope) => once("boxes", scope, () =>
  queryDeep(scope, BOX_CSS, 500).filter((el) => isTextBox(el) && !isSearchField(el) && !inTextBox(composedParent(el) ?? documentElement(DOC)) && visibleControl(el)));

const openModal = (scope) => {
  const layers = queryDeep(scope, "dialog,[role=dialog],[role=alertdialog]", 20).filter((el) => visibleControl(el) && layerFacts(el).modal);
  return layers.at(-1) ?? null;
};

// 2: says that it takes messages and has a control to send them; 1: one of both; 0: neither.
const boxStrength = (el) => {
  const said = saysMessage(el);
  if (tagOf(el) === "input" && !said) return 0;
  return (said ? 1 : 0) + (sendControls(el).some((found) => found.score >= 3) ? 1 : 0);
};

// The boxes that may be meant: one is an answer, several are a question.
const composersIn = (scope) => once("composers", scope, () => {
  const modal = openModal(scope);
  const pool = textBoxes(scope).filter((el) => !sharesForm(el) && (modal === null || composedContains(modal, el)));
  const rated = pool.map((el) => [boxStrength(el), el]);
  const best = Math.max(0, ...rated.map(([strength]) => strength));
  if (best === 0) {
    const lone = pool.filter((el) => tagOf(el) !== "input");
    return lone.length > 0 && logsIn(scope).length > 0 ? lone : [];
  }
  return rated.filter(([strength]) => strength === best).map(([, el]) => el);
});

// The box that is being written to, as long as it stays on the page.
const writing = { box: null };
const composerFor = (scope) => {
  if (scope !== DOC && isElement(scope) && isTextBox(scope)) return scope;
  const known = writing.box?.deref() ?? null;
  if (known !== null && isConnected(known) && visibleControl(known) && (scope === DOC || composedContains(scope, known))) return known;
  const found = composersIn(scope);
  return found.length === 1 ? found[0] : null;
};

// Some editors keep their placeholder among what is written.
const composerText = (el) => {
  let text = rawValue(el).replace(/[\u200b\ufeff]/g, "");
  if (!isEditableHost(el)) return text;
  for (const hint of elementAll(el, '[data-slate-placeholder],[data-placeholder-text],[class~="placeholder"]')) {
    const said = innerTextOf(hint);
    if (said && text.includes(said)) text = text.replace(said, "");
  }
  return hintsOf(el).includes(squash(text)) ? "" : text;
};
const hasText = (el) => composerText(el).trim() !== "";

// -- the control that sends

const sendScore = (el, box) => {
  const name = nameOf(el, roleOf(el));
  if (name && leads("stop_reply", name, 4)) return 0;
  if (isPhrase("send", name)) return 4;
  if (leads("send", name, 4) || isPhrase("send_label", name)) return 3;
  const marked = marksOf(el).some((mark) => inIdentifier("send", mark) && !inIdentifier("stop_reply", mark));
  if (marked || (name === "" && inIdentifier("send", attr(el, "class") ?? ""))) return 3;
  const form = formOwner(el);
  return form !== null && isSubmitter(el, form) && form === formOwner(box) ? (name === "" ? 2 : 1) : 0;
};

const isNearby = (box, el) => {
  const [one, other] = [boxOf(box), boxOf(el)];
  return other.top - one.bottom <= 160 && one.top - other.bottom <= 160;
};

const BUTTON_CSS = "button,summary,input[type=submit],input[type=button],input[type=image],[role=button],[onclick],[type=submit]";
const buttonsIn = (root) => queryDeep(root, BUTTON_CSS, 1500).filter((el) => roleOf(el) === "button");

const CHAT_EDGES = new Set(["body", "html", "main"]);
const LOG_ROLES = new Set(["log", "feed"]);
// Ever wider surroundings of a box, none of which holds another one or the conversation itself.
const surroundings = function* (box) {
  let node = composedParent(box);
  for (let depth = 0; node !== null && depth < 6; depth += 1, node = composedParent(node)) {
    if (depth > 0 && (CHAT_EDGES.has(tagOf(node)) || LOG_ROLES.has(roleOf(node)))) return;
    if (textBoxes(node).some((el) => el !== box)) return;
    yield node;
  }
};

// Rows of a conversation have buttons of their own; they answer to that row.
const ownRow = (box, el) => closest(el, (node) => ROW_ROLES.has(roleOf(node)) && !composedContains(node, box)) === null;

const sendControls = (box) => once("sends", box, () => {
  let rest = [];
  for (const around of surroundings(box)) {
    const rated = buttonsIn(around).map((el) => ({ el, score: sendScore(el, box) })).filter(({ score }) => score > 0);
    const near = rated.filter(({ el }) => visibleControl(el) && isNearby(box, el) && ownRow(box, el));
    const named = near.filter(({ score }) => score >= 3);
    if (named.length) return named;
    rest = near;
  }
  return rest;
});

const bestSends = (box) => {
  const found = sendControls(box);
  const best = Math.max(0, ...found.map(({ score }) => score));
  return found.filter(({ score }) => score === best).map(({ el }) => el);
};

const enterSends = (box) => {
  if ((attr(box, "enterkeyhint") ?? "").toLowerCase() === "send" || /(^|\s)enter(\s|$)/i.test(attr(box, "aria-keyshortcuts") ?? "")) return true;
  const about = [...hintsOf(box), nameOf(box, roleOf(box)), attr(box, "aria-describedby") ? fromIds(box, attr(box, "aria-describedby")) : ""];
  if (mentions("enter_sends", about.join(" . "))) return true;
  return tagOf(box) === "input" && formOwner(box) !== null && !sharesForm(box);
};

facts["composer.hasText"] = (scope) => {
  const box = composerFor(scope);
  return box === null ? undefined : hasText(box);
};
facts["composer.textEmpty"] = (scope) => {
  const box = composerFor(scope);
  return box === null ? undefined : !hasText(box);
};
facts["composer.sendButton.clickable"] = (scope) => {
  const box = composerFor(scope);
  if (box === null) return undefined;
  const sends = bestSends(box);
  return sends.length > 1 ? undefined : sends.length === 1 && isDisabled(sends[0]) === null;
};

// -- the conversation

const logsIn = (scope) => queryDeep(scope, "[role=log],[role=feed]", 20).filter(seenByEye);

const TURN_CLASS = /^(chat-?)?(message|msg|turn|bubble)(-?(item|row|group|container|wrapper))?$/i;
const TURN_TOKENS = new Set(["message", "turn", "bubble"]);
const NOT_A_TURN = new Set(["list", "input", "box", "composer", "field", "text", "content", "body", "header", "button", "area", "send"]);
const TURN_CSS = '[data-message-author-role],[data-message-id],[data-testid*="message" i],[data-testid*="turn" i],[class*="message" i],[class*="msg" i],[class*="turn" i],[class*="bubble" i],article,[role=article]';
const isTurnMarked = (el) => {
  if (hasAttribute(el, "data-message-author-role") || hasAttribute(el, "data-message-id") || roleOf(el) === "article") return true;
  const mark = identifierParts(testidOf(el)?.[1] ?? "");
  if (mark.some((part) => TURN_TOKENS.has(part)) && !mark.some((part) => NOT_A_TURN.has(part))) return true;
  return (attr(el, "class") ?? "").split(/\s+/).some((name) => TURN_CLASS.test(name));
};

// Outermost marked elements that stand beside each other; the largest such family is the conversation.
const MOST_TURNS = 1500;
const markedTurns = (scope, box) => {
  const families = new Map();
  for (const el of queryDeep(scope, TURN_CSS, MOST_TURNS)) {
    if (!isTurnMarked(el) || !seenByEye(el) || (box !== null && (composedContains(el, box) || composedContains(box, el)))) continue;
    const up = composedParent(el);
    if (up === null || closest(up, isTurnMarked) !== null || maybeControl(el)) continue;
    families.set(up, [...(families.get(up) ?? []), el]);
  }
  const area = (list) => list.reduce((sum, el) => sum + boxOf(el).width * boxOf(el).height, 0);
  const [best] = [...families.values()].sort((left, right) => area(right) - area(left));
  return best ?? [];
};

// A lone child is the list itself when it says so or when it is nothing but blocks.
const BLOCKS = new Set(["div", "li", "section", "article"]);
const shownChildren = (el) => {
  const inner = [];
  for (const child of composedChildren(el)) if (isElement(child) && !IGNORED.has(tagOf(child)) && seenByEye(child)) inner.push(child);
  return inner;
};
const turnsOfLog = (log) => {
  let inner = shownChildren(log);
  for (let depth = 0; depth < 3 && inner.length === 1; depth += 1) {
    const next = shownChildren(inner[0]);
    const list = tagOf(inner[0]) === "ul" || tagOf(inner[0]) === "ol" || roleOf(inner[0]) === "list";
    if (!list && (ownLabel(inner[0]) !== "" || next.length === 0 || !next.every((el) => BLOCKS.has(tagOf(el))))) break;
    inner = next;
  }
  return inner;
};

// Null when the page shows no conversation that could be told from the rest of it.
const turnsIn = (scope) => once("turns", scope, () => {
  const box = composerFor(scope);
  const logs = logsIn(scope).filter((el) => box === null || !composedContains(el, box));
  if (logs.length > 1) return null;
  const marked = markedTurns(logs[0] ?? scope, box);
  if (marked.length) return marked;
  return logs.length === 1 ? turnsOfLog(logs[0]) : null;
});

const MARKUP = /[\s*_`#>~]+/gu;
const bare = (text) => text.normalize("NFKC").replace(MARKUP, "");
const OWN_HEAD = 200;
const ownHead = (watch) => (watch.text ? bare(watch.text).slice(0, OWN_HEAD) : "");
const turnText = (el) => once("said", el, () => bare(shownTextOf(el)));
const isNotice = (el) => ["alert", "status", "alertdialog", "separator"].includes(roleOf(el)) || (elementAll(el, "[role=alert]").length > 0);

const isOurs = (turn, own) => own !== "" && timesSaid(turn, own) !== 0;

const armed = (watch, key, make) => {
  if (!Object.hasOwn(watch.base, key)) watch.base[key] = make();
  return watch.base[key];
};

const newTurns = (turns, before) => {
  if (before.tail !== null) {
    const last = turns.findLastIndex((el) => hashText(turnText(el)) === before.tail);
    if (last >= 0) return turns.slice(Math.max(last + 1, Math.min(before.count, turns.length)));
  }
  return turns.slice(Math.min(before.count, turns.length));
};

facts["chat.assistantTurnCreated"] = (scope, watch) => {
  const turns = turnsIn(scope);
  const state = () => ({ count: turns?.length ?? 0, tail: turns?.length ? hashText(turnText(turns.at(-1))) : null });
  if (turns === null && composerFor(scope) === null) return undefined;
  const before = armed(watch, "chat.turns", state);
  const fresh = newTurns(turns ?? [], before).filter((el) => !isNotice(el) && (turnText(el) !== "" || isBusy(el)));
  const own = ownHead(watch);
  if (own === "") return fresh.length >= 2 ? true : fresh.length === 1 ? undefined : false;
  const others = fresh.filter((el) => !isOurs(el, own));
  return others.length === 0 ? false : { v: true, s: `${DOCUMENT_TAG}.${numberOf(others[0])}` };
};

const isBusy = (el) => attr(el, "aria-busy") === "true" || elementAll(el, "[aria-busy=true]").length > 0;

// -- whether an answer is being written

const isStop = (el, near) => {
  const name = nameOf(el, roleOf(el));
  if (name === "") return near && marksOf(el).some((mark) => inIdentifier("stop_reply", mark));
  return isPhrase("stop_reply", name) && (near || foldWords(name).length > 1);
};

const stopControl = (scope) => once("stops", scope, () => {
  const box = composerFor(scope);
  if (box !== null) for (const around of surroundings(box)) if (buttonsIn(around).some((el) => isStop(el, true) && visibleControl(el) && isNearby(box, el))) return true;
  return buttonsIn(scope).some((el) => isStop(el, false) && visibleControl(el));
});

const STILL_GROWING_MS = 1200;
const growth = { turn: null, length: 0, at: -Infinity, count: 0 };
// What a page adds to our own message, such as a tick or the time, is no answer.
const noteGrowth = (turns, own) => {
  const last = turns.findLast((el) => !isNotice(el)) ?? null;
  const text = last === null ? "" : turnText(last);
  const grown = last !== null && growth.turn?.deref() === last && text.length > growth.length;
  if (grown && !isOurs(last, own)) {
    growth.at = now();
    growth.count += 1;
  }
  growth.turn = last === null ? null : new WeakRef(last);
  growth.length = text.length;
};

const streamActive = (scope, watch) => once(`stream ${ownHead(watch)}`, scope, () => {
  const turns = turnsIn(scope);
  if (turns !== null) noteGrowth(turns, ownHead(watch));
  const stopping = stopControl(scope);
  if (turns === null && !stopping && composerFor(scope) === null) return undefined;
  const last = turns?.at(-1) ?? null;
  const log = last === null ? null : composedParent(last);
  const busy = last !== null && (isBusy(last) || (log !== null && attr(log, "aria-busy") === "true"));
  return stopping || busy || now() - growth.at < STILL_GROWING_MS;
});

facts["chat.streamActive"] = streamActive;
facts["chat.streamActive.started"] = (scope, watch) => {
  const active = streamActive(scope, watch);
  if (active === undefined) return undefined;
  const before = armed(watch, "chat.stream", () => ({ active, grown: growth.count, document: DOCUMENT_TAG, seen: false }));
  if (!active) before.active = false;
  const grown = growth.count > (before.document === DOCUMENT_TAG ? before.grown : 0);
  if (grown || (active && !before.active)) before.seen = true;
  return before.seen;
};

// -- our own text

const ECHO_LENGTH = 12;
// How often a text stands outside of every field. A short one must be all that an element says: it would be found
// inside other words otherwise.
const timesSaid = (root, own) => {
  const wanted = (text) => (own.length >= ECHO_LENGTH ? text.includes(own) : text === own);
  const count = (node) => {
    if (isElement(node) && (IGNORED.has(tagOf(node)) || isTextBox(node))) return 0;
    let times = 0;
    for (let child = firstChild(node); child !== null; child = nextSibling(child))
      if (isElement(child) && bare(textContentOf(child)).includes(own)) times += count(child);
    return times > 0 || !isElement(node) ? times : wanted(bare(saidBeside(node))) ? 1 : 0;
  };
  const start = isElement(root) ? root : documentElement(DOC);
  const shadows = rootsNow().filter((shadow) => isConnected(shadow) && composedContains(start, shadowHost(shadow)));
  return [start, ...shadows].reduce((sum, node) => sum + (bare(textContentOf(node)).includes(own) ? count(node) : 0), 0);
};

// What can be read of an element without what stands in its message boxes.
const saidBeside = (el) => {
  if (isTextBox(el)) return "";
  const inner = elementAll(el, "[contenteditable]");
  if (inner.length === 0) return shownTextOf(el);
  let text = "";
  for (const child of composedChildren(el)) text += isText(child) ? dataOf(child) : isElement(child) ? ` ${saidBeside(child)} ` : "";
  return rendered(el) && opaque(el) ? text : "";
};

const ownAppeared = (scope, watch, key, roots) => {
  const own = ownHead(watch);
  if (own === "" || roots === null) return undefined;
  const times = roots.reduce((sum, root) => sum + timesSaid(root, own), 0);
  const before = armed(watch, key, () => times);
  return times > before ? { v: true, s: `${DOCUMENT_TAG}.${times}` } : false;
};

facts["chat.sentTextAppeared"] = (scope, watch) => ownAppeared(scope, watch, "chat.sent", [scope]);
// Inside the conversation where there is one; a draft or a list of chats elsewhere proves less.
facts["chat.outboundMessageAppeared"] = (scope, watch) => {
  const turns = turnsIn(scope);
  return ownAppeared(scope, watch, "chat.outbound", turns ?? (composerFor(scope) === null ? null : []));
};
