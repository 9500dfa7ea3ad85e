// Searching a run: words, and words with a prefix that says where to look.
//   process:Acceptor0  message:Promise  field:ballot  handler:on_read  fault:crash  step:10-20  "two words"  -not
import type { Run } from "./run";

interface Term {
  where: string;
  what: string;
  negated: boolean;
}

export const PREFIXES = ["process", "message", "field", "handler", "fault", "note", "step"];

/** The prefixes that can find something: not every run has messages, fields or faults. Threads have no handlers. */
export function prefixes(run: Run): string[] {
  const { sides } = run;
  const has: Record<string, () => boolean> = {
    message: () => sides.some((side) => side.messages.size > 0),
    field: () => sides.some((side) => side.stateful),
    handler: () => sides.every((side) => !side.trace.events.some(({ place }) => place)),
    fault: () => sides.some((side) => side.trace.events.some(({ kind }) => kind !== "step")),
  };
  return PREFIXES.filter((prefix) => has[prefix]?.() ?? true);
}

export function terms(query: string): Term[] {
  const found: Term[] = [];
  for (const [, minus, prefix, quoted, plain] of query.matchAll(/(-)?(?:(\w+):)?(?:"([^"]*)"|(\S+))/g)) {
    const known = prefix && PREFIXES.includes(prefix);
    const raw = quoted ?? plain ?? "";
    const what = (known || !prefix ? raw : `${prefix}:${raw}`).toLowerCase();
    if (what) found.push({ where: known ? prefix : "", what, negated: minus !== undefined });
  }
  return found;
}

function within(range: string, step: number): boolean {
  const [, from, dash, to] = /^(\d*)(-?)(\d*)$/.exec(range) ?? [];
  if (from === undefined) return false;
  if (!dash) return Number(from) === step;
  return step >= Number(from || 0) && step <= (to ? Number(to) : Number.POSITIVE_INFINITY);
}

function matches(run: Run, step: number, { where, what }: Term, note: string): boolean {
  const event = run.event(step);
  if (where === "step") return within(what, Number(run.number(step)));
  if (where === "note") return note.toLowerCase().includes(what);
  if (!where) return run.text(step).toLowerCase().includes(what) || note.toLowerCase().includes(what);
  if (!event) return false;
  const some = (texts: string[]): boolean => texts.some((text) => text.toLowerCase().includes(what));
  if (where === "process") return some([event.lane]);
  if (where === "handler") return event.kind === "step" && some([event.label]);
  if (where === "fault") return event.kind !== "step" && some([event.kind, event.label]);
  if (where === "field") return some(Object.keys(event.changed));
  const used = [...event.consumed, ...event.sent].flatMap((id) => run.messages.get(id) ?? []);
  return some(used.map((m) => m.type)) || used.some((m) => `#${m.id}` === what);
}

/** The steps that match all terms of a query. An empty query matches no step. */
export function search(run: Run, query: string, notes: Record<number, string> = {}): number[] {
  const wanted = terms(query);
  if (!wanted.length) return [];
  const found: number[] = [];
  for (let step = 0; step <= run.last; step++) {
    if (!run.has(step)) continue;
    if (wanted.every((term) => matches(run, step, term, notes[step] ?? "") !== term.negated)) found.push(step);
  }
  return found;
}
