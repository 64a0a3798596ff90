"use strict";
// Tables sort by their heads; the table of contents follows the reader.
(() => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const original = [...body.rows];
    heads.forEach((head, column) => {
      const sort = () => {
        const next = { none: "descending", descending: "ascending", ascending: "none" }[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", next);
        const sign = next === "ascending" ? 1 : -1;
        body.append(...(next === "none" ? original : original.slice().sort((a, b) => sign * compare(a, b, column))));
      };
      const button = head.querySelector(".head");
      button.addEventListener("click", sort);
      button.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        sort();
      });
    });
  }

  // Numbers by their value, missing ones last; words by the alphabet, with 10 after 9.
  function compare(a, b, column) {
    const [x, y] = [a, b].map((row) => row.cells[column]);
    if ("sort" in x.dataset && "sort" in y.dataset) {
      const [u, v] = [x, y].map((cell) => (cell.dataset.sort === "" ? -Infinity : Number(cell.dataset.sort)));
      return u === v ? 0 : u - v;
    }
    return x.textContent.localeCompare(y.textContent, undefined, { numeric: true });
  }

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
})();
