// The sentences about steps. They are those of plait.report.wording, so that page and terminal say the same.
import type { Journey } from "./flow";
import type { Event, Fields, Kind, Lane, Message, Trace } from "./trace";
import { text, visible } from "./values";

export const FAULTS: Partial<Record<Kind, string>> = {
  lose: "✕ LOST",
  duplicate: "+ DUPLICATED",
  crash: "✕ CRASH",
  recover: "○ RECOVERY",
};
export const STATUS_WORDS: Record<string, string> = { crashed: "crashed", down: "down", unborn: "not started" };

export function plural(count: number, noun: string): string {
  if (count === 1) return `1 ${noun}`;
  return `${count.toLocaleString("en")} ${noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;
}

export function recordText(fields: Fields): string {
  return Object.entries(fields)
    .map(([name, value]) => `${visible(name)}=${visible(text(value))}`)
    .join(", ");
}

/** A message as the Python call that makes it. */
export function messageText(m: Message): string {
  return `${visible(m.type)}(${recordText(m.fields)})`;
}

/** A message with its number and sender, as it waits in an inbox. */
export function pendingText(id: number, m: Message | undefined): string {
  return m
    ? `#${id} ${messageText(m)} from ${visible(m.sender)}`
    : `#${id}, a message that the trace does not describe`;
}

/** The label of an event; empty if it only repeats the mark of the fault. */
export function eventLabel(event: Event): string {
  return FAULTS[event.kind] && event.label === event.kind ? "" : visible(event.label);
}

/** A step as one line. */
export function title(event: Event): string {
  const place = placeText(event);
  return `${visible(event.lane)} ${place && `${place} `}${eventLabel(event) || FAULTS[event.kind] || ""}`.trim();
}

/** Messages grouped by content: receivers, content, ids. So a broadcast is one line. */
export function sentGroups(
  messages: Map<number, Message>,
  ids: number[],
): { to: string[]; what: string; ids: number[] }[] {
  const groups = new Map<string, { to: string[]; what: string; ids: number[] }>();
  for (const id of ids) {
    const m = messages.get(id);
    const what = m ? messageText(m) : "a message that the trace does not describe";
    const group = groups.get(what) ?? { to: [], what, ids: [] };
    group.to.push(m ? visible(m.receiver) : "?");
    group.ids.push(id);
    groups.set(what, group);
  }
  return [...groups.values()];
}

const numbers = (ids: number[]): string => `(${ids.map((id) => `#${id}`).join(", ")})`;

/** A field of an event, without the name of the lane if it is the shared memory: there is only one. */
function bare(field: string, lanes: Lane[]): string {
  const memory = lanes.find(({ shared, role }) => shared && role === "memory");
  return memory && field.startsWith(`${memory.name}.`) ? field.slice(memory.name.length + 1) : field;
}

/** What an event reads, if its values are known; without what it also writes. */
function reads(event: Event, lanes: Lane[], prefix = ""): string[] {
  return Object.entries(event.values ?? {})
    .filter(([field]) => field.startsWith(prefix) && !(field in event.changed))
    .map(([field, value]) => `${visible(bare(field, lanes))} = ${visible(text(value))}`);
}

/** What an event reads and writes on the lane of a shared object: `x = 1`, or `x: 1 → 2`. Empty if it is not known. */
export function accessLines(trace: Trace, event: Event, lane: string): string[] {
  if (!event.values) return [];
  const prefix = `${lane}.`;
  const written = Object.entries(event.changed)
    .filter(([field]) => field.startsWith(prefix))
    .map(([field, [a, b]]) => `${visible(bare(field, trace.lanes))}: ${visible(text(a))} → ${visible(text(b))}`);
  return [...reads(event, trace.lanes, prefix), ...written];
}

/** The place of the statement of a step, without the folder of its file. Empty if it has none. */
export function placeText({ place }: Event): string {
  return place ? visible(`${place.file.split(/[\\/]/).at(-1) || place.file}:${place.line}`) : "";
}

/** The effects of an event as rows (verb, text): takes, chooses, sends, announces, spawns, reads, changes. */
export function details(event: Event, messages: Map<number, Message>, lanes: Lane[]): [string, string][] {
  const rows: [string, string][] = [];
  const take =
    ({ lose: "loses", crash: "drops", duplicate: "copies" } as Record<string, string>)[event.kind] ?? "takes";
  const read = event.values ? reads(event, lanes) : event.read.map(visible);
  if (read.length) rows.push(["reads", read.join(", ")]);
  for (const id of event.consumed) rows.push([take, pendingText(id, messages.get(id))]);
  for (const choice of event.choices) rows.push(["chooses", visible(text(choice))]);
  for (const { to, what, ids } of sentGroups(messages, event.sent)) {
    rows.push([event.kind === "duplicate" ? "adds" : "sends", `→ ${to.join(", ")}: ${what}  ${numbers(ids)}`]);
  }
  for (const announced of event.announced) rows.push(["announces", visible(text(announced))]);
  if (event.spawned.length) rows.push(["spawns", event.spawned.map(visible).join(", ")]);
  for (const [field, [before, after]] of Object.entries(event.changed)) {
    const name = bare(field, lanes);
    const verb = name === field ? "changes" : "writes";
    rows.push([verb, `${visible(name)}: ${visible(text(before))} → ${visible(text(after))}`]);
  }
  if (event.abstract) rows.push(["abstract", visible(event.abstract)]);
  for (const line of (event.note ?? "").split("\n")) if (line) rows.push(["note", visible(line)]);
  return rows;
}

/** What happened to a message in a step as a side effect: it was copied, merged or dropped. */
export function ending(event: Event, step: number, journey: Journey): [string, string][] {
  const { id } = journey.message;
  const to = visible(journey.message.receiver);
  if (journey.copyOf !== null && journey.born === step && !event.sent.includes(id)) {
    return [["adds", `→ ${to}: ${messageText(journey.message)}  (#${id})`]];
  }
  if (journey.merged !== null && journey.born === step) {
    return [["merges", `#${id}: the equal message #${journey.merged} is pending already`]];
  }
  if (journey.dropped !== step || event.consumed.includes(id)) return [];
  if (event.sent.includes(id)) {
    const down = journey.message.receiver in event.state.status;
    return [["drops", down ? `#${id}: ${to} is not running` : `#${id}: the channel to ${to} is full`]];
  }
  return [["drops", pendingText(id, journey.message)]];
}

export function modelText(trace: Trace): string {
  const target = visible(trace.target);
  return Object.keys(trace.parameters).length ? `${target} (${recordText(trace.parameters)})` : target;
}

export function shorten(raw: string, length: number): string {
  return raw.length <= length ? raw : `${raw.slice(0, Math.max(1, length - 1))}…`;
}
