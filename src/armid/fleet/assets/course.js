"use strict";
// The fleet over time: one panel for each watched quantity, and the small pictures of the watch list.
const Course = (() => {
  const LINES = 120; // arms up to which each is drawn
  const HIGH = 112;
  const MOST = 25; // times the fleet's own scatter that a panel shows
  const many = Fleet.count > LINES;
  const { watched, changed, ordinals } = Fleet;

  function reach(k) {
    const [low, , , , high] = Fleet.quantiles[k].map((row) => row.filter((_, d) => Fleet.on(d)).map(Math.abs));
    const fleet = Math.max(...low, ...high, many ? 0 : (Fleet.factor(k) * watched[k].reach) / 1.6);
    const ends = changed[k].flatMap((a) => Fleet.series(a, k).filter(([, , , d]) => Fleet.on(d)).map(([, y]) => y));
    return { fleet, up: Math.max(0, ...ends), down: Math.max(0, ...ends.map((y) => -y)) };
  }

  // Quantities of one name share a scale: it shows the fleet, and changes as far as the fleet can still be seen.
  const scales = new Map();
  for (const [k, one] of watched.entries()) {
    const [found, known] = [reach(k), scales.get(one.group) || { fleet: 0, up: 0, down: 0 }];
    scales.set(one.group, Object.fromEntries(Object.keys(known).map((key) => [key, Math.max(known[key], found[key])])));
  }
  function range(k) {
    const { fleet, up, down } = scales.get(watched[k].group);
    const end = (far) => Math.max(1.6 * fleet, fleet ? Math.min(1.08 * far, MOST * fleet) : 1.08 * far) || 1;
    return [-end(down), end(up)];
  }

  function title(k) {
    const { joint } = watched[k];
    if (!joint) return "";
    const name = Fleet.data.joints[joint - 1] || "";
    return /^(joint|j|axis|a)?[ _-]?\d+$/i.test(name) || !name ? `joint ${joint}` : `joint ${joint}, ${name}`;
  }

  function draw(place) {
    const k = Number(place.dataset.watched);
    const width = Math.floor(place.clientWidth);
    if (width < 60) return;
    const panel = new Draw.Panel(place, { width, height: HIGH, range: range(k), label: title(k), aria: watched[k].what });
    const scaled = Fleet.quantiles[k];
    const others = [...Array(Fleet.count).keys()].filter((a) => !changed[k].includes(a));
    if (many) {
      panel.area(ordinals, scaled[0], scaled[4], "wide");
      panel.area(ordinals, scaled[1], scaled[3], "middle");
    } else {
      panel.lines(others.map((a) => Fleet.series(a, k)), "arm");
    }
    const ends = [];
    for (const a of changed[k]) {
      const pairs = Fleet.series(a, k).filter(([x]) => panel.holds(x));
      if (!pairs.length) continue;
      panel.line(pairs, "changed");
      const last = pairs.at(-1)[1];
      const beyond = last > panel.range[1] || last < panel.range[0] ? ` ${Fleet.plus(last)} ${Fleet.unit(k)}` : "";
      ends.push({ name: Fleet.arms.name[a] + beyond, y: last });
    }
    panel.names(ends);
    follow(panel, k);
  }

  // The arm nearest to the pointer is told, and opened by a click.
  function follow(panel, k) {
    let mark = null;
    const nearest = (event) => {
      const box = panel.svg.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      let best = { far: Infinity };
      ordinals.forEach((o, d) => {
        const dx = Math.abs(panel.x(o) - px);
        if (dx > 24 || !panel.holds(o)) return;
        for (let a = 0; a < Fleet.count; a++) {
          const y = Fleet.deviation(a, d, k);
          if (Number.isNaN(y)) continue;
          const shown = Math.min(Math.max(panel.y(y), panel.top), panel.bottom);
          const far = Math.hypot(dx, 1.5 * (shown - py)) - (changed[k].includes(a) ? 6 : 0);
          if (far < best.far) best = { far, a, d, y };
        }
      });
      return best.far < 30 ? best : null;
    };
    panel.svg.addEventListener("pointermove", (event) => {
      mark?.remove();
      const found = nearest(event);
      panel.svg.classList.toggle("found", Boolean(found));
      if (!found) return Draw.hush();
      mark = Draw.node("path", { d: panel.placed(Fleet.series(found.a, k)), class: "mark" });
      panel.inside.append(mark);
      Draw.tell(event, `${Fleet.arms.name[found.a]}, ${Fleet.dayName(ordinals[found.d])}: ${Fleet.plus(found.y)} ${Fleet.unit(k)}`);
    });
    panel.svg.addEventListener("pointerleave", () => { mark?.remove(); Draw.hush(); });
    panel.svg.addEventListener("click", (event) => {
      const found = nearest(event);
      if (found) Fleet.go(found.a);
    });
  }

  // Beside each entry of the watch list its quantity, the fleet in grey behind it.
  function sparks() {
    const rows = document.querySelectorAll("#watch tbody tr");
    Fleet.data.watch.forEach((one, i) => {
      const k = Fleet.watchedIndex.get(one.parameter);
      const a = Fleet.index.get(one.robot);
      const place = rows[i]?.cells[3];
      if (!place || a === undefined) return;
      if (one.kind === "unusual") return among(place, a, Fleet.parameters.findIndex((p) => p.name === one.parameter));
      if (["sign", "dead", "data", "misfit"].includes(one.kind)) return days(place, a);
      if (k === undefined) return;
      const ends = Fleet.axisOf(a);
      const pairs = Fleet.series(a, k).filter(([x]) => x >= ends[0] && x <= ends[1]);
      const quantiles = Fleet.quantiles[k];
      const all = [...pairs.map(([, y]) => y), ...[quantiles[0], quantiles[4]].flatMap((row) => row.filter((_, d) => Fleet.on(d))), 0];
      const [low, high] = [Math.min(...all), Math.max(...all)];
      const room = 0.08 * (high - low || 1);
      const panel = new Draw.Panel(place, { width: 118, height: 34, left: 1, right: 1, days: ends, range: [low - room, high + room], times: false, format: () => "", aria: `${one.robot}: ${watched[k].what} over time` });
      panel.svg.querySelector(".grid").remove();
      panel.area(ordinals, quantiles[0], quantiles[4], "wide");
      panel.vertical(Fleet.ordinal(one.since), "since");
      panel.line(pairs, "changed");
    });
  }

  // One arm among the others: a stroke for each, its own in colour.
  function among(place, a, p) {
    if (p < 0) return;
    const [width, height] = [118, 16];
    const all = [...Array(Fleet.count).keys()].map((b) => Fleet.odd(b, p)).filter((v) => !Number.isNaN(v));
    const [low, high] = [Math.min(-4, ...all), Math.max(4, ...all)];
    const x = (v) => Draw.fixed(2 + ((v - low) / (high - low)) * (width - 4));
    const svg = Draw.node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "picture", role: "img", "aria-label": `${Fleet.arms.name[a]} among the others in ${Fleet.parameters[p].name}` });
    svg.append(
      Draw.node("path", { class: "arm", d: all.map((v) => `M${x(v)} 4V${height - 2}`).join("") }),
      Draw.node("path", { class: "changed", d: `M${x(Fleet.odd(a, p))} 0V${height}` }),
    );
    place.replaceChildren(svg);
  }

  // What became of each day: used, left out, nothing recorded.
  const KINDS = ["nothing", "used", "left-out", "in-part"];
  function days(place, a, width = 118, height = 12) {
    const svg = Draw.node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "picture strip", role: "img", "aria-label": `days of ${Fleet.arms.name[a]}` });
    const step = width / Math.max(Fleet.points, 1);
    for (let d = 0; d < Fleet.points; d++) {
      const kind = KINDS[Fleet.day(a, d)];
      svg.append(Draw.node("rect", { x: Draw.fixed(d * step), y: 0, width: Math.max(0.6, Draw.fixed(step - (step > 3 ? 1 : 0))), height, class: kind }));
    }
    svg.append(Draw.node("title", {}, "orange: recorded, but not used"));
    place.replaceChildren(svg);
  }

  function drawAll() {
    document.querySelectorAll("#course .panel").forEach(draw);
  }
  document.querySelectorAll("#course details").forEach((d) => d.addEventListener("toggle", () => d.querySelectorAll(".panel").forEach(draw)));
  drawAll();
  sparks();
  return { drawAll, range, title, days };
})();
