// What happened to each message and each lane of a trace. Steps count from 0, the initial state.
import { type Event, type Message, type Snapshot, stateOf, type Trace } from "./trace";
import { text } from "./values";

/** What happened to one message, from its send to its end. */
export interface Journey {
  message: Message;
  /** The step that sent it. */
  born: number;
  deliveries: number[];
  lost: number | null;
  /** The step that dropped it: its receiver crashed in this step, or had crashed before the send. */
  dropped: number | null;
  copyOf: number | null;
  /** The steps at which the network copied it. */
  copied: number[];
  /** The equal message that was pending already, on a network that keeps only one of them. */
  merged: number | null;
  pending: boolean;
}

function waiting(state: Snapshot): Set<number> {
  return new Set(Object.values(state.pending).flat());
}

function content(m: Message): string {
  return `${m.type} ${text(m.fields)} ${m.sender} ${m.receiver}`;
}

/** A journey for each message, in the order of the messages. */
export function journeys(trace: Trace): Journey[] {
  const byId = new Map(trace.messages.map((m) => [m.id, m]));
  const initial = waiting(trace.initial);
  const born = new Map([...initial].map((id) => [id, 0]));
  const taken = new Map<number, number[]>();
  const lost = new Map<number, number>();
  const dropped = new Map<number, number>();
  const copyOf = new Map<number, number>();
  const copied = new Map<number, number[]>();
  const add = (map: Map<number, number[]>, id: number, step: number) => map.set(id, [...(map.get(id) ?? []), step]);
  let tracked = initial.size > 0;
  let before = initial;
  trace.events.forEach((event, index) => {
    const step = index + 1;
    const after = event.state.pending === stateOf(trace, index).pending ? before : waiting(event.state);
    tracked ||= after.size > 0;
    const fresh = after === before ? [] : [...after].filter((id) => !before.has(id)).sort((a, b) => a - b);
    const consumed = new Set(event.consumed);
    let vanished = after === before ? [] : [...before].filter((id) => !after.has(id) && !consumed.has(id));
    if (event.kind === "duplicate") {
      const made = [...event.sent, ...fresh];
      const originals = new Set(event.consumed);
      for (const id of made) {
        const copy = byId.get(id);
        if (!copy || born.has(id)) continue;
        const original =
          event.consumed[0] ??
          trace.messages.find((m) => born.has(m.id) && m.id !== id && content(m) === content(copy))?.id;
        if (original === undefined) continue;
        copyOf.set(id, original);
        originals.add(original);
      }
      for (const id of originals) add(copied, id, step);
    } else if (event.kind === "lose") {
      for (const id of event.consumed.length ? event.consumed : vanished) lost.set(id, step);
      vanished = [];
    } else if (event.kind === "crash") vanished = [...vanished, ...event.consumed];
    else for (const id of event.consumed) add(taken, id, step);
    if (event.kind !== "duplicate") for (const id of vanished) dropped.set(id, step);
    for (const id of [...event.sent, ...fresh]) if (!born.has(id)) born.set(id, step);
    before = after;
  });
  const last = before;
  return trace.messages.map((message) => {
    const { id } = message;
    const start = born.get(id) ?? 0;
    const gone = taken.has(id) || lost.has(id) || dropped.has(id);
    const pending = tracked ? last.has(id) : !gone;
    let merged: number | null = null;
    if (!gone && !pending && !copied.has(id)) {
      const same = [...waiting(stateOf(trace, start))].sort((a, b) => a - b);
      merged =
        same.find((other) => byId.has(other) && content(byId.get(other) as Message) === content(message)) ?? null;
      if (merged === null) dropped.set(id, start);
    }
    return {
      message,
      born: start,
      deliveries: taken.get(id) ?? [],
      lost: lost.get(id) ?? null,
      dropped: dropped.get(id) ?? null,
      copyOf: copyOf.get(id) ?? null,
      copied: copied.get(id) ?? [],
      merged,
      pending,
    };
  });
}

/** The lanes of shared objects that an event reads, or writes (perhaps after it read them). */
export function accesses(trace: Trace, event: Event): Map<string, "reads" | "writes"> {
  const found = new Map<string, "reads" | "writes">();
  for (const { name, shared } of trace.lanes) {
    if (!shared) continue;
    if (Object.keys(event.changed).some((field) => field.startsWith(`${name}.`))) found.set(name, "writes");
    else if (event.read.some((field) => field.startsWith(`${name}.`))) found.set(name, "reads");
  }
  return found;
}

/** For each state, the lanes that are not running. A crash event counts even if no state records the crash. */
export function laneStatus(trace: Trace): Record<string, string>[] {
  const result = [trace.initial.status];
  let crashed: Record<string, string> = {};
  for (const event of trace.events) {
    if (event.kind === "crash") crashed = { ...crashed, [event.lane]: "crashed" };
    else if (event.kind === "recover")
      crashed = Object.fromEntries(Object.entries(crashed).filter(([lane]) => lane !== event.lane));
    result.push(Object.keys(crashed).length ? { ...crashed, ...event.state.status } : event.state.status);
  }
  return result;
}
