"use strict";
// The map of who is unusual: all arms as dots, and what makes each of them so as a heat map.
const Unusual = (() => {
  const { arms, parameters, count } = Fleet;
  const COLOURS = JSON.parse(document.getElementById("armid-colours").textContent);
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  const FULL = 8; // standard deviations that have the full colour
  const QUIET = 2; // those that have none
  const [LEAST, ROWS, CLEAR] = [12, 40, 3.5]; // parameters that are shown: fewest, most, and from which deviation
  const [ROW, NARROW, GAP] = [15, 14, 12]; // [px] height of a row, width of a named column, and before the others
  const far = (a) => arms.unlike_others[a] ?? -1;

  // Both axes are logarithmic, since a fault is easily a hundred times what is usual.
  function scatter(place) {
    const width = Math.floor(place.clientWidth);
    if (width < 100) return;
    const height = Math.min(360, Math.max(260, 0.45 * width));
    const edge = { left: 46, right: 14, top: 10, bottom: 40 };
    const known = [...Array(count).keys()].filter((a) => arms.unlike_others[a] !== null && arms.unlike_itself[a] !== null);
    const svg = Draw.node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "picture", role: "img", "aria-label": `${known.length} arms by how unlike the others and themselves they are` });
    const ends = (values) => {
      const low = Math.max(0.3, Math.min(...values, 2));
      return [Math.log(low * 0.9), Math.log(Math.max(...values, 6) * 1.35)];
    };
    const xs = ends(known.map((a) => arms.unlike_others[a]));
    const ys = ends(known.map((a) => arms.unlike_itself[a]));
    const x = (v) => edge.left + ((Math.log(Math.max(v, Math.exp(xs[0]))) - xs[0]) / (xs[1] - xs[0])) * (width - edge.left - edge.right);
    const y = (v) => height - edge.bottom - ((Math.log(Math.max(v, Math.exp(ys[0]))) - ys[0]) / (ys[1] - ys[0])) * (height - edge.top - edge.bottom);
    const grid = Draw.node("g", { class: "grid" });
    const words = Draw.node("g", { class: "ticks" });
    for (const v of [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]) {
      if (Math.log(v) > xs[0] && Math.log(v) < xs[1]) {
        grid.append(Draw.node("line", { x1: x(v), x2: x(v), y1: edge.top, y2: height - edge.bottom }));
        words.append(Draw.node("text", { x: x(v), y: height - edge.bottom + 14, "text-anchor": "middle" }, String(v)));
      }
      if (Math.log(v) > ys[0] && Math.log(v) < ys[1]) {
        grid.append(Draw.node("line", { x1: edge.left, x2: width - edge.right, y1: y(v), y2: y(v) }));
        words.append(Draw.node("text", { x: edge.left - 6, y: y(v) + 3.5, "text-anchor": "end" }, String(v)));
      }
    }
    words.append(
      Draw.node("text", { x: width - edge.right, y: height - 8, "text-anchor": "end", class: "title" }, width > 600 ? "unlike the other arms: largest deviation of a parameter [σ] →" : "unlike the other arms [σ] →"),
      Draw.node("text", { transform: `translate(12 ${edge.top}) rotate(-90)`, "text-anchor": "end", class: "title" }, width > 600 ? "unlike itself: largest deviation of a day [σ] →" : "unlike itself [σ] →"),
    );
    const dots = Draw.node("g", { class: count > 300 ? "dots small" : "dots" });
    const ordered = known.slice().sort((a, b) => Fleet.reasons.has(arms.name[a]) - Fleet.reasons.has(arms.name[b]));
    for (const a of ordered) {
      const flagged = Fleet.reasons.has(arms.name[a]);
      const dot = Draw.node("circle", { cx: Draw.fixed(x(arms.unlike_others[a])), cy: Draw.fixed(y(arms.unlike_itself[a])), r: flagged ? 4.5 : count > 300 ? 2.2 : 3.5, class: flagged ? "flagged" : "plain", "data-arm": a });
      dots.append(dot);
    }
    svg.append(grid, words, dots);
    place.replaceChildren(svg);
    const spot = (a) => [x(arms.unlike_others[a]), y(arms.unlike_itself[a])];
    label(svg, ordered.filter(clear(known)), known, spot, { left: edge.left, right: width - 2, top: edge.top - 8, bottom: height - edge.bottom + 4 });
    const of = (event) => (event.target.dataset?.arm === undefined ? null : Number(event.target.dataset.arm));
    dots.addEventListener("pointermove", (event) => {
      const a = of(event);
      if (a !== null) Draw.tell(event, `${arms.name[a]}: ${Fleet.reasons.get(arms.name[a])?.map((r) => r.sentence).join("; ") || "good"}`);
    });
    dots.addEventListener("pointerleave", Draw.hush);
    dots.addEventListener("click", (event) => { if (of(event) !== null) Fleet.go(of(event)); });
  }

  // Which arms to name: all on the watch list, but in a large fleet not those within its cloud.
  function clear(known) {
    const good = known.filter((a) => !Fleet.reasons.has(arms.name[a]));
    const [others, itself] = [arms.unlike_others, arms.unlike_itself].map((values) => {
      const sorted = good.map((a) => values[a]).sort((u, v) => u - v);
      return sorted[Math.floor(0.99 * sorted.length)] ?? 0;
    });
    return (a) => Fleet.reasons.has(arms.name[a]) && (count <= 60 || arms.unlike_others[a] > others || arms.unlike_itself[a] > itself);
  }

  // Names of arms, the farthest out first, each where it covers neither a dot nor another name; those for which there
  // is no room are left out: pointing at a dot and the tables have them.
  function label(svg, flagged, known, spot, frame) {
    const size = (a) => (Fleet.reasons.has(arms.name[a]) ? 5 : count > 300 ? 2.5 : 4);
    const taken = known.map((a) => { const [px, py] = spot(a); const r = size(a); return [px - r, py - r, px + r, py + r]; });
    const meets = ([l, t, r, b]) => taken.some(([l2, t2, r2, b2]) => l < r2 && r > l2 && t < b2 && b > t2);
    const inside = ([l, t, r, b]) => l > frame.left && r < frame.right && t > frame.top && b < frame.bottom;
    const by = flagged.slice().sort((a, b) => arms.unlike_others[b] * arms.unlike_itself[b] - arms.unlike_others[a] * arms.unlike_itself[a]);
    for (const a of by) {
      const words = Draw.node("text", { class: "name" }, arms.name[a]);
      svg.append(words);
      const wide = words.getComputedTextLength() + 2;
      const [px, py] = spot(a);
      const places = [[7, 0], [-7 - wide, 0], [6, -8], [6, 8], [-6 - wide, -8], [-6 - wide, 8], [-wide / 2, -12], [-wide / 2, 12]];
      const box = places.map(([dx, dy]) => [px + dx, py + dy - 6, px + dx + wide, py + dy + 6]).find((one) => inside(one) && !meets(one));
      if (!box) {
        words.remove();
        continue;
      }
      taken.push(box);
      words.setAttribute("x", Draw.fixed(box[0] + 1));
      words.setAttribute("y", Draw.fixed(box[3] - 2));
    }
  }

  const order = [...Array(count).keys()].filter((a) => far(a) >= 0).sort((a, b) => far(b) - far(a));
  // The parameters in which some arm is farthest out, in their own order.
  const largest = parameters.map((_, p) => order.reduce((most, a) => Math.max(most, Math.abs(Fleet.odd(a, p)) || 0), 0));
  const rows = parameters.map((_, p) => p).sort((p, q) => largest[q] - largest[p]).filter((p, i) => i < LEAST || (i < ROWS && largest[p] > CLEAR)).sort((p, q) => p - q);

  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  function tone(value, palette) {
    const share = Math.min(1, Math.max(0, (Math.abs(value) - QUIET) / (FULL - QUIET)));
    const [from, to] = [channels(palette.panel), channels(value > 0 ? palette.residual : palette.predicted)];
    return from.map((c, i) => Math.round(c + (to[i] - c) * share ** 0.7));
  }

  let printing = false;
  let view = null;
  function heat(place) {
    const canvas = place.querySelector("canvas");
    const width = Math.floor(place.clientWidth);
    if (width < 100 || !order.length) return;
    const palette = COLOURS[!printing && darkness.matches ? "dark" : "light"];
    const left = 58;
    const { columns, named, wide } = layout(width - left);
    const edge = (c) => left + (c < named ? c * wide : named * wide + (named < columns.length ? GAP : 0) + ((c - named) * (width - left - named * wide - GAP)) / Math.max(1, columns.length - named));
    const pen = canvas.getContext("2d");
    const font = '11px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
    pen.font = font;
    const cut = (name) => (name.length > 14 ? `${name.slice(0, 13)}…` : name);
    const foot = named ? 10 + Math.max(...columns.slice(0, named).map(([a]) => pen.measureText(cut(arms.name[a])).width)) : 18;
    const height = rows.length * ROW + foot;
    const scale = Math.max(1, window.devicePixelRatio || 1);
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    pen.scale(scale, scale);
    pen.clearRect(0, 0, width, height);
    pen.font = font;
    pen.textBaseline = "middle";
    rows.forEach((p, r) => {
      pen.fillStyle = palette.text;
      pen.textAlign = "right";
      pen.fillText(parameters[p].name, left - 6, r * ROW + ROW / 2);
      columns.forEach((some, c) => {
        const value = some.map((a) => Fleet.odd(a, p)).reduce((m, v) => (Math.abs(v) > Math.abs(m) ? v : m), 0);
        pen.fillStyle = `rgb(${tone(value, palette).join(",")})`;
        pen.fillRect(edge(c), r * ROW, c < named ? wide - 1 : edge(c + 1) - edge(c) + 0.3, ROW - 1);
      });
    });
    columns.slice(0, named).forEach(([a], c) => {
      pen.save();
      pen.translate(left + (c + 0.5) * wide, rows.length * ROW + 4);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "right";
      pen.fillStyle = Fleet.reasons.has(arms.name[a]) ? palette.residual : palette.quiet;
      pen.fillText(cut(arms.name[a]), 0, 0);
      pen.restore();
    });
    if (named < columns.length) {
      pen.textAlign = "left";
      pen.fillStyle = palette.quiet;
      pen.fillText(`the other ${order.length - named}`, edge(named), rows.length * ROW + 10);
    }
    view = { edge, columns };
  }

  // Columns of arms: all of them named where there is room, else the oddest; the rest share what is left, and where
  // there are more arms than pixels a column stands for several.
  function layout(room) {
    if (order.length * NARROW <= room) return { columns: order.map((a) => [a]), named: order.length, wide: Math.min(22, room / order.length) };
    const named = Math.floor((0.6 * room) / NARROW);
    const rest = order.slice(named);
    const count = Math.min(rest.length, Math.floor(room - named * NARROW - GAP));
    const shared = [...Array(count).keys()].map((c) => rest.slice(Math.floor((c * rest.length) / count), Math.floor(((c + 1) * rest.length) / count)));
    return { columns: [...order.slice(0, named).map((a) => [a]), ...shared], named, wide: NARROW };
  }

  function under(event, canvas) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const c = view.columns.findIndex((_, i) => x >= view.edge(i) && x < view.edge(i + 1));
    const r = Math.floor((event.clientY - box.top) / ROW);
    if (c < 0 || r < 0) return null;
    const p = rows[Math.min(r, rows.length - 1)];
    const a = view.columns[c].reduce((m, b) => (Math.abs(Fleet.odd(b, p)) > Math.abs(Fleet.odd(m, p)) ? b : m));
    return { a, p };
  }

  function ramp(place) {
    const palette = COLOURS[!printing && darkness.matches ? "dark" : "light"];
    const stops = [-8, -6, -4, -2, 0, 2, 4, 6, 8].map((v) => `rgb(${tone(v, palette).join(",")})`);
    const bar = Draw.element("i", { style: `background:linear-gradient(90deg,${stops.join(",")})` });
    const rest = parameters.length - rows.length;
    place.replaceChildren(`−${FULL} σ`, bar, `+${FULL} σ from the type`, ...(rest ? [`; ${rest} quieter parameters are not shown`] : []));
  }

  const [dots, warmth] = ["scatter", "heat"].map((id) => document.getElementById(id));
  function drawAll() {
    if (!dots) return;
    scatter(dots);
    heat(warmth);
    ramp(document.getElementById("ramp"));
  }
  drawAll();
  if (warmth) {
    const canvas = warmth.querySelector("canvas");
    canvas.addEventListener("pointermove", (event) => {
      const found = view && under(event, canvas);
      if (!found) return Draw.hush();
      Draw.tell(event, `${arms.name[found.a]}, ${parameters[found.p].name}: ${Fleet.plus(Fleet.odd(found.a, found.p))} σ`);
    });
    canvas.addEventListener("pointerleave", Draw.hush);
    canvas.addEventListener("click", (event) => {
      const found = view && under(event, canvas);
      if (found) Fleet.go(found.a);
    });
    darkness.addEventListener("change", drawAll);
    addEventListener("beforeprint", () => { printing = true; drawAll(); });
    addEventListener("afterprint", () => { printing = false; drawAll(); });
  }
  return { drawAll, order, rows };
})();
