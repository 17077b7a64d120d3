document.querySelector("[data-archives]")?.addEventListener("click", () => fetch("/api/archive", { method: "POST" }));
for (const button of document.querySelectorAll("#menu button")) {
  const list = document.getElementById(button.dataset.opens ?? "of-" + button.id);
  if (list === null) continue;
  button.addEventListener("click", () => {
    list.hidden = !list.hidden;
    button.setAttribute("aria-expanded", String(!list.hidden));
  });
}
