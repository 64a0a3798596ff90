"use strict";
// Tables sort by their heads, numbers from the largest and words from A, and say what of them cannot be seen; the table
// of contents follows the reader.
const Tables = (() => {
  // One pair of listeners serves all tables, also those that are made later.
  const originals = new WeakMap();
  function sort(head) {
    const heads = [...head.parentNode.cells];
    const body = head.closest("table").tBodies[0];
    if (!originals.has(body)) originals.set(body, [...body.rows]);
    const original = originals.get(body);
    const column = heads.indexOf(head);
    const words = original.length > 0 && !("sort" in original[0].cells[column].dataset);
    const turns = words ? ["none", "ascending", "descending"] : ["none", "descending", "ascending"];
    const next = turns[(turns.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
    heads.forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    body.append(...(next === "none" ? original : original.slice().sort((a, b) => sign * compare(a, b, column))));
  }
  const headOf = (event) => event.target.closest?.("table.sortable .head")?.closest("th");
  addEventListener("click", (event) => {
    const head = headOf(event);
    if (head) sort(head);
  });
  addEventListener("keydown", (event) => {
    const head = event.key === "Enter" || event.key === " " ? headOf(event) : null;
    if (!head) return;
    event.preventDefault();
    sort(head);
  });

  // Columns at the right, and rows below, that cannot be seen.
  function tell(box) {
    box.classList.toggle("more", box.scrollWidth - box.clientWidth - box.scrollLeft > 4);
    if (!box.classList.contains("tall")) return;
    const bottom = box.getBoundingClientRect().top + box.clientHeight + 6;
    const rows = [...box.querySelector("tbody").rows].filter((row) => !row.hidden);
    const last = rows.findLastIndex((row) => row.getBoundingClientRect().bottom <= bottom);
    const count = rows.length - 1 - last;
    box.nextElementSibling.textContent = count ? `${count} more: scroll ↓` : "";
  }
  // Look after all tables in an element, also those that are made later.
  const minded = new WeakSet();
  function mind(root = document) {
    for (const box of root.querySelectorAll(".table")) {
      if (!minded.has(box)) {
        minded.add(box);
        if (box.classList.contains("tall")) box.insertAdjacentHTML("afterend", '<p class="below" aria-hidden="true"></p>');
        box.addEventListener("scroll", () => tell(box), { passive: true });
      }
      tell(box);
    }
  }
  addEventListener("resize", () => mind());
  mind();

  // Numbers by their value, missing ones last; words by the alphabet, with 10 after 9.
  function compare(a, b, column) {
    const [x, y] = [a, b].map((row) => row.cells[column]);
    if ("sort" in x.dataset && "sort" in y.dataset) {
      const [u, v] = [x, y].map((cell) => (cell.dataset.sort === "" ? -Infinity : Number(cell.dataset.sort)));
      return u === v ? 0 : u - v;
    }
    return x.textContent.localeCompare(y.textContent, undefined, { numeric: true });
  }

  // Who goes to a folded section wants to see it.
  const unfold = (name) => document.getElementById(name)?.querySelector(":scope > details")?.setAttribute("open", "");
  addEventListener("hashchange", () => unfold(location.hash.slice(1)));
  document.querySelector("nav").addEventListener("click", (event) => unfold(event.target.hash?.slice(1)));
  unfold(location.hash.slice(1));

  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.getAttribute("href").slice(1), a]));
  const sections = [...document.querySelectorAll("main section")];
  const nav = document.querySelector("nav");
  let current = null;
  function mark() {
    const line = 0.3 * innerHeight;
    const here = sections.filter((s) => s.getBoundingClientRect().top <= line).pop() || sections[0];
    if (here === current) return;
    current = here;
    for (const [name, link] of links) link.toggleAttribute("aria-current", name === here.id);
    const link = links.get(here.id);
    if (nav.scrollWidth > nav.clientWidth) nav.scrollTo({ left: link.offsetLeft - 60 });
  }
  addEventListener("scroll", mark, { passive: true });
  mark();
  return { mind };
})();
