// A trace with everything that panels ask about it. Each part is computed when it is first needed.
import { type Journey, journeys, laneStatus } from "./flow";
import { type Event, type Message, type Snapshot, stateOf, type Trace } from "./trace";
import { visible } from "./values";
import { details, ending, eventLabel, FAULTS, placeText, title } from "./wording";

export class Run {
  readonly last: number;
  readonly messages: Map<number, Message>;
  readonly idle: Set<number>;
  #journeys: Journey[] | undefined;
  #status: Record<string, string>[] | undefined;
  #notable: Map<number, Journey[]> | undefined;
  #details: [string, string, string?][][] = [];
  #texts: string[] = [];

  constructor(readonly trace: Trace) {
    this.last = trace.events.length;
    this.messages = new Map(trace.messages.map((m) => [m.id, m]));
    const involved = new Set(trace.why?.steps ?? []);
    this.idle = new Set(
      involved.size ? trace.events.map((_, i) => i + 1).filter((step) => !involved.has(step - 1)) : [],
    );
  }

  /** The runs that are drawn: this one, or the two of a comparison. */
  get sides(): readonly Run[] {
    return [this];
  }

  /** Whether states have a content: recorded runs of threads have none. */
  get stateful(): boolean {
    return [this.trace.initial, this.state(this.last)].some((state) =>
      [...Object.values(state.fields), ...Object.values(state.pending), state.monitors, state.budgets].some(
        (part) => Object.keys(part).length > 0,
      ),
    );
  }

  /** The last step that has an event. */
  get ending(): number {
    return this.last;
  }

  /** Whether the run has this step: in a comparison, it has gaps. */
  has(_step: number): boolean {
    return true;
  }

  /** The number of a step as the reader knows it. */
  number(step: number): string {
    return String(step);
  }

  /** Classes of a step, each after a space. */
  mark(_step: number): string {
    return "";
  }

  /** Where a step is in the run. */
  place(step: number): string {
    return `step ${step} of ${this.last}`;
  }

  event(step: number): Event | undefined {
    return this.trace.events[step - 1];
  }

  state(step: number): Snapshot {
    return stateOf(this.trace, step);
  }

  get journeys(): Journey[] {
    this.#journeys ??= journeys(this.trace);
    return this.#journeys;
  }

  /** The lanes that are not running after a step. */
  status(step: number): Record<string, string> {
    this.#status ??= laneStatus(this.trace);
    return this.#status[step] ?? {};
  }

  title(step: number): string {
    const event = this.event(step);
    return event ? title(event) : "initial state";
  }

  /** The effects of a step as rows (verb, text, and in a comparison the run that alone has it). */
  details(step: number): [string, string, string?][] {
    const event = this.event(step);
    if (!event) return [];
    this.#details[step] ??= [
      ...details(event, this.messages, this.trace.lanes),
      ...(this.notable.get(step) ?? []).flatMap((journey) => ending(event, step, journey)),
    ];
    return this.#details[step];
  }

  /** Everything that is written about a step, for searches. */
  text(step: number): string {
    const event = this.event(step);
    if (!event) return "initial state";
    this.#texts[step] ??= [
      visible(event.lane),
      eventLabel(event),
      placeText(event),
      FAULTS[event.kind] ?? "",
      ...this.details(step).map(([verb, what]) => `${verb} ${what}`),
    ].join("\n");
    return this.#texts[step];
  }

  /** The journeys that a step ends or makes as a side effect. */
  private get notable(): Map<number, Journey[]> {
    if (this.#notable) return this.#notable;
    const found = new Map<number, Journey[]>();
    for (const journey of this.journeys) {
      const made = journey.copyOf !== null || journey.merged !== null;
      for (const step of new Set([made ? journey.born : journey.dropped, journey.dropped])) {
        if (step !== null) found.set(step, [...(found.get(step) ?? []), journey]);
      }
    }
    this.#notable = found;
    return found;
  }
}
