"use strict";
// Examples of three classes on the plane of their templates; all panels have the same scale.
softtargets.widget("plane", (box, data) => {
  const { html, svg, scale, ticks, missing } = softtargets;
  const shown = data.classes.map(() => true);
  const span = Math.max(...data.panels.flatMap(({ limits }) => limits.map(([from, to]) => to - from))) || 1;

  const keys = data.classes.map((entry, k) =>
    softtargets.key(entry.name, entry.colour, (on) => {
      shown[k] = on;
      box.querySelectorAll(`[data-class="${k}"]`).forEach((node) => node.setAttribute("visibility", on ? "visible" : "hidden"));
      bubble.hide();
      for (const ring of box.querySelectorAll(".ring")) ring.setAttribute("visibility", "hidden");
    }),
  );
  const panels = html("div", { class: "panels" });
  panels.style.setProperty("--least", data.panels.length > 2 ? "13rem" : "17rem");
  const means = data.panels.some((panel) => !missing(panel.centres));
  const marks = `Diamonds are the templates${means ? ", crosses the class means" : ""}. `;
  const unit = data.unit ? `Axes: ${data.unit}.` : "";
  box.append(html("div", { class: "legend" }, ...keys), panels, html("p", { class: "remark" }, marks + unit));
  const bubble = softtargets.bubble(box);

  const frames = data.panels.map((panel) => {
    const frame = html("div");
    const notes = html("ul", {}, ...panel.notes.map((note) => html("li", {}, note)));
    panels.append(html("div", { class: "panel" }, html("h3", {}, panel.title), frame, notes));
    return frame;
  });

  function draw() {
    frames.forEach((frame, p) => {
      const panel = data.panels[p];
      const width = Math.floor(frame.clientWidth);
      if (!width) return;
      const margin = { left: 34, right: 6, top: 4, bottom: 24 };
      const size = Math.min(width, 460) - margin.left - margin.right;
      const height = size + margin.top + margin.bottom;
      const ends = panel.limits.map(([from, to]) => [(from + to - span) / 2, (from + to + span) / 2]);
      const x = scale(ends[0], [margin.left, margin.left + size]);
      const y = scale(ends[1], [margin.top + size, margin.top]);
      const picture = svg("svg", {
        viewBox: `0 0 ${width} ${height}`,
        height,
        tabindex: 0,
        role: "img",
        "aria-label": `${panel.title}: ${panel.points.length} examples; arrow keys go from one to the next`,
      });
      const frameAt = { x: margin.left, y: margin.top, width: size, height: size };
      picture.append(svg("rect", { class: "frame", ...frameAt, "stroke-opacity": 0.5 }));
      softtargets.axis(picture, "x", ticks(...ends[0], 4), x, [margin.top, margin.top + size], margin.top + size, softtargets.short);
      softtargets.axis(picture, "y", ticks(...ends[1], 4), y, [margin.left, margin.left + size], margin.left, softtargets.short);
      const inside = svg("svg", { ...frameAt, style: `width:${size}px;overflow:hidden` });
      const all = svg("g", { transform: `translate(${-margin.left} ${-margin.top})` });
      inside.append(all);
      picture.append(inside);

      const corners = panel.templates.map(([px, py]) => `${x(px)} ${y(py)}`);
      all.append(svg("polygon", { class: "guide", points: corners.join(",") }));
      const spots = panel.points
        .filter(([px, py]) => !missing(px) && !missing(py))
        .map(([px, py, k, index]) => ({ x: x(px), y: y(py), k, index }));
      for (const spot of spots) {
        all.append(
          svg("circle", {
            class: "point",
            "data-class": spot.k,
            cx: spot.x,
            cy: spot.y,
            r: size > 260 ? 3 : 2.4,
            fill: data.classes[spot.k].colour,
            "fill-opacity": 0.6,
            visibility: shown[spot.k] ? "visible" : "hidden",
          }),
        );
      }
      panel.templates.forEach(([px, py], k) => {
        const d = `M${x(px)} ${y(py) - 6}l6 6l-6 6l-6 -6z`;
        all.append(
          svg("path", { class: "halo", d, fill: "none", "stroke-width": 4, "stroke-opacity": 0.8 }),
          svg("path", { class: "template ink", d, fill: "none", "stroke-width": 1.4 }, svg("title", {}, `template of ${data.classes[k].name}`)),
        );
      });
      (panel.centres ?? []).forEach(([px, py]) => {
        if (missing(px) || missing(py)) return;
        const d = `M${x(px) - 5} ${y(py)}h10M${x(px)} ${y(py) - 5}v10`;
        all.append(
          svg("path", { class: "halo", d, "stroke-width": 4, "stroke-opacity": 0.8 }),
          svg("path", { class: "centre ink", d, "stroke-width": 1.5 }),
        );
      });
      const ring = svg("circle", { class: "ring ink", r: 6, fill: "none", "stroke-width": 1.6, visibility: "hidden" });
      picture.append(ring);

      let reached = 0;
      const hide = () => {
        ring.setAttribute("visibility", "hidden");
        bubble.hide();
      };
      const show = (spot) => {
        if (!spot) return hide();
        ring.setAttribute("cx", spot.x);
        ring.setAttribute("cy", spot.y);
        ring.setAttribute("visibility", "visible");
        const entry = data.classes[spot.k];
        bubble.show([[entry.colour, entry.name], `example ${softtargets.count(spot.index)}`], ring.getBoundingClientRect());
      };
      const live = () => spots.filter((spot) => shown[spot.k]);
      const follow = (event) => {
        const around = picture.getBoundingClientRect();
        const [px, py] = [event.clientX - around.left, event.clientY - around.top];
        let [best, least] = [null, 14 ** 2];
        for (const spot of live()) {
          const far = (spot.x - px) ** 2 + (spot.y - py) ** 2;
          if (far < least) [best, least] = [spot, far];
        }
        show(best);
      };
      softtargets.answers(picture, {
        follow,
        hide,
        first: () => show(live()[Math.min(reached, live().length - 1)]),
        key: (event) => {
          const to = softtargets.steps(event, reached, live().length);
          if (to === null) return;
          reached = to;
          show(live()[to]);
        },
      });
      frame.replaceChildren(picture);
    });
    bubble.hide();
  }

  softtargets.whenever(panels, draw);
});
