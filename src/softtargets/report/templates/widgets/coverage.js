"use strict";
// Error rate over the share of predictions that are used, with a line that tells the numbers of all curves.
softtargets.widget("coverage", (box, data) => {
  const { html, svg, scale, ticks, missing, number, percent } = softtargets;
  const { coverages, curves, best } = data;
  const shown = curves.map(() => true);
  const last = coverages.length - 1;
  let cursor = null;

  const keys = curves.map((curve, c) =>
    softtargets.key(curve.name, curve.colour, (on) => {
      shown[c] = on;
      draw();
    }),
  );
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const frame = html("div");
  const legend = html("div", { class: "legend" }, ...keys);
  if (best) legend.append(html("span", {}, "- - best possible order"));
  box.append(legend, frame, readout);
  const bubble = softtargets.bubble(box);

  // The first few examples scatter: what matters are the ends of the intervals of most.
  function highest() {
    const ends = curves.flatMap((curve, c) => (shown[c] ? curve.high.slice(Math.floor(last / 10)) : []));
    const values = [...ends, ...curves.flatMap((curve, c) => (shown[c] ? curve.risk : []))].filter((value) => !missing(value));
    return Math.min(1, 1.06 * Math.max(...values, 0)) || 1;
  }

  const sentence = (i) => `${percent(1 - coverages[i], 1)} handed over, ${percent(coverages[i], 1)} used`;
  const told = (curve, i) => `${curve.name}: ${percent(curve.risk[i], 2)} wrong (${number(100 * curve.low[i], 2)} to ${percent(curve.high[i], 2)})`;

  let mark = null;
  function point(index) {
    cursor = index;
    mark?.line.setAttribute("visibility", index === null ? "hidden" : "visible");
    if (index === null) {
      bubble.hide();
      readout.textContent = rest();
      return;
    }
    mark.line.setAttribute("transform", `translate(${mark.x(coverages[index])} 0)`);
    const found = curves.filter((_, c) => shown[c]).map((curve) => [curve.colour, told(curve, index)]);
    const least = best ? [`best possible order: ${percent(best[index], 2)} wrong`] : [];
    bubble.show([sentence(index), ...found, ...least], mark.line.getBoundingClientRect(), { align: "start", left: true });
    readout.textContent = `${sentence(index)}; ${[...found.map((line) => line[1]), ...least].join("; ")}.`;
  }

  // What most ask first: the least confident fifth goes to a person.
  function rest() {
    const index = coverages.findIndex((value) => value >= 0.8 - 1e-9);
    return `${[sentence(index), ...curves.filter((_, c) => shown[c]).map((curve) => told(curve, index))].join("; ")}.`;
  }

  function draw() {
    const width = Math.floor(frame.clientWidth);
    if (!width) return;
    const margin = { left: 54, right: 16, top: 8, bottom: 42 };
    const height = Math.round(Math.max(240, Math.min(340, width * 0.5)));
    const [right, floor] = [width - margin.right, height - margin.bottom];
    const top = highest();
    const x = scale([0, 1], [margin.left, right]);
    const y = scale([0, top], [floor, margin.top]);
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      height,
      tabindex: 0,
      role: "img",
      "aria-label": "Error rate over the share of predictions used; arrow keys move along it",
    });
    picture.append(svg("rect", { class: "frame", x: margin.left, y: margin.top, width: right - margin.left, height: floor - margin.top, "stroke-opacity": 0.5 }));
    const short = (value) => `${softtargets.short(100 * value)} %`;
    softtargets.axis(picture, "y", ticks(0, top, 4), y, [margin.left, right], margin.left, short);
    softtargets.axis(picture, "x", ticks(0, 1, width < 420 ? 5 : 10), x, [margin.top, floor], floor, short);
    picture.append(svg("text", { class: "name", x: (margin.left + right) / 2, y: height - 4, "text-anchor": "middle" }, "predictions used, most confident first"));
    // An inner picture cuts off what leaves its frame.
    const inside = svg("svg", { x: margin.left, y: margin.top, width: right - margin.left, height: floor - margin.top, style: "width:auto;overflow:hidden" });
    const moved = svg("g", { transform: `translate(${-margin.left} ${-margin.top})` });
    inside.append(moved);
    picture.append(inside);
    const path = (values) => values.map((value, i) => `${i ? "L" : "M"}${x(coverages[i])} ${y(value)}`).join("");
    if (best) moved.append(svg("path", { class: "guide", d: path(best), fill: "none" }));
    curves.forEach((curve, c) => {
      if (!shown[c]) return;
      const back = curve.low.map((value, i) => `L${x(coverages[i])} ${y(value)}`).reverse().join("");
      moved.append(
        svg("path", { d: `${path(curve.high)}${back}Z`, fill: curve.colour, "fill-opacity": 0.14 }),
        svg("path", { class: "curve", d: path(curve.risk), stroke: curve.colour, "stroke-width": 2, fill: "none", "stroke-linejoin": "round" }),
      );
    });
    const line = svg("line", { class: "cursor", x1: 0, x2: 0, y1: margin.top, y2: floor, visibility: "hidden" });
    picture.append(line);
    mark = { line, x };
    const nearest = (share) => coverages.reduce((near, value, i) => (Math.abs(value - share) < Math.abs(coverages[near] - share) ? i : near), 0);
    const follow = (event) => point(nearest((event.clientX - picture.getBoundingClientRect().left - margin.left) / (right - margin.left)));
    softtargets.answers(picture, {
      follow,
      hide: () => point(null),
      first: () => point(cursor ?? last),
      key: (event) => {
        const to = softtargets.steps(event, cursor ?? last, coverages.length);
        if (to !== null) point(to);
      },
    });
    frame.replaceChildren(picture);
    bubble.hide();
    cursor = null;
    readout.textContent = rest();
  }

  softtargets.whenever(frame, draw);
});
