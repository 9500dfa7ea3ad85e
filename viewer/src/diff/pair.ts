// Two runs side by side. Both are stretched to the same rows, so that a row has the same height in both diagrams: where a
// run has no step, it has a gap. A row is a step of the viewer, so that keys, search, notes and links are those of a run.
import { Run } from "../run/run";
import type { Event, Lane, Mark, Trace } from "../run/trace";
import { visible } from "../run/values";
import { title } from "../run/wording";

export type Relation = "same" | "changed" | "moved" | "one";

/** Two events side by side, by their indices; or one event alone. As plait.kernel.alignment writes it. */
export interface AlignedRow {
  relation: Relation;
  first: number | null;
  second: number | null;
}

const NAMES = ["A", "B"] as const;
const SIGNS: Record<Relation, string> = { same: "=", changed: "≠", moved: "↕", one: "" };
const CLASSES: Record<Relation, string> = { same: "", changed: " changed", moved: " moved", one: " alone" };

/** One of the two runs, with gaps. */
export class Side extends Run {
  constructor(
    trace: Trace,
    readonly name: string,
    /** For each row, the number of its step in this run. */
    readonly numbers: readonly (number | null)[],
    readonly relations: readonly Relation[],
  ) {
    super(trace);
  }

  override get ending(): number {
    return this.numbers.findLastIndex((number) => number !== null);
  }

  override event(row: number): Event | undefined {
    return this.has(row) ? super.event(row) : undefined;
  }

  override has(row: number): boolean {
    return this.numbers[row] !== null;
  }

  override number(row: number): string {
    return String(this.numbers[row] ?? "");
  }

  override mark(row: number): string {
    return CLASSES[this.relations[row] ?? "same"];
  }

  /** The number of steps, without gaps. */
  get length(): number {
    return this.numbers[this.ending] ?? 0;
  }
}

/** Both runs: a row has the events of both, and says in which of them an effect is. */
export class Pair extends Run {
  readonly #sides: readonly [Side, Side];
  readonly #relations: readonly Relation[];

  constructor(first: Trace, second: Trace, rows: readonly AlignedRow[]) {
    const lanes = [...new Map([...first.lanes, ...second.lanes].map((lane) => [lane.name, lane])).values()];
    const places = [rows.map((row) => row.first), rows.map((row) => row.second)] as const;
    const traces = [stretched(first, places[0], lanes), stretched(second, places[1], lanes)] as const;
    const [bands, labels] = shared(traces[0].marks, traces[1].marks);
    const events = rows.map((row, i) => (row.first === null ? traces[1] : traces[0]).events[i] as Event);
    super({ ...traces[0], messages: [], marks: labels, loop: null, why: null, events });
    this.#relations = ["same", ...rows.map((row) => row.relation)];
    const side = (i: 0 | 1): Side =>
      new Side(
        { ...traces[i], marks: bands[i] },
        NAMES[i],
        [0, ...places[i].map((place) => (place === null ? null : place + 1))],
        this.#relations,
      );
    this.#sides = [side(0), side(1)];
  }

  override get sides(): readonly [Side, Side] {
    return this.#sides;
  }

  relation(row: number): Relation {
    return this.#relations[row] ?? "same";
  }

  override number(row: number): string {
    const [a, b] = this.sides.map((side) => side.number(row) || "–");
    return `${a} ${SIGNS[this.relation(row)]} ${b}`.replace("  ", " ");
  }

  override mark(row: number): string {
    return CLASSES[this.relation(row)];
  }

  override place(row: number): string {
    const present = this.sides.filter((side) => side.has(row));
    const steps = present.map((side) => `${side.name} step ${side.number(row)} of ${side.length}`).join(", ");
    const said = {
      same: "",
      changed: ", other effects",
      moved: ", at another time",
      one: `, only in ${present[0]?.name}`,
    };
    return `${steps}${said[this.relation(row)]}`;
  }

  override title(row: number): string {
    const event = this.event(row);
    return event ? title(event) : "initial states";
  }

  /** The effects of both, without the numbers of messages: these differ between runs. */
  override details(row: number): [string, string, string?][] {
    const [first, second] = this.sides.map((side) =>
      side.details(row).map(([verb, what]): [string, string] => [verb, unnumbered(what)]),
    ) as [[string, string][], [string, string][]];
    const only = (mine: [string, string][], others: [string, string][]): [string, string][] =>
      mine.filter(([verb, what]) => !others.some((other) => other[0] === verb && other[1] === what));
    const [a, b] = [only(first, second), only(second, first)];
    return [
      ...first.filter((line) => !a.includes(line)),
      ...a.map(([verb, what]): [string, string, string] => [verb, what, "A"]),
      ...b.map(([verb, what]): [string, string, string] => [verb, what, "B"]),
    ];
  }

  /** The rows that differ, for moving from one difference to the next: the first of each group. */
  get differences(): number[] {
    return this.#relations.flatMap((relation, row) =>
      relation !== "same" && (this.#relations[row - 1] ?? "same") === "same" ? [row] : [],
    );
  }
}

/** A text without numbers of messages (`#3 Ping() from A`, `→ B: Ping()  (#3, #4)`). */
export function unnumbered(said: string): string {
  return said.replace(/^#\d+ /, "").replace(/ {2}\((#\d+(, )?)+\)$/, "");
}

/** A trace with a gap in each row in which it has no event. Lanes of the other trace do not run in it. */
function stretched(trace: Trace, places: readonly (number | null)[], lanes: Lane[]): Trace {
  const own = new Set(trace.lanes.map((lane) => lane.name));
  const absent = Object.fromEntries(lanes.flatMap(({ name }) => (own.has(name) ? [] : [[name, "unborn"]])));
  const some = Object.keys(absent).length > 0;
  const complete = (state: Trace["initial"]): Trace["initial"] =>
    some ? { ...state, status: { ...state.status, ...absent } } : state;
  const initial = complete(trace.initial);
  let state = initial;
  const rows = new Map<number, number>();
  const events = places.map((place, row): Event => {
    const event = place === null ? undefined : trace.events[place];
    if (place === null || !event) return { ...GAP, state };
    rows.set(place, row);
    state = complete(event.state);
    return some ? { ...event, state } : event;
  });
  const at = (place: number): number => rows.get(place) ?? events.length;
  return {
    ...trace,
    lanes,
    initial,
    events,
    loop: trace.loop === null ? null : at(trace.loop),
    why: trace.why ? { ...trace.why, steps: trace.why.steps.map(at) } : null,
    marks: trace.marks.map((mark) => ({ ...mark, before: at(mark.before) })),
  };
}

const GAP: Omit<Event, "state"> = {
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
};

/** The boundaries of both runs. A boundary of one takes room in both drawings; the list of steps says whose it is. */
function shared(first: Mark[], second: Mark[]): [[Mark[], Mark[]], Mark[]] {
  const sides: [Mark[], Mark[]] = [[], []];
  const labels: Mark[] = [];
  const rows = [...new Set([...first, ...second].map((mark) => mark.before))].sort((a, b) => a - b);
  for (const before of rows) {
    const here = [first, second].map((marks) => marks.filter((mark) => mark.before === before)) as [Mark[], Mark[]];
    const most = Math.max(here[0].length, here[1].length);
    for (const i of [0, 1] as const) {
      const room = Array.from({ length: most - here[i].length }, () => ({ before, label: "", lost: [] }));
      sides[i].push(...here[i], ...room);
    }
    for (let i = 0; i < most; i++) {
      const [a, b] = here.map((marks) => marks[i]?.label) as [string | undefined, string | undefined];
      const label = a === b ? a : [a && `A: ${a}`, b && `B: ${b}`].filter(Boolean).join("; ");
      labels.push({ before, label: visible(label ?? ""), lost: [] });
    }
  }
  return [sides, labels];
}
