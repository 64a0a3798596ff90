"use strict";
// The fleet's numbers: packed arrays made readable, and numbers and dates as people write them.
const Fleet = (() => {
  const data = JSON.parse(document.getElementById("armid-fleet").textContent);
  const { arms, watched, parameters, dates, ordinals } = data;
  const MISSING = -32768;
  const count = arms.name.length;
  const points = dates.length;
  const unpacked = new Map();

  function array(name, Kind) {
    if (!unpacked.has(name)) {
      const raw = atob(data.packed[name]);
      const bytes = new Uint8Array(raw.length);
      for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
      unpacked.set(name, new Kind(bytes.buffer));
      delete data.packed[name];
    }
    return unpacked.get(name);
  }

  const index = new Map(arms.name.map((name, a) => [name, a]));
  const watchedIndex = new Map(watched.map((one, k) => [one.name, k]));
  const number = (value, scale) => (value === MISSING ? NaN : value * scale);
  const factor = (k) => (watched[k].relative ? 100 : 1); // fractions are shown as percent
  const unit = (k) => (watched[k].relative ? "%" : pretty(watched[k].unit));
  const at = (a, d, k) => (a * points + d) * watched.length + k;
  const deviation = (a, d, k) => number(array("deviation", Int16Array)[at(a, d, k)], watched[k].step * factor(k));
  function sigma(a, d, k) {
    const level = array("sigma", Uint8Array)[at(a, d, k)];
    return level ? watched[k].sigma_low * watched[k].sigma_ratio ** (level - 1) * factor(k) : NaN;
  }
  const temperature = (a, d) => number(array("temperature", Int16Array)[a * points + d], 0.1);
  const day = (a, d) => array("day", Uint8Array)[a * points + d];
  const odd = (a, p) => number(array("parameter_deviation", Int16Array)[a * parameters.length + p], 0.01);
  const own = (a, p) => array("own", Uint8Array)[a * parameters.length + p] / 255;
  const value = (a, p) => array("values", Float32Array)[a * parameters.length + p];
  const valueSigma = (a, p) => array("values_sigma", Float32Array)[a * parameters.length + p];
  // Points of one arm's course: [position, deviation, error] for each day that is known.
  function series(a, k) {
    const result = [];
    for (let d = 0; d < points; d++) {
      const y = deviation(a, d, k);
      if (!Number.isNaN(y)) result.push([ordinals[d], y, sigma(a, d, k), d]);
    }
    return result;
  }

  // Quantiles of all arms' deviations, as they are drawn; where an arm's history is; and going there.
  const quantiles = watched.map((one, k) => one.quantiles.map((row) => row.map((v) => (v === null ? null : v * factor(k)))));
  const address = (a) => `#arm=${encodeURIComponent(arms.name[a])}`;
  const go = (a) => { location.hash = address(a); };

  // Reasons to look, by arm; and arms that have changed, by watched quantity.
  const reasons = new Map();
  const changed = watched.map(() => []);
  for (const one of data.watch) {
    if (!reasons.has(one.robot)) reasons.set(one.robot, []);
    reasons.get(one.robot).push(one);
    const k = watchedIndex.get(one.parameter);
    const a = index.get(one.robot);
    if (k !== undefined && one.since && a !== undefined && !changed[k].includes(a)) changed[k].push(a);
  }

  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const first = points ? Date.parse(`${dates[0]}T00:00:00Z`) : 0;
  const ordinal = (date) => Math.round((Date.parse(`${date}T00:00:00Z`) - first) / 86400000);
  // The time axis: days that lie years from the rest are not on it.
  const on = (d) => data.on_axis[d];
  const known = ordinals.filter((_, d) => on(d));
  const axis = known.length ? [known[0], known.at(-1)] : [0, 1];
  // The axis of one arm: that of the fleet, but its own where all its days are off that.
  function axisOf(a) {
    const days = ordinals.map((_, d) => d).filter((d) => day(a, d));
    return !days.length || days.some(on) ? axis : [ordinals[days[0]], ordinals[days.at(-1)]];
  }
  const DAY = 86400000;
  const calendar = (days) => new Date(first + DAY * days);
  // Position of the first of a month; months count on beyond December.
  function monthStart(year, month) {
    const date = new Date(0);
    date.setUTCFullYear(year, month, 1);
    return Math.round((date.getTime() - first) / DAY);
  }
  // A day in words: "day" without the year, "month" without the day, "year" alone, or all of it.
  function dayName(days, kind = "day") {
    const date = calendar(days);
    const [day, month, year] = [date.getUTCDate(), MONTHS[date.getUTCMonth()], String(date.getUTCFullYear()).padStart(4, "0")];
    return { day: `${day} ${month}`, month: `${month} ${year}`, year, full: `${day} ${month} ${year}` }[kind];
  }

  const signed = (text) => text.replace("-", "\u2212");
  function short(x, digits = 3) {
    if (x === null || x === undefined || !Number.isFinite(x)) return "–";
    if (x === 0) return "0";
    const exponent = Math.floor(Math.log10(Math.abs(Number(x.toPrecision(digits)))));
    if (exponent <= -4 || exponent >= 6) {
      const [mantissa, power] = x.toExponential(digits - 1).split("e");
      return signed(`${mantissa} × 10`) + [...String(Number(power))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");
    }
    return signed(Number(x.toPrecision(digits)).toFixed(Math.max(0, digits - 1 - exponent)));
  }
  // A value to the digits that its interval leaves: 1.23 ± 0.04.
  function plusMinus(x, half) {
    if (!Number.isFinite(x)) return "–";
    if (!(half > 0) || !Number.isFinite(half)) return short(x);
    const place = Math.floor(Math.log10(half));
    const decimals = (half / 10 ** place < 2 ? 2 : 1) - 1 - place;
    const size = Math.floor(Math.log10(Math.max(Math.abs(x), half)));
    if (size > -4 && size < 6 && decimals <= 5) return signed(`${x.toFixed(Math.max(0, decimals))} ± ${half.toFixed(Math.max(0, decimals))}`);
    return `${short(x)} ± ${short(half, 2)}`;
  }
  const pretty = (unit) => unit.replace(/\^2/g, "²").replace(/\^3/g, "³");
  const plus = (x, digits = 2) => (x > 0 ? "+" : "") + short(x, digits);

  return {
    data, arms, watched, parameters, dates, ordinals, count, points, index, watchedIndex, reasons, changed, factor, unit, quantiles, address, go,
    deviation, sigma, temperature, day, odd, own, value, valueSigma, series, ordinal, dayName, on, axis, axisOf, calendar, monthStart, short, plus, plusMinus, pretty,
  };
})();
