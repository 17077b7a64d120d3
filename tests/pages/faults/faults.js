// What each case does in the page. The server keeps the truth; this file only shows, hides and sends.
"use strict";
(() => {
  const { case: name, key } = document.body.dataset;
  const parameters = new URLSearchParams(location.search);
  const pause = (fallback) => Number(parameters.get("wait") ?? fallback);
  const byId = (id) => document.getElementById(id);
  const form = byId("entry");
  const news = byId("news");
  const after = (ms) => new Promise((done) => setTimeout(done, ms));

  // Reported to the site's own log, so that the page holds nothing a reader could mistake for content.
  const stamp = (what) => {
    const at = performance.timeOrigin + performance.now();
    new Image().src = `/_stamp/${key}?name=${what}&at=${at}`;
  };
  const nonce = () => crypto.getRandomValues(new Uint32Array(2)).join("-");

  const show = (role, text, kind) => {
    const line = document.createElement("p");
    line.setAttribute("role", role);
    line.className = kind;
    line.textContent = text;
    news.append(line);
    return line;
  };
  const success = (text = `Entry ${key} was saved.`) => {
    stamp("true");
    return show("status", text, "success");
  };
  const failure = (text = "Could not save: something went wrong") => show("alert", text, "error");

  const send = (more = {}) => {
    const body = new URLSearchParams(form ? new FormData(form) : undefined);
    body.set("nonce", nonce());
    for (const [field, value] of Object.entries(more)) body.set(field, value);
    return fetch(`/do/${name}/${key}${location.search}`, { method: "POST", body });
  };
  const inPage = (react) =>
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      react();
    });
  const cover = (text) => {
    const layer = document.createElement("div");
    layer.style.cssText = "position:fixed;inset:0;background:#fffc;z-index:9";
    layer.textContent = text;
    document.body.append(layer);
  };

  const account = () => {
    form.remove();
    document.querySelector("main").innerHTML = "<h1>Welcome back</h1>";
    const header = document.createElement("header");
    header.innerHTML = '<nav><a href="/profile">Profile</a> <a href="/settings">Account settings</a> <button type="button">Sign out</button></nav>';
    document.body.prepend(header);
    stamp("true");
  };
  const signIn = async () => {
    const answer = await send();
    if (answer.ok) account();
    else failure("Wrong user name or password");
  };

  // ---- conversation
  const composer = byId("composer");
  const say = (role, text) => {
    const turn = document.createElement("article");
    turn.dataset.messageAuthorRole = role;
    const line = document.createElement("p");
    line.textContent = text;
    turn.append(line);
    byId("log").append(turn);
    return line;
  };
  const stream = async (answer) => {
    const line = say("assistant", "");
    line.parentElement.setAttribute("aria-busy", "true");
    stamp("true");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      line.textContent += value;
    }
    line.parentElement.removeAttribute("aria-busy");
  };
  const chat = async (onAnswer) => {
    const text = composer.value;
    composer.value = "";
    const mine = say("user", text);
    const answer = await send({ text });
    await onAnswer(answer, mine);
  };

  // ---- pickers
  const CHOICES = { model: ["Swift", "Balanced", "Thorough"], workspace: ["Personal", "Team North", "Team South"] };
  const LABELS = { model: "Model", workspace: "Workspace" };
  const listbox = (what, chosen) => {
    const current = CHOICES[what][0];
    byId("place").innerHTML =
      `<button id="picker" type="button" aria-haspopup="listbox" aria-expanded="false" aria-label="${LABELS[what]}: ${current}" data-testid="${what}-picker">${current}</button>` +
      `<ul role="listbox" aria-label="${LABELS[what]}" hidden>` +
      CHOICES[what].map((choice) => `<li role="option" tabindex="-1" aria-selected="${choice === current}">${choice}</li>`).join("") +
      "</ul>";
    const picker = byId("picker");
    const list = document.querySelector("[role=listbox]");
    const open = (yes) => {
      list.hidden = !yes;
      picker.setAttribute("aria-expanded", String(yes));
    };
    const select = (choice) => {
      picker.textContent = choice;
      picker.setAttribute("aria-label", `${LABELS[what]}: ${choice}`);
      for (const option of list.children) option.setAttribute("aria-selected", String(option.textContent === choice));
    };
    picker.addEventListener("click", () => open(list.hidden));
    list.addEventListener("click", async (event) => {
      open(false);
      await chosen(event.target.textContent, select, picker.textContent);
    });
  };
  const nativeSelect = (what, chosen) => {
    byId("place").innerHTML =
      `<label>${LABELS[what]} <select id="picker">${CHOICES[what].map((choice) => `<option>${choice}</option>`).join("")}</select></label>`;
    const picker = byId("picker");
    let before = picker.value;
    picker.addEventListener("change", async () => {
      const choice = picker.value;
      await chosen(choice, (wanted) => { picker.value = wanted; before = wanted; }, before);
    });
  };
  const keep = async (choice, select) => {
    select(choice);
    stamp("true");
    await send({ choice });
  };
  const snapBack = async (choice, select, before) => {
    select(choice);
    await send({ choice });
    await after(pause(300));
    select(before);
    failure(`${choice} is not available on your plan`);
  };

  // ---- single buttons
  const button = (label, react) => {
    const go = byId("go");
    go.textContent = label;
    go.addEventListener("click", react);
  };

  const CASES = {
    ok_fetch: () => inPage(async () => { if ((await send()).ok) success(); }),
    fetch_form_gone: () => inPage(async () => { if ((await send()).ok) { form.remove(); success("Thank you"); } }),
    fetch_204: () => inPage(async () => { if ((await send()).ok) success(); }),
    fetch_500: () => inPage(async () => { if (!(await send()).ok) failure(); }),
    fetch_500_silent: () => inPage(async () => { await send(); }),
    fetch_500_lies: () => inPage(async () => { await send(); success(); }),
    fetch_error_200: () => inPage(async () => { if (!(await (await send()).json()).ok) failure(); }),
    fetch_late: () => inPage(async () => { if ((await send()).ok) success(); }),
    fetch_lost_committed: () => inPage(async () => { try { await send(); success(); } catch { failure("The connection was lost"); } }),
    fetch_lost_uncommitted: () => inPage(async () => { try { await send(); success(); } catch { failure("The connection was lost"); } }),
    rollback: () => inPage(async () => { const line = success(); await send(); await after(pause(1000)); line.remove(); failure("Not saved after all"); }),
    optimistic_revert: () => inPage(async () => { const line = success(); if (!(await send()).ok) { line.remove(); failure("Could not save, your change was undone"); } }),
    flicker_success: () => inPage(async () => { const line = success(); await after(pause(100)); line.remove(); }),
    flash_error: () => inPage(async () => { const line = failure(); await after(pause(60)); line.remove(); if ((await send()).ok) success(); }),
    spa_route: () => inPage(async () => { if ((await send()).ok) { history.pushState({}, "", `/entries/${key}`); document.querySelector("main").innerHTML = '<h1>Entry</h1><div id="news"></div>'; stamp("true"); document.title = "Entry"; } }),
    validation: () => inPage(() => { byId("reference").setAttribute("aria-invalid", "true"); failure("Please enter a valid reference"); }),
    required_empty: () => { byId("reference").value = ""; },
    disabled_submit: () => { byId("go").disabled = true; },
    throwing: () => inPage(() => { throw new Error("handler broke"); }),
    dead: () => inPage(() => {}),
    detached: () => byId("go").addEventListener("pointerdown", (event) => event.target.remove()),
    double_overlay: () => { cover("First notice"); cover("Second notice"); },
    iframe_target: () => {
      byId("place").innerHTML = `<form id="entry" method="post" action="/do/${name}/${key}" target="inner"><p><label>Reference <input name="reference" value="${key}" required></label></p><button id="go">Save entry</button></form><iframe name="inner" title="Result" width="500" height="200"></iframe>`;
      withNonce(byId("entry"));
    },
    iframe_form: () => { byId("place").innerHTML = `<iframe title="Entry form" src="/frame/${name}/${key}" width="600" height="320"></iframe>`; },
    login_spa_right: () => inPage(signIn),
    login_spa_wrong: () => inPage(signIn),
    chat_streams: () => inPage(() => chat(stream)),
    chat_silent: () => inPage(() => {}),
    chat_swallowed: () => inPage(() => { composer.value = ""; }),
    chat_refused: () => inPage(() => chat(() => {})),
    chat_refused_200: () => inPage(() => chat((answer, mine) => { mine.parentElement.remove(); failure("Message not sent"); })),
    model_listbox: () => listbox("model", keep),
    model_native: () => nativeSelect("model", keep),
    model_snaps_back: () => listbox("model", snapBack),
    workspace_listbox: () => listbox("workspace", keep),
    workspace_snaps_back: () => listbox("workspace", snapBack),
    payment_ok: () => button("Pay now", async () => { if ((await send()).ok) success("Payment received"); }),
    payment_declined: () => button("Pay now", async () => { if (!(await send()).ok) failure("Payment declined"); }),
    delete_confirm: () => button("Delete account", async () => { if (confirm("Delete everything?") && (await send()).ok) success("Account deleted"); }),
    plain_ok: () => button("Show more", async () => { if ((await send()).ok) success("One more line"); }),
    plain_500: () => button("Show more", async () => { await send(); }),
    plain_error_200: () => button("Show more", async () => { if (!(await (await send()).json()).ok) failure(); }),
    plain_dead: () => button("Show more", () => {}),
    plain_throws: () => button("Show more", () => { throw new Error("handler broke"); }),
    plain_late: () => button("Show more", async () => { if ((await send()).ok) success("One more line"); }),
    plus_one: () => button("+1", async () => { if ((await send()).ok) byId("count").textContent = String(Number(byId("count").textContent) + 1); }),
  };

  // Every press of a real form carries a number of its own, so that the site can tell a press from a resend.
  const withNonce = (one) => one.addEventListener("formdata", (event) => event.formData.set("nonce", nonce()));
  if (form) {
    withNonce(form);
    form.action += location.search;
  }
  if (name === "done" || name === "account") stamp("true");
  // A framed copy of the form is an ordinary form.
  if (window === window.top) CASES[name]?.();
})();
