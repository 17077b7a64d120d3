"use strict";
/* What pages do beyond plain HTML: follow new calls, keep times fresh, and say that somebody is there.
   Everything works without this file; nothing here builds markup from data: pieces come from the same templates. */
(() => {
  const root = "/dashboard";
  const one = (selector) => document.querySelector(selector);
  const csrf = one('meta[name="csrf"]')?.content ?? "";

  // A sign-in link opens by itself; without scripts the button does it.
  one("form[data-submit]")?.requestSubmit();
  if (!csrf) return;

  const UNITS = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]];
  const ago = (then, now) => {
    const apart = Math.abs(now - then);
    if (apart < 2000) return "just now";
    const [size, unit] = UNITS.find(([size]) => apart >= size) ?? UNITS[3];
    const count = Math.floor(apart / size);
    return then <= now ? `${count} ${unit} ago` : `in ${count} ${unit}`;
  };
  const refreshTimes = () => {
    const now = Date.now();
    for (const node of document.querySelectorAll(".ago[data-ms]")) {
      const text = ago(Number(node.dataset.ms), now);
      if (node.textContent !== text) node.textContent = text;
    }
  };

  const title = document.title;
  const showState = ({ stopped, waiting }) => {
    for (const node of document.querySelectorAll('[data-live="waiting"]')) {
      node.textContent = waiting;
      node.hidden = !waiting;
    }
    for (const node of document.querySelectorAll('[data-live="asked"]')) node.hidden = !waiting;
    for (const node of document.querySelectorAll('[data-live="stopped"]')) node.hidden = !stopped;
    for (const node of document.querySelectorAll('[data-live="running"]')) node.hidden = stopped;
    document.title = waiting ? `(${waiting}) ${title}` : title;
  };

  const ask = async (path, options = {}) => {
    const answer = await fetch(root + path, { credentials: "same-origin", redirect: "error", headers: { accept: "application/json", ...options.headers }, method: options.method ?? "GET" });
    if (answer.status === 401) location.assign(`${root}/login`);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  };

  // Repeats an errand while the page is before somebody's eyes; a failing server is asked less and less often.
  const every = (ms, errand) => {
    let wait = ms;
    let timer = 0;
    const go = async () => {
      clearTimeout(timer);
      if (document.hidden) return;
      try {
        await errand();
        wait = ms;
      } catch {
        wait = Math.min(wait * 2, 30000);
      }
      clearTimeout(timer);
      timer = setTimeout(go, wait);
    };
    document.addEventListener("visibilitychange", () => { if (!document.hidden) go(); });
    timer = setTimeout(go, ms);
    return go;
  };

  // A picture is made anew around what somebody has unfolded in it, and not while they are in it by keyboard.
  const redraw = (node, markup) => {
    if (node.contains(document.activeElement)) return;
    const unfolded = node.querySelector("details")?.open;
    node.innerHTML = markup;
    if (unfolded) node.querySelector("details")?.setAttribute("open", "");
  };

  const followCalls = (body) => {
    const state = one("#live-state");
    const pause = one("#live-pause");
    const underWay = one("#under-way");
    let paused = false;
    const say = (text) => { if (state.textContent !== text) state.textContent = text; };
    const go = every(1000, async () => {
      if (paused) return;
      const { feed, last } = body.dataset;
      let news;
      try {
        news = await ask(`/live?feed=${encodeURIComponent(feed)}&after=${encodeURIComponent(last)}`);
      } catch (error) {
        say("Not reachable, trying again");
        throw error;
      }
      if (paused) return;
      showState(news);
      if (news.all) body.replaceChildren();
      if (news.count) {
        body.insertAdjacentHTML("afterbegin", news.rows);
        while (body.rows.length > Number(body.dataset.shown)) body.deleteRow(-1);
        one("#no-calls").hidden = true;
        redraw(one("#tiles"), news.tiles);
        redraw(one("#chart"), news.chart);
      }
      if (underWay.dataset.was !== news.underWay) {
        underWay.innerHTML = news.underWay;
        underWay.dataset.was = news.underWay;
      }
      body.dataset.feed = news.feed;
      body.dataset.last = news.last;
      say("Live");
      refreshTimes();
    });
    pause.hidden = false;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.setAttribute("aria-pressed", String(paused));
      pause.textContent = paused ? "Go on" : "Pause";
      say(paused ? "Paused" : "Live");
      if (!paused) go();
    });
  };

  const followQuestions = (box) => {
    const ids = () => [...box.querySelectorAll("[data-id]")].map((node) => node.dataset.id).join(" ");
    every(2000, async () => {
      const news = await ask("/questions/live");
      showState(news);
      // Only when the questions are others: somebody may be writing a note to one of them.
      if (news.ids.join(" ") !== ids()) box.innerHTML = news.list;
    });
  };

  const calls = one("#calls");
  if (calls) followCalls(calls);
  const questions = one("#questions");
  if (questions) followQuestions(questions);
  const here = every(10000, async () => showState(await ask("/here", { method: "POST", headers: { "x-nova-csrf": csrf } })));
  here();
  setInterval(refreshTimes, 5000);
})();
