"use strict";
// Plays the motion: a stick figure projected onto a canvas, turned by dragging.
const Scene = (() => {
  const data = JSON.parse(document.getElementById("armid-scene").textContent);
  const home = document.querySelector(".replay");
  if (!data || !home) return null;
  const canvas = home.querySelector("canvas");
  const context = canvas.getContext("2d");
  const scrubber = home.querySelector(".scrubber");
  const button = home.querySelector(".play");
  const clock = home.querySelector(".clock");
  const postures = [...home.querySelectorAll(".joint b")];
  const end = data.time[data.time.length - 1];
  const camera = { yaw: -0.9, pitch: 0.42 };
  const state = { time: 0, playing: false };

  // Axes of the picture: `up` points upward, whatever way the arm is mounted.
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const unit = (a) => a.map((v) => v / Math.hypot(...a));
  const up = data.up;
  const side = unit(Math.abs(up[0]) < 0.9 ? cross(up, cross([1, 0, 0], up)) : cross(up, cross([0, 1, 0], up)));
  const front = cross(up, side);
  const turned = (p) => [dot(p, side), dot(p, front), dot(p, up)];
  const frames = data.points.map((frame) => frame.map(turned));
  const box = data.box && corners(data.box).map(turned);
  const path = frames.map((frame) => frame[data.tool]);

  const shown = frames.flat().concat(box || []);
  const low = [0, 1, 2].map((k) => Math.min(...shown.map((p) => p[k])));
  const high = [0, 1, 2].map((k) => Math.max(...shown.map((p) => p[k])));
  const floor = Math.min(0, low[2]);
  low[2] = floor;
  const middle = low.map((v, k) => 0.5 * (v + high[k]));
  const radius = 0.5 * Math.hypot(...high.map((v, k) => v - low[k])) || 1;

  function corners([a, b]) {
    return [0, 1, 2, 3, 4, 5, 6, 7].map((i) => [0, 1, 2].map((k) => ((i >> k) & 1 ? b : a)[k]));
  }

  function projection(width, height) {
    const [cy, sy, cp, sp] = [Math.cos(camera.yaw), Math.sin(camera.yaw), Math.cos(camera.pitch), Math.sin(camera.pitch)];
    const scale = (0.64 * Math.min(width * 1.25, height)) / radius;
    const distance = 5 * radius;
    return (p) => {
      const [x, y, z] = p.map((v, k) => v - middle[k]);
      const right = cy * x + sy * y;
      const deep = -sy * x + cy * y;
      const lifted = cp * z + sp * deep; // seen from above: what is far away stands higher
      const depth = cp * deep - sp * z;
      const shrink = distance / (distance + depth);
      return [width / 2 + scale * shrink * right, height / 2 - scale * shrink * lifted, depth, shrink];
    };
  }

  // The frame at a time, between two that are stored.
  function at(time, list) {
    const position = (time / end) * (list.length - 1);
    const i = Math.min(Math.floor(position), list.length - 2);
    const part = position - i;
    const mix = (a, b) => (Array.isArray(a) ? a.map((v, k) => mix(v, b[k])) : a + part * (b - a));
    return mix(list[i], list[i + 1]);
  }

  function stroke(points, colour, width, cap = "round") {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineCap = cap;
    context.lineJoin = "round";
    context.beginPath();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
  }

  function ground(project, colour) {
    const reach = Math.max(high[0] - low[0], high[1] - low[1]) * 0.6 + 0.1;
    const raw = reach / 4;
    const step = [1, 2, 5].map((m) => m * 10 ** Math.floor(Math.log10(raw))).filter((s) => s <= raw).pop();
    const [x0, y0] = [Math.round(middle[0] / step) * step, Math.round(middle[1] / step) * step];
    const count = Math.ceil(reach / step);
    for (let i = -count; i <= count; i++) {
      stroke([[x0 + i * step, y0 - count * step, floor], [x0 + i * step, y0 + count * step, floor]].map(project), colour, 1);
      stroke([[x0 - count * step, y0 + i * step, floor], [x0 + count * step, y0 + i * step, floor]].map(project), colour, 1);
    }
    return step;
  }

  function draw() {
    const palette = Charts.palette();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!width) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const project = projection(width, height);
    const step = ground(project, palette.faint);
    const now = at(state.time, frames);
    const size = Math.max(5, Math.min(width, height) / 34);
    const shade = now.map((p) => project([p[0], p[1], floor]));
    context.globalAlpha = 0.13;
    for (const [a, b] of data.links) stroke([shade[a], shade[b]], palette.measured, size * 0.9);
    context.globalAlpha = 1;
    if (box) edges().forEach(([a, b]) => stroke([project(box[a]), project(box[b])], palette.limit, 0.7));
    stroke(path.map(project), palette.nominal, 0.8);
    const passed = path.slice(0, 1 + Math.floor((state.time / end) * (path.length - 1)));
    stroke([...passed, now[data.tool]].map(project), palette.predicted, 2);
    arm(now.map(project), palette, size);
    triad(project, palette, step);
    context.fillStyle = palette.quiet;
    context.font = "11px system-ui, sans-serif";
    context.fillText(`grid ${step >= 1 ? `${step} m` : `${Math.round(step * 1000)} mm`}`, 10, height - 10);
  }

  function edges() {
    const result = [];
    for (let i = 0; i < 8; i++) for (const bit of [1, 2, 4]) if (!(i & bit)) result.push([i, i | bit]);
    return result;
  }

  // Links get thinner toward the tool; what is far is drawn first.
  function arm(points, palette, size) {
    const count = Math.max(...data.links.map(([, , link]) => link), 1);
    const pieces = data.links.map(([a, b, link]) => ({ a, b, link, deep: 0.5 * (points[a][2] + points[b][2]) }));
    data.axes.forEach(([a, b], j) => pieces.push({ a, b, joint: j, deep: 0.5 * (points[a][2] + points[b][2]) - 0.01 * radius }));
    pieces.sort((one, other) => other.deep - one.deep);
    for (const piece of pieces) {
      const [p, q] = [points[piece.a], points[piece.b]];
      const taper = 1.15 - 0.6 * ((piece.link ?? piece.joint + 1) / count);
      const near = 0.5 * (p[3] + q[3]);
      if (piece.joint === undefined) {
        stroke([p, q], palette.paper, (size * taper + 3) * near);
        stroke([p, q], palette.text, size * taper * near);
      } else {
        stroke([p, q], palette.paper, (size * taper * 1.7 + 2) * near, "butt");
        stroke([p, q], palette.nominal, size * taper * 1.5 * near, "butt");
      }
    }
    const [x, y] = points[data.tool];
    context.fillStyle = palette.predicted;
    context.beginPath();
    context.arc(x, y, size * 0.42, 0, 2 * Math.PI);
    context.fill();
  }

  // The base frame: x, y, z with their letters.
  function triad(project, palette, step) {
    const origin = project(turned([0, 0, 0]));
    context.font = "11px system-ui, sans-serif";
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]].forEach((direction, k) => {
      const tip = project(turned(direction.map((v) => v * Math.max(step, 0.22 * radius))));
      stroke([origin, tip], palette.quiet, 1.2);
      context.fillStyle = palette.quiet;
      context.fillText("xyz"[k], tip[0] + 3, tip[1] - 3);
    });
  }

  function show(time) {
    state.time = Math.min(Math.max(time, 0), end);
    scrubber.value = String(Math.round((1000 * state.time) / end));
    clock.textContent = `${state.time.toFixed(2)} s`;
    at(state.time, data.q).forEach((value, j) => {
      postures[j].textContent = `${value.toFixed(2).replace("-", "−")} ${data.units[j]}`;
    });
    draw();
  }

  let before = 0;
  function tick(moment) {
    if (!state.playing) return;
    show((state.time + Math.min((moment - before) / 1000, 0.1)) % end);
    before = moment;
    requestAnimationFrame(tick);
  }

  function play(on) {
    state.playing = on;
    button.textContent = on ? "❚❚" : "▶";
    button.setAttribute("aria-label", on ? "pause" : "play");
    if (on) {
      before = performance.now();
      requestAnimationFrame(tick);
    }
  }

  button.addEventListener("click", () => play(!state.playing));
  scrubber.addEventListener("input", () => {
    play(false);
    show((Number(scrubber.value) / 1000) * end);
  });
  let grip = null;
  canvas.addEventListener("pointerdown", (event) => {
    grip = [event.clientX, event.clientY];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!grip) return;
    camera.yaw += 0.008 * (event.clientX - grip[0]);
    camera.pitch = Math.min(1.5, Math.max(-0.2, camera.pitch + 0.006 * (event.clientY - grip[1])));
    grip = [event.clientX, event.clientY];
    draw();
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { grip = null; });
  canvas.tabIndex = 0;
  canvas.addEventListener("keydown", (event) => {
    const turn = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!turn) return;
    event.preventDefault();
    camera.yaw += turn[0];
    camera.pitch = Math.min(1.5, Math.max(-0.2, camera.pitch + turn[1]));
    draw();
  });
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => setTimeout(draw));
  addEventListener("afterprint", draw);
  show(0);
  return { state, camera, show, play };
})();
