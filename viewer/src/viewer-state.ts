// What a viewer shows: the run, the step, and what the reader chose to see. Components read it; only `set` changes it.
import { Layout } from "./diagram/layout";
import { Pair } from "./diff/pair";
import type { Walk } from "./explore/walk";
import { encode, type Link } from "./link";
import type { Stage } from "./mount";
import { Run } from "./run/run";
import { search } from "./run/search";
import type { Picture, Trace } from "./run/trace";

export type Dialog = "help" | "lanes" | "export" | "note" | "goto" | "find" | "initial";

export interface View {
  step: number;
  /** The state to compare with. null: the state before. */
  compare: number | null;
  query: string;
  /** Show only the steps that match. */
  only: boolean;
  hiddenLanes: ReadonlySet<string>;
  hiddenFields: ReadonlySet<string>;
  /** null: fit the width, but keep text readable. */
  zoom: number | null;
  playing: boolean;
  notes: Record<number, string>;
  dialog: Dialog | null;
  upper: string;
  lower: string;
  /** The main area: the diagram, or the state graph. */
  page: "diagram" | "graph";
  said: string;
}

/** How many steps per second a run is played. */
const SPEED = 1.6;

export class Viewer {
  view: View = {
    step: 0,
    compare: null,
    query: "",
    only: false,
    hiddenLanes: new Set(),
    hiddenFields: new Set(),
    zoom: null,
    playing: false,
    notes: {},
    dialog: null,
    upper: "steps",
    lower: "state",
    page: "diagram",
    said: "",
  };
  walk: Walk | null = null;
  /** Where this viewer is. */
  stage: Stage | null = null;
  section: HTMLElement | null = null;
  readonly #listeners = new Set<() => void>();
  #timer: number | undefined;
  #layouts: { key: unknown[]; layouts: Layout[] } | undefined;
  #matches: { key: unknown[]; matches: number[] } | undefined;

  constructor(
    public run: Run,
    readonly number: number,
  ) {}

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(patch: Partial<View>): void {
    this.view = { ...this.view, ...patch };
    for (const listener of this.#listeners) listener();
  }

  show(trace: Trace, patch: Partial<View> = {}): void {
    this.run = new Run(trace);
    this.set(patch);
  }

  go(step: number): void {
    const target = Math.max(0, Math.min(this.run.last, step));
    if (target === this.view.step) return;
    this.set({ step: target, said: "" });
    this.walk?.moved();
  }

  /** One step on or back, among the steps that are shown. */
  move(by: number): void {
    const { rows } = this.layout;
    const next = by > 0 ? rows.find((step) => step > this.view.step) : rows.findLast((step) => step < this.view.step);
    if (next !== undefined) this.go(next);
  }

  get matches(): number[] {
    const key = [this.run, this.view.query, this.view.notes];
    if (!same(this.#matches?.key, key)) {
      const found = this.run.sides.flatMap((side) => search(side, this.view.query, this.view.notes));
      this.#matches = { key, matches: [...new Set(found)].sort((a, b) => a - b) };
    }
    return this.#matches?.matches ?? [];
  }

  /** The layout of each diagram. The diagrams of a comparison have the same rows. */
  get layouts(): Layout[] {
    const { hiddenLanes } = this.view;
    const only = this.view.only && this.view.query.trim() ? this.matches : null;
    const key = [this.run, hiddenLanes, only];
    if (!same(this.#layouts?.key, key)) {
      const { sides, last } = this.run;
      let steps = only;
      if (sides.length > 1) {
        const all = only ?? Array.from({ length: last + 1 }, (_, i) => i);
        steps = all.filter((step) => !hiddenLanes.has(this.run.event(step)?.lane ?? ""));
      }
      this.#layouts = { key, layouts: sides.map((side) => new Layout(side, hiddenLanes, steps)) };
    }
    return this.#layouts?.layouts ?? [];
  }

  get layout(): Layout {
    return this.layouts[0] as Layout;
  }

  /** To the next or previous difference of two runs. */
  differ(by: 1 | -1): void {
    const found = this.run instanceof Pair ? this.run.differences : [];
    const { step } = this.view;
    const next = by > 0 ? found.find((row) => row > step) : found.findLast((row) => row < step);
    if (next !== undefined) this.go(next);
    else this.set({ said: by > 0 ? "no difference after this step" : "no difference before this step" });
  }

  /** To the next or previous match. */
  find(by: 1 | -1): void {
    const found = this.matches;
    if (!found.length) {
      this.set({ said: this.view.query ? `no step matches ${this.view.query}` : "nothing to search for: press /" });
      return;
    }
    const { step } = this.view;
    const next =
      by > 0 ? (found.find((one) => one > step) ?? found[0]) : (found.findLast((one) => one < step) ?? found.at(-1));
    this.go(next ?? step);
    this.set({ said: `match ${found.indexOf(next ?? step) + 1} of ${found.length}` });
  }

  play(on: boolean): void {
    window.clearInterval(this.#timer);
    if (on && this.view.step === this.run.last) this.go(0);
    this.set({ playing: on });
    if (!on) return;
    this.#timer = window.setInterval(() => {
      this.move(1);
      if (this.view.step === this.run.last) this.play(false);
    }, 1000 / SPEED);
  }

  note(step: number, note: string): void {
    const notes = { ...this.view.notes };
    if (note.trim()) notes[step] = note.trim();
    else delete notes[step];
    this.set({ notes });
    this.walk?.noted(step, notes[step]);
  }

  toggle(kind: "hiddenLanes" | "hiddenFields", name: string): void {
    const next = new Set(this.view[kind]);
    if (!next.delete(name)) next.add(name);
    this.set({ [kind]: next });
  }

  /** What the views of the model draw of the state that is shown; undefined if it is not known yet. */
  get pictures(): Record<string, Picture> | undefined {
    return this.walk ? this.walk.answer?.views : this.run.state(this.view.step).views;
  }

  get hasViews(): boolean {
    if (this.run.sides.length > 1) return false;
    return this.walk ? this.walk.model.views : this.run.trace.initial.views !== undefined;
  }

  /** What a link must hold so that another reader sees the same. */
  get link(): Link {
    const { step, notes, query, only, hiddenLanes, hiddenFields } = this.view;
    const { target, parameters } = this.run.trace;
    return {
      target,
      parameters,
      step,
      ...(this.number ? { trace: this.number } : {}),
      ...(this.walk ? { run: this.walk.run } : {}),
      ...(Object.keys(notes).length ? { notes } : {}),
      ...(query ? { query, only } : {}),
      ...(hiddenLanes.size ? { lanes: [...hiddenLanes] } : {}),
      ...(hiddenFields.size ? { fields: [...hiddenFields] } : {}),
    };
  }

  restore(link: Link): void {
    this.set({
      step: Math.max(0, Math.min(this.run.last, link.step)),
      notes: link.notes ?? {},
      query: link.query ?? "",
      only: link.only ?? false,
      hiddenLanes: new Set(link.lanes ?? []),
      hiddenFields: new Set(link.fields ?? []),
    });
  }

  get address(): string {
    return `${location.href.split("#")[0]}#run=${encode(this.link)}`;
  }
}

function same(one: unknown[] | undefined, other: unknown[]): boolean {
  return one?.every((value, i) => value === other[i]) ?? false;
}
