// The entry point. A report has its traces embedded as JSON; the page of `plait explore` asks its server.
import { render } from "preact";
import { App } from "./app";
import { type AlignedRow, Pair } from "./diff/pair";
import { Api, type Model, Refused } from "./explore/api";
import { Walk } from "./explore/walk";
import { press } from "./keys";
import { decode } from "./link";
import { Run } from "./run/run";
import { inflate, parse, type Sparse } from "./run/trace";
import { recordText } from "./run/wording";
import { tables } from "./tables";
import { Viewer } from "./viewer-state";

/** The viewers of the page, and the one that gets the keys. */
const viewers: { section: HTMLElement; viewer: Viewer }[] = [];
let active: Viewer | undefined;

function mount(section: HTMLElement, viewer: Viewer): void {
  const holder = document.createElement("div");
  holder.className = "app";
  section.append(holder);
  section.classList.add("live");
  const follow = (): void => {
    section.dataset.current = String(viewer.view.step);
  };
  follow();
  viewer.subscribe(follow);
  render(<App viewer={viewer} />, holder);
  viewers.push({ section, viewer });
  active ??= viewer;
  for (const kind of ["pointerdown", "focusin"]) {
    section.addEventListener(kind, () => {
      active = viewer;
    });
  }
  // The address always is the link to what is shown.
  let timer: number | undefined;
  let shown = JSON.stringify(viewer.link);
  viewer.subscribe(() => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => {
      const now = JSON.stringify(viewer.link);
      if (now === shown) return;
      shown = now;
      history.replaceState(null, "", viewer.address);
    }, 400);
  });
}

/** What a page embeds: a run, or two runs and which of their events are the same. */
type Data = { start: number } & ({ trace: Sparse } | { pair: [Sparse, Sparse]; rows: AlignedRow[] });

function runOf(data: Data): Run {
  if ("trace" in data) return new Run(inflate(data.trace));
  const [first, second] = data.pair;
  return new Pair(inflate(first), inflate(second), data.rows);
}

function reports(sections: HTMLElement[]): void {
  const link = decode(location.hash);
  sections.forEach((section, number) => {
    const raw = section.querySelector("script.data")?.textContent;
    if (!raw) return;
    const data = parse(raw) as Data;
    const viewer = new Viewer(runOf(data), number);
    viewer.set({ step: data.start, lower: viewer.hasViews ? "views" : "state" });
    if (link && (link.trace ?? 0) === number) viewer.restore(link);
    mount(section, viewer);
    if (link && number > 0 && link.trace === number) {
      active = viewer;
      section.scrollIntoView();
    }
  });
}

/** The secret of this server, from the address or from an earlier visit of this tab. */
function secret(): string {
  const given = new URLSearchParams(location.search).get("secret");
  try {
    if (given !== null) sessionStorage.setItem("plait secret", given);
    return given ?? sessionStorage.getItem("plait secret") ?? "";
  } catch {
    return given ?? "";
  }
}

async function explore(section: HTMLElement): Promise<void> {
  const api = new Api(secret());
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  let model: Model;
  try {
    model = await api.get<Model>("/api/model");
  } catch (error) {
    const said = document.createElement("p");
    said.className = "banner error";
    said.setAttribute("role", "alert");
    const refused = error instanceof Refused && error.status === 401;
    said.textContent = refused
      ? "This page needs the address that `plait explore` printed: it ends with ?secret=…"
      : `error: ${error instanceof Error ? error.message : String(error)}`;
    section.replaceChildren(said);
    return;
  }
  const heading = document.createElement("h1");
  heading.textContent = model.name || model.target;
  document.title = `${heading.textContent} · plait explore`;
  const parameters = document.createElement("span");
  parameters.className = "of";
  parameters.textContent = recordText(model.parameters);
  heading.append(" ", parameters);
  section.replaceChildren(heading);
  const walk = new Walk(api, model);
  walk.problem = model.error;
  const link = decode(location.hash);
  mount(section, walk.viewer);
  if (!model.error) await (link ? walk.restore(link) : walk.open({ initial: 0, steps: [] }));
  void listen(api, walk);
  window.addEventListener("hashchange", () => {
    const next = decode(location.hash);
    if (next) void walk.restore(next);
  });
}

/** Reloads when the model is saved. A server that went away is asked again after a while. */
async function listen(api: Api, walk: Walk): Promise<never> {
  for (let pause = 1000; ; pause = Math.min(30_000, pause * 2)) {
    try {
      await api.listen(
        "/api/events",
        (event, data) => {
          pause = 1000;
          if (event === "reload") void walk.reload();
          if (event === "error")
            void walk.reload((JSON.parse(data) as { error?: { message: string } }).error ?? JSON.parse(data));
        },
        new AbortController().signal,
      );
    } catch {
      // The banner of the next request says it.
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

document.addEventListener("keydown", (event) => {
  if (active) press(active, event);
});
const page = document.querySelector<HTMLElement>("section.explorer");
if (page) void explore(page);
else reports([...document.querySelectorAll<HTMLElement>("section.viewer")]);
tables(document);
