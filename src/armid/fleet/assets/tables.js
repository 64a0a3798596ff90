"use strict";
// Tables say what of them cannot be seen: columns at the right, and rows below.
const Tables = (() => {
  const WATCH = new WeakSet();

  // Rows whose end lies below what is shown.
  function hidden(box) {
    const bottom = box.getBoundingClientRect().top + box.clientHeight;
    let count = 0;
    const rows = box.querySelector("tbody").rows;
    for (let i = rows.length - 1; i >= 0; i--) {
      if (rows[i].hidden) continue;
      if (rows[i].getBoundingClientRect().bottom <= bottom + 6) break;
      count++;
    }
    return count;
  }

  function tell(box) {
    box.classList.toggle("more", box.scrollWidth - box.clientWidth - box.scrollLeft > 4);
    if (!box.classList.contains("tall")) return;
    const count = hidden(box);
    const note = box.nextElementSibling;
    note.textContent = count ? `${count} more: scroll ↓` : "";
    note.classList.toggle("end", !count);
  }

  // Look after all tables in an element, also those that are made later.
  function mind(root) {
    for (const box of root.querySelectorAll(".table")) {
      if (!WATCH.has(box)) {
        WATCH.add(box);
        if (box.classList.contains("tall")) box.after(Draw.element("p", { class: "below", "aria-hidden": "true" }));
        box.addEventListener("scroll", () => tell(box), { passive: true });
      }
      tell(box);
    }
  }

  const all = () => mind(document);
  addEventListener("resize", all);
  return { mind, all };
})();
