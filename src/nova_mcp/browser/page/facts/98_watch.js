// Facts that are watched: read again when something changed, told only when they differ.
const FIRST_GAP = 50;
const SLOW_TICK = 200;
const WATCH_MS = 40000;
// A page with dear facts is asked less often, so that watching never takes more than a part of its time.
const COST_FACTOR = 4;
const CHEAP = 10;

const factWatches = new Map();
// Rises through all watches of a document, so that a late answer never passes for a newer one.
let factSeq = 0;

const newWatch = ({ id = "", facts: refs, text = null, label = null, base = null }) => ({
  id, refs: refs.map((ref) => (ref.kind === "dom" ? { ...ref, name: "dom" } : ref)), text, label, base: base ?? {},
  first: base === null, startedAt: now(), armed: id !== "", form: null, sent: "", changed: false, run: null,
  lastAt: -Infinity, cost: 0, timer: null, tick: null, observer: null,
});

// What the action did is remembered for as long as the same run is meant, also when the shield is down again.
const noteChange = (watch) => {
  const run = tracker.run;
  if (run === null) return;
  if (run !== watch.run) [watch.run, watch.changed] = [run, false];
  look(run);
  if (run.channels.size > 0) watch.changed = true;
};

const lookAtFacts = (watch) => {
  const begun = now();
  noteChange(watch);
  const values = readFacts(watch.refs, watch);
  watch.cost = now() - begun;
  return { values, changed: watch.changed, ready: !stillLoading(watch), base: watch.base };
};

const tellFacts = (watch) => {
  const told = lookAtFacts(watch);
  const text = JSON.stringify(told);
  if (text === watch.sent) return;
  // A message that found no room is not lost: it still differs at the next look.
  if (tell("facts", { watch: watch.id, seq: factSeq + 1, ...told })) [watch.sent, factSeq] = [text, factSeq + 1];
};

const pokeWatch = (watch) => {
  if (watch.timer !== null || !factWatches.has(watch.id)) return;
  const gap = watch.lastAt + Math.max(FIRST_GAP, watch.cost * COST_FACTOR) - now();
  if (gap <= 0) {
    watch.lastAt = now();
    tellFacts(watch);
    return;
  }
  // The next look is certain, so nobody has to note what changes until then: that is what costs a busy page its time.
  watch.observer?.disconnect();
  watch.timer = later(() => {
    watch.timer = null;
    if (!factWatches.has(watch.id)) return;
    observeFor(watch);
    watch.lastAt = now();
    tellFacts(watch);
  }, gap);
};

const pokeWatches = () => {
  for (const watch of factWatches.values()) pokeWatch(watch);
};

const tickWatch = (watch) => {
  watch.tick = later(() => {
    if (now() - watch.startedAt > WATCH_MS) endWatch(watch.id);
    if (!factWatches.has(watch.id)) return;
    // A look in passing must not keep a change that comes right after it waiting.
    if (watch.cost > CHEAP) pokeWatch(watch);
    else if (watch.timer === null) tellFacts(watch);
    tickWatch(watch);
  }, SLOW_TICK);
};

const endWatch = (id) => {
  const watch = factWatches.get(id);
  if (watch === undefined) return;
  factWatches.delete(id);
  watch.observer?.disconnect();
  never(watch.timer);
  never(watch.tick);
};

// A page that is sent off by its form has no later moment to tell that it was.
const onSubmit = (event) => {
  for (const watch of factWatches.values()) {
    noteSubmit(watch, event);
    tellFacts(watch);
  }
};

const TRIGGERS = ["input", "change", "focusin", "focusout", "toggle", "transitionend", "animationend", "load"];
// Adding a listener twice changes nothing; adding it at each arming repairs what `document.open()` took away.
const listenForFacts = () => {
  listen(WIN, "submit", onSubmit, { capture: true, passive: true });
  for (const type of TRIGGERS) listen(WIN, type, pokeWatches, { capture: true, passive: true });
  listen(DOC, "readystatechange", pokeWatches, { capture: true, passive: true });
};
listen(WIN, "submit", onSubmit, { capture: true, passive: true });

const observeFor = (watch) => {
  // Without facts only the state of the document is of interest, and that has an event of its own.
  if (watch.refs.length === 0) return;
  watch.observer ??= new MutationObserver(() => pokeWatch(watch));
  const options = { childList: true, subtree: true, attributes: true, characterData: true };
  watch.observer.observe(DOC, options);
  for (const root of rootsNow()) watch.observer.observe(root, options);
};

questions.watchFacts = (args) => {
  endWatch(args.id);
  const watch = newWatch(args);
  factWatches.set(watch.id, watch);
  listenForFacts();
  if (watch.first) rememberForm(watch);
  observeFor(watch);
  tickWatch(watch);
  const told = lookAtFacts(watch);
  // The first values are told as well when the host may not stay for the answer.
  if (args.announce) tellFacts(watch);
  else watch.sent = JSON.stringify(told);
  return { ...told, seq: factSeq };
};

// Asked for before a verdict: a page that has stopped telling must not look like one where nothing changed.
questions.lookFacts = ({ id }) => {
  const watch = factWatches.get(id);
  return watch === undefined ? { lost: true } : { ...lookAtFacts(watch), seq: factSeq };
};

questions.unwatchFacts = ({ id }) => {
  endWatch(id);
  return true;
};

questions.readFacts = (args) => lookAtFacts(newWatch(args));
