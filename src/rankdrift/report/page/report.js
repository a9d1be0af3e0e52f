
"use strict";
// Draws the curves anew when a switch is turned, and tells the numbers of the rank pointed at.
// curve_svg.py draws the first picture, by the same rules.
(() => {
  const find = (selector) => document.querySelector(selector);
  const data = JSON.parse(find("#data").textContent);

  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  if (data.series.length) explore(data);

  async function copy(button) {
    const code = button.parentNode.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {  // pages opened as files may not; then mark it, ready for Ctrl-C
      getSelection().selectAllChildren(code);
      button.textContent = "Press Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  function explore({ series, rank, axes }) {
    const [LEFT, TOP, RIGHT, BOTTOM] = [54, 22, 614, 338];
    const chart = find("#chart");
    const boxes = [...document.querySelectorAll("#lines input")];
    const switches = [...document.querySelectorAll("#axes input")];
    const withTruth = series.some((s) => s.truth.length);
    let x, y, shown, ranks;

    // -- axes ---------------------------------------------------------------------------------

    function axis(first, last, start, end, log) {
      const share = log
        ? (v) => Math.log(v / first) / Math.log(last / first)
        : (v) => (v - first) / (last - first);
      const place = (v) => start + share(Math.min(Math.max(v, first), last)) * (end - start);
      [place.first, place.last] = [first, last];
      place.ticks = () => ticks(first, last, log).filter((t) => first <= t && t <= last);
      return place;
    }

    function ticks(first, last, log) {
      if (log) {
        const powers = [];
        const end = Math.ceil(Math.log10(last));
        for (let k = Math.floor(Math.log10(first)); k <= end; k++) powers.push(k);
        return powers.flatMap((k) => [1, 2, 5].map((m) => Number(`${m}e${k}`)));
      }
      const size = last - first;
      const power = 10 ** Math.floor(Math.log10(size));
      const step = [0.1, 0.2, 0.5, 1, 2].map((m) => m * power).find((s) => size / s <= 6);
      const start = Math.ceil(first / step);
      return Array.from({ length: 8 }, (_, i) => (start + i) * step);
    }

    const known = (values) => values.filter((v) => v !== null);

    /** The first value that is not cut off from the rest by a step of more than `far`. */
    function inner(values, far) {
      const few = Math.max(Math.floor(values.length / 20), 1);
      for (let i = Math.min(few, values.length - 1); i > 0; i--) {
        const [a, b] = [values[i - 1], values[i]];
        if (Math.max(a, b) > far * Math.min(a, b)) return b;
      }
      return values[0];
    }

    /** How far the axis must reach for a line. */
    function ends(s) {
      const kept = s.p.filter((_, i) => i === 0 || s.rank[i] === s.reference);
      const values = [...kept, ...known(s.truth)];
      const rising = [...s.p].sort((a, b) => a - b);
      return [Math.min(inner(rising, 10), ...values),
        Math.max(inner(rising.reverse(), 3), ...values)];
    }

    function measure() {
      const [logRank, logP] = { linear: [0, 0], log: [1, 0], loglog: [1, 1] }[axes];
      shown = series.filter((s) => boxes.some((b) => b.checked && +b.value === s.number));
      ranks = [...new Set(shown.flatMap((s) => s.rank))].sort((a, b) => a - b);
      const reach = shown.length ? shown.map(ends) : [[1, 1]];
      const least = Math.min(...reach.map(([a]) => a));
      const most = Math.min(Math.max(...reach.map(([, b]) => b)), 5 * reach[0][1]);
      const drawn = (values) => shown.flatMap(
        (s) => known(s[values].filter((_, i) => least <= s.p[i] && s.p[i] <= most)));
      const low = Math.min(...drawn("low"), most);
      const high = Math.max(...drawn("high"), least);
      const top = Math.max(most, Math.min(high, 1.5 * most)) * 1.02;
      const bottom = logP ? Math.min(least, Math.max(low, least / 3)) : 0;
      const first = ranks[0] ?? 1;
      x = axis(first, Math.max(ranks.at(-1) ?? 2, first + 1), LEFT, RIGHT, logRank);
      y = axis(bottom, top, BOTTOM, TOP, logP);
    }

    // -- lines --------------------------------------------------------------------------------

    /** Places that follow each other for as long as `same` says that two of them do. */
    function pieces(places, same) {
      const found = [];
      for (const i of places) {
        if (found.length && same(found.at(-1).at(-1), i)) found.at(-1).push(i);
        else found.push([i]);
      }
      return found;
    }

    const path = (points) => points.length === 1
      ? `M${round(points[0][0])} ${round(points[0][1])}h0`
      : "M" + points.map(([a, b]) => `${round(a)} ${round(b)}`).join("L");
    const round = (v) => Math.round(v * 10) / 10;

    function paths(s) {
      const d = { band: "", truth: "", thin: "", line: "", off: "" };
      const thin = new Set(s.thin);
      const point = (i, values) => [x(s.rank[i]), y(values[i])];
      for (const run of pieces(s.rank.keys(), (a, b) => s.rank[b] === s.rank[a] + 1)) {
        const steps = run.length === 1 ? [[run[0]]] : run.slice(1).map((b) => [b - 1, b]);
        const kind = (step) => step.some((i) => thin.has(i)) ? "thin" : "line";
        for (const part of pieces(steps.keys(), (a, b) => kind(steps[a]) === kind(steps[b]))) {
          const places = [...new Set(part.flatMap((k) => steps[k]))];
          d[kind(steps[part[0]])] += path(places.map((i) => point(i, s.p)));
        }
        const follow = (values) =>
          pieces(run.filter((i) => (values[i] ?? null) !== null), (a, b) => b === a + 1);
        for (const part of follow(s.high)) {
          const wide = part.length === 1 ? [-1.5, 1.5] : [0];
          const side = (values) => part.flatMap((i) => wide.map(
            (w) => [x(s.rank[i]) + w, y(values[i])]));
          d.band += path([...side(s.high), ...side(s.low).reverse()]) + "Z";
        }
        for (const part of follow(s.truth)) d.truth += path(part.map((i) => point(i, s.truth)));
      }
      for (const i of s.rank.keys()) {
        if (!off(s.p[i])) continue;
        d.off += `M${round(x(s.rank[i]) - 5)} ${round(y(s.p[i]))}h10l-5 ${s.p[i] > y.last ? -8 : 8}z`;
      }
      return d;
    }

    const off = (p) => p < y.first || p > y.last;

    function offWords() {
      const named = shown.flatMap((s) => [...s.rank.keys()].filter((i) => off(s.p[i]))
        .map((i) => `${s.name}, rank ${s.rank[i]} (${figure(s.p[i])})`));
      return named.slice(0, 3).concat(named.length > 3 ? [`${named.length - 3} more`] : []).join("; ");
    }

    function make(name, attributes, text) {
      const element = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      if (text !== undefined) element.textContent = text;
      return element;
    }

    function draw() {
      measure();
      const grids = y.ticks().flatMap((t) => {
        const at = round(y(t));
        const text = String(Number(t.toPrecision(6)));
        return [make("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: at, y2: at }),
          make("text", { x: LEFT - 7, y: at + 4, "text-anchor": "end" }, text)];
      });
      let last = -Infinity;
      for (const t of x.ticks().filter(Number.isInteger)) {
        const place = { x: round(x(t)), y: BOTTOM + 20, "text-anchor": "middle" };
        if (place.x - last < 34) continue;
        last = place.x;
        grids.push(make("text", place, t.toLocaleString("en")));
      }
      chart.querySelector(".grids").replaceChildren(...grids);
      chart.querySelector(".lines").replaceChildren(...shown.map((s) => {
        const group = make("g", { class: s.look, "data-number": s.number });
        for (const [kind, d] of Object.entries(paths(s))) {
          const dashed = kind === "line" || kind === "thin" ? ` ${s.look}` : "";
          group.append(make("path", { class: kind + dashed, d }));
        }
        return group;
      }));
      const beyond = offWords();
      find("#off").hidden = !beyond;
      find("#off b").textContent = beyond;
      point(rank);
    }

    // -- numbers of a rank --------------------------------------------------------------------

    function figure(v) {
      if (v > 1000000) return "over 1,000,000";
      if (v < 0.000001) return "under 0.000001";
      const digits = v >= 10 ? 1 : v >= 1.0005 ? 2 : v >= 0.1 ? 3 : v >= 0.001 ? 4 : 6;
      return v.toLocaleString("en",
        { minimumFractionDigits: digits, maximumFractionDigits: digits });
    }

    function cells(s) {
      const i = s.rank.indexOf(rank);
      if (i < 0) return ["none"];
      const wide = s.high[i] !== null && s.high[i] !== s.low[i];
      const told = [figure(s.p[i]), wide ? `${figure(s.low[i])}–${figure(s.high[i])}` : "",
        figure(1 / s.p[i])];
      const truth = s.truth[i] ?? null;
      return withTruth ? [...told, truth === null ? "" : figure(truth)] : told;
    }

    /** What a click is worth, with its interval; headline.py says the same. */
    function worth(s) {
      const i = s.rank.indexOf(rank);
      const [low, high] = [s.low[i], s.high[i]];
      if (rank === s.reference) return `Rank ${rank} is the unit of all others.`;
      if (low === null || !low || low === high) return `At rank ${rank} no interval is known.`;
      const between = `${figure(1 / high)}–${figure(1 / low)}`;
      const unit = `clicks at rank ${s.reference}`;
      if (high > data.widest * low || s.thin.includes(i) || s.thin.includes(s.rank.indexOf(s.reference))) {
        return `What a click at rank ${rank} is worth cannot be told: ${between} ${unit}.`;
      }
      return `A click at rank ${rank} is worth ${figure(1 / s.p[i])} (${between}) ${unit}.`;
    }

    function point(wanted) {
      if (!ranks.length) {
        chart.querySelector(".marks").replaceChildren();
        return;
      }
      rank = ranks.reduce((a, b) => Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a);
      const at = round(x(rank));
      const dots = shown.filter((s) => s.rank.includes(rank)).map((s) => make("circle",
        { class: s.look, cx: at, cy: round(y(s.p[s.rank.indexOf(rank)])), r: 4.5 }));
      const cross = make("line", { class: "cross", x1: at, x2: at, y1: TOP, y2: BOTTOM });
      chart.querySelector(".marks").replaceChildren(cross, ...dots);
      find("#at").textContent = rank;
      find("#numbers tbody").replaceChildren(...shown.map((s) => {
        const row = document.createElement("tr");
        row.insertCell().textContent = s.name;
        row.cells[0].className = s.look;
        cells(s).forEach((text, column) => {
          const cell = row.insertCell();
          cell.className = column === 2 ? "n far" : "n";
          cell.textContent = text;
        });
        return row;
      }));
      const said = worth(shown.find((s) => s.rank.includes(rank)));
      find("#said").textContent = said;
      chart.setAttribute("aria-valuemin", ranks[0]);
      chart.setAttribute("aria-valuemax", ranks.at(-1));
      chart.setAttribute("aria-valuenow", rank);
      chart.setAttribute("aria-valuetext",
        shown.map((s) => `${s.name}: ${cells(s)[0]}`).join("; ") + `. ${said}`);
    }

    // -- hands --------------------------------------------------------------------------------

    function nearest(event) {
      const box = chart.getBoundingClientRect();
      const at = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
      point(ranks.reduce((a, b) => Math.abs(x(b) - at) < Math.abs(x(a) - at) ? b : a, ranks[0]));
    }

    function step(event) {
      const i = ranks.indexOf(rank);
      const to = { ArrowRight: i + 1, ArrowUp: i + 1, ArrowLeft: i - 1, ArrowDown: i - 1,
        PageUp: i + 10, PageDown: i - 10, Home: 0, End: ranks.length - 1 }[event.key];
      if (to === undefined || !ranks.length) return;
      event.preventDefault();
      point(ranks[Math.min(Math.max(to, 0), ranks.length - 1)]);
    }

    chart.setAttribute("role", "slider");
    chart.setAttribute("tabindex", "0");
    chart.setAttribute("aria-label", "Rank; arrow keys read the propensities of each");
    chart.addEventListener("pointermove", nearest);
    chart.addEventListener("pointerdown", nearest);
    chart.addEventListener("keydown", step);
    for (const box of boxes) {
      box.hidden = false;
      box.addEventListener("change", draw);
    }
    for (const choice of switches) {
      choice.addEventListener("change", () => {
        axes = choice.value;
        draw();
      });
    }
    find("#lines").classList.add("live");
    find("#axes").hidden = find("#how").hidden = false;
    measure();
    point(rank);
  }
})();
