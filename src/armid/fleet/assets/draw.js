"use strict";
// Small pictures in SVG: colours come from the page's style, so that light, dark and paper need no redrawing.
const Draw = (() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const MONTHS_FROM = 300; // days from which an axis shows months

  function node(name, attributes = {}, text = null) {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    return made;
  }

  // HTML elements: attributes, then children or words.
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // Round values, 1, 2 or 5 times a power of ten apart: about as many as wanted, at least three.
  function ticks(low, high, wanted) {
    if (!(high > low)) return [low];
    const power = 10 ** Math.floor(Math.log10(high - low));
    const inside = (step) => {
      const result = [];
      for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) result.push(Number((i * step).toPrecision(12)));
      return result;
    };
    const choices = [5, 2, 1, 0.5, 0.2, 0.1].map((m) => inside(m * power)).filter((some) => some.length >= 3);
    return choices.filter((some) => some.length <= Math.max(wanted, 3)).at(-1) || choices[0];
  }

  // Days, months or years by how long the axis is, never more than fit: [position, words].
  function dayTicks(low, high, most) {
    const span = high - low;
    const days = [1, 2, 3, 7, 14, 28, 56].find((s) => span / s <= most);
    if (span <= MONTHS_FROM && days) {
      return [...Array(Math.floor(span / days) + 1).keys()].map((i) => [low + i * days, Fleet.dayName(low + i * days, "day")]);
    }
    const year = Fleet.calendar(low).getUTCFullYear();
    const steps = [1, 2, 3, 6, ...[1, 10, 100, 1000].flatMap((p) => [12 * p, 24 * p, 60 * p])].filter((s) => span / (30.4 * s) <= most);
    for (const step of steps) {
      const first = step < 12 ? 0 : -(year % (step / 12)) * 12;
      const found = [];
      for (let i = 0; found.length <= most; i++) {
        const x = Fleet.monthStart(year, first + i * step);
        if (x > high) break;
        if (x >= low) found.push([x, Fleet.dayName(x, step < 12 ? "month" : "year")]);
      }
      if (found.length && found.length <= most) return found;
    }
    return [[low, Fleet.dayName(low, span > 5 * 365 ? "year" : "month")]];
  }

  const fixed = (x) => Math.round(x * 10) / 10;
  const path = (pairs) => pairs.map(([x, y], i) => `${i ? "L" : "M"}${fixed(x)} ${fixed(y)}`).join("");

  // A pair of axes with time to the right. `box`: size and margins; y range [low, high].
  class Panel {
    constructor(place, options) {
      const { width, height, range, label = "", days = Fleet.axis } = options;
      this.left = options.left ?? 34;
      this.right = width - (options.right ?? 6);
      this.top = label ? 18 : 6;
      this.bottom = height - (options.times === false ? 4 : 18);
      this.range = range;
      const span = days[1] - days[0];
      this.days = span > 0 ? days : [days[0] - 0.5, days[0] + 0.5];
      this.svg = node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "picture", role: "img", "aria-label": options.aria || label });
      this.axes(options.times !== false, options.format);
      if (label) this.svg.append(node("text", { x: this.left, y: 12, class: "label" }, label));
      // What is drawn stays inside the axes.
      this.inside = node("svg", { x: 0, y: this.top - 2, width: this.right + 4, height: this.bottom - this.top + 4, viewBox: `0 ${this.top - 2} ${this.right + 4} ${this.bottom - this.top + 4}` });
      this.svg.append(this.inside);
      place.replaceChildren(this.svg);
    }

    x(day) {
      return this.left + ((day - this.days[0]) / (this.days[1] - this.days[0])) * (this.right - this.left - 4) + 2;
    }

    y(value) {
      return this.bottom - ((value - this.range[0]) / (this.range[1] - this.range[0])) * (this.bottom - this.top);
    }

    axes(times, format = (v) => String(v).replace("-", "\u2212")) {
      const grid = node("g", { class: "grid" });
      const words = node("g", { class: "ticks" });
      const high = this.bottom - this.top;
      for (const value of ticks(...this.range, Math.round(high / 24))) {
        const y = fixed(this.y(value));
        grid.append(node("line", { x1: this.left, x2: this.right, y1: y, y2: y, ...(value === 0 ? { class: "zero" } : {}) }));
        words.append(node("text", { x: this.left - 4, y: y + 3.5, "text-anchor": "end" }, format(value)));
      }
      if (times) {
        const shown = dayTicks(...this.days.map(Math.round), Math.max(1, Math.floor((this.right - this.left) / 62)));
        shown.forEach(([value, name]) => {
          const x = fixed(this.x(value));
          grid.append(node("line", { x1: x, x2: x, y1: this.top, y2: this.bottom }));
          const half = 3 * name.length;
          const anchor = x < this.left + half ? "start" : x > this.right - half ? "end" : "middle";
          words.append(node("text", { x: anchor === "start" ? this.left : x, y: this.bottom + 13, "text-anchor": anchor, class: "time" }, name));
        });
      }
      this.svg.append(grid, words);
    }

    // Whether a day is on the axis.
    holds(day) {
      return day >= this.days[0] && day <= this.days[1];
    }

    placed(pairs) {
      return path(pairs.filter(([x]) => this.holds(x)).map(([x, y]) => [this.x(x), this.y(y)]));
    }

    line(pairs, kind) {
      this.inside.append(node("path", { d: this.placed(pairs), class: kind }));
    }

    // Many lines as one path.
    lines(many, kind) {
      const d = many.map((pairs) => this.placed(pairs)).join("");
      this.inside.append(node("path", { d, class: kind }));
    }

    area(days, low, high, kind) {
      const known = days.map((_, i) => i).filter((i) => low[i] !== null && high[i] !== null && this.holds(days[i]));
      const up = known.map((i) => [this.x(days[i]), this.y(high[i])]);
      const down = known.map((i) => [this.x(days[i]), this.y(low[i])]).reverse();
      if (up.length > 1) this.inside.append(node("path", { d: `${path([...up, ...down])}Z`, class: kind }));
      else if (up.length) this.inside.append(node("path", { d: `M${fixed(up[0][0])} ${fixed(up[0][1])}V${fixed(down[0][1])}`, class: `${kind} single` }));
    }

    // Days with their intervals; where they stand close together, smaller and without.
    dots(all, kind, interval = 1.96) {
      const triples = all.filter(([x]) => this.holds(x));
      const room = (this.right - this.left) / Math.max(1, triples.length);
      const r = fixed(Math.min(2.2, Math.max(0.9, 0.3 * room)));
      const bars = (room < 3 ? [] : triples).filter(([, , s]) => s > 0).map(([x, y, s]) => `M${fixed(this.x(x))} ${fixed(this.y(y - interval * s))}V${fixed(this.y(y + interval * s))}`);
      this.inside.append(node("path", { d: bars.join(""), class: `error ${kind}` }));
      for (const [x, y] of triples) this.inside.append(node("circle", { cx: fixed(this.x(x)), cy: fixed(this.y(y)), r, class: `dot ${kind}` }));
    }

    vertical(day, kind) {
      if (!this.holds(day)) return;
      const x = fixed(this.x(day));
      this.inside.append(node("line", { x1: x, x2: x, y1: this.top, y2: this.bottom, class: kind }));
    }

    // Names of lines, where lines that change later leave room: at the left, above or below; what is too much is counted.
    names(items, most = 3) {
      for (const sign of [1, -1]) {
        const some = items.filter((item) => (item.y < 0 ? -1 : 1) === sign).sort((a, b) => Math.abs(b.y) - Math.abs(a.y));
        const words = some.slice(0, some.length > most + 1 ? most : most + 1).map((item) => item.name);
        if (words.length < some.length) words.push(`and ${some.length - words.length} more`);
        const first = sign > 0 ? this.top + 9 : this.bottom - 3 - 12 * (words.length - 1);
        words.forEach((name, i) => this.svg.append(node("text", { x: this.left + 4, y: first + 12 * i, class: "name" }, name)));
      }
    }
  }

  // Words in which no line ends within a date, or between a number and its unit.
  function words(text) {
    const joined = text.replace(/(\d) N m\b/g, "$1\u00a0N\u00a0m").replace(/(\d) (?=(?:%|kg|°C|σ|rad|±)(?![a-z]))|(±) (?=\d)/g, "$1$2\u00a0");
    return joined.split(/(\d{4}-\d\d-\d\d)/).map((part, i) => (i % 2 ? element("span", { class: "date" }, part) : part)).filter((part) => part !== "");
  }

  const tip = document.getElementById("tip");
  function tell(event, words) {
    tip.textContent = words;
    tip.hidden = false;
    const width = tip.offsetWidth;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 6))}px`;
    tip.style.top = `${event.clientY > 80 ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18}px`;
  }
  const hush = () => { tip.hidden = true; };
  addEventListener("scroll", hush, { passive: true });

  return { node, element, ticks, dayTicks, path, fixed, Panel, words, tell, hush };
})();
