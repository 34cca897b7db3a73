"use strict";
// A colour for each cell of a plane, in panels; the cell under the pointer tells its value.
softtargets.widget("maps", (box, data) => {
  const { html, svg, missing, number, short } = softtargets;
  const PALETTES = {
    sequential: ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"],
    diverging: ["#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", "#b2182b"],
    share: ["#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"],
  };
  const panels = html("div", { class: "panels" });
  panels.style.setProperty("--least", "17rem");
  const readout = html("p", { class: "unseen", "aria-live": "polite" });
  box.append(panels, readout);
  const bubble = softtargets.bubble(box);
  const frames = data.panels.map((panel) => {
    const frame = html("div");
    panels.append(html("div", { class: "panel" }, html("h3", {}, panel.title), frame));
    return frame;
  });

  const parts = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  function colour(panel, value) {
    const stops = PALETTES[panel.palette];
    const share = Math.max(0, Math.min(1, (value - panel.low) / (panel.high - panel.low || 1))) * (stops.length - 1);
    const [from, to] = [parts(stops[Math.floor(share)]), parts(stops[Math.ceil(share)])];
    return from.map((part, i) => Math.round(part + (share % 1) * (to[i] - part)));
  }
  const written = (rgb) => `rgb(${rgb.join(" ")})`;
  const dark = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b < 140;

  function draw() {
    frames.forEach((frame, p) => plot(frame, data.panels[p]));
    bubble.hide();
    readout.textContent = "";
  }

  function plot(frame, panel) {
    const width = Math.floor(frame.clientWidth);
    if (!width) return;
    const { xs, ys, values } = panel;
    const margin = { left: 44, right: 8, top: 22, bottom: 84 };
    const across = width - margin.left - margin.right;
    const down = Math.round(Math.max(200, Math.min(330, across)));
    const height = down + margin.top + margin.bottom;
    const [wide, high] = [across / xs.length, down / ys.length];
    const left = (i) => margin.left + i * wide;
    const top = (j) => margin.top + (panel.downwards ? j : ys.length - 1 - j) * high;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      height,
      tabindex: 0,
      role: "img",
      "aria-label": `${panel.title}: a map over ${panel.x} and ${panel.y}; arrow keys go from cell to cell`,
    });
    const room = wide >= 31 && high >= 16 && panel.numbers;
    values.forEach((row, j) =>
      row.forEach((value, i) => {
        if (missing(value)) return;
        const rgb = colour(panel, value);
        picture.append(svg("rect", { class: "cell", x: left(i), y: top(j), width: wide + 0.4, height: high + 0.4, fill: written(rgb) }));
        if (room) {
          const text = number(value, panel.digits);
          if (text.length * 6.4 < wide) {
            picture.append(svg("text", { class: dark(rgb) ? "on-dark" : "on-light", x: left(i) + wide / 2, y: top(j) + high / 2 + 4, "text-anchor": "middle" }, text));
          }
        }
      }),
    );
    const name = (value) => (typeof value === "number" ? short(value) : value);
    const everyX = Math.ceil((xs.length * 34) / across);
    const everyY = Math.ceil((ys.length * 17) / down);
    xs.forEach((value, i) => {
      if (i % everyX === 0) picture.append(svg("text", { x: left(i) + wide / 2, y: margin.top + down + 17, "text-anchor": "middle" }, name(value)));
    });
    ys.forEach((value, j) => {
      if (j % everyY === 0) picture.append(svg("text", { x: margin.left - 6, y: top(j) + high / 2 + 4, "text-anchor": "end" }, name(value)));
    });
    picture.append(
      svg("text", { class: "name", x: margin.left + across / 2, y: margin.top + down + 36, "text-anchor": "middle" }, panel.x),
      svg("text", { class: "name", x: 2, y: 13 }, panel.y),
    );
    if (panel.line.length) {
      const between = (list, value) => {
        const after = Math.max(1, list.findIndex((other) => other >= value));
        return after - 1 + (value - list[after - 1]) / (list[after] - list[after - 1]);
      };
      const points = panel.line.map(([a, b]) => `${left(between(xs, a)) + wide / 2} ${top(between(ys, b)) + high / 2}`).join(",");
      picture.append(
        svg("polyline", { points, fill: "none", stroke: "#111827", "stroke-width": 4, "stroke-opacity": 0.5 }),
        svg("polyline", { class: "best", points, fill: "none", stroke: "#fff", "stroke-width": 2 }),
      );
    }
    scaleBar(picture, panel, margin.left, height - 34, across);

    const ring = svg("rect", { class: "ring", width: wide, height: high, fill: "none", "stroke-width": 2, visibility: "hidden" });
    picture.append(ring);
    let cell = null;
    const hide = () => {
      cell = null;
      ring.setAttribute("visibility", "hidden");
      bubble.hide();
      readout.textContent = "";
    };
    const show = (i, j) => {
      cell = [i, j];
      ring.setAttribute("x", left(i));
      ring.setAttribute("y", top(j));
      ring.setAttribute("visibility", "visible");
      const head = `${panel.x} ${name(xs[i])}, ${panel.y} ${name(ys[j])}`;
      const value = `${number(values[j][i], panel.digits)}${missing(values[j][i]) ? "" : ` ${panel.unit}`}`;
      bubble.show([head, value], ring.getBoundingClientRect());
      readout.textContent = `${panel.title}: ${head}: ${value}`;
    };
    const follow = (event) => {
      const around = picture.getBoundingClientRect();
      const i = Math.floor((event.clientX - around.left - margin.left) / wide);
      const row = Math.floor((event.clientY - around.top - margin.top) / high);
      const j = panel.downwards ? row : ys.length - 1 - row;
      if (i < 0 || j < 0 || i >= xs.length || j >= ys.length) return hide();
      show(i, j);
    };
    const turn = (event) => {
      const upwards = panel.downwards ? -1 : 1;
      const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, upwards], ArrowDown: [0, -upwards] }[event.key];
      if (!step) return;
      event.preventDefault();
      const [i, j] = cell ?? [0, 0];
      show(Math.max(0, Math.min(xs.length - 1, i + step[0])), Math.max(0, Math.min(ys.length - 1, j + step[1])));
    };
    softtargets.answers(picture, {
      follow,
      hide,
      first: () => show(...(cell ?? [0, 0])),
      key: turn,
    });
    frame.replaceChildren(picture);
  }

  // What the colours mean; values beyond an end have its colour.
  function scaleBar(picture, panel, x, y, width) {
    const steps = 32;
    for (let i = 0; i < steps; i++) {
      const value = panel.low + ((i + 0.5) / steps) * (panel.high - panel.low);
      picture.append(svg("rect", { x: x + (i * width) / steps, y, width: width / steps + 0.4, height: 9, fill: written(colour(panel, value)) }));
    }
    const found = panel.values.flat().filter((value) => !missing(value));
    const [least, most] = [Math.min(...found) < panel.low ? "≤ " : "", Math.max(...found) > panel.high ? "≥ " : ""];
    picture.append(
      svg("text", { x, y: y + 24 }, `${least}${short(panel.low)}`),
      svg("text", { x: x + width / 2, y: y + 24, "text-anchor": "middle" }, panel.unit),
      svg("text", { x: x + width, y: y + 24, "text-anchor": "end" }, `${most}${short(panel.high)}`),
    );
  }

  softtargets.whenever(panels, draw);
});
