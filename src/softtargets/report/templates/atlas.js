// Filters the claims by paper, verdict and words. The address carries the filter: #paper=chen-2020&verdict=contradicted
(() => {
  "use strict";
  const KEYS = ["paper", "verdict", "number", "search"];
  const form = document.getElementById("filter");
  const rows = [...document.querySelectorAll("tr[data-verdict]")];
  const chips = [...document.querySelectorAll("[data-only]")];
  const cells = new Map([...document.querySelectorAll(".cell[href]")].map(cell => [cell.getAttribute("href").slice(1), cell]));
  const words = new Map(rows.map(row => {
    const group = row.closest(".group").querySelector("h3");
    return [row, (group.textContent + " " + row.textContent).toLowerCase()];
  }));
  let state = {};

  const plain = text => text.trim().toLowerCase().split(/\s+/).filter(Boolean);

  function fits(row, but) {
    const asked = KEYS.slice(0, 3).filter(key => key !== but && state[key]);
    if (!asked.every(key => row.dataset[key] === state[key])) return false;
    return plain(state.search || "").every(word => words.get(row).includes(word));
  }

  function apply() {
    const shown = rows.filter(row => fits(row));
    for (const row of rows) {
      row.hidden = !shown.includes(row);
      cells.get(row.id)?.classList.toggle("dim", row.hidden);
    }
    for (const group of document.querySelectorAll(".paper .group, .paper")) {
      group.hidden = !group.querySelector("tr[data-verdict]:not([hidden])");
    }
    for (const part of document.querySelectorAll("#tables-and-figures .group, .bars li")) {
      part.hidden = Boolean(state.paper) && part.dataset.paper !== state.paper;
    }
    const counted = rows.filter(row => fits(row, "verdict") && (state.paper || !("small" in row.dataset)));
    for (const chip of chips) {
      const verdict = chip.dataset.only;
      chip.querySelector("b").textContent = counted.filter(row => row.dataset.verdict === verdict).length;
      if (state.verdict === verdict) chip.setAttribute("aria-current", "true");
      else chip.removeAttribute("aria-current");
    }
    for (const key of ["paper", "number", "search"]) form.elements[key].value = state[key] || "";
    form.querySelector("output").textContent = told(shown);
  }

  // The headline and the chips leave out demonstrations at a small size, so that they are told apart here too.
  function told(shown) {
    const count = some => some.filter(row => !("small" in row.dataset)).length;
    const [seen, of] = [count(shown), count(rows)];
    const small = shown.length - seen;
    const more = small ? `, and ${small} of a demonstration at a small size` : "";
    return (seen === of ? `All ${of} claims are shown` : `${seen} of ${of} claims are shown`) + `${more}.`;
  }

  function known(key, value) {
    if (key === "search") return value.slice(0, 200);
    return rows.some(row => row.dataset[key] === value) ? value : "";
  }

  function read() {
    const hash = location.hash.slice(1);
    if (hash && !hash.includes("=")) {
      const target = document.getElementById(hash);
      if (target && target.closest("[hidden]")) {
        state = {};
        apply();
        target.scrollIntoView();
      }
      return;
    }
    const asked = new URLSearchParams(hash);
    state = Object.fromEntries(KEYS.map(key => [key, known(key, asked.get(key) || "")]));
    apply();
  }

  function go(change) {
    state = { ...state, ...change };
    const asked = new URLSearchParams(KEYS.filter(key => state[key]).map(key => [key, state[key]]));
    history.replaceState(null, "", `${asked}` ? `#${asked}` : location.pathname + location.search);
    apply();
  }

  for (const chip of chips) {
    chip.addEventListener("click", event => {
      event.preventDefault();
      const verdict = chip.dataset.only;
      go({ verdict: state.verdict === verdict ? "" : verdict });
    });
  }
  for (const link of document.querySelectorAll("[data-to]")) {
    link.addEventListener("click", event => {
      event.preventDefault();
      go({ paper: state.paper === link.dataset.to ? "" : link.dataset.to });
    });
  }
  for (const key of ["paper", "number"]) form.elements[key].addEventListener("change", event => go({ [key]: event.target.value }));
  form.elements.search.addEventListener("input", event => go({ search: event.target.value }));
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", event => {
    event.preventDefault();
    go(Object.fromEntries(KEYS.map(key => [key, ""])));
  });
  addEventListener("hashchange", read);
  form.hidden = false;
  apply();
  read();
})();
