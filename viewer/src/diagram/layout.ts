// The geometry of the space-time diagram: lanes are columns, steps are rows, time goes down. Everything is computed once
// for a run and the lanes and steps that are shown; drawing then takes only what is visible.
import { accesses, type Journey } from "../run/flow";
import type { Run } from "../run/run";
import type { Event } from "../run/trace";
import { visible } from "../run/values";
import { accessLines, eventLabel, messageText, placeText, sentGroups, shorten } from "../run/wording";
import { textWidth } from "./letters";
import {
  between,
  CLEAR,
  distance,
  flat,
  lowerBound,
  type Mark,
  NEAR,
  type Point,
  type Route,
  Router,
  toward,
} from "./routing";

export const ROW = 38;
export const HEAD = 44;
export const TOP = HEAD + 22;
export const RADIUS = 5;
export const BAR = 11;
export const BAND = 22;
export const LINE = 11;
const SLOT = 8;
const STUB = 36;
const STUB_ANGLES = [16, 12, 20, 24, 8, 28, 32, 36, 40, 44, 48, 52].map((angle) => (angle * Math.PI) / 180);
const LABEL_LIMIT = 24;
/** A step shows at most this many lines beside the lane of a shared object: a row has room for no more. */
const MOST_VALUES = 3;
const CAREFUL = 300;

export interface Arrow {
  journey: Journey;
  kind: "delivered" | "redelivered" | "lost" | "dropped" | "copied" | "merged" | "pending";
  routes: Route[];
  to: number | null;
  top: number;
  bottom: number;
}

export interface Label {
  lines: string[];
  x: number;
  y: number;
  anchor: "start" | "end";
  wide: number;
}

type Box = [number, number, number, number];
type Segment = [Point, Point];

export function isQuorum(event: Event): boolean {
  return (event.kind === "step" || event.kind === "recover") && event.consumed.length > 1;
}

/** Whether a line passes through a box (clipping by Liang and Barsky). */
function crosses(start: Point, end: Point, [left, top, right, bottom]: Box): boolean {
  const dx = end[0] - start[0];
  const dy = end[1] - start[1];
  let enter = 0;
  let leave = 1;
  for (const [p, q] of [
    [-dx, start[0] - left],
    [dx, right - start[0]],
    [-dy, start[1] - top],
    [dy, bottom - start[1]],
  ] as Point[]) {
    if (p === 0) {
      if (q < 0) return false;
    } else if (p < 0) enter = Math.max(enter, q / p);
    else leave = Math.min(leave, q / p);
  }
  return enter < leave;
}

export class Layout {
  readonly lanes: string[];
  readonly spacing: number;
  readonly left: number;
  readonly x: Map<string, number>;
  /** The steps that are shown, in order, and the height of every step. A hidden step is between two rows. */
  readonly rows: number[];
  readonly heights: number[] = [];
  readonly right: number;
  readonly bottom: number;
  readonly height: number;
  readonly bands: { label: string; y: number }[] = [];
  readonly arrows: Arrow[] = [];
  readonly copies = new Map<string, Point>();
  readonly #labels = new Map<number, Label>();
  readonly #marks: Mark[];
  readonly #rowHeights: number[];
  readonly #tops: number[];
  readonly #longest: number;
  readonly #slots = new Map<string, Point>();
  readonly #router: Router;
  readonly #shown: Set<number>;
  #width: number | undefined;
  #passing: Map<number, Arrow[]> | undefined;

  constructor(
    readonly run: Run,
    hidden: ReadonlySet<string>,
    steps: readonly number[] | null,
  ) {
    const { trace } = run;
    this.lanes = trace.lanes.map((lane) => lane.name).filter((name) => !hidden.has(name));
    const longest = Math.max(6, ...this.lanes.map((name) => shorten(visible(name), 18).length));
    this.spacing = Math.max(104, longest * 7.7 + 32);
    this.left = 30 + 8 * String(run.last).length + (trace.loop !== null ? 26 : 0);
    this.x = new Map(this.lanes.map((name, i) => [name, this.left + this.spacing * (i + 0.5)]));
    this.rows = [...(steps ?? Array.from({ length: run.last + 1 }, (_, i) => i))].filter((step) => this.#visible(step));
    this.#shown = new Set(this.rows);
    this.bottom = this.#place();
    this.height = this.bottom + 14;
    const last = this.lanes[this.lanes.length - 1];
    let widest = 0;
    for (const step of this.rows) {
      const event = run.event(step);
      if (event && event.lane === last) widest = Math.max(widest, this.#wide(this.#text(event)));
    }
    let values = 0;
    for (const step of this.rows) {
      const event = run.event(step);
      for (const line of event && last ? this.values(event, last) : []) values = Math.max(values, this.#wide([line]));
    }
    this.right =
      this.left +
      this.spacing * Math.max(1, this.lanes.length) +
      Math.max(24, Math.min(96, widest + 16 - this.spacing / 2), values + 16 - this.spacing / 2);
    for (const journey of run.journeys) {
      for (const step of journey.copied)
        this.copies.set(`${step} ${journey.message.id}`, this.#beside(journey, step, NEAR));
    }
    this.#marks = this.#allMarks();
    const middle = (x: number, side: number): number => {
      const number = (x - this.left) / this.spacing;
      return this.left + this.spacing * (side > 0 ? Math.ceil(number - 1e-6) : Math.floor(number + 1e-6));
    };
    this.#rowHeights = this.rows.map((step) => this.y(step));
    this.#router = new Router(this.#marks, this.#rowHeights, ROW / 2, middle, this.rows.length <= CAREFUL);
    this.#fillSlots();
    for (const journey of run.journeys) if (this.#drawable(journey)) this.arrows.push(...this.#of(journey));
    this.arrows.push(...this.#stubs());
    this.arrows.sort((a, b) => a.top - b.top);
    this.#tops = this.arrows.map((arrow) => arrow.top);
    this.#longest = this.arrows.reduce((most, arrow) => Math.max(most, arrow.bottom - arrow.top), 0);
  }

  /** The width of the drawing. In a long run, labels that reach over the right margin are not looked for. */
  get width(): number {
    if (this.#width === undefined) {
      this.#width = this.right;
      if (this.rows.length <= CAREFUL) {
        for (const step of this.rows) {
          const event = this.run.event(step);
          if (!event) continue;
          const { x, wide, anchor } = this.label(step, event);
          this.#width = Math.max(this.#width, x + (anchor === "start" ? wide : 0) + 4);
        }
      }
    }
    return this.#width;
  }

  y(step: number): number {
    return this.heights[step] ?? TOP;
  }

  at(lane: string, step: number): Point {
    return [this.x.get(lane) ?? this.left, this.y(step)];
  }

  shows(step: number): boolean {
    return this.#shown.has(step);
  }

  /** The row at a height. */
  stepAt(y: number): number {
    return this.rows[Math.max(0, Math.min(this.rows.length - 1, lowerBound(this.#rowHeights, y - ROW / 2)))] ?? 0;
  }

  /** The steps whose rows are between two heights. */
  window(top: number, bottom: number): number[] {
    return this.rows.slice(lowerBound(this.#rowHeights, top - ROW), lowerBound(this.#rowHeights, bottom + ROW));
  }

  /** The arrows that pass between two heights. */
  crossing(top: number, bottom: number): Arrow[] {
    const first = lowerBound(this.#tops, top - this.#longest);
    return this.arrows.slice(first, lowerBound(this.#tops, bottom)).filter((arrow) => arrow.bottom >= top);
  }

  /** Half the width of the bar of a quorum transition, and the distance between its arrows. */
  bar(event: Event): Point {
    const gaps = Math.max(1, event.consumed.length - 1);
    const slot = Math.min(SLOT, (2 * NEAR) / gaps);
    return [(slot * gaps) / 2 + 5, slot];
  }

  /** A hidden lane hides its steps. Steps of the environment belong to no lane, and stay. */
  #visible(step: number): boolean {
    const event = this.run.event(step);
    return !event || this.x.has(event.lane) || !this.run.trace.lanes.some((lane) => lane.name === event.lane);
  }

  /** Gives each step its height, with room for the labels of boundaries. Returns the height of the end. */
  #place(): number {
    const marks = [...this.run.trace.marks].sort((a, b) => a.before - b.before);
    let y = TOP - ROW;
    let next = 0;
    let known = TOP - ROW / 2;
    for (let step = 0; step <= this.run.last; step++) {
      if (this.#shown.has(step)) {
        while (next < marks.length && (marks[next]?.before ?? 0) < step) {
          this.bands.push({ label: visible(marks[next]?.label ?? ""), y: y + ROW / 2 });
          y += BAND;
          next++;
        }
        y += ROW;
        known = y;
        this.heights.push(y);
      } else this.heights.push(known + ROW / 2);
    }
    y = Math.max(y, TOP - ROW / 2);
    for (; next < marks.length; next++) {
      this.bands.push({ label: visible(marks[next]?.label ?? ""), y: y + ROW / 2 });
      y += BAND;
    }
    return y + 26;
  }

  #beside(journey: Journey, step: number, before: number): Point {
    const { sender, receiver } = journey.message;
    const [x, y] = this.at(receiver, step);
    return [(this.x.get(sender) ?? this.left) < x ? x - before : x + before, y];
  }

  /** Everything that a reader may take for the end of an arrow. */
  #allMarks(): Mark[] {
    const lost = new Map<number, Point[]>();
    const made = new Map<number, Point[]>();
    const senders = new Set<string>();
    for (const journey of this.run.journeys) {
      if (journey.lost !== null)
        lost.set(journey.lost, [...(lost.get(journey.lost) ?? []), this.#beside(journey, journey.lost, 15)]);
      for (const step of journey.copied)
        made.set(step, [...(made.get(step) ?? []), this.copies.get(`${step} ${journey.message.id}`) as Point]);
      if (journey.born === 0) senders.add(journey.message.sender);
    }
    const marks: Mark[] = [];
    const put = ([x, y]: Point, owner: string): number => marks.push({ x, y, owner });
    for (const sender of senders) if (this.x.has(sender)) put(this.at(sender, 0), `sender ${sender}`);
    for (const step of this.rows) {
      const event = this.run.event(step);
      if (!event) continue;
      const [x, y] = this.at(event.lane, step);
      let points: Point[] = [[x, y]];
      if (event.kind === "lose") points = lost.get(step) ?? points;
      else if (event.kind === "duplicate") points = made.get(step) ?? points;
      else if (isQuorum(event)) {
        const [half] = this.bar(event);
        points.push(...[-half, 0, half].map((shift): Point => [x + shift, y - BAR + 4]));
      }
      for (const point of points) put(point, `event ${step}`);
      for (const child of event.spawned) if (this.x.has(child)) put(this.at(child, step), `spawn ${child}`);
      for (const lane of accesses(this.run.trace, event).keys())
        if (this.x.has(lane)) put(this.at(lane, step), `access ${step}`);
    }
    return marks;
  }

  /** Where each arrow ends in the bar of a quorum transition, so that arrows do not cross. */
  #fillSlots(): void {
    const found = new Map(this.run.journeys.map((journey) => [journey.message.id, journey]));
    for (const step of this.rows) {
      const event = this.run.event(step);
      if (!event || !isQuorum(event)) continue;
      const [x, y] = this.at(event.lane, step);
      const slope = (id: number): number => {
        const journey = found.get(id);
        if (!journey) return 0;
        const [sx, sy] = this.at(journey.message.sender, journey.born);
        return (sx - x) / Math.max(1, y - sy);
      };
      const ordered = [...event.consumed].sort((a, b) => slope(a) - slope(b));
      const [, slot] = this.bar(event);
      ordered.forEach((id, i) => {
        this.#slots.set(`${step} ${id}`, [x + slot * (i - (ordered.length - 1) / 2), y - BAR]);
      });
    }
  }

  /** An arrow with a hidden end is not drawn. A lane outside of the model (a client) is at the left margin. */
  #drawable(journey: Journey): boolean {
    const hidden = (lane: string): boolean =>
      !this.x.has(lane) && this.run.trace.lanes.some(({ name }) => name === lane);
    return !hidden(journey.message.sender) && !hidden(journey.message.receiver);
  }

  #arrow(journey: Journey, kind: Arrow["kind"], routes: Route[], to: number | null): Arrow {
    const heights = routes.flatMap((route) => route.points.map((point) => point[1]));
    return { journey, kind, routes, to, top: Math.min(...heights), bottom: Math.max(...heights) };
  }

  #of(journey: Journey): Arrow[] {
    const { message: m, born } = journey;
    let start = this.at(m.sender, born);
    if (journey.copyOf !== null) start = this.copies.get(`${born} ${journey.copyOf}`) ?? start;
    const result: Arrow[] = [];
    const line = (kind: Arrow["kind"], end: Point, to: number, loops = false): void => {
      const copied = journey.copied.filter((step) => born < step && step < to);
      const stops = [start, ...copied.map((step) => this.copies.get(`${step} ${m.id}`) as Point), end];
      const own = new Set([born, ...copied, to].map((step) => `event ${step}`));
      if (born === 0) own.add(`sender ${m.sender}`);
      const routes =
        loops && !copied.length
          ? [this.#router.arc(start, end, own)]
          : stops.slice(1).map((stop, i) => this.#router.route(stops[i] as Point, stop, own));
      result.push(this.#arrow(journey, kind, routes, to));
    };
    journey.deliveries.forEach((step, count) => {
      const lane = this.run.event(step)?.lane ?? m.receiver;
      const end = this.#slots.get(`${step} ${m.id}`) ?? this.at(lane, step);
      line(count ? "redelivered" : "delivered", end, step, m.sender === lane && journey.copyOf === null);
    });
    if (journey.lost !== null) line("lost", this.#beside(journey, journey.lost, 15), journey.lost);
    else if (journey.dropped !== null && journey.dropped > born)
      line("dropped", this.at(m.receiver, journey.dropped), journey.dropped);
    const last = Math.max(0, ...result.map((arrow) => arrow.to ?? 0));
    const copy = journey.copied[journey.copied.length - 1];
    if (copy !== undefined && copy > last) line("copied", this.copies.get(`${copy} ${m.id}`) as Point, copy);
    return result;
  }

  /** A short line towards its receiver for each message that no step took. Their ends are apart from each other. */
  #stubs(): Arrow[] {
    const near = new Map<number, Segment[]>();
    for (const arrow of this.arrows) {
      const list = near.get(arrow.journey.born) ?? [];
      // Only what is near the send can cover a stub.
      for (const route of arrow.routes) {
        const corners = flat(route);
        for (let i = 1; i < corners.length; i++) list.push([corners[i - 1] as Point, corners[i] as Point]);
      }
      near.set(arrow.journey.born, list);
    }
    const givenUp = new Set(this.run.trace.marks.flatMap((mark) => mark.lost));
    const ahead = ({ message: m }: Journey): number => {
      const sender = this.x.get(m.sender) ?? this.left;
      return (this.x.get(m.receiver) ?? sender + this.spacing) - sender;
    };
    const ends = new Map<number, Point[]>();
    const stubs: Arrow[] = [];
    const open = this.run.journeys.filter(
      (j) =>
        j.lost === null &&
        (j.dropped ?? 0) <= j.born &&
        !j.deliveries.length &&
        (j.pending || j.dropped !== null || j.merged !== null) &&
        this.#drawable(j),
    );
    for (const journey of open.sort((a, b) => Math.abs(ahead(b)) - Math.abs(ahead(a)))) {
      const { message: m, born } = journey;
      let start = this.at(m.sender, born);
      let side = ahead(journey) < 0 ? -1 : 1;
      const copy = journey.copied[journey.copied.length - 1];
      if (copy !== undefined) {
        start = this.copies.get(`${copy} ${m.id}`) as Point;
        side = start[0] < this.at(m.receiver, 0)[0] ? 1 : -1;
      } else if (journey.copyOf !== null) start = this.copies.get(`${born} ${journey.copyOf}`) ?? start;
      const others = ends.get(born) ?? [];
      const end = this.#stubEnd(start, side, others, near.get(born) ?? []);
      ends.set(born, [...others, end]);
      const kind = givenUp.has(m.id)
        ? "lost"
        : journey.pending
          ? "pending"
          : journey.merged !== null
            ? "merged"
            : "dropped";
      stubs.push(this.#arrow(journey, kind, [{ kind: "straight", points: [start, end] }], null));
    }
    return stubs;
  }

  #stubEnd(start: Point, side: number, ends: Point[], lines: Segment[]): Point {
    const marks = this.#marks.filter(
      (mark) => Math.abs(mark.y - start[1]) <= STUB + CLEAR && between([mark.x, mark.y], start) > RADIUS,
    );
    const room = (end: Point): number =>
      Math.min(
        9,
        ...ends.map((other) => between(end, other)),
        ...lines.map(([a, b]) => distance(end[0], end[1], a, b)),
        ...marks.map((mark) => distance(mark.x, mark.y, start, end) - CLEAR + 9),
      );
    let best: Point = start;
    let most = Number.NEGATIVE_INFINITY;
    for (const angle of STUB_ANGLES) {
      const end: Point = [start[0] + side * STUB * Math.cos(angle), start[1] + STUB * Math.sin(angle)];
      const found = room(end);
      if (found > most) [best, most] = [end, found];
      if (most >= 9) break;
    }
    return best;
  }

  #text(event: Event): string[] {
    const { messages } = this.run;
    let lines: string[];
    if (event.kind === "lose" || event.kind === "duplicate") {
      const ids = event.consumed.length ? event.consumed : event.sent;
      const m = ids.map((id) => messages.get(id)).find((found) => found);
      lines = [event.kind === "lose" ? "lost" : "duplicated", ...(m ? [messageText(m)] : [])];
    } else {
      const faults: Record<string, string> = { crash: "crash", recover: "recovery" };
      lines = [eventLabel(event) || (faults[event.kind] ?? "")];
      const groups = sentGroups(messages, event.sent);
      if (groups.length > 1) lines.push(`→ ${groups.map(({ what }) => what.split("(")[0]).join(", ")}`);
      else if (groups[0]) lines.push(`→ ${groups[0].what}`);
      lines.push(placeText(event));
    }
    return lines.filter(Boolean).map((line) => shorten(line, LABEL_LIMIT));
  }

  /** What a step reads and writes on the lane of a shared object, in few lines. */
  values(event: Event, lane: string): string[] {
    const lines = accessLines(this.run.trace, event, lane).map((line) => shorten(line, LABEL_LIMIT));
    const more = lines.length - MOST_VALUES;
    return more > 0 ? [...lines.slice(0, MOST_VALUES - 1), `… ${more + 1} more`] : lines;
  }

  #wide(lines: string[]): number {
    return Math.max(0, ...lines.map((line, i) => textWidth(line, i ? 9.5 : 12.1)));
  }

  /** The label of a step, where it crosses the fewest arrows and lanes. */
  label(step: number, event: Event): Label {
    const known = this.#labels.get(step);
    if (known) return known;
    const lines = this.#text(event);
    const wide = this.#wide(lines);
    const high = LINE * lines.length;
    const [x, y] = this.at(event.lane, step);
    const least = 11 + (isQuorum(event) ? this.bar(event)[0] : 0);
    const others = [...event.spawned, ...accesses(this.run.trace, event).keys()].filter((lane) => this.x.has(lane));
    const links = others.map((lane): Segment => [[x, y], this.at(lane, step)]);
    const marks = this.#marksNear(y);
    const near = this.#near(step, y);
    let best: Label | undefined;
    let least_cost = Number.POSITIVE_INFINITY;
    for (const side of [1, -1]) {
      for (const gap of [0, 17, 34, 48]) {
        for (const [top, levelCost] of [
          [y - 2 - high, 0.1],
          [y - high / 2, event.place ? 0.2 : 0],
        ] as Point[]) {
          const label: Label = {
            lines,
            x: x + side * (least + gap),
            y: top + 9.5,
            anchor: side > 0 ? "start" : "end",
            wide,
          };
          const left = side > 0 ? label.x : label.x - wide;
          const box: Box = [left, top, left + wide, top + high];
          const covered = marks.filter(
            (m) => box[0] - 6 < m.x && m.x < box[2] + 6 && box[1] - 6 < m.y && m.y < box[3] + 6,
          ).length;
          const cost = this.#cost(near, box, links) + 2 * covered + levelCost + gap / 60 + (side < 0 ? 0.4 : 0);
          if (cost < least_cost) [best, least_cost] = [label, cost];
        }
      }
    }
    this.#labels.set(step, best as Label);
    return best as Label;
  }

  #marksNear(y: number): Mark[] {
    return this.#marks.filter((mark) => Math.abs(mark.y - y) < ROW / 2);
  }

  /** The arrows near a row, as segments. */
  #near(step: number, y: number): { arrow: Arrow; segments: Segment[]; all: Point[] }[] {
    if (!this.#passing) {
      this.#passing = new Map();
      for (const arrow of this.arrows) {
        const last = lowerBound(this.#rowHeights, arrow.bottom + ROW);
        for (let i = lowerBound(this.#rowHeights, arrow.top - ROW); i < last; i++) {
          const row = this.rows[i] as number;
          const list = this.#passing.get(row);
          if (list) list.push(arrow);
          else this.#passing.set(row, [arrow]);
        }
      }
    }
    return (this.#passing.get(step) ?? []).flatMap((arrow) => {
      const all = arrow.routes.flatMap(flat);
      const segments: Segment[] = [];
      for (let i = 1; i < all.length; i++) {
        const [a, b] = [all[i - 1] as Point, all[i] as Point];
        if (a[1] <= y + ROW / 2 && b[1] >= y - ROW) segments.push([a, b]);
      }
      return segments.length ? [{ arrow, segments, all }] : [];
    });
  }

  #cost(near: { arrow: Arrow; segments: Segment[]; all: Point[] }[], box: Box, links: Segment[]): number {
    let cost = box[0] < this.left || box[2] > this.right ? 100 : 0;
    for (const x of this.x.values()) if (box[0] < x && x < box[2]) cost += 0.3;
    const wider: Box = [box[0] - 4, box[1], box[2] + 4, box[3]];
    for (const { arrow, segments, all } of near) {
      if (!segments.some(([a, b]) => crosses(a, b, wider))) continue;
      cost += arrow.to === null ? 2 : 1;
      const end = all[all.length - 1] as Point;
      const tail = all[all.length - 2] as Point;
      if (crosses(toward(end, tail, Math.min(26, between(end, tail))), end, wider)) cost += 2;
    }
    return cost + links.filter(([a, b]) => crosses(a, b, wider)).length;
  }
}
