// The viewer of a trace: slider, buttons, arrow keys, clicks. The page is readable without this script.
(() => {
  "use strict";

  // Only textContent is set, so text of a model cannot become markup.
  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Scrolls the pane only: scrollIntoView would also scroll the page.
  const reveal = (pane, target, margin) => {
    if (!target) return;
    const inside = target.getBoundingClientRect();
    const frame = pane.getBoundingClientRect();
    const head = pane.querySelector(".sticky");
    const top = frame.top + (head ? head.offsetHeight : 0) + margin;
    const bottom = frame.top + pane.clientHeight - margin;
    if (inside.top < top) pane.scrollTop -= top - inside.top;
    else if (inside.bottom > bottom) pane.scrollTop += Math.min(inside.bottom - bottom, inside.top - top);
    const left = frame.left + margin;
    const right = frame.left + pane.clientWidth - margin;
    if (inside.width > right - left) return;
    if (inside.left < left) pane.scrollLeft -= left - inside.left;
    else if (inside.right > right) pane.scrollLeft += inside.right - right;
  };

  class Viewer {
    constructor(section) {
      this.section = section;
      this.data = JSON.parse(section.querySelector("script.data").textContent);
      this.last = this.data.states.length - 1;
      this.slider = section.querySelector("input[type=range]");
      this.now = section.querySelector(".now");
      this.diagram = section.querySelector(".diagram");
      this.steps = section.querySelector(".steps");
      this.state = section.querySelector(".state");
      this.keepHeads();
      section.classList.add("live");
      this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
      for (const pane of [this.diagram, this.steps]) {
        pane.addEventListener("click", (event) => {
          const hit = event.target.closest("[data-step], [data-to], [data-from]");
          if (hit) this.show(Number(hit.dataset.step ?? hit.dataset.to ?? hit.dataset.from));
        });
      }
      section.addEventListener("click", (event) => {
        const go = event.target.closest("[data-go]");
        if (go) this.go(go.dataset.go);
      });
      this.show(Number(section.dataset.current));
    }

    // The names of the lanes stay visible while a long diagram scrolls.
    keepHeads() {
      const drawing = this.diagram.querySelector("svg");
      const heads = drawing.querySelector(".heads");
      const box = drawing.viewBox.baseVal;
      const copy = drawing.cloneNode(false);
      const height = 38;
      copy.setAttribute("viewBox", `0 0 ${box.width} ${height}`);
      copy.setAttribute("height", height);
      copy.setAttribute("aria-hidden", "true");
      copy.appendChild(heads.cloneNode(true));
      const sticky = element("div", "sticky");
      sticky.appendChild(copy);
      drawing.parentNode.insertBefore(sticky, drawing);
    }

    go(where) {
      const target = { first: 0, back: this.step - 1, on: this.step + 1, last: this.last }[where];
      this.show(Math.min(this.last, Math.max(0, target)));
    }

    show(step) {
      this.step = step;
      this.slider.value = String(step);
      const title = step ? this.data.titles[step - 1] : "initial state";
      this.now.textContent = `step ${step} of ${this.last}: ${title}`;
      this.section.dataset.current = String(step);
      for (const marked of this.section.querySelectorAll(".current, .touched")) marked.classList.remove("current", "touched");
      for (const here of this.section.querySelectorAll(`[data-step="${step}"]`)) here.classList.add("current");
      if (step) {
        const ends = `.message[data-from="${step}"], .message[data-to="${step}"]`;
        for (const message of this.diagram.querySelectorAll(ends)) message.classList.add("touched");
      }
      this.showState(step);
      reveal(this.diagram, this.diagram.querySelector(`.row[data-step="${step}"] rect`), 60);
      reveal(this.diagram, this.diagram.querySelector(`.event[data-step="${step}"]`), 60);
      reveal(this.steps, this.steps.querySelector(`[data-step="${step}"]`), 6);
      reveal(this.state, this.state.querySelector(".acting"), 6);
    }

    showState(step) {
      const now = this.data.states[step];
      const before = this.data.states[Math.max(0, step - 1)];
      const cards = now.lanes.map((lane, i) => this.card(this.data.lanes[i], lane, before.lanes[i], step && this.data.acting[step - 1] === i));
      const rest = [["monitors", "Monitors"], ["budgets", "Faults left"]].filter(([key]) => now[key].length);
      for (const [key, name] of rest) cards.push(this.card(name, { fields: now[key] }, { fields: before[key] }, false));
      this.state.replaceChildren(...cards);
    }

    card(name, lane, before, acting) {
      const card = element("div", "card" + (acting ? " acting" : "") + (lane.status ? " away" : ""));
      const head = element("h4", "", name);
      if (lane.status) head.appendChild(element("span", "status", lane.status));
      card.appendChild(head);
      const table = element("table");
      const old = new Map(before.fields);
      for (const [field, value] of lane.fields) {
        const row = element("tr");
        row.appendChild(element("th", "", field));
        const cell = element("td");
        const was = old.get(field);
        if (was !== value) {
          row.className = "changed";
          if (was !== undefined) cell.append(element("del", "", was), " ");
        }
        cell.appendChild(element("span", "value", value));
        row.appendChild(cell);
        table.appendChild(row);
      }
      card.appendChild(table);
      const had = new Set(before.inbox ?? []);
      const inbox = element("ul", "inbox");
      for (const id of lane.inbox ?? []) {
        inbox.appendChild(element("li", had.has(id) ? "" : "new", this.data.messages[id] ?? `#${id}`));
      }
      if (inbox.childElementCount) card.append(element("div", "pending", "pending"), inbox);
      return card;
    }
  }

  const viewers = [...document.querySelectorAll("section.viewer")].map((section) => new Viewer(section));
  let active = viewers[0];
  for (const viewer of viewers) {
    for (const kind of ["pointerdown", "focusin"]) viewer.section.addEventListener(kind, () => { active = viewer; });
  }
  const keys = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last" };
  document.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    active.go(keys[event.key]);
  });
})();
