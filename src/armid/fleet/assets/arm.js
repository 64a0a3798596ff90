"use strict";
// One arm: why to look at it, its history against the fleet, its parameters, its recordings.
const Arm = (() => {
  const { arms, watched, parameters, ordinals, data } = Fleet;
  const { element } = Draw;
  const place = document.getElementById("one");
  const STATES = { look: ["needs attention", "poor"], good: ["good", "good"], "no data": ["no data", "open"] };
  const HALF = 1.96;

  const link = (a, words) => element("a", { href: Fleet.address(a) }, words);

  // Where to go from here: back, the neighbours, any other arm by its name.
  function bar(a) {
    const found = element("div", { class: "walk" });
    found.append(element("a", { href: "#arms", class: "back" }, "← all arms"));
    if (a > 0) found.append(link(a - 1, `‹ ${arms.name[a - 1]}`));
    if (a < Fleet.count - 1) found.append(link(a + 1, `${arms.name[a + 1]} ›`));
    const input = element("input", { type: "search", list: "names", placeholder: "go to arm", "aria-label": "go to arm" });
    input.addEventListener("change", () => { if (Fleet.index.has(input.value)) Fleet.go(Fleet.index.get(input.value)); });
    found.append(input);
    if (!document.getElementById("names")) {
      document.body.append(element("datalist", { id: "names" }, ...arms.name.map((name) => element("option", { value: name }))));
    }
    return found;
  }

  function facts(pairs) {
    const list = element("dl", { class: "facts" });
    for (const [name, words] of pairs) {
      if (words === null || words === "") continue;
      list.append(element("dt", {}, name), element("dd", {}, ...(Array.isArray(words) ? words : [words])));
    }
    return list;
  }

  // The command that makes a report. A page that was opened from a disk knows its folder: it then works from anywhere.
  const local = location.protocol === "file:";
  function command(fit) {
    const here = decodeURIComponent(location.pathname).replace(/[^/]*$/, "").replace(/^\/(?=[A-Za-z]:\/)/, "");
    const path = local ? here + fit : fit;
    return `armid report ${/^[\w./:@+,-]+$/.test(path) ? path : `"${path.replace(/["$`\\]/g, "\\$&")}"`}`;
  }

  function about(a) {
    const noise = arms.noise[a];
    const to = (file) => element("a", { href: file.split("/").map(encodeURIComponent).join("/") }, file);
    const [fit, report] = [arms.fit[a], arms.report[a]];
    const possible = {
      true: "Its own values taken alone could belong to a real arm.",
      false: "Its own values taken alone could not belong to a real arm. Errors alone can do that where recordings are few, so that it is no fault by itself; fit.json holds the nearest values that a real arm can have.",
    };
    return facts([
      ["days", `${arms.days[a]} used${data.together === 1 ? ` of ${ordinals.filter((_, d) => Fleet.day(a, d)).length} recorded` : ""}`],
      ["recorded", `${Fleet.short(arms.seconds[a] / 60, 3)} min, ${Fleet.short(arms.samples[a])} samples`],
      ["noise", noise && `${noise.map((v) => Fleet.short(v, 2)).join(", ")} N m (rms of the residuals, joint by joint)`],
      ["physically possible", possible[arms.possible[a]] || ""],
      ["fit", fit ? [to(fit)] : ""],
      ["report", report ? [to(report)] : fit ? [element("code", {}, command(fit)), ` makes one${local ? "" : ", in the folder of this page"}`] : ""],
    ]);
  }

  // An arm's days that are on its axis.
  function shown(a, k) {
    const [low, high] = Fleet.axisOf(a);
    return Fleet.series(a, k).filter(([x]) => x >= low && x <= high);
  }
  const reach = (a, k) => Math.max(...shown(a, k).map(([, y, s]) => Math.abs(y) + (HALF * s || 0)), 1.2 * watched[k].day_to_day * Fleet.factor(k), 1e-9);

  // Ends of an axis that holds an arm's days with their intervals, and the fleet.
  function ends(pairs, scaled) {
    const low = Math.min(0, ...pairs.map(([, y, s]) => y - (HALF * s || 0)), ...scaled[0]);
    const high = Math.max(0, ...pairs.map(([, y, s]) => y + (HALF * s || 0)), ...scaled[4]);
    const room = 0.05 * (high - low || 1);
    return [low - room, high + room];
  }

  // A panel of one quantity: the fleet in grey, the arm with 95 % intervals, what was found in colour.
  function panel(a, k, holder, height, scale) {
    const pairs = shown(a, k);
    const found = (Fleet.reasons.get(arms.name[a]) || []).filter((one) => one.parameter === watched[k].name && one.since);
    const scaled = Fleet.quantiles[k];
    const label = scale === null ? `${watched[k].what} [${Fleet.unit(k)}]` : Course.title(k);
    const range = scale === null ? ends(pairs, scaled.map((row) => row.filter((_, d) => Fleet.on(d)))) : [-1.05 * scale, 1.05 * scale];
    const drawn = new Draw.Panel(holder, { width: Math.floor(holder.clientWidth), height, range, label, aria: watched[k].what, days: Fleet.axisOf(a) });
    drawn.area(ordinals, scaled[0], scaled[4], "wide");
    drawn.dots(pairs, found.length ? "changed" : "plain");
    for (const one of found) {
      const start = Fleet.ordinal(one.since);
      drawn.vertical(start, "since");
      const size = one.size * Fleet.factor(k);
      const last = pairs.length ? pairs.at(-1)[0] : start;
      const course = one.shape === "ramp" ? [[start, size], [last, size * (last - start + 1)]] : [[start, size], [last, size]];
      // A size in the unit, where the value before is unknown, is no share that could be drawn.
      if (one.size !== undefined && one.kind !== "payload" && (one.unit === "1") === watched[k].relative) drawn.line(course, "model");
    }
    drawn.svg.addEventListener("pointermove", (event) => {
      const px = event.clientX - drawn.svg.getBoundingClientRect().left;
      const near = pairs.reduce((m, p) => (m === null || Math.abs(drawn.x(p[0]) - px) < Math.abs(drawn.x(m[0]) - px) ? p : m), null);
      if (near) Draw.tell(event, `${Fleet.dayName(near[0], "full")}: ${Fleet.plusMinus(near[1], HALF * near[2])} ${Fleet.unit(k)}${isLoad(k) ? ", as if at the tool’s origin" : ""}`);
    });
    drawn.svg.addEventListener("pointerleave", Draw.hush);
    const reported = isLoad(k) ? found.find((one) => one.kind === "payload" && one.size !== undefined) : undefined;
    if (reported) holder.append(element("figcaption", { class: "note" }, `Reported: ${Fleet.short(reported.size, 2)}\u00a0${Fleet.pretty(reported.unit)}. ${data.at_the_origin}`));
  }
  const isLoad = (k) => watched[k].name === "payload";

  function temperature(a, holder, height) {
    const [low, high] = Fleet.axisOf(a);
    const pairs = ordinals.map((o, d) => [o, Fleet.temperature(a, d)]).filter(([o, t]) => !Number.isNaN(t) && o >= low && o <= high);
    if (!pairs.length) return holder.remove();
    const values = pairs.map(([, t]) => t);
    const drawn = new Draw.Panel(holder, { width: Math.floor(holder.clientWidth), height, range: [Math.min(...values) - 1, Math.max(...values) + 1], label: "temperature, mean of the joints [°C]", days: [low, high] });
    drawn.line(pairs, "warmth");
    drawn.dots(pairs.map(([x, y]) => [x, y, 0]), "plain");
  }

  // Quantities that were found to have changed come first and larger; the rest by name, with one scale for each name.
  function history(a) {
    const found = new Set((Fleet.reasons.get(arms.name[a]) || []).filter((one) => one.since).map((one) => Fleet.watchedIndex.get(one.parameter)));
    const first = [...found].filter((k) => k !== undefined);
    const known = watched.map((_, k) => k).filter((k) => Fleet.series(a, k).length);
    const jobs = [];
    const make = (parent, k, height, scale) => {
      const holder = element("figure", { class: "panel", "data-quantity": k < 0 ? "temperature" : watched[k].name });
      parent.append(holder);
      jobs.push(() => (k < 0 ? temperature(a, holder, height) : panel(a, k, holder, height, scale)));
    };
    const wide = element("div", { class: "panels wide" });
    for (const k of first) make(wide, k, 190, null);
    make(wide, -1, first.length ? 190 : 130);
    const parts = [wide];
    const rest = known.filter((k) => !first.includes(k));
    for (const group of new Set(rest.map((k) => watched[k].group))) {
      const members = rest.filter((k) => watched[k].group === group);
      const scale = Math.max(...members.map((k) => reach(a, k)));
      const holder = element("div", { class: "panels" });
      members.forEach((k) => make(holder, k, 112, scale));
      parts.push(element("div", { class: "quantity" }, element("h4", {}, `${group[0].toUpperCase()}${group.slice(1)} [${Fleet.unit(members[0])}]`), holder));
    }
    return { parts: known.length ? parts : [], draw: () => jobs.forEach((job) => job()) };
  }

  // Days that lie years from the rest.
  function off(a) {
    const [low, high] = Fleet.axisOf(a);
    const days = Fleet.dates.filter((_, d) => Fleet.day(a, d) && (ordinals[d] < low || ordinals[d] > high));
    const more = days.length > 3 ? ` and ${days.length - 3} more` : "";
    return days.length ? [element("span", { class: "note off" }, ...Draw.words(`Not on the time axis, years from the rest: ${days.slice(0, 3).join(", ")}${more}.`))] : [];
  }

  const legend = (a) => {
    const key = (kind, words) => element("span", { class: `key ${kind}` }, element("i"), words);
    const found = (Fleet.reasons.get(arms.name[a]) || []).filter((one) => one.shape && Fleet.watchedIndex.has(one.parameter));
    const loads = found.filter((one) => one.kind === "payload");
    return element("div", { class: "legend" },
      key("dots measured", "each day, with its 95 % interval, against the arm’s own value"), key("area", "90 % of all arms"),
      ...(found.length ? [key("dots residual", "what has changed"), key("limit", "since when")] : []),
      ...(found.length > loads.length ? [key("predicted", "how it changes")] : []),
      ...off(a));
  };

  function table(columns, rows, caption) {
    const head = element("tr", {}, ...columns.map(([name, unit, words]) => element("th", { scope: "col", "aria-sort": "none", class: words ? "words" : "" },
      element("span", { class: "head", role: "button", tabindex: "0", title: `sort by ${name}` }, name, ...(unit ? [element("span", { class: "unit" }, unit)] : [])))));
    const body = element("tbody", {}, ...rows);
    const made = element("table", { class: "sortable" }, element("caption", {}, caption), element("thead", {}, head), body);
    return element("div", { class: `table ${rows.length > 20 ? "tall" : "whole"}`, tabindex: "0", role: "region", "aria-label": caption }, made);
  }

  function cell(words, sort, options = {}) {
    const made = element("td", { class: [options.words && "words", options.bar !== undefined && "barred"].filter(Boolean).join(" ") });
    if (sort !== undefined) made.dataset.sort = Number.isFinite(sort) ? sort : "";
    made.append(...(options.code ? [element("code", {}, words)] : Draw.words(words)));
    if (options.bar !== undefined) made.append(element("span", { class: "bar", style: `width:${(100 * Math.min(1, Math.max(0, options.bar))).toFixed(1)}%` }));
    return made;
  }

  function values(a) {
    const columns = [["parameter", "", true], ["value ± 95 %"], ["type"], ["from the type", "σ"], ["own data", "share"], ["unit", "", true], ["stands for", "", true]];
    const most = Math.max(4, ...parameters.map((_, p) => Math.abs(Fleet.odd(a, p)) || 0));
    const odd = new Set((Fleet.reasons.get(arms.name[a]) || []).filter((r) => r.kind === "unusual").map((r) => r.parameter));
    const rows = parameters.map((one, p) => {
      const far = Fleet.odd(a, p);
      const row = element("tr", odd.has(one.name) ? { class: "marked" } : {},
        cell(one.name, undefined, { words: true, code: true }),
        cell(Fleet.plusMinus(Fleet.value(a, p), HALF * Fleet.valueSigma(a, p)), Fleet.value(a, p)),
        cell(Fleet.short(one.mean), one.mean),
        far === 0 ? cell("–", 0) : cell(Fleet.plus(far), Math.abs(far), { bar: Math.abs(far) / most }),
        cell(`${Math.round(100 * Fleet.own(a, p))} %`, Fleet.own(a, p)),
        cell(Fleet.pretty(one.unit).replaceAll(" ", "\u00a0"), undefined, { words: true }),
        cell(one.expression, undefined, { words: true, code: true }));
      return row;
    });
    return table(columns, rows, `parameters of ${arms.name[a]}`);
  }

  const explained = `${data.names} From the type: how far from the mean of all arms, in σ, standard deviations of the usual differences. Own data: how much of the value its own recordings decide; the rest comes from the other arms.`.trim();

  function problems(a) {
    const rows = data.problems.filter(([robot]) => robot === arms.name[a]).map(([, date, file, reason]) =>
      element("tr", {}, cell(date, undefined, { words: true }), cell(file, undefined, { words: true }), cell(reason, undefined, { words: true })));
    return rows.length ? [element("h3", {}, "Recordings not used"), table([["day", "", true], ["file", "", true], ["why", "", true]], rows, "recordings not used")] : [];
  }

  let redraw = null;
  function show(a) {
    const reasons = Fleet.reasons.get(arms.name[a]) || [];
    const [words, kind] = STATES[arms.state[a]];
    const strip = element("div", { class: "strip" });
    const story = history(a);
    place.replaceChildren(
      bar(a),
      element("h2", {}, arms.name[a]),
      element("p", { class: `stamp ${kind}` }, words),
      ...(reasons.length ? [element("ul", { class: "warnings" }, ...reasons.map((one) => element("li", {}, ...Draw.words(one.sentence))))] : []),
      about(a),
      element("h3", {}, "Days ", element("small", {}, "filled: used; orange: recorded, but not used; half: used in part; empty: nothing recorded")),
      strip,
      ...(story.parts.length ? [element("h3", {}, "History ", element("small", {}, "deviation from the arm’s own value, temperature taken off")), legend(a), ...story.parts] : []),
      ...problems(a),
      ...(Number.isNaN(Fleet.value(a, 0)) || !parameters.length ? [] : [element("h3", {}, "Parameters ", element("small", {}, "in the light of the fleet")), element("p", { class: "remark names" }, explained), values(a)]),
    );
    place.hidden = false;
    Tables.mind(place);
    redraw = () => {
      Course.days(strip, a, Math.max(60, Math.floor(place.clientWidth)), 16);
      story.draw();
    };
    redraw();
  }

  return { show, hide: () => { place.hidden = true; place.replaceChildren(); redraw = null; }, drawAll: () => redraw?.(), place };
})();
