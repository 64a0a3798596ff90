"use strict";
// Draws the figures: blocks of panels, coloured by what a trace means. Lazy on the screen, all at once for printing.
const Charts = (() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const FIGURES = read("armid-figures");
  const COLOURS = read("armid-colours");
  const NARROW = 600;
  const PRINT_WIDTH = 680; // A4 less 15 mm either side, at 96 dpi
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const WIDTHS = { measured: 1.0, predicted: 1.4, nominal: 1.2, residual: 1.0, limit: 0.8, axis: 0.8 };
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)").matches || navigator.maxTouchPoints > 0 && innerWidth < 960;
  let printing = false;

  const palette = () => COLOURS[!printing && darkness.matches ? "dark" : "light"];
  const colour = (role) => (role === "axis" ? palette().nominal : palette()[role]);
  const faded = (hex, alpha) => {
    const n = parseInt(hex.slice(1), 16);
    return `rgba(${n >> 16},${(n >> 8) & 255},${n & 255},${alpha})`;
  };
  // Ticks of a logarithmic axis: decades where there are three or more of them, else numbers in between too.
  function logTicks(panel, letter, range) {
    const values = panel.traces.flatMap((t) => (t.band ? [...t.y, ...t.upper] : t[letter] || [])).filter((v) => v > 0);
    if (!range && !values.length) return { minorloglabels: "none" };
    const [low, high] = range || [Math.log10(values.reduce((a, b) => Math.min(a, b))), Math.log10(values.reduce((a, b) => Math.max(a, b)))];
    const decades = Math.abs(high - low);
    if (decades >= 3) return { minorloglabels: "none" };
    const digits = decades > 0.8 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
    const vals = [];
    for (let k = Math.floor(low) - 1; k <= Math.ceil(high); k++) vals.push(...digits.map((d) => Number(`${d}e${k}`)));
    return { tickvals: vals, ticktext: vals.map(String) };
  }
  const axis = (letter, k) => (k === 0 ? letter : letter + (k + 1));

  // Intervals are closed outlines, one for each stretch without a gap.
  function band(trace, k) {
    const result = [];
    let start = 0;
    for (let i = 0; i <= trace.x.length; i++) {
      if (i < trace.x.length && trace.x[i] !== null && trace.y[i] !== null) continue;
      if (i > start) {
        const x = trace.x.slice(start, i);
        result.push({
          type: "scatter", mode: "lines", line: { width: 0 }, fill: "toself", hoverinfo: "skip",
          fillcolor: faded(colour(trace.role), COLOURS.band), xaxis: axis("x", k), yaxis: axis("y", k),
          x: x.concat(x.slice().reverse()), y: trace.y.slice(start, i).concat(trace.upper.slice(start, i).reverse()),
        });
      }
      start = i + 1;
    }
    return result;
  }

  function curve(trace, k) {
    const tone = colour(trace.role);
    const result = {
      type: "scatter", mode: trace.mode || "lines", name: trace.name, x: trace.x, y: trace.y,
      line: { color: tone, width: trace.wide ? 2.4 : WIDTHS[trace.role], dash: trace.role === "nominal" ? "5px,3px" : "solid" },
      marker: { color: tone, size: trace.size || 4 }, opacity: trace.faint ? 0.5 : 1.0,
      xaxis: axis("x", k), yaxis: axis("y", k), hovertemplate: "%{y:.4~g}",
    };
    if (trace.mode === "stems") {
      result.mode = "lines";
      result.x = trace.x.flatMap((x) => [x, x, null]);
      result.y = trace.y.flatMap((y) => [0, y, null]);
      result.line.width = 2;
    }
    if (trace.mode === "lines+markers") result.line.width = 1.8;
    return result;
  }

  function levels(panel, k) {
    return panel.traces.filter((t) => "level" in t || "vertical" in t).map((t) => ({
      type: "line", layer: "above", line: { color: colour(t.role), width: WIDTHS[t.role] },
      ...("level" in t
        ? { xref: `${axis("x", k)} domain`, x0: 0, x1: 1, yref: axis("y", k), y0: t.level, y1: t.level }
        : { yref: `${axis("y", k)} domain`, y0: 0, y1: 1, xref: axis("x", k), x0: t.vertical, x1: t.vertical }),
    }));
  }

  function heat(place, k, side) {
    const { panel } = place;
    const names = panel.heat.names;
    return [{
      type: "heatmap", z: panel.heat.values, x: names, y: names, zmin: -1, zmax: 1, xgap: 0, ygap: 0,
      colorscale: [[0, colour("residual")], [0.5, palette().paper], [1, colour("predicted")]],
      colorbar: { thickness: 8, len: 0.6, x: place.bar, xanchor: "left", outlinewidth: 0, tickvals: [-1, 0, 1], tickfont: { color: palette().text, size: 10 } },
      hovertemplate: "%{y}, %{x}: %{z:.2f}<extra></extra>", xaxis: axis("x", k), yaxis: axis("y", k),
      showscale: side > 420,
    }];
  }

  // The lines of a label that may be this wide; names are not divided.
  function wrapped(label, width) {
    const lines = [""];
    for (const word of label.split(" ")) {
      if (7 * (lines.at(-1).length + word.length) > width && lines.at(-1)) lines.push("");
      lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
    }
    return lines;
  }

  // Where panels stand, in pixels from the top; columns stack where the page is narrow.
  function arrange(figure, block, index, width, same) {
    const narrow = width < NARROW && block.panels.some((row) => row.length > 1);
    const heights = (same && block.same_heights) || block.heights;
    const single = figure.across > 1;
    const last = index === figure.blocks.length - 1;
    const margin = { left: 54, right: 10 };
    const places = [];
    let top = 0;
    block.panels.forEach((row, r) => {
      const stacks = narrow ? row.map((panel) => [panel]) : [row];
      stacks.forEach((line, s) => {
        const first = r === 0 && s === 0;
        const headed = line.some((p) => p.corner || (p.name && (index === 0 || narrow))) || (first && block.label);
        const gap = 58;
        const wide = (width - margin.left - margin.right - gap * (line.length - 1)) / line.length;
        const names = line.map((p, c) => (first && c === 0 ? block.label : "") + (index === 0 || narrow ? p.name || "" : ""));
        const full = (label, p) => label && p.corner && 7 * label.length + 5.8 * p.corner.length > wide - 12;
        const crowded = line.some((p, c) => full(names[c], p)) || (single && figure.blocks.some((b) => full(b.label, b.panels[0][0])));
        const lines = first ? wrapped(block.label, wide) : [];
        const beneath = first && block.label && names[0].length > block.label.length && 7 * names[0].length > wide;
        top += (headed ? (crowded ? 35 : 20) : 12) + 15 * (Math.max(0, lines.length - 1) + Boolean(beneath));
        const high = (panel) => (panel.heat ? Math.min(heights[r], width - 60) : heights[r]);
        const labels = line.map((p) => p.x_title && (last || single || narrow || printing || !shared(figure, r, row.indexOf(p))));
        line.forEach((panel, c) => {
          const left = margin.left + c * (wide + gap);
          const column = row.indexOf(panel);
          places.push({
            panel, row: r, column, left, width: wide, top, height: high(panel), crowded, labels: labels[c],
            title: labels[c] && (last || single || !shared(figure, r, column)),
            label: first && c === 0 ? lines : [], beneath: beneath && c === 0, name: index === 0 || narrow ? panel.name : "",
          });
        });
        top += Math.max(...line.map(high));
        if (labels.some(Boolean)) top += places.slice(-line.length).some((p) => p.title) ? 36 : 18;
      });
    });
    return { places, height: top + 6 };
  }

  // Whether all blocks have the same x axis at a place.
  function shared(figure, row, column) {
    const ranges = figure.blocks.map((b) => JSON.stringify(b.panels[row]?.[column]?.x_range));
    return ranges.every((range) => range !== undefined && range === ranges[0]);
  }

  function words(place, width, height) {
    const common = { xref: "paper", yref: "paper", showarrow: false, yanchor: "bottom" };
    const y = 1 - (place.top - 1) / height;
    const result = [];
    const left = [place.label.length && `<b>${place.label.map(escaped).join("<br>")}</b>`, place.name && escaped(place.name)].filter(Boolean).join(place.beneath ? "<br>" : "  ");
    if (left) {
      const above = y + (place.crowded ? 15 / height : 0);
      result.push({ ...common, x: place.left / width, xanchor: "left", align: "left", y: above, text: left, font: { size: 12, color: palette().text } });
    }
    if (place.panel.corner) {
      const x = (place.left + place.width) / width;
      result.push({ ...common, x, xanchor: "right", y, text: escaped(place.panel.corner), font: { size: 10.5, color: palette().quiet } });
    }
    return result;
  }

  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function layoutOf(figure, arranged, width, same) {
    const { places, height } = arranged;
    const p = palette();
    const layout = {
      width, height, margin: { l: 0, r: 0, t: 0, b: 0, pad: 0 }, autosize: false, showlegend: false,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: figure.held_out ? p.validation : "rgba(0,0,0,0)",
      font: { family: FONT, size: 11, color: p.text }, hovermode: "x unified", dragmode: coarse ? false : "zoom",
      hoverlabel: { bgcolor: p.paper, bordercolor: p.faint, font: { size: 11, color: p.text } },
      shapes: [], annotations: [],
    };
    places.forEach((place, k) => {
      const { panel } = place;
      const common = { showgrid: true, gridcolor: p.faint, gridwidth: 1, zeroline: false, linecolor: p.text, linewidth: 0.6, showline: true, ticks: "outside", ticklen: 3, tickcolor: p.text, tickfont: { size: 10, color: p.text }, automargin: false };
      const range = (same && panel.same_range) || panel.y_range;
      layout[axis("xaxis", k)] = {
        ...common, domain: [place.left / width, (place.left + place.width) / width], anchor: axis("y", k),
        range: panel.x_range, type: panel.log?.includes("x") ? "log" : "linear", showticklabels: Boolean(place.labels),
        title: place.title ? { text: panel.x_title, standoff: 4, font: { size: 11, color: p.text } } : undefined,
        nticks: Math.max(place.width < 150 ? 4 : 6, Math.round(place.width / 70)), fixedrange: coarse, exponentformat: "power",
        ...(panel.log?.includes("x") ? logTicks(panel, "x", panel.x_range) : {}),
      };
      const k0 = places.findIndex((other) => other.column === place.column && JSON.stringify(other.panel.x_range) === JSON.stringify(panel.x_range));
      if (panel.x_range && k0 < k) layout[axis("xaxis", k)].matches = axis("x", k0);
      layout[axis("yaxis", k)] = {
        ...common, domain: [1 - (place.top + place.height) / height, 1 - place.top / height], anchor: axis("x", k), range,
        type: panel.log?.includes("y") ? "log" : "linear", fixedrange: true, nticks: Math.max(place.height < 60 ? 3 : 4, Math.round(place.height / 24)),
        title: panel.y_title ? { text: panel.y_title, standoff: 2, font: { size: 10.5, color: p.quiet } } : undefined,
        exponentformat: "power", ...(panel.log?.includes("y") ? logTicks(panel, "y", range) : {}),
      };
      layout.shapes.push(...levels(panel, k));
      layout.annotations.push(...words(place, width, height));
      if (panel.heat) place.bar = square(layout, k, place, width, height, panel.heat.names.length);
    });
    return layout;
  }

  function square(layout, k, place, width, height, count) {
    const x = layout[axis("xaxis", k)];
    const y = layout[axis("yaxis", k)];
    const side = Math.min(width - 110, height - 60);
    x.domain = [60 / width, (60 + side) / width];
    y.domain = [1 - (4 + side) / height, 1 - 4 / height];
    const every = Math.ceil((count * 11) / side);
    const names = place.panel.heat.names.filter((_, i) => i % every === 0);
    for (const a of [x, y]) {
      Object.assign(a, { showgrid: false, showline: false, ticks: "", tickvals: names, ticktext: names, tickfont: { size: 9, color: palette().text }, showticklabels: true, fixedrange: true, type: "category" });
      delete a.range;
    }
    x.tickangle = -90;
    y.autorange = "reversed";
    layout.hovermode = "closest";
    return (60 + side + 14) / width;
  }

  // One figure of the page.
  class Drawing {
    constructor(element) {
      this.element = element;
      this.figure = FIGURES[element.dataset.figure];
      this.plots = [...element.querySelectorAll(".plot")];
      this.drawn = new Set();
      this.places = [];
      this.same = false;
      this.syncing = false;
      this.reserve();
      const button = element.querySelector("button.scale");
      button?.addEventListener("click", () => {
        this.same = !this.same;
        button.setAttribute("aria-pressed", String(this.same));
        this.redraw();
      });
    }

    width() {
      if (!printing) return Math.floor(this.plots[0].getBoundingClientRect().width);
      const across = this.figure.across;
      return Math.floor((PRINT_WIDTH - 16 * (across - 1)) / across);
    }

    // Room for what is not drawn yet, so that the page does not jump.
    reserve() {
      const width = this.width();
      this.plots.forEach((plot, i) => {
        plot.style.height = `${arrange(this.figure, this.figure.blocks[i], i, width, this.same).height}px`;
      });
    }

    draw(i) {
      const width = this.width();
      if (width < 50) return;
      const arranged = arrange(this.figure, this.figure.blocks[i], i, width, this.same);
      const layout = layoutOf(this.figure, arranged, width, this.same);
      const data = arranged.places.flatMap((place, k) =>
        place.panel.heat
          ? heat(place, k, width)
          : place.panel.traces.flatMap((t) => (t.band ? band(t, k) : t.x ? [curve(t, k)] : [])));
      this.places[i] = arranged.places;
      const plot = this.plots[i];
      plot.style.height = `${arranged.height}px`;
      Plotly.react(plot, data, layout, { displayModeBar: false, responsive: false, doubleClick: "reset", staticPlot: false });
      if (!this.drawn.has(i)) {
        this.drawn.add(i);
        plot.on("plotly_relayout", (change) => this.follow(i, change));
      }
    }

    redraw() {
      this.reserve();
      for (const i of this.drawn) this.draw(i);
    }

    drawAll() {
      this.plots.forEach((_, i) => this.draw(i));
    }

    // Blocks with the same x axis zoom together.
    follow(i, change) {
      if (this.syncing || !Object.keys(change).some((key) => key.startsWith("xaxis"))) return;
      const wanted = {};
      this.places[i].forEach((place, k) => {
        const name = axis("xaxis", k);
        if (shared(this.figure, place.row, place.column)) wanted[`${name}.range`] = [...this.plots[i].layout[name].range];
      });
      this.syncing = true;
      const others = [...this.drawn].filter((k) => k !== i).map((k) => Plotly.relayout(this.plots[k], { ...wanted }));
      Promise.all(others).finally(() => { this.syncing = false; });
    }
  }

  const drawings = [...document.querySelectorAll("figure.chart")].map((element) => new Drawing(element));

  function later() {
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        watcher.unobserve(entry.target);
        const drawing = drawings.find((d) => d.plots.includes(entry.target));
        drawing.draw(drawing.plots.indexOf(entry.target));
      }
    }, { rootMargin: "500px 0px" });
    drawings.forEach((d) => d.plots.forEach((plot) => watcher.observe(plot)));
  }

  let width = document.documentElement.clientWidth;
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (printing || document.documentElement.clientWidth === width) return;
      width = document.documentElement.clientWidth;
      drawings.forEach((d) => d.redraw());
    }, 120);
  });
  darkness.addEventListener("change", () => drawings.forEach((d) => d.redraw()));
  // What was folded had no width.
  addEventListener("toggle", (event) => drawings.filter((d) => event.target.contains(d.element)).forEach((d) => d.redraw()), true);

  let closed = [];
  function print(on) {
    if (on === printing) return;
    printing = on;
    if (on) closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((details) => { details.open = on; });
    document.documentElement.classList.toggle("printing", on);
    drawings.forEach((d) => (on ? d.drawAll() : d.redraw()));
  }
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  later();
  return { palette, drawings, print };
})();
