// Waiting for an element: woken by changes, with a look now and then for what changes without one.
const LOOK_EVERY = 100;
const LOOK_AT_MOST_EVERY = 50;
const WATCHED = { childList: true, subtree: true, attributes: true, characterData: true };

const matchesNow = (want) => {
  if (want.node !== null) {
    const el = nodeOf(want.node);
    return el !== null && isConnected(el) ? [el] : [];
  }
  return select(want.selector);
};

const standNow = (want) => {
  const found = matchesNow(want);
  const shown = want.state === "visible" || want.state === "hidden" ? found.filter(visibleControl) : found;
  const nth = want.nth ?? 0;
  const there = shown.length > nth;
  const wanted = want.state === "visible" || want.state === "attached";
  const el = there ? shown[nth] : null;
  return { met: there === wanted, count: shown.length, el };
};

const textNow = (el) => (namespaceOf(el) === HTML_NS ? innerTextOf(el) : textContentOf(el)).slice(0, 200000);

const nextChange = (millis, least) =>
  new Promise((resolve) => {
    const began = now();
    let woken = false;
    const end = () => {
      observer.disconnect();
      never(timer);
      resolve();
    };
    // One change is enough to look again; the rest of a storm is not listened to.
    const observer = new MutationObserver(() => {
      if (woken) return;
      woken = true;
      observer.disconnect();
      never(timer);
      timer = later(end, Math.max(0, least - (now() - began)));
    });
    let timer = later(end, millis);
    observer.observe(DOC, WATCHED);
  });

const waitedFor = (stand, since, places) => ({
  state: "answer", met: stand.met, matchCount: stand.count, since,
  element: stand.el === null ? null : factsOf(stand.el, places), text: stand.el === null ? "" : cut(squash(readElement(stand.el, { plain: true, budget: newBudget(300) })), 500),
});

questions.waitFor = async (want) => {
  const end = now() + want.waitMs;
  let { text, forMs } = want.since;
  let last = now();
  for (;;) {
    const began = now();
    let stand;
    try {
      stand = standNow(want);
    } catch (error) {
      if (error instanceof SelectorError) return { state: "invalid", message: error.message };
      throw error;
    }
    const own = !stand.met ? null : stand.el === null || want.stableMs === 0 ? "" : digestOf(textNow(stand.el));
    forMs = own !== null && own === text ? forMs + now() - last : 0;
    [text, last] = [own, now()];
    const done = stand.met && forMs >= want.stableMs;
    const left = end - now();
    if (done || left <= 0) return { ...waitedFor(stand, { text, forMs }, makePlaces()), done, url: pageAddress() };
    // A look that takes long is taken less often, so that waiting does not slow the page down.
    const pause_ = Math.max(LOOK_AT_MOST_EVERY, 4 * (now() - began));
    const due = stand.met ? Math.min(LOOK_EVERY, want.stableMs - forMs) : LOOK_EVERY;
    await nextChange(Math.min(left, Math.max(due, pause_)), Math.min(left, pause_));
  }
};
