"use strict";
// What all widgets share. A widget is drawn into its own box from its own numbers; text is always set as text.
const softtargets = (() => {
  const SPACE = "http://www.w3.org/2000/svg";

  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    for (const child of children) node.append(child);
    return node;
  }

  // Elements of HTML and of SVG; strings among the children become text, never markup.
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS(SPACE, tag), attributes, children);

  // A function from numbers to pixels; by their ratios if `log`.
  function scale([from, to], [start, end], log = false) {
    const by = log ? Math.log : (value) => value;
    return (value) => start + ((by(value) - by(from)) / (by(to) - by(from) || 1)) * (end - start);
  }

  // Round numbers from `low` to `high`, about `wanted` of them.
  function ticks(low, high, wanted = 5) {
    const rough = (high - low) / wanted || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((times) => times * power >= rough * 0.999) ?? 10);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
    return found;
  }

  const missing = (value) => value === null || value === undefined;
  const number = (value, digits = 3) => (missing(value) ? "–" : value.toFixed(digits).replace("-", "−"));
  const percent = (value, digits = 1) => (missing(value) ? "–" : `${number(100 * value, digits)} %`);
  const short = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
  const count = (value) => (missing(value) ? "–" : value.toLocaleString("en"));

  // A spot in a colour. Only a colour can come of it: the browser drops what is none.
  function spot(colour) {
    const dot = html("i", { "aria-hidden": "true" });
    dot.style.background = colour;
    dot.style.borderColor = colour;
    return dot;
  }

  // A button that switches something on and off; `sample` is what it looks like, if not a spot.
  function key(name, colour, changed, sample = null) {
    const button = html("button", { type: "button", class: "key", "aria-pressed": "true" }, sample ?? spot(colour), name);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", on);
      changed(on);
    });
    return button;
  }

  // One bubble per widget. Lines are text, or [colour, text].
  function bubble(box) {
    const node = html("div", { class: "bubble", role: "tooltip", hidden: "" });
    box.append(node);
    return {
      // Beside the anchor, a rectangle of the window: on its right, or on its left if there is no room or `left`.
      // `align` is which end of the bubble stands at the anchor's; what fits nowhere beside it stands above.
      show(lines, anchor, { left = false, align = "middle" } = {}) {
        node.replaceChildren(
          ...lines.map((line) =>
            Array.isArray(line) ? html("div", {}, spot(line[0]), line[1]) : html("div", {}, line),
          ),
        );
        node.hidden = false;
        const around = box.getBoundingClientRect();
        const size = node.getBoundingClientRect();
        const [from, to] = [anchor.left - around.left - 10, anchor.right - around.left + 10];
        const [top, bottom] = [anchor.top - around.top, anchor.bottom - around.top];
        const fits = { left: from - size.width >= 0, right: to + size.width <= around.width };
        const wanted = (left && fits.left) || !fits.right ? from - size.width : to;
        const x = Math.max(0, Math.min(wanted, around.width - size.width));
        let y = { start: top, middle: (top + bottom - size.height) / 2, end: bottom - size.height }[align];
        if (align === "middle" && !fits.left && !fits.right) {
          y = top - size.height - 8 >= 0 ? top - size.height - 8 : bottom + 8;
        }
        node.style.transform = `translate(${Math.round(x)}px, ${Math.round(Math.max(0, y))}px)`;
      },
      hide() {
        node.hidden = true;
      },
    };
  }

  // Draw now, and again whenever the width of a box has changed.
  function whenever(box, draw) {
    let last = -1;
    const look = () => {
      const width = Math.floor(box.clientWidth);
      if (width > 0 && width !== last) draw((last = width));
    };
    look();
    // In the next frame, since drawing changes the height of what is observed.
    new ResizeObserver(() => requestAnimationFrame(look)).observe(box);
  }

  // Of several things one can be reached with the tab key; the arrow keys go on from there.
  function steps(event, at, size) {
    const to = {
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      Home: 0,
      End: size - 1,
    }[event.key];
    if (to === undefined) return null;
    event.preventDefault();
    return Math.max(0, Math.min(to, size - 1));
  }

  // A picture that answers the pointer, a finger and the keyboard.
  function answers(picture, { follow, hide, first, key }) {
    picture.addEventListener("pointermove", follow);
    picture.addEventListener("pointerdown", follow);
    picture.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") hide(); // a finger is lifted at once
    });
    picture.addEventListener("focus", () => {
      if (picture.matches(":focus-visible")) first(); // not by a click
    });
    picture.addEventListener("blur", hide);
    picture.addEventListener("keydown", (event) => (event.key === "Escape" ? hide() : key(event)));
  }

  // Axes with a grid; `format` writes the numbers.
  function axis(group, side, values, at, [from, to], edge, format) {
    for (const value of values) {
      const place = at(value);
      if (side === "x") {
        group.append(
          svg("line", { class: "grid", x1: place, x2: place, y1: from, y2: to }),
          svg("text", { x: place, y: edge + 18, "text-anchor": "middle" }, format(value)),
        );
      } else {
        group.append(
          svg("line", { class: "grid", x1: from, x2: to, y1: place, y2: place }),
          svg("text", { x: edge - 8, y: place + 4, "text-anchor": "end" }, format(value)),
        );
      }
    }
  }

  // Start every widget of a kind. One that cannot be drawn leaves its picture where it was.
  function widget(kind, start) {
    for (const figure of document.querySelectorAll(`figure[data-widget="${kind}"]`)) {
      const box = figure.querySelector(".widget");
      try {
        const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
        box.hidden = false;
        figure.classList.add("alive");
        start(box, data);
      } catch (error) {
        box.replaceChildren();
        box.hidden = true;
        figure.classList.remove("alive");
        console.error(`the widget '${kind}' could not be drawn`, error);
      }
    }
  }

  return { html, svg, scale, ticks, missing, number, percent, short, count, spot, key, bubble, whenever, steps, answers, axis, widget };
})();
