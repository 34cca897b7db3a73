"use strict";
// A reliability diagram over a histogram, at a temperature the reader chooses.
softtargets.widget("reliability", (box, data) => {
  const FEW = 10; // a bin with fewer says so little that it is drawn pale
  const { html, svg, scale, ticks, missing, number, percent, count } = softtargets;
  const { edges, temperatures, curves } = data;
  const bins = edges.length - 1;
  const shown = curves.map(() => true);
  const at = curves.map(() => data.start); // each curve's place among the temperatures
  let focused = bins - 1; // the bin that the tab key reaches

  const canvas = html("div");
  const plot = html("div", { class: "plot" }, canvas); // the bubble stands in it too, and leaves the dial free
  const side = html("div", { class: "side" });
  const two = html("div", { class: "two" }, plot, side);
  box.append(two);
  const bubble = softtargets.bubble(plot);

  // Beside the diagram: the dial, and the numbers of each curve, whose names switch it.
  const id = `temperature-${[...document.querySelectorAll(".widget")].indexOf(box)}`;
  const slider = html("input", { type: "range", id, min: 0, max: temperatures.length - 1, step: 1, value: data.start });
  const output = html("output", { "aria-live": "off" }); // the slider itself tells its value
  const buttons = [];
  if (temperatures.length > 1) {
    side.append(html("div", { class: "dial" }, html("label", { for: id }, "Temperature"), output), slider);
    slider.addEventListener("input", () => turn(curves.map(() => Number(slider.value))));
    const choices = html("div", { class: "choices" });
    const offer = (text, places) => {
      const button = html("button", { type: "button", "aria-pressed": "false" }, text);
      button.addEventListener("click", () => turn(places));
      buttons.push({ button, places });
      choices.append(button);
    };
    const told = (i) => number(temperatures[i], 2);
    offer(`T = ${softtargets.short(temperatures[data.start])}`, curves.map(() => data.start));
    if (!missing(data.best)) offer(`fitted T = ${told(data.best)}`, curves.map(() => data.best));
    if (curves.some((curve) => !missing(curve.best))) {
      const own = curves.map((curve) => curve.best ?? data.best ?? data.start);
      offer(`fitted T = ${own.map(told).join(" and ")}`, own);
    }
    side.append(choices);
  }
  const cells = curves.map(() => ({ ece: html("td", { class: "ece" }), nll: html("td", { class: "nll" }) }));
  const rows = curves.map((curve, c) => {
    const button = softtargets.key(curve.name, curve.colour, (on) => {
      shown[c] = on;
      draw();
    });
    return html("tr", {}, html("th", { scope: "row" }, button), cells[c].ece, cells[c].nll);
  });
  const heading = (text) => html("th", { scope: "col" }, text);
  side.append(
    html(
      "table",
      { class: "numbers" },
      html("thead", {}, html("tr", {}, heading("curve"), heading("ECE"), heading("NLL"))),
      html("tbody", { "aria-live": "polite" }, ...rows),
    ),
    html("p", { class: "remark" }, remark()),
  );

  function remark() {
    const interval = curves.some((curve) => curve.low && curve.high) ? " Thin lines are intervals of the accuracy." : "";
    return (
      "A point below the dashed line is a bin in which the model is overconfident; the broad bar is the gap." +
      `${interval} Bins with fewer than ${FEW} ${data.unit} are pale.`
    );
  }

  function turn(places) {
    places.forEach((place, c) => (at[c] = place));
    draw();
  }

  function tell() {
    const same = at.every((place) => place === at[0]);
    const words = `T = ${(same ? [at[0]] : at).map((i) => number(temperatures[i], 2)).join(" and ")}`;
    output.textContent = words;
    slider.setAttribute("aria-valuetext", words);
    if (same) slider.value = at[0];
    for (const { button, places } of buttons) {
      button.setAttribute("aria-pressed", places.every((place, c) => place === at[c]));
    }
    curves.forEach((curve, c) => {
      cells[c].ece.textContent = percent(curve.ece[at[c]], 2);
      cells[c].nll.textContent = number(curve.nll[at[c]], 3);
    });
  }

  function lines(bin) {
    const found = [`confidence ${number(edges[bin], 2)} to ${number(edges[bin + 1], 2)}`];
    curves.forEach((curve, c) => {
      if (!shown[c]) return;
      const size = curve.counts[at[c]][bin];
      if (curves.length > 1) found.push([curve.colour, curve.name]);
      if (!size) return found.push(`no ${data.unit}`);
      const [low, high] = [curve.low?.[at[c]][bin], curve.high?.[at[c]][bin]];
      const between = missing(low) || missing(high) ? "" : ` (${number(100 * low, 1)} to ${percent(high)})`;
      found.push(
        `${count(size)} ${data.unit}, mean confidence ${percent(curve.confidence[at[c]][bin])}`,
        `${percent(curve.accuracy[at[c]][bin])} right${between}`,
      );
    });
    return found;
  }

  let width = 0;
  function draw() {
    tell();
    if (!width) return;
    const margin = { left: 58, right: 20, top: 8 };
    const across = Math.min(width, 560) - margin.left - margin.right;
    const high = Math.min(across, 430);
    const low = 82; // the histogram's height
    const beneath = margin.top + high + 16;
    const height = beneath + low + 42;
    const x = scale([edges[0], edges[bins]], [margin.left, margin.left + across]);
    const y = scale([0, 1], [margin.top + high, margin.top]);
    const within = [margin.left, margin.left + across];
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": "reliability diagram" });
    const move = (width - across - margin.left - margin.right) / 2;
    const all = svg("g", { transform: `translate(${Math.max(0, move)} 0)` });
    picture.append(all);

    const percents = (value) => `${Math.round(100 * value)} %`;
    softtargets.axis(all, "y", [0, 0.2, 0.4, 0.6, 0.8, 1], y, within, margin.left, percents);
    const along = ticks(edges[0], edges[bins], across > 300 ? 5 : 3);
    for (const value of along) {
      all.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: margin.top, y2: margin.top + high }));
    }
    softtargets.axis(all, "x", along, x, [beneath, beneath + low], beneath + low, percents);
    all.append(
      svg("text", { class: "name", x: margin.left + across / 2, y: height - 5, "text-anchor": "middle" }, "confidence"),
      svg("text", { class: "name", transform: `translate(11 ${margin.top + high / 2}) rotate(-90)`, "text-anchor": "middle" }, "accuracy"),
      svg("text", { class: "name", transform: `translate(11 ${beneath + low / 2}) rotate(-90)`, "text-anchor": "middle" }, "share"),
      svg("line", { class: "guide", x1: x(edges[0]), y1: y(edges[0]), x2: x(edges[bins]), y2: y(edges[bins]) }),
    );

    // The histogram: shares of all, so that curves with different numbers of examples can be compared.
    const live = curves.map((_, c) => c).filter((c) => shown[c]);
    const shares = curves.map((curve, c) => {
      const sizes = curve.counts[at[c]];
      const sum = sizes.reduce((total, size) => total + size, 0);
      return sizes.map((size) => (sum ? size / sum : 0));
    });
    const most = Math.max(0.001, ...live.flatMap((c) => shares[c]));
    const tall = scale([0, most], [beneath + low, beneath]);
    softtargets.axis(all, "y", ticks(0, most, 2), tall, within, margin.left, (value) => `${softtargets.short(100 * value)} %`);
    live.forEach((c, place) => {
      shares[c].forEach((share, bin) => {
        const [from, to] = [x(edges[bin]) + 1, x(edges[bin + 1]) - 1];
        const part = (to - from) / live.length;
        all.append(
          svg("rect", {
            class: "count",
            x: from + place * part,
            y: tall(share),
            width: Math.max(0.5, part),
            height: Math.max(0, beneath + low - tall(share)),
            fill: curves[c].colour,
            "fill-opacity": 0.75,
          }),
        );
      });
    });
    all.append(svg("line", { class: "axis", x1: within[0], x2: within[1], y1: beneath + low, y2: beneath + low }));

    for (const c of live) {
      const curve = curves[c];
      const full = [...Array(bins).keys()].filter((bin) => curve.counts[at[c]][bin] && !missing(curve.accuracy[at[c]][bin]));
      const spots = full.map((bin) => [x(curve.confidence[at[c]][bin]), y(curve.accuracy[at[c]][bin])]);
      const few = full.map((bin) => curve.counts[at[c]][bin] < FEW);
      const group = svg("g", { class: "curve", stroke: curve.colour, fill: curve.colour });
      full.forEach((bin, i) => {
        const [px, py] = spots[i];
        const sure = y(curve.confidence[at[c]][bin]);
        const wide = live.length > 1 ? 5 : 9;
        const pale = few[i] ? 0.35 : 1;
        group.append(
          svg("line", { class: "gap", x1: px, x2: px, y1: sure, y2: py, "stroke-width": wide, "stroke-opacity": 0.22 * pale }),
        );
        const [from, to] = [curve.low?.[at[c]][bin], curve.high?.[at[c]][bin]];
        if (missing(from) || missing(to)) return;
        const d = `M${px} ${y(from)}V${y(to)}M${px - 3} ${y(from)}h6M${px - 3} ${y(to)}h6`;
        group.append(
          svg("path", { class: "interval", d, "stroke-width": 1.2, fill: "none", "stroke-opacity": 0.8 * pale }),
        );
      });
      const joined = spots.filter((_, i) => !few[i]).map((spot) => spot.join(" "));
      group.append(svg("polyline", { points: joined.join(","), fill: "none", "stroke-width": 1.8 }));
      full.forEach((bin, i) => {
        const [px, py] = spots[i];
        const r = 2.5 + 6 * Math.sqrt(shares[c][bin]); // the area grows with the bin's share
        const pale = few[i] ? 0.35 : 1;
        group.append(
          svg("circle", { class: "point halo", cx: px, cy: py, r, "stroke-width": 1, "fill-opacity": pale }),
        );
      });
      all.append(group);
    }

    // Over each bin a column to point at or to reach with the arrow keys.
    const columns = [...Array(bins).keys()].map((bin) => {
      const column = svg("rect", {
        class: "bin",
        x: x(edges[bin]),
        y: margin.top,
        width: Math.max(1, x(edges[bin + 1]) - x(edges[bin])),
        height: beneath + low - margin.top,
        tabindex: bin === focused ? 0 : -1,
        role: "img",
        "aria-label": lines(bin).map((line) => (Array.isArray(line) ? line[1] : line)).join("; "),
      });
      // Points lie about the diagonal: below it on the right, and above it on the left, there is room.
      const show = () => {
        const around = column.getBoundingClientRect();
        const { left, right } = around;
        if (width < 420) {
          const whole = picture.getBoundingClientRect(); // over the histogram: below it is the slider
          return bubble.show(lines(bin), { left, right, top: whole.top, bottom: whole.bottom - 4 }, { align: "end" });
        }
        const late = bin >= bins / 2;
        const ends = { left, right, top: around.top + 4, bottom: around.top + high - 6 };
        bubble.show(lines(bin), ends, { left: late, align: late ? "start" : "end" });
      };
      column.addEventListener("pointerenter", show);
      column.addEventListener("pointerleave", (event) => {
        if (event.pointerType === "mouse") bubble.hide(); // a finger is lifted at once
      });
      column.addEventListener("focus", show);
      column.addEventListener("blur", () => bubble.hide());
      column.addEventListener("keydown", (event) => {
        if (event.key === "Escape") bubble.hide();
        const to = softtargets.steps(event, bin, bins);
        if (to === null) return;
        columns[focused].setAttribute("tabindex", -1);
        focused = to;
        columns[focused].setAttribute("tabindex", 0);
        columns[focused].focus();
      });
      return column;
    });
    all.append(...columns);
    bubble.hide();
    canvas.replaceChildren(picture);
  }

  softtargets.whenever(plot, (now) => {
    width = now;
    draw();
  });
});
