// A walk through the state space: the tree of runs, the answer of the server for the state that is shown, and searches.
// The server keeps nothing about the reader: every request holds a whole run.
import { encode, type Link, type RunKeys } from "../link";
import { Run } from "../run/run";
import { type Data, inflate, type Message, type Sparse, stateOf, type Trace, whole } from "../run/trace";
import { text } from "../run/values";
import { recordText } from "../run/wording";
import { type View, Viewer } from "../viewer-state";
import {
  type Api,
  type Done,
  type Enabled,
  type Model,
  type Problem,
  type Progress,
  Refused,
  type Search,
  type Walked,
} from "./api";
import { child, cut, depth, keysOf, type Node, path, root, tip } from "./tree";

const KEPT = 400;
const EMPTY: Trace = whole({});

export interface Finding {
  id: string;
  search: Search;
  title: string;
  progress: Progress;
  done: Done | null;
  abort: AbortController;
}

interface Place {
  tip: Node;
  step: number;
}

export class Walk {
  readonly trees = new Map<number, Node>();
  readonly viewer: Viewer;
  tip: Node = this.tree(0);
  answer: Walked | null = null;
  watches: string[];
  problem: Problem | null = null;
  /** What changed in the model, if a part of the run no longer exists. */
  gone: string | null = null;
  findings: Finding[] = [];
  busy = false;
  readonly exports = [
    { format: "itf", name: "ITF", file: "run.itf.json" },
    { format: "pytest", name: "pytest test", file: "test_run.py" },
    { format: "json", name: "Trace (JSON)", file: "run.json" },
  ];
  readonly #answers = new Map<string, Walked>();
  readonly #past: Place[] = [];
  readonly #future: Place[] = [];
  #asked = 0;
  #early: Early | null;
  #turn: Promise<void> = Promise.resolve();
  #opened = false;

  constructor(
    readonly api: Api,
    public model: Model,
    early: Early | null = null,
  ) {
    this.#early = early;
    this.viewer = new Viewer(
      new Run({ ...EMPTY, target: model.target, parameters: model.parameters, lanes: model.lanes }),
      0,
    );
    this.viewer.walk = this;
    this.viewer.set({ upper: "next", lower: model.views ? "views" : "state" });
    this.watches = storedWatches(model.target);
  }

  get run(): RunKeys {
    return keysOf(this.tip);
  }

  /** The node of the state that is shown. */
  get node(): Node {
    return path(this.tip)[this.viewer.view.step] ?? this.tip;
  }

  get address(): string {
    const { origin, pathname } = location;
    return `${origin}${pathname}?secret=${encodeURIComponent(this.api.secret)}#run=${encode(this.viewer.link)}`;
  }

  tree(initial: number): Node {
    const found = this.trees.get(initial) ?? root(initial);
    this.trees.set(initial, found);
    return found;
  }

  /** Opens a run at one of its steps. The rest of the run stays visible. */
  async open(run: RunKeys, step = run.steps.length, patch: Partial<View> = {}): Promise<void> {
    await this.#try(async () => {
      const walked = await this.#ask(run, 0);
      this.gone = walked.gone ? `The run ends at step ${walked.valid}: ${walked.gone.reason}` : null;
      const trace = inflate(walked.trace);
      const messages = new Map(trace.messages.map((m) => [m.id, m]));
      // A link may name an initial state that the model does not have.
      let at = this.tree(run.initial < this.model.initial ? run.initial : 0);
      for (const [i, key] of run.steps.slice(0, walked.valid).entries()) {
        const event = trace.events[i];
        at = child(
          at,
          key,
          event
            ? stepLabel(
                event.lane,
                event.label,
                event.consumed.map((id) => messages.get(id)),
                event.choices,
              )
            : key,
        );
      }
      if (!walked.gone) at.loop = trace.loop ?? undefined;
      this.#remember();
      this.tip = at;
      const here = Math.min(step, trace.events.length);
      this.answer = here === trace.events.length ? walked : null;
      this.viewer.show(trace, { step: here, notes: this.#notes(), compare: null, ...patch });
      if (!this.answer) await this.#refresh();
    });
  }

  /** Takes an enabled step of the state that is shown. If the run goes on differently, this is a new branch. */
  async take(enabled: Enabled): Promise<void> {
    await this.#try(async () => {
      const from = this.node;
      const at = depth(from);
      const known = from.children.some((one) => one.key === enabled.key);
      const { initial, steps } = keysOf(from);
      const run = { initial, steps: [...steps, enabled.key] };
      const walked = await this.#ask(run, at);
      if (walked.gone) throw new Refused(0, { message: `this step is not possible: ${walked.gone.reason}` });
      this.#remember();
      const to = child(from, enabled.key, stepLabel(enabled.lane, enabled.label, enabled.consumed, enabled.choices));
      const trace = extended(this.viewer.run.trace, at, walked.trace);
      to.loop = trace.loop ?? undefined;
      this.tip = to;
      this.answer = walked;
      this.gone = null;
      this.viewer.show(trace, { step: at + 1, notes: this.#notes(), said: "" });
      // The step was taken before: the rest of that branch is shown again.
      if (known && to.next) await this.open(keysOf(tip(to)), at + 1);
    });
  }

  takeNumber(number: number): void {
    this.#after(async () => {
      const enabled = this.answer?.enabled[number - 1];
      if (enabled) await this.take(enabled);
      else this.viewer.set({ said: `there is no enabled step ${number}` });
    });
  }

  /** Keys may come faster than answers: an act begins when the act before it is done. */
  #after(act: () => Promise<void>): void {
    this.#turn = this.#turn.then(act);
  }

  jump(node: Node): void {
    void this.open(keysOf(tip(node)), depth(node));
  }

  remove(node: Node): void {
    const inside = path(this.tip).includes(node);
    const parent = cut(node);
    if (inside && parent) this.jump(parent);
    else this.viewer.set({});
  }

  undo(): void {
    this.#after(() => this.#travel(this.#past, this.#future, "nothing to undo"));
  }

  redo(): void {
    this.#after(() => this.#travel(this.#future, this.#past, "nothing to redo"));
  }

  get can(): { undo: boolean; redo: boolean } {
    return { undo: this.#past.length > 0, redo: this.#future.length > 0 };
  }

  async #travel(from: Place[], to: Place[], otherwise: string): Promise<void> {
    const place = from.pop();
    if (!place) {
      this.viewer.set({ said: otherwise });
      return;
    }
    const here = { tip: this.tip, step: this.viewer.view.step };
    const future = [...this.#future];
    const count = this.#past.length;
    await this.open(keysOf(place.tip), place.step);
    // Opening remembers where it came from. Undo keeps its own account.
    this.#past.length = count;
    this.#future.splice(0, this.#future.length, ...future);
    to.push(here);
    this.viewer.set({});
  }

  #remember(): void {
    if (!this.#opened) {
      this.#opened = true;
      return;
    }
    this.#past.push({ tip: this.tip, step: this.viewer.view.step });
    this.#future.length = 0;
  }

  /** The reader moved along the run: enabled steps, properties and source are those of another state. */
  moved(): void {
    this.answer = this.#answers.get(this.#name(keysOf(this.node))) ?? null;
    const asked = ++this.#asked;
    if (this.answer) this.viewer.set({});
    else
      this.#after(async () => {
        // Only the state at which the reader stops is asked for.
        if (asked === this.#asked) await this.#try(() => this.#refresh());
      });
  }

  noted(step: number, note: string | undefined): void {
    const node = path(this.tip)[step];
    if (node) node.note = note;
  }

  #notes(): Record<number, string> {
    return Object.fromEntries(path(this.tip).flatMap((node, i) => (node.note ? [[i, node.note]] : [])));
  }

  async watch(watches: string[]): Promise<void> {
    const before = this.watches;
    this.watches = watches;
    await this.#try(async () => {
      try {
        await this.#refresh();
      } catch (error) {
        // What the server refuses would be refused with every step, too.
        if (watches.length > before.length) this.watches = before;
        throw error;
      } finally {
        storeWatches(this.model.target, this.watches);
      }
    });
  }

  /** The model was saved: the run is kept as far as it still exists. */
  async reload(problem: Problem | null = null): Promise<void> {
    this.#answers.clear();
    await this.#try(async () => {
      const model = problem ? null : await this.api.get<Model>("/api/model");
      this.model = model && !model.error ? model : { ...this.model, error: problem ?? model?.error ?? null };
      this.problem = this.model.error;
      if (this.problem) return;
      await this.open(this.run, this.viewer.view.step);
      this.viewer.set({ said: "the model was reloaded" });
    });
  }

  restore(link: Link): Promise<void> {
    const { target, parameters } = this.model;
    const notes = link.notes ?? {};
    const other = link.target !== target || recordText(link.parameters ?? {}) !== recordText(parameters);
    return this.open(link.run ?? { initial: 0, steps: [] }, link.step).then(() => {
      for (const [step, note] of Object.entries(notes)) this.noted(Number(step), note);
      this.viewer.restore(link);
      if (other)
        this.gone = `${this.gone ? `${this.gone} ` : ""}This link is for ${link.target} (${recordText(link.parameters ?? {})}). The page shows ${target} (${recordText(parameters)}).`;
      this.viewer.set({});
    });
  }

  async export(format: string): Promise<string> {
    return this.api.text("/api/export", { run: this.run, format });
  }

  /** Starts a search in the background. */
  async search(search: Search, title: string): Promise<void> {
    await this.#try(async () => {
      const { id } = await this.api.post<{ id: string }>("/api/search", search);
      const finding: Finding = { id, search, title, progress: {}, done: null, abort: new AbortController() };
      this.findings = [finding, ...this.findings];
      this.viewer.set({});
      void this.api
        .listen(
          `/api/search/${encodeURIComponent(id)}/events`,
          (event, data) => {
            if (event === "progress") finding.progress = JSON.parse(data) as Progress;
            if (event === "done") finding.done = JSON.parse(data) as Done;
            this.findings = [...this.findings];
            this.viewer.set({});
          },
          finding.abort.signal,
        )
        .catch((error: unknown) => {
          if (!finding.done)
            finding.done = { status: "error", text: error instanceof Error ? error.message : String(error) };
          this.viewer.set({});
        });
    });
  }

  async stop(finding: Finding): Promise<void> {
    await this.#try(() => this.api.delete(`/api/search/${encodeURIComponent(finding.id)}`));
  }

  forget(finding: Finding): void {
    finding.abort.abort();
    if (!finding.done) void this.stop(finding);
    this.findings = this.findings.filter((one) => one !== finding);
    this.viewer.set({});
  }

  #name(run: RunKeys): string {
    return nameOf(run, this.watches);
  }

  async #ask(run: RunKeys, have: number): Promise<Walked> {
    const early = this.#early;
    this.#early = null;
    const body = { run, watches: this.watches, compare: null, have };
    const asked = have === 0 && early?.name === this.#name(run);
    const walked = await (asked ? early.answer : this.api.post<Walked>("/api/walk", body));
    if (!walked.gone) {
      this.#answers.set(this.#name(run), walked);
      if (this.#answers.size > KEPT) this.#answers.delete(this.#answers.keys().next().value as string);
    }
    return walked;
  }

  async #refresh(): Promise<void> {
    const asked = ++this.#asked;
    const run = keysOf(this.node);
    const walked = await this.#ask(run, run.steps.length);
    if (asked !== this.#asked) return;
    this.answer = walked;
    this.viewer.set({});
  }

  async #try(act: () => Promise<unknown>): Promise<void> {
    this.busy = true;
    this.problem = this.model.error;
    try {
      await act();
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return;
      this.problem = error instanceof Refused ? error.problem : { message: String(error) };
    } finally {
      this.busy = false;
      this.viewer.set({});
    }
  }
}

/** An answer that was asked for before the model was known. */
export interface Early {
  name: string;
  answer: Promise<Walked>;
}

/** Asks for the run of a link at once: the server can execute it while the page is made. */
export function early(api: Api, link: Link | null): Early {
  const run = link?.run ?? { initial: 0, steps: [] };
  const watches = link ? storedWatches(link.target) : [];
  const answer = api.post<Walked>("/api/walk", { run, watches, compare: null, have: 0 });
  answer.catch(() => {}); // whoever waits for it gets the error
  return { name: nameOf(run, watches), answer };
}

function nameOf(run: RunKeys, watches: string[]): string {
  return JSON.stringify([run, watches]);
}

function storedWatches(target: string): string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(`plait watches ${target}`) ?? "[]");
    return Array.isArray(stored) ? stored.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

function storeWatches(target: string, watches: string[]): void {
  try {
    localStorage.setItem(`plait watches ${target}`, JSON.stringify(watches));
  } catch {
    // A browser without storage forgets them.
  }
}

/** A step as one line of the tree: equal handlers differ in the messages that they take and in what they choose. */
export function stepLabel(
  lane: string,
  label: string,
  taken: readonly (Omit<Message, "id"> | undefined)[],
  choices: readonly Data[],
): string {
  const messages = taken.flatMap((m) => (m ? [`${m.type}(${recordText(m.fields)})`] : []));
  const more = [...new Set(messages), ...choices.map(text)];
  return `${lane} ${label}${more.length ? ` ← ${more.join(", ")}` : ""}`;
}

/** The first events of a trace, and then those of another. Messages that only the removed events used are removed. */
export function extended(trace: Trace, kept: number, more: Sparse): Trace {
  const added = inflate(more, stateOf(trace, kept));
  let { messages } = trace;
  const events = trace.events.slice(0, kept);
  if (kept < trace.events.length) {
    const known = new Set(Object.values(trace.initial.pending).flat());
    for (const event of events) {
      for (const id of event.sent) known.add(id);
      for (const ids of Object.values(event.state.pending)) for (const id of ids) known.add(id);
    }
    messages = messages.filter((m) => known.has(m.id));
  }
  const present = new Set(messages.map((m) => m.id));
  return {
    ...trace,
    loop: added.loop,
    events: [...events, ...added.events],
    messages: [...messages, ...added.messages.filter((m) => !present.has(m.id))],
  };
}
