// How an arrow goes from its send to its end, clear of the marks of other events: a straight line, else a gentle curve,
// else a path between lanes and rows, which always exists. The rules are those of plait.report.space_time.routing.

export type Point = [number, number];

export const CLEAR = 12;
export const NEAR = 20;
const TRACK = 6;
const PIECES = 14;
const LONG = 2000;
const FRACTIONS = [0.1, 0.3, 0.5, 0.7, 0.9];
const BENDS = FRACTIONS.flatMap((u) => FRACTIONS.filter((v) => v !== u).map((v): Point => [u, v])).sort(
  (a, b) => Math.abs(a[0] - a[1]) - Math.abs(b[0] - b[1]) || Math.abs(a[0] - 0.5) - Math.abs(b[0] - 0.5),
);
const SWINGS: Point[] = [
  [0.5, 0.12],
  [0.5, 0.02],
  [0.12, 0.5],
];

/** What is drawn for an event. Arrows that begin or end at its owner may touch it. */
export interface Mark {
  x: number;
  y: number;
  owner: string;
}

export interface Route {
  kind: "straight" | "curve" | "path";
  /** Start, control points or corners, end. */
  points: Point[];
}

export function between(a: Point, b: Point): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
}

/** The point at this distance from start on the way to end. */
export function toward(start: Point, end: Point, length: number): Point {
  const whole = between(start, end) || 1;
  return [start[0] + ((end[0] - start[0]) / whole) * length, start[1] + ((end[1] - start[1]) / whole) * length];
}

/** The distance of a point from the segment between start and end. */
export function distance(x: number, y: number, start: Point, end: Point): number {
  const dx = end[0] - start[0];
  const dy = end[1] - start[1];
  const length = dx * dx + dy * dy;
  const t = length ? Math.min(1, Math.max(0, ((x - start[0]) * dx + (y - start[1]) * dy) / length)) : 0;
  return Math.hypot(x - start[0] - t * dx, y - start[1] - t * dy);
}

function bezier(points: Point[], t: number): Point {
  let rest = points;
  while (rest.length > 1) {
    rest = rest.slice(1).map((b, i): Point => {
      const a = rest[i] as Point;
      return [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])];
    });
  }
  return rest[0] as Point;
}

/** The corners of a polyline that is close to the route. */
export function flat(route: Route): Point[] {
  if (route.kind !== "curve") return route.points;
  return Array.from({ length: PIECES + 1 }, (_, i) => bezier(route.points, i / PIECES));
}

/** The first index whose value is at least `value`. */
export function lowerBound(sorted: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Router {
  readonly #marks: Mark[];
  readonly #heights: number[];
  readonly #crossings = new Map<number, number>();
  readonly #tracks = new Map<number, number>();

  /** `middle` gives the free middle between two lanes, next to x on a side (-1 left, 1 right). */
  constructor(
    marks: Mark[],
    private readonly rows: number[],
    private readonly half: number,
    private readonly middle: (x: number, side: number) => number,
    private readonly careful: boolean,
  ) {
    this.#marks = [...marks].sort((a, b) => a.y - b.y);
    this.#heights = this.#marks.map((mark) => mark.y);
  }

  route(start: Point, end: Point, own: Set<string>): Route {
    const straight: Route = { kind: "straight", points: [start, end] };
    const foreign = this.#between(start, end, own);
    if (end[1] - start[1] < this.half || this.#clear(straight, foreign)) return straight;
    if (this.careful && end[1] - start[1] < LONG) {
      const at = (u: number, v: number): Point => [
        start[0] + u * (end[0] - start[0]),
        start[1] + v * (end[1] - start[1]),
      ];
      for (const [u, v] of BENDS) {
        const curve: Route = { kind: "curve", points: [start, at(u, v), end] };
        if (this.#clear(curve, foreign)) return curve;
      }
      for (const [u, v] of SWINGS) {
        const curve: Route = { kind: "curve", points: [start, at(u, v), at(1 - u, 1 - v), end] };
        if (this.#clear(curve, foreign)) return curve;
      }
    }
    return this.#around(start, end, foreign);
  }

  /** A route from a lane to the same lane: an arc beside it, on the right if possible. */
  arc(start: Point, end: Point, own: Set<string>): Route {
    const foreign = this.#between(start, end, own);
    const high = end[1] - start[1];
    for (const [side, more] of [
      [1, 0],
      [-1, 0],
      [1, 16],
    ] as Point[]) {
      const bulge = side * (Math.min(46, 18 + high / 6) + more);
      const points: Point[] = [
        start,
        [start[0] + bulge, start[1] + 8],
        [end[0] + bulge, Math.max(start[1], end[1] - 12)],
        end,
      ];
      const curve: Route = { kind: "curve", points };
      if (high < this.half || this.#clear(curve, foreign)) return curve;
    }
    return this.#around(start, end, foreign);
  }

  #between(start: Point, end: Point, own: Set<string>): Mark[] {
    const first = lowerBound(this.#heights, Math.min(start[1], end[1]) - CLEAR);
    const last = lowerBound(this.#heights, Math.max(start[1], end[1]) + CLEAR);
    return this.#marks.slice(first, last).filter((mark) => !own.has(mark.owner));
  }

  #clear(route: Route, foreign: Mark[]): boolean {
    const corners = flat(route);
    for (let i = 1; i < corners.length; i++) {
      const a = corners[i - 1] as Point;
      const b = corners[i] as Point;
      const top = Math.min(a[1], b[1]) - CLEAR;
      const bottom = Math.max(a[1], b[1]) + CLEAR;
      for (const mark of foreign) {
        if (mark.y > top && mark.y < bottom && distance(mark.x, mark.y, a, b) < CLEAR) return false;
      }
    }
    return true;
  }

  #around(start: Point, end: Point, foreign: Mark[]): Route {
    const side = end[0] >= start[0] ? 1 : -1;
    let first: number;
    let last: number;
    if (Math.abs(end[0] - start[0]) <= 2 * NEAR) {
      const middles = [start[0], end[0]].flatMap((x) => [this.middle(x, 1), this.middle(x, -1)]);
      const far = (x: number): number => Math.min(Math.abs(x - start[0]), Math.abs(x - end[0]));
      first = last = middles.reduce((best, x) => (far(x) < far(best) ? x : best));
    } else {
      first = this.middle(start[0], side);
      last = this.middle(end[0], -side);
    }
    const one = first === last;
    first = this.#track(first);
    last = one ? first : this.#track(last);
    const top = start[1] + this.half;
    const bottom = end[1] - this.half;
    if (one) return { kind: "path", points: [start, [first, top], [first, bottom], end] };
    const slanted: Route = { kind: "path", points: [start, [first, top], [last, bottom], end] };
    if (this.#clear(slanted, foreign)) return slanted;
    let across = top;
    let best = Number.POSITIVE_INFINITY;
    for (let i = lowerBound(this.rows, top - this.half); i < this.rows.length; i++) {
      const y = (this.rows[i] as number) + this.half;
      if (y > bottom + 1) break;
      const cost = (this.#crossings.get(y) ?? 0) * 1e6 + Math.abs(y - (top + bottom) / 2);
      if (cost < best) [across, best] = [y, cost];
    }
    this.#crossings.set(across, (this.#crossings.get(across) ?? 0) + 1);
    return { kind: "path", points: [start, [first, top], [first, across], [last, across], [last, bottom], end] };
  }

  /** A line beside the middle, so that paths there do not cover each other. */
  #track(x: number): number {
    const used = this.#tracks.get(x) ?? 0;
    this.#tracks.set(x, used + 1);
    const number = used % 5;
    return x + TRACK * ((number + 1) >> 1) * (number % 2 ? -1 : 1);
  }
}

/** The route without a piece at both ends, where marks are drawn. */
export function shortened(route: Route, atStart: number, atEnd: number): Route {
  const { points } = route;
  const n = points.length;
  const first = toward(points[0] as Point, points[1] as Point, atStart);
  const last = toward(points[n - 1] as Point, points[n - 2] as Point, atEnd);
  return { kind: route.kind, points: [first, ...points.slice(1, -1), last] };
}

const CORNER = 9;
const n = (value: number): string => String(Math.round(value * 10) / 10);
const at = (...points: Point[]): string => points.map(([x, y]) => `${n(x)} ${n(y)}`).join(" ");

/** The route as the data of an SVG path. */
export function drawn({ kind, points }: Route): string {
  const [first, ...others] = points as [Point, ...Point[]];
  if (kind === "straight") return `M${at(first)} L${at(...others)}`;
  if (kind === "curve") return `M${at(first)} ${others.length === 2 ? "Q" : "C"}${at(...others)}`;
  let path = `M${at(first)} `;
  for (let i = 1; i < points.length - 1; i++) {
    const [before, corner, after] = points.slice(i - 1, i + 2) as [Point, Point, Point];
    const room = Math.min(CORNER, between(before, corner) / 2, between(corner, after) / 2);
    path += `L${at(toward(corner, before, room))} Q${at(corner, toward(corner, after, room))} `;
  }
  return `${path}L${at(others[others.length - 1] as Point)}`;
}

/** An arrow head as a path. Markers need ids, which would not be unique in a page with two diagrams. */
export function tip(end: Point, tail: Point): string {
  const base = toward(end, tail, 9);
  const dx = ((end[0] - base[0]) / 9) * 3.6;
  const dy = ((end[1] - base[1]) / 9) * 3.6;
  return `M${at(end)} L${at([base[0] - dy, base[1] + dx])} L${at([base[0] + dy, base[1] - dx])} Z`;
}
