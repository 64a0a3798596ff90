"use strict";
// Which view is shown follows the address: #arm=NAME is one arm, all else the fleet. The table of arms can be filtered.
(() => {
  let above = null; // how far the fleet was scrolled when an arm was opened
  let from = ""; // and its address then

  // The address changes after a click: what counts is how far the page was scrolled, and where it was, before that.
  let [last, place, started] = [scrollY, location.hash, false];
  // A click may come before the browser reports the last bit of scrolling.
  for (const kind of ["scroll", "click"]) {
    addEventListener(kind, () => { if (!document.body.classList.contains("one")) last = scrollY; }, { capture: true, passive: true });
  }
  document.querySelector("nav ol").addEventListener("click", () => { above = null; });

  function route() {
    Draw.hush();
    const name = location.hash.startsWith("#arm=") ? decoded(location.hash.slice(5)) : null;
    const a = name === null ? undefined : Fleet.index.get(name);
    const was = document.body.classList.contains("one");
    for (const item of document.querySelectorAll(".looks a")) item.toggleAttribute("aria-current", item.hash === location.hash);
    if (a === undefined) {
      if (!was) return;
      document.body.classList.remove("one");
      Arm.hide();
      Course.drawAll();
      Unusual.drawAll();
      Tables.mind();
      // Back where one came from, or to the section that was asked for.
      const known = above !== null && (location.hash === from || location.hash === "#arms");
      if (known) scrollTo({ top: above, behavior: "instant" });
      else document.getElementById(location.hash.slice(1) || "verdict")?.scrollIntoView({ behavior: "instant" });
      above = null;
      return;
    }
    if (!was && started) above = last;
    if (!was) from = place;
    document.body.classList.add("one");
    Arm.show(a);
    scrollTo({ top: 0, behavior: "instant" });
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  addEventListener("hashchange", () => {
    route();
    place = location.hash;
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.body.classList.contains("one") && event.target.tagName !== "INPUT") location.hash = "arms";
  });

  // Filter: words, and one state.
  const input = document.getElementById("filter");
  const buttons = [...document.querySelectorAll(".filter button")];
  const shown = document.getElementById("shown");
  const nothing = document.getElementById("nothing");
  const rows = [...document.querySelectorAll("#arms tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  function filter() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const state = buttons.find((button) => button.getAttribute("aria-pressed") === "true")?.dataset.state;
    let count = 0;
    rows.forEach((row, i) => {
      const keep = words.every((word) => texts[i].includes(word)) && (!state || row.cells[1].textContent === state);
      row.hidden = !keep;
      count += keep;
    });
    shown.textContent = words.length || state ? `${count} of ${rows.length}` : "";
    nothing.hidden = count > 0;
    Tables.mind();
  }
  input.addEventListener("input", filter);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") === "true";
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button && !on)));
      filter();
    });
  }
  // A row of the table leads to its arm, wherever one clicks.
  for (const body of document.querySelectorAll("#arms tbody, #watch tbody")) {
    body.addEventListener("click", (event) => {
      if (event.target.closest("a") || String(getSelection())) return;
      const target = event.target.closest("tr")?.querySelector("a");
      if (target) location.hash = target.hash;
    });
  }

  let width = document.documentElement.clientWidth;
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (document.documentElement.clientWidth === width) return;
      width = document.documentElement.clientWidth;
      if (document.body.classList.contains("one")) return Arm.drawAll();
      Course.drawAll();
      Unusual.drawAll();
    }, 120);
  });

  Tables.mind();
  route();
  started = true;
})();
