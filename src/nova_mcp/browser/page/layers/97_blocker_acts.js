// What has to be known to get rid of a layer, and whether it is gone.
const GONE_STEP_MS = 50;

const choiceTold = (one, kind, places) => ({ ...one.facts, label: settledLabel(one.label, kind), element: factsOf(one.el, places) });
const switchTold = (one, places) => ({
  on: one.on, locked: one.locked, stuck: one.stuck, shown: one.shown, picks: one.picks ?? false,
  element: one.on && !one.locked && one.shown ? factsOf(one.el, places) : null,
});

const partTold = (root, kind, choices) => {
  const places = makePlaces();
  return {
    choices: choices.map((one) => choiceTold(one, kind, places)), switches: switchesIn(root).map((one) => switchTold(one, places)),
    closingAccepts: closingAccepts(root),
  };
};

questions.blockers = () => ({
  url: pageAddress(),
  layers: layersNow().map(remembered).map((layer) => ({
    kind: layer.kind, blocking: layer.blocking, name: layerName(layer), element: factsOf(layer.body, makePlaces()),
    framed: layer.framed.map(numberOf), inside: insideOf(layer), alert: roleOf(layer.body) === "alertdialog", ...partTold(layer.root, layer.kind, layer.choices),
  })),
});

// The same for a layer that shows another document: here the whole document is the layer.
questions.blockerPart = () => {
  const body = documentBody(DOC);
  if (body === null) return null;
  const choices = labelledChoices(body);
  const kind = kindOf(body, { why: "layer", sure: false }, choices);
  return { url: pageAddress(), kind, name: cut(shownTextOf(body, textBudget(80)), 80), ...partTold(body, kind, choices) };
};

// For whoever holds the host's reading of labels against this one.
questions.saidBy = ({ texts }) => texts.map(saidBy);

questions.frameNumber = ({ el }) => numberOf(el);

// -- gone or not

const layerShown = (el) => isConnected(el) && seenByEye(el) && inViewport(boxOf(el));

const pointsClear = (points, layers) =>
  points.every(([x, y]) => {
    const hit = deepHit(x, y);
    return hit !== null && !layers.some((layer) => liesWithin([layer.root, ...layer.veils], hit));
  });

// Moving out of sight is not yet being gone, and worth waiting for.
const animationsOf = uncurry(Element.prototype.getAnimations);
const isMoving = (el) => {
  let node = el;
  for (let depth = 0; node !== null && depth < 4; depth += 1, node = composedParent(node))
    if (animationsOf(node).some((one) => one.playState === "running" && Number.isFinite(one.effect?.getComputedTiming().endTime ?? Infinity))) return true;
  return false;
};

// `startMs`: how long a layer may take to go; what moves meanwhile gets the whole of it. `holdMs`: how long it must stay
// away. Then the points it took must reach the page again.
questions.layerGone = async ({ node, startMs, movingMs = 0, holdMs }) => {
  const body = nodeOf(node);
  const memory = body === null ? null : layerMemory.get(body) ?? null;
  const begun = now();
  let since = null;
  let looks = 0;
  for (;;) {
    measure();
    const shown = body !== null && (layerShown(body) || (memory !== null && memory.root !== body && layerShown(memory.root) && composedContains(memory.root, body)));
    if (shown) [since, looks] = [null, 0];
    else {
      since ??= now();
      looks += 1;
    }
    // Time that passed while the page stood still is no proof; it must have been looked at now and then.
    if (since !== null && now() - since >= holdMs && looks * GONE_STEP_MS * 2 >= holdMs) break;
    const spent = now() - begun;
    const patience = shown && movingMs > 0 && isMoving(body) ? movingMs : startMs;
    if (since === null && spent >= patience) return { gone: false, clear: false };
    if (spent >= startMs + movingMs + holdMs * 4) return { gone: false, clear: false };
    await pause(GONE_STEP_MS);
  }
  return { gone: true, clear: pointsClear(memory?.points ?? [], layersNow().filter((layer) => layer.kind !== "challenge" || layer.why !== "page")) };
};

// The layer around an element that is about to be pressed; most elements stand in none, and that is told by a glance.
const maybeLayer = (el) => DIALOG_ROLES.has(roleOf(el)) || layerPositions.has(styleOf(el).position) || matches(el, CONSENT_ROOTS) || namedForConsent(el);
const layerAround = (el) => {
  if (closest(el, maybeLayer) === null) return null;
  const layer = layersNow().find((one) => one.why !== "page" && composedContains(one.root, el));
  if (layer === undefined) return null;
  remembered(layer);
  const one = layer.choices.find((choice) => composedContains(choice.el, el));
  return {
    node: numberOf(layer.body), kind: layer.kind, label: one === undefined ? "unknown" : settledLabel(one.label, layer.kind),
    root: lastingSelector(layer.root) ?? lastingSelector(layer.body), control: lastingSelector(one?.el ?? el), platform: platformOf(layer.root),
  };
};

// A selector that holds on another visit too; what only counts positions or was generated names nothing then.
const lastingSelector = (el) => {
  const found = selectorFor(el, makeRoleCounts([el]));
  if (found === null || found.kind === "positional" || found.kind === "generated_id" || found.selector.length > CANDIDATES.selector) return null;
  return withoutSecrets(found.selector) === found.selector ? found.selector : null;
};
const platformOf = (root) =>
  PLATFORMS.platforms.find((one) => closest(root, (node) => matches(node, one.roots.join(","))) !== null || queryDeep(root, one.roots.join(","), 1).length > 0)?.name ?? null;

questions.blockerKindOf = ({ node }) => {
  const el = nodeOf(node);
  return el === null ? null : layersNow().find((one) => composedContains(one.root, el) || liesWithin(one.veils, el))?.kind ?? null;
};

// -- hiding what can't be closed

const styleOn = getter(HTMLElement.prototype, "style");
const setStyle = uncurry(CSSStyleDeclaration.prototype.setProperty);
const closeDialog = uncurry(HTMLDialogElement.prototype.close);
const jumpTo = WIN.scrollTo.bind(WIN);

const restoreScroll = () => {
  const [root, body] = [documentElement(DOC), documentBody(DOC)];
  if (root === null || body === null) return;
  const held = styleOf(body).position === "fixed" ? -parseFloat(styleOf(body).top) || 0 : null;
  for (const el of [root, body]) {
    const style = styleOf(el);
    if (style.overflowY === "hidden" || style.overflowY === "clip") setStyle(styleOn(el), "overflow", "auto", "important");
    if (style.touchAction === "none") setStyle(styleOn(el), "touch-action", "auto", "important");
  }
  if (held !== null) {
    setStyle(styleOn(body), "position", "static", "important");
    jumpTo({ top: held, behavior: "instant" });
  }
};

questions.hideLayer = ({ node }) => {
  const body = nodeOf(node);
  const memory = body === null ? null : layerMemory.get(body) ?? null;
  if (body === null || memory === null || !isConnected(body)) return false;
  if (isModalNow(body)) closeDialog(body);
  for (const el of new Set([body, memory.root, ...memory.veils]))
    if (isConnected(el) && el instanceof HTMLElement && !liesWithin([el], shownMain())) setStyle(styleOn(el), "display", "none", "important");
  restoreScroll();
  return true;
};
