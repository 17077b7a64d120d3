// The pointer over one element, and what that brings to light.
const hovering = { seen: null, heard: false };
const noteHover = (event) => {
  const armed = shield.armed;
  if (armed === null || !armed.hovering || !event.isTrusted) return;
  if (!eventPath(event).some((node) => armed.accepted.has(node))) return;
  hovering.heard = true;
  // From here on what changes is the pointer's doing.
  armed.pressedAt ??= now();
};
const installHover = () => {
  for (const type of HOVER) listen(WIN, type, noteHover, { capture: true, passive: true });
};
installHover();

const HOVER_LIMITS = { nodes: 50000, elements: 5000, millis: 300 };
const TIP_CSS = "[role=tooltip],[role=menu],[role=listbox],[role=dialog]";
const shownNow = () => new Set([...collect(DOC, HOVER_LIMITS).controls, ...queryDeep(DOC, TIP_CSS, 100)].filter(visibleControl));

questions.hoverReady = () => {
  const armed = shield.armed;
  if (armed === null || !isConnected(armed.target)) return { lost: true };
  installHover();
  armed.hovering = true;
  Object.assign(hovering, { seen: shownNow(), heard: false });
  return { lost: false };
};

questions.hovered = () => {
  const armed = shield.armed;
  if (armed === null || hovering.seen === null) return { lost: true };
  const hit = deepHit(armed.spot.x, armed.spot.y);
  const under = isConnected(armed.target) && hits(armed.accepted, hit) && (hovering.heard || [...armed.accepted].some((node) => matches(node, ":hover")));
  const places = makePlaces();
  const fresh = [...shownNow()].filter((el) => !hovering.seen.has(el)).slice(0, 10);
  return { lost: false, under, heard: hovering.heard, revealed: fresh.map((el) => factsOf(el, places)) };
};
