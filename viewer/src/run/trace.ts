// The format of traces, as plait.kernel.trace writes it. A report leaves out what a state shares with the state before.

/** JSON in the style of ITF: tuples, sets and maps are tagged objects. */
export type Data = null | boolean | number | string | Data[] | { [key: string]: Data };
export type Fields = Record<string, Data>;

export interface Lane {
  name: string;
  role: string;
  shared?: boolean;
}

export interface Message {
  id: number;
  type: string;
  fields: Fields;
  sender: string;
  receiver: string;
}

/** What a @view drew of a state: SVG, or why there is no picture; and what was removed from it. */
export interface Picture {
  svg?: string | null;
  error?: string | null;
  note?: string | null;
}

export interface Snapshot {
  fields: Record<string, Fields>;
  pending: Record<string, number[]>;
  monitors: Fields;
  status: Record<string, string>;
  budgets: Record<string, number>;
  /** By the name of the view; missing if the model has none. */
  views?: Record<string, Picture>;
}

export type Kind = "step" | "lose" | "duplicate" | "crash" | "recover" | "tick";

export interface Event {
  lane: string;
  kind: Kind;
  label: string;
  state: Snapshot;
  consumed: number[];
  sent: number[];
  announced: Data[];
  choices: Data[];
  spawned: string[];
  read: string[];
  changed: Record<string, [Data, Data]>;
  note?: string | null;
  abstract?: string | null;
  /** For each field of a shared object in `read`, the value that was read; missing if the values are not known. */
  values?: Fields;
  /** The statement of the step, whose text is the label. */
  place?: { file: string; line: number };
}

export interface Mark {
  before: number;
  label: string;
  lost: number[];
}

export interface Trace {
  target: string;
  parameters: Fields;
  property: string | null;
  lanes: Lane[];
  messages: Message[];
  initial: Snapshot;
  events: Event[];
  chosen: Record<string, Data[]>;
  loop: number | null;
  explanation?: string | null;
  marks: Mark[];
  tidied?: string | null;
  why?: { steps: number[] } | null;
}

/** A part of a state that is missing is as in the state before; an entry that is gone has this mark. */
type Gone = { "#gone": true };
type Part<T> = { [K in keyof T]?: T[K] | Gone };
export type Change = { [K in keyof Snapshot]?: Part<NonNullable<Snapshot[K]>> };
export type Sparse = Omit<Trace, "events"> & { events: (Omit<Event, "state"> & { state: Change })[] };

const EMPTY: Snapshot = { fields: {}, pending: {}, monitors: {}, status: {}, budgets: {} };

/** A trace with all defaults. */
export function whole(raw: Partial<Trace>): Trace {
  return {
    target: "",
    parameters: {},
    property: null,
    lanes: [],
    messages: [],
    chosen: {},
    loop: null,
    marks: [],
    ...raw,
    initial: { ...EMPTY, ...raw.initial },
    events: (raw.events ?? []).map(event),
  };
}

function event(raw: Partial<Event>): Event {
  return {
    lane: "",
    kind: "step",
    label: "",
    consumed: [],
    sent: [],
    announced: [],
    choices: [],
    spawned: [],
    read: [],
    changed: {},
    ...raw,
    state: { ...EMPTY, ...raw.state },
  };
}

/** A trace with whole states. States share the parts that did not change. `before`: the state before its first event. */
export function inflate(raw: Sparse, before: Partial<Snapshot> = raw.initial): Trace {
  let state: Snapshot = { ...EMPTY, ...before };
  const events = raw.events.map((one) => {
    state = { ...state };
    for (const part of Object.keys(one.state) as (keyof Snapshot)[]) {
      const next: Record<string, unknown> = { ...state[part] };
      for (const [name, value] of Object.entries(one.state[part] ?? {})) {
        if (typeof value === "object" && value !== null && "#gone" in value) delete next[name];
        else next[name] = value;
      }
      state[part] = next as never;
    }
    return { ...one, state };
  });
  return whole({ ...raw, events });
}

/** All states of the run, beginning with the initial state. */
export function stateOf(trace: Trace, step: number): Snapshot {
  return step === 0 ? trace.initial : (trace.events[step - 1]?.state ?? trace.initial);
}

/** JSON, with 1.0 kept apart from 1: Python shows them differently, and JSON.parse makes them equal. */
export function parse(raw: string): unknown {
  if (!/[:,[]\s*-?\d+(\.0+|(\.\d+)?[eE][-+]?\d+)\s*[,\]}]/.test(raw)) return JSON.parse(raw);
  const reviver = (_: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === "number" && Number.isInteger(value) && context?.source?.includes(".")
      ? { "#unserializable": context.source }
      : value;
  return JSON.parse(raw, reviver as (key: string, value: unknown) => unknown);
}
