"use strict";
// Calibration error and likelihood over temperature, with a line that tells the numbers of all curves.
softtargets.widget("sweep", (box, data) => {
  const { html, svg, scale, ticks, missing, number, percent } = softtargets;
  const order = data.temperatures.map((_, i) => i).sort((a, b) => data.temperatures[a] - data.temperatures[b]);
  const temperatures = order.map((i) => data.temperatures[i]);
  const curves = data.curves.map((curve) => ({ ...curve, ece: order.map((i) => curve.ece[i]), nll: order.map((i) => curve.nll[i]) }));
  const shown = curves.map(() => true);
  const nearest = (value) =>
    temperatures.reduce((best, t, i) => (Math.abs(Math.log(t / value)) < Math.abs(Math.log(temperatures[best] / value)) ? i : best), 0);
  const one = nearest(1);
  let cursor = null;

  const measures = [
    { key: "ece", title: "Expected calibration error", write: (value) => percent(value, 2), tick: (value) => `${softtargets.short(100 * value)} %` },
    { key: "nll", title: "Negative log-likelihood (nats)", write: (value) => number(value, 3), tick: (value) => softtargets.short(value) },
  ];
  const keys = curves.map((curve, c) =>
    softtargets.key(curve.name, curve.colour, (on) => {
      shown[c] = on;
      draw();
    }),
  );
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const panels = html("div", { class: "panels" });
  box.append(html("div", { class: "legend" }, ...keys), panels, readout);
  const bubble = softtargets.bubble(box);
  const frames = measures.map((measure) => {
    const frame = html("div");
    panels.append(html("div", {}, html("h3", {}, measure.title), frame));
    return frame;
  });

  // An error is at most 1, but a small T makes any likelihood huge: what is far above all that matters is cut off.
  function highest(key) {
    const live = curves.filter((_, c) => shown[c]).map((curve) => curve[key].filter((value) => !missing(value)));
    const values = live.flat();
    if (!values.length) return 1;
    const usual = Math.max(...curves.map((curve, c) => (shown[c] ? curve[key][one] ?? 0 : 0)), 1.6 * Math.min(...values));
    const most = Math.max(...values);
    return 1.04 * (key === "nll" ? Math.min(most, 2.2 * usual) : most) || 1;
  }

  let marks = [];
  function point(index, panel) {
    cursor = index;
    for (const { line, x } of marks) {
      line.setAttribute("visibility", index === null ? "hidden" : "visible");
      if (index !== null) line.setAttribute("transform", `translate(${x(temperatures[index])} 0)`);
    }
    if (index === null) {
      bubble.hide();
      readout.textContent = rest();
      return;
    }
    const all = (curve) => measures.map(({ key, write }) => `${key.toUpperCase()} ${write(curve[key][index])}`).join(", ");
    const found = curves.filter((_, c) => shown[c]).map((curve) => [curve.colour, `${curve.name}: ${all(curve)}`]);
    const head = `T = ${number(temperatures[index], 2)}`;
    // At the top: what matters, the least values, is at the bottom.
    bubble.show([head, ...found], marks[panel].line.getBoundingClientRect(), { align: "start" });
    readout.textContent = `${head}. ${found.map((line) => line[1]).join(". ")}.`;
  }

  function rest() {
    const fitted = curves.map((curve, c) => [curve, data.best[c]]).filter(([, best]) => !missing(best));
    return fitted.map(([curve, best]) => `${curve.name}: fitted T = ${number(best, 2)}`).join(", ");
  }

  function draw() {
    marks = [];
    frames.forEach((frame, panel) => {
      const { key, tick, title } = measures[panel];
      const width = Math.floor(frame.clientWidth);
      if (!width) return;
      const margin = { left: 50, right: 14, top: 8, bottom: 40 };
      const height = Math.round(Math.max(230, Math.min(300, width * 0.66)));
      const [right, floor] = [width - margin.right, height - margin.bottom];
      const x = scale([temperatures[0], temperatures[temperatures.length - 1]], [margin.left, right], true);
      const y = scale([0, highest(key)], [floor, margin.top]);
      const picture = svg("svg", {
        viewBox: `0 0 ${width} ${height}`,
        height,
        tabindex: 0,
        role: "img",
        "aria-label": `${title} over temperature; arrow keys move along it`,
      });
      picture.append(svg("rect", { class: "frame", x: margin.left, y: margin.top, width: right - margin.left, height: floor - margin.top, "stroke-opacity": 0.5 }));
      softtargets.axis(picture, "y", ticks(0, highest(key), 4), y, [margin.left, right], margin.left, tick);
      softtargets.axis(picture, "x", powers(width), x, [margin.top, floor], floor, softtargets.short);
      if (temperatures[0] <= 1 && temperatures[temperatures.length - 1] >= 1) {
        picture.append(svg("line", { class: "guide", x1: x(1), x2: x(1), y1: margin.top, y2: floor }));
      }
      picture.append(svg("text", { class: "name", x: (margin.left + right) / 2, y: height - 4, "text-anchor": "middle" }, "temperature"));
      // An inner picture cuts off what leaves its frame.
      const inside = svg("svg", { x: margin.left, y: margin.top, width: right - margin.left, height: floor - margin.top, style: "width:auto;overflow:hidden" });
      const moved = svg("g", { transform: `translate(${-margin.left} ${-margin.top})` });
      inside.append(moved);
      picture.append(inside);
      curves.forEach((curve, c) => {
        if (!shown[c]) return;
        const path = curve[key].map((value, i) => (missing(value) ? null : `${x(temperatures[i])} ${y(value)}`));
        const pieces = path.map((place, i) => (place === null ? "" : (i && path[i - 1] !== null ? "L" : "M") + place));
        moved.append(svg("path", { class: "curve", d: pieces.join(""), stroke: curve.colour, "stroke-width": 2, fill: "none", "stroke-linejoin": "round" }));
        const best = data.best[c];
        if (missing(best)) return;
        const value = between(curve[key], best);
        if (!missing(value)) picture.append(svg("circle", { class: "best halo", cx: x(best), cy: Math.max(margin.top, y(value)), r: 5, fill: curve.colour, "stroke-width": 1.5 }));
      });
      const line = svg("line", { class: "cursor", x1: 0, x2: 0, y1: margin.top, y2: floor, visibility: "hidden" });
      picture.append(line);
      marks.push({ line, x });
      const follow = (event) => {
        const place = (event.clientX - picture.getBoundingClientRect().left - margin.left) / (right - margin.left);
        const ratio = temperatures[temperatures.length - 1] / temperatures[0];
        point(nearest(temperatures[0] * ratio ** Math.max(0, Math.min(1, place))), panel);
      };
      softtargets.answers(picture, {
        follow,
        hide: () => point(null),
        first: () => point(cursor ?? one, panel),
        key: (event) => {
          const to = softtargets.steps(event, cursor ?? one, temperatures.length);
          if (to !== null) point(to, panel);
        },
      });
      frame.replaceChildren(picture);
    });
    bubble.hide();
    cursor = null;
    readout.textContent = rest();
  }

  // The value at a temperature that lies between two of those we have; straight along the axis that is drawn.
  function between(values, t) {
    const after = temperatures.findIndex((other) => other >= t);
    if (after < 0) return null;
    if (temperatures[after] === t || after === 0) return temperatures[after] === t ? values[after] : null;
    if (missing(values[after]) || missing(values[after - 1])) return null;
    return scale([temperatures[after - 1], temperatures[after]], [values[after - 1], values[after]], true)(t);
  }

  function powers(width) {
    const [low, high] = [temperatures[0], temperatures[temperatures.length - 1]];
    const found = [];
    for (let i = Math.ceil(Math.log2(low) - 1e-9); i <= Math.log2(high) + 1e-9; i++) found.push(2 ** i);
    const every = Math.ceil(found.length / (width / 62));
    return found.filter((value) => Math.round(Math.log2(value)) % every === 0);
  }

  softtargets.whenever(panels, draw);
});
