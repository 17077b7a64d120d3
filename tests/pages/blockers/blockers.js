// The page under the layers, and a truthful record of every press: what a control really does stands in data-does.
const look = document.createElement("style");
look.textContent = `
  body { font: 16px sans-serif; margin: 0; }
  .bar { position: fixed; left: 0; right: 0; bottom: 0; padding: 16px; background: #eee; z-index: 100; }
  .cover { position: fixed; inset: 0; background: rgba(0, 0, 0, 0.6); z-index: 1000; }
  .card { position: absolute; left: 25%; top: 20%; width: 50%; padding: 24px; background: #fff; }
  .corner { position: absolute; right: 8px; top: 8px; width: 28px; height: 28px; }
`;
document.head.append(look);

const remember = (entry) => {
  if (window !== window.top) {
    window.parent.postMessage({ does: entry }, "*");
    return;
  }
  const log = JSON.parse(sessionStorage.getItem("pressed") ?? "[]");
  sessionStorage.setItem("pressed", JSON.stringify([...log, entry]));
};
const store = (choice) => {
  if (window !== window.top) window.parent.postMessage({ choice }, "*");
  else sessionStorage.setItem("choice", choice);
};
window.addEventListener("message", ({ data }) => {
  if (data.does) remember(data.does);
  if (data.choice) store(data.choice);
  if (data.gone) for (const layer of document.querySelectorAll("[data-layer]")) layer.remove();
});

const layerGone = (control) => {
  if (document.body.dataset.stays !== undefined) return;
  if (window !== window.top) {
    window.parent.postMessage({ gone: true }, "*");
    return;
  }
  const layers = [...document.querySelectorAll("[data-layer], [data-second]")];
  const shadow = control.getRootNode().host;
  if (shadow) layers.push(shadow);
  const back = document.body.dataset.returns;
  for (const layer of layers) {
    if (layer.tagName === "DIALOG") layer.close();
    if (document.body.dataset.fades !== undefined) {
      layer.style.transition = "opacity 400ms";
      layer.style.opacity = "0";
      setTimeout(() => layer.remove(), 450);
    } else if (back !== undefined) {
      layer.style.display = "none";
      setTimeout(() => (layer.style.display = ""), Number(back));
    } else layer.remove();
  }
  document.documentElement.style.overflow = "";
};

const optionalOn = () => [...document.querySelectorAll("[data-second] input:checked:not(:disabled):not([value=off])")].length;
const CHOICES = { accept: "accept", reject: "reject", necessary: "reject", close: "closed" };
document.addEventListener("click", (event) => {
  const control = event.composedPath().find((node) => node.dataset?.does !== undefined);
  if (control === undefined) return;
  const does = control.dataset.does;
  remember(does);
  if (does === "manage") {
    for (const layer of document.querySelectorAll("[data-layer]")) layer.style.display = "none";
    for (const layer of document.querySelectorAll("[data-second]")) layer.style.display = "";
  } else if (does === "save") {
    store(optionalOn() === 0 ? "reject" : "accept");
    layerGone(control);
  } else if (does in CHOICES) {
    store(CHOICES[does]);
    layerGone(control);
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.body.dataset.escape === undefined) return;
  store("closed");
  layerGone(document.body);
});

document.addEventListener("DOMContentLoaded", () => {
  if (window === window.top && document.body.dataset.bare === undefined) {
    const links = (word, many) => Array.from({ length: many }, (_, i) => `<li><a href="#${word}${i}">${word} ${i + 1}</a></li>`).join("");
    document.body.insertAdjacentHTML(document.body.dataset.below === undefined ? "afterbegin" : "beforeend", `<nav><ul style="columns:4">${links("Section", 12)}</ul></nav>
      <main><h1>Baking for beginners</h1><p>Flour, butter and sugar are all it takes.</p><ul>${links("Recipe", 12)}</ul>
      <p><button type="button" id="read">Read on</button></p>${"<p>Knead the dough and let it rest.</p>".repeat(30)}</main>`);
  }
  for (const second of document.querySelectorAll("[data-second]")) second.style.display = "none";
});
