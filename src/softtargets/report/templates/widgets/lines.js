"use strict";
// Curves and points with bars, in panels; a line that follows the pointer tells the numbers of all curves.
softtargets.widget("lines", (box, data) => {
  const { html, svg, scale, ticks, missing, number, short } = softtargets;
  const DASHES = { solid: "none", dashed: "6 4", dotted: "1.5 3.5", none: "none" };
  const NEAR = 14; // pixels within which a point belongs to the line
  const looks = new Map();
  const title = (curve) => curve.group || curve.name;
  for (const panel of data.panels) for (const curve of panel.curves) if (!looks.has(title(curve))) looks.set(title(curve), curve);
  const hidden = new Set();

  const keys = [...looks.values()].map((curve) =>
    softtargets.key(
      title(curve),
      curve.colour,
      (on) => {
        if (on) hidden.delete(title(curve));
        else hidden.add(title(curve));
        draw();
      },
      sample(curve),
    ),
  );
  const panels = html("div", { class: "panels" });
  panels.style.setProperty("--least", data.panels.length > 2 ? "16rem" : "20rem");
  const readout = html("p", { class: "unseen", "aria-live": "polite" });
  box.append(html("div", { class: "legend" }, ...(looks.size > 1 ? keys : [])), panels, readout);
  const bubble = softtargets.bubble(box);
  const frames = data.panels.map((panel) => {
    const frame = html("div");
    panels.append(html("div", { class: "panel" }, html("h3", {}, panel.title), frame));
    return frame;
  });

  function mark(shape, x, y, r, attributes = {}) {
    const d = {
      square: `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
      triangle: `M${x} ${y - 1.2 * r}l${1.15 * r} ${2 * r}h${-2.3 * r}z`,
    }[shape];
    return d ? svg("path", { class: "point", d, ...attributes }) : svg("circle", { class: "point", cx: x, cy: y, r, ...attributes });
  }

  // What a curve looks like, for its button.
  function sample(curve) {
    const picture = svg("svg", { class: "sample", width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" });
    if (curve.line !== "none") {
      picture.append(svg("line", { x1: 0, x2: 26, y1: 6, y2: 6, stroke: curve.colour, "stroke-width": 2.2, "stroke-dasharray": DASHES[curve.line] }));
    }
    if (curve.marker !== "none") picture.append(mark(curve.marker, 13, 6, 4, { fill: curve.colour }));
    return picture;
  }

  const live = (panel) => panel.curves.filter((curve) => !hidden.has(title(curve)));

  function domain(panel) {
    const values = live(panel).flatMap((curve) => [...curve.y, ...(curve.low ?? []), ...(curve.high ?? []), ...(curve.dots ?? []).flat()]);
    const found = values.filter((value) => !missing(value));
    const [least, most] = found.length ? [Math.min(...found), Math.max(...found)] : [0, 1];
    const room = 0.06 * (most - least) || Math.abs(most) * 0.06 || 1;
    return [panel.limits?.[0] ?? least - room, panel.limits?.[1] ?? most + room];
  }

  function range(panel) {
    if (panel.xlimits) return panel.xlimits;
    const values = [...panel.curves.flatMap((curve) => curve.x), ...(panel.ticks ?? []).map(([at]) => at)];
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const room = 0.04 * (most - least) || 0.5;
    return [least - room, most + room];
  }

  // A curve's value at x: of points the nearest if it is near, of a plain line what lies between.
  function at(curve, value, x) {
    let near = -1;
    curve.x.forEach((other, i) => {
      if (!missing(curve.y[i]) && (near < 0 || Math.abs(other - value) < Math.abs(curve.x[near] - value))) near = i;
    });
    if (near < 0) return null;
    if (curve.marker === "none" && curve.line !== "none") {
      const after = curve.x.findIndex((other) => other >= value);
      if (after > 0 && !missing(curve.y[after]) && !missing(curve.y[after - 1])) {
        const between = (list) => (list ? scale([curve.x[after - 1], curve.x[after]], [list[after - 1], list[after]])(value) : null);
        return { y: between(curve.y), low: between(curve.low), high: between(curve.high) };
      }
    }
    if (Math.abs(x(curve.x[near]) - x(value)) > NEAR) return null;
    return { y: curve.y[near], low: curve.low?.[near], high: curve.high?.[near], seeds: curve.dots?.[near]?.length };
  }

  function told(panel, curve, found) {
    const { digits } = panel;
    if (missing(found.low) || found.low === found.high) return `${curve.name}: ${number(found.y, digits)}`;
    const bars = curve.marker === "none" ? ` (${number(found.low, digits)} to ${number(found.high, digits)})` : ` ± ${number(found.high - found.y, digits)}`;
    return `${curve.name}: ${number(found.y, digits)}${bars}`;
  }

  function draw() {
    frames.forEach((frame, p) => plot(frame, data.panels[p]));
    bubble.hide();
    readout.textContent = "";
  }

  function plot(frame, panel) {
    const width = Math.floor(frame.clientWidth);
    if (!width) return;
    const margin = { left: 46, right: 10, top: 24, bottom: 40 };
    const height = Math.round(Math.max(250, Math.min(330, width * 0.7)));
    const [right, floor] = [width - margin.right, height - margin.bottom];
    const x = scale(range(panel), [margin.left, right]);
    const y = scale(domain(panel), [floor, margin.top]);
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      height,
      tabindex: 0,
      role: "img",
      "aria-label": `${panel.title}: ${panel.y}${panel.x && ` over ${panel.x}`}; arrow keys move along it`,
    });
    const area = { x: margin.left, y: margin.top, width: right - margin.left, height: floor - margin.top };
    picture.append(svg("rect", { class: "frame", ...area, "stroke-opacity": 0.5 }));
    softtargets.axis(picture, "y", ticks(...domain(panel), 5), y, [margin.left, right], margin.left, short);
    const marks = panel.ticks ?? ticks(...range(panel), width > 380 ? 6 : 4).map((value) => [value, short(value)]);
    const every = Math.ceil((marks.reduce((sum, [, name]) => sum + 7 * name.length + 8, 0) || 1) / area.width);
    marks.forEach(([value, name], i) => {
      if (i % every === 0) softtargets.axis(picture, "x", [value], x, [margin.top, floor], floor, () => name);
    });
    picture.append(
      svg("text", { class: "name", x: (margin.left + right) / 2, y: height - 4, "text-anchor": "middle" }, panel.x),
      svg("text", { class: "name", x: 2, y: 13 }, panel.y),
    );
    const inside = svg("svg", { ...area, style: "width:auto;overflow:hidden" });
    const all = svg("g", { class: "data", transform: `translate(${-margin.left} ${-margin.top})` });
    inside.append(all);
    picture.append(inside);
    for (const curve of live(panel)) all.append(drawn(curve, x, y));
    const line = svg("line", { class: "cursor", x1: 0, x2: 0, y1: margin.top, y2: floor, visibility: "hidden" });
    picture.append(line);

    const places = stops(panel);
    let cursor = null;
    const hide = () => {
      cursor = null;
      line.setAttribute("visibility", "hidden");
      bubble.hide();
      readout.textContent = "";
    };
    const show = (index) => {
      if (index === null || !places.length) return hide();
      cursor = index;
      const value = places[index];
      line.setAttribute("visibility", "visible");
      line.setAttribute("transform", `translate(${x(value)} 0)`);
      const name = (panel.ticks ?? []).find(([place]) => place === value)?.[1] ?? short(value);
      const found = live(panel)
        .map((curve) => [curve, at(curve, value, x)])
        .filter(([, there]) => there)
        .map(([curve, there]) => [curve.colour, told(panel, curve, there)]);
      const head = panel.x ? `${panel.x}: ${name}` : name;
      const { left, right, top, bottom } = line.getBoundingClientRect();
      // On a phone it would cover the curves: there it stands below them.
      const under = picture.getBoundingClientRect().bottom;
      const anchor = width < 420 ? { left, right, top: under, bottom: under } : { left, right, top, bottom };
      bubble.show([head, ...found], anchor, { align: "start" });
      readout.textContent = `${panel.title}, ${head}. ${found.map((one) => one[1]).join("; ")}.`;
    };
    const follow = (event) => {
      const pixel = event.clientX - picture.getBoundingClientRect().left;
      show(places.length ? places.reduce((near, value, i) => (Math.abs(x(value) - pixel) < Math.abs(x(places[near]) - pixel) ? i : near), 0) : null);
    };
    softtargets.answers(picture, {
      follow,
      hide,
      first: () => show(cursor ?? 0),
      key: (event) => {
        const to = softtargets.steps(event, cursor ?? 0, places.length);
        if (to !== null) show(to);
      },
    });
    frame.replaceChildren(picture);
  }

  // Where the line may stand: at the points, or along plain lines where there are none.
  function stops(panel) {
    const shown = live(panel);
    const points = shown.filter((curve) => curve.marker !== "none");
    const from = (points.length ? points : shown.filter((curve) => curve.x.length > 2)).flatMap((curve) =>
      curve.x.filter((_, i) => !missing(curve.y[i])),
    );
    return [...new Set(from)].sort((a, b) => a - b);
  }

  function drawn(curve, x, y) {
    const group = svg("g", { class: "curve", stroke: curve.colour, fill: curve.colour });
    const spots = curve.x.map((value, i) => (missing(curve.y[i]) ? null : [x(value), y(curve.y[i])]));
    (curve.dots ?? []).forEach((values, i) => {
      for (const value of values) group.append(svg("circle", { class: "seed", cx: x(curve.x[i]), cy: y(value), r: 2.2, stroke: "none", "fill-opacity": 0.3 }));
    });
    if (curve.low && curve.high && curve.marker === "none") {
      const there = spots.map((spot, i) => i).filter((i) => spots[i] && !missing(curve.low[i]) && !missing(curve.high[i]));
      const edge = (values, order) => order.map((i) => `${x(curve.x[i])} ${y(values[i])}`).join("L");
      if (there.length) group.append(svg("path", { class: "band", d: `M${edge(curve.high, there)}L${edge(curve.low, [...there].reverse())}Z`, stroke: "none", "fill-opacity": 0.18 }));
    } else if (curve.low && curve.high) {
      spots.forEach((spot, i) => {
        if (!spot || missing(curve.low[i]) || curve.low[i] === curve.high[i]) return;
        const [from, to] = [y(curve.low[i]), y(curve.high[i])];
        group.append(svg("path", { class: "interval", d: `M${spot[0]} ${from}V${to}M${spot[0] - 3} ${from}h6M${spot[0] - 3} ${to}h6`, fill: "none", "stroke-width": 1.2 }));
      });
    }
    if (curve.line !== "none") {
      const d = spots.map((spot, i) => (spot ? `${i && spots[i - 1] ? "L" : "M"}${spot[0]} ${spot[1]}` : "")).join("");
      group.append(svg("path", { d, fill: "none", "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": DASHES[curve.line] }));
    }
    if (curve.marker !== "none") for (const spot of spots) if (spot) group.append(mark(curve.marker, ...spot, 4, { class: "point halo", "stroke-width": 1 }));
    return group;
  }

  softtargets.whenever(panels, draw);
});
