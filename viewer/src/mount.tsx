// Puts viewers into a page, or into the output of a notebook cell.
import { render } from "preact";
import { App } from "./app";
import { type AlignedRow, Pair } from "./diff/pair";
import { type Api, type Model, Refused } from "./explore/api";
import { early, Walk } from "./explore/walk";
import { decode } from "./link";
import { Run } from "./run/run";
import { inflate, parse, type Sparse } from "./run/trace";
import { recordText } from "./run/wording";
import { Viewer } from "./viewer-state";

/** What a page embeds: a run, or two runs and which of their events are the same. */
type Data = { start: number } & ({ trace: Sparse } | { pair: [Sparse, Sparse]; rows: AlignedRow[] });

function runOf(data: Data): Run {
  if ("trace" in data) return new Run(inflate(data.trace));
  const [first, second] = data.pair;
  return new Pair(inflate(first), inflate(second), data.rows);
}

/** The viewers of a page or of a widget, and the one that gets the keys. */
export class Stage {
  active: Viewer | undefined;
  readonly #ends: (() => void)[] = [];

  /** @param linked Whether the address of the page is the link to what is shown. */
  constructor(
    readonly root: Document | ShadowRoot,
    readonly linked: boolean,
  ) {}

  /** Calls this when the stage ends. */
  onEnd(end: () => void): void {
    this.#ends.push(end);
  }

  end(): void {
    for (const end of this.#ends) end();
  }

  mount(section: HTMLElement, viewer: Viewer): void {
    const holder = document.createElement("div");
    holder.className = "app";
    section.append(holder);
    section.classList.add("live");
    viewer.stage = this;
    viewer.section = section;
    const follow = (): void => {
      section.dataset.current = String(viewer.view.step);
    };
    follow();
    viewer.subscribe(follow);
    render(<App viewer={viewer} />, holder);
    this.onEnd(() => {
      viewer.play(false);
      render(null, holder);
    });
    this.active ??= viewer;
    for (const kind of ["pointerdown", "focusin"]) {
      section.addEventListener(kind, () => {
        this.active = viewer;
      });
    }
    if (this.linked) followAddress(viewer);
  }

  /** The runs that a report has in its sections. */
  reports(): void {
    const link = this.linked ? decode(location.hash) : null;
    [...this.root.querySelectorAll<HTMLElement>("section.viewer")].forEach((section, number) => {
      const raw = section.querySelector("script.data")?.textContent;
      if (!raw) return;
      const data = parse(raw) as Data;
      const viewer = new Viewer(runOf(data), number);
      viewer.set({ step: data.start, lower: viewer.hasViews ? "views" : "state" });
      if (link && (link.trace ?? 0) === number) viewer.restore(link);
      this.mount(section, viewer);
      if (link && number > 0 && link.trace === number) {
        this.active = viewer;
        section.scrollIntoView();
      }
    });
  }

  /** The explorer: it asks a server or a kernel. */
  async explore(section: HTMLElement, api: Api): Promise<void> {
    const link = this.linked ? decode(location.hash) : null;
    const first = early(api, link);
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
    const heading = document.createElement(this.linked ? "h1" : "h2");
    heading.className = "model-name";
    heading.textContent = model.name || model.target;
    if (this.linked) document.title = `${heading.textContent} · plait explore`;
    const parameters = document.createElement("span");
    parameters.className = "of";
    parameters.textContent = recordText(model.parameters);
    heading.append(" ", parameters);
    section.replaceChildren(heading);
    const walk = new Walk(api, model, first);
    walk.problem = model.error;
    this.mount(section, walk.viewer);
    if (!model.error) await (link ? walk.restore(link) : walk.open({ initial: 0, steps: [] }));
    void this.#listen(api, walk);
    if (!this.linked) return;
    window.addEventListener("hashchange", () => {
      const next = decode(location.hash);
      if (next) void walk.restore(next);
    });
  }

  /** Reloads when the model is saved. A server that went away is asked again after a while. */
  async #listen(api: Api, walk: Walk): Promise<void> {
    const abort = new AbortController();
    this.onEnd(() => {
      abort.abort();
      for (const finding of walk.findings) walk.forget(finding);
    });
    for (let pause = 1000; !abort.signal.aborted; pause = Math.min(30_000, pause * 2)) {
      try {
        await api.listen(
          "/api/events",
          (event, data) => {
            pause = 1000;
            if (event === "reload") void walk.reload();
            if (event === "error")
              void walk.reload((JSON.parse(data) as { error?: { message: string } }).error ?? JSON.parse(data));
          },
          abort.signal,
        );
      } catch {
        // The banner of the next request says it.
      }
      await new Promise((done) => setTimeout(done, pause));
    }
  }
}

/** The address always is the link to what is shown. */
function followAddress(viewer: Viewer): void {
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
