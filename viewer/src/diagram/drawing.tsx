// The space-time diagram as SVG elements, with the classes of plait.report.space_time.svg, so that one style sheet serves both.
import type { ComponentChildren, JSX } from "preact";
import { memo } from "../memo";
import { accesses } from "../run/flow";
import type { Run } from "../run/run";
import type { Event } from "../run/trace";
import { visible } from "../run/values";
import { accessLines, messageText, plural, shorten } from "../run/wording";
import { type Arrow, BAR, HEAD, isQuorum, type Layout, LINE, RADIUS, ROW } from "./layout";
import { drawn, type Point, type Route, shortened, tip, toward } from "./routing";

/** The part of the drawing to make: between two heights. */
export interface Part {
  top: number;
  bottom: number;
}

const ENDINGS: Record<string, string> = {
  pending: ", still pending",
  lost: ", lost",
  dropped: ", dropped",
  redelivered: ", delivered again",
  merged: ", merged with an equal pending message",
};

const Cross = ({ at: [x, y], size }: { at: Point; size: number }): JSX.Element => (
  <path
    class="cross"
    d={`M${x - size} ${y - size} L${x + size} ${y + size} M${x - size} ${y + size} L${x + size} ${y - size}`}
  />
);

const Plus = ({ at: [x, y] }: { at: Point }): JSX.Element => (
  <g class="copy">
    <circle cx={x} cy={y} r="6" />
    <path d={`M${x - 3.5} ${y} H${x + 3.5} M${x} ${y - 3.5} V${y + 3.5}`} />
  </g>
);

/** The names of the lanes. */
export function Heads({ layout }: { layout: Layout }): JSX.Element {
  const wide = layout.spacing - 12;
  const roles = new Map(layout.run.trace.lanes.map((lane) => [lane.name, lane.role]));
  return (
    <g class="heads">
      <rect class="paper" width={layout.width} height={HEAD - 6} />
      {[...layout.x].map(([name, x]) => (
        <g class="head" data-lane={name} key={name}>
          <title>{`${visible(name)}: ${visible(roles.get(name) ?? "")}`}</title>
          <rect x={x - wide / 2} y="8" width={wide} height="26" rx="6" />
          <text x={x} y="25" text-anchor="middle">
            {shorten(visible(name), 18)}
          </text>
        </g>
      ))}
    </g>
  );
}

/** Each lane as segments of equal status: solid if it runs, dashed if it is down, nothing before it is created. */
const Lanes = memo(({ layout, top, bottom }: { layout: Layout; top: number; bottom: number }): JSX.Element => {
  const { run } = layout;
  const steps = layout.window(top, bottom);
  const first = steps[0] ?? 0;
  const last = steps.at(-1) ?? 0;
  const lines: JSX.Element[] = [];
  for (const [lane, x] of layout.x) {
    let start = first === 0 ? HEAD : layout.y(first) - ROW;
    let current = run.status(Math.max(0, first - 1))[lane] ?? "running";
    const draw = (end: number): void => {
      lines.push(
        <line class={`lane ${current}`} data-lane={lane} x1={x} y1={start} x2={x} y2={end} key={`${lane} ${start}`} />,
      );
      start = end;
    };
    for (let step = first; step <= last; step++) {
      const now = run.status(step)[lane] ?? "running";
      if (now === current) continue;
      if (step > 0) draw(layout.y(step));
      current = now;
    }
    draw(last === run.last || last === layout.rows.at(-1) ? layout.bottom : layout.y(last) + ROW);
  }
  return <>{lines}</>;
});

function Loop({ layout }: { layout: Layout }): JSX.Element | null {
  const { loop } = layout.run.trace;
  if (loop === null) return null;
  const last = layout.run.ending;
  const top = layout.y(loop + 1) - ROW / 2 + 4;
  const bottom = layout.y(last) + ROW / 2 - 4;
  const x = 18;
  const middle = (top + bottom) / 2;
  return (
    <g class="loop">
      <title>{`Steps ${layout.run.number(loop + 1)} to ${layout.run.number(last)} repeat for ever`}</title>
      <path d={`M${x + 10} ${bottom} H${x} V${top} H${x + 10}`} />
      <path class="tip" d={`M${x + 5} ${top - 4} L${x + 13} ${top} L${x + 5} ${top + 4} Z`} />
      <text x={x - 5} y={middle} text-anchor="middle" transform={`rotate(-90 ${x - 5} ${middle})`}>
        repeats
      </text>
    </g>
  );
}

const Message = memo(({ arrow, idle, touched }: { arrow: Arrow; idle: boolean; touched: boolean }): JSX.Element => {
  const { message: m, born, copyOf } = arrow.journey;
  const delivered = arrow.kind.endsWith("delivered");
  const last = arrow.routes.length - 1;
  const shown = arrow.routes.map((route, i) => {
    const room = i < last || arrow.kind === "copied" ? RADIUS + 2 : delivered ? RADIUS + 1 : 0;
    return shortened(route, RADIUS + (i > 0 || copyOf !== null ? 2 : 0), room);
  });
  const points = (shown[last] as Route).points;
  const end = points[points.length - 1] as Point;
  const before = points[points.length - 2] as Point;
  return (
    <g
      class={`message ${arrow.kind}${idle ? " idle" : ""}${touched ? " touched" : ""}`}
      data-message={m.id}
      data-from={born}
      data-to={arrow.to ?? undefined}
    >
      <title>{`#${m.id} ${messageText(m)} from ${visible(m.sender)} to ${visible(m.receiver)}${ENDINGS[arrow.kind] ?? ""}`}</title>
      {shown.map((route) => (
        <path class="arc" d={drawn(route)} key={drawn(route)} />
      ))}
      {delivered && <path class="tip" d={tip(end, before)} />}
      {(arrow.kind === "pending" || arrow.kind === "merged") && <circle class="open" cx={end[0]} cy={end[1]} r="3.2" />}
      {(arrow.kind === "dropped" || arrow.kind === "lost") && arrow.to === null && <Cross at={end} size={3.5} />}
      {arrow.kind === "redelivered" && <Plus at={toward(end, before, 24)} />}
    </g>
  );
});

interface LinksProps {
  layout: Layout;
  step: number;
  event: Event;
  labels: boolean;
}

/** What an event uses or makes on other lanes: spawned processes, shared objects. */
const Links = memo(({ layout, step, event, labels }: LinksProps): JSX.Element => {
  const [x, y] = layout.at(event.lane, step);
  const other = (lane: string): { cx: number; side: number } => {
    const cx = layout.x.get(lane) as number;
    return { cx, side: cx > x ? 1 : -1 };
  };
  const born = event.spawned.filter((lane) => layout.x.has(lane) && lane !== event.lane);
  const used = [...accesses(layout.run.trace, event)].filter(([lane]) => layout.x.has(lane));
  return (
    <>
      {born.map((lane) => {
        const { cx, side } = other(lane);
        return (
          <g class="spawn" data-step={step} key={lane}>
            <title>{`spawns ${visible(lane)}`}</title>
            <line x1={x + side * RADIUS} y1={y} x2={cx - side * 5} y2={y} />
            <rect x={cx - 5} y={y - 5} width="10" height="10" />
          </g>
        );
      })}
      {used.map(([lane, how]) => {
        const { cx, side } = other(lane);
        const names = (how === "writes" ? [...Object.keys(event.changed), ...event.read] : event.read).filter((name) =>
          name.startsWith(`${lane}.`),
        );
        const known = accessLines(layout.run.trace, event, lane);
        const lines = labels ? layout.values(event, lane) : [];
        return (
          <g class={`access ${how}`} data-step={step} key={lane}>
            <title>{`${how} ${known.length ? known.join(", ") : [...new Set(names)].map(visible).join(", ")}`}</title>
            <line x1={x + side * RADIUS} y1={y} x2={cx - side * 4} y2={y} />
            <circle cx={cx} cy={y} r="4" />
            {lines.map((line, i) => (
              <text class="value" x={cx + 10} y={y - (LINE * lines.length) / 2 + 9 + LINE * i} key={line}>
                {line}
              </text>
            ))}
          </g>
        );
      })}
    </>
  );
});

function Mark({ layout, step, event }: { layout: Layout; step: number; event: Event }): JSX.Element {
  const [x, y] = layout.at(event.lane, step);
  const { run } = layout;
  if (event.kind === "crash") return <Cross at={[x, y]} size={7} />;
  if (event.kind === "tick" && !layout.x.has(event.lane))
    return <path class="tick" d={`M${x} ${y} H${Math.max(x, ...layout.x.values())}`} />;
  if (event.kind === "lose") {
    const lost = layout.arrows.filter((arrow) => arrow.kind === "lost" && arrow.to === step);
    const ends = lost.map((arrow) => arrow.routes.at(-1)?.points.at(-1) as Point);
    return (
      <>
        {(ends.length ? ends : [[x, y] as Point]).map((end) => (
          <Cross at={end} size={5} key={end.join()} />
        ))}
      </>
    );
  }
  if (event.kind === "duplicate") {
    const made = run.journeys
      .filter((journey) => journey.copied.includes(step))
      .map((journey) => layout.copies.get(`${step} ${journey.message.id}`) as Point);
    return (
      <>
        {(made.length ? made : [[x, y] as Point]).map((at) => (
          <Plus at={at} key={at.join()} />
        ))}
      </>
    );
  }
  const [half] = layout.bar(event);
  return (
    <>
      {isQuorum(event) && (
        <g class="quorum">
          <title>{`${plural(event.consumed.length, "message")} taken at once`}</title>
          <path d={`M${x - half} ${y - BAR + 4} H${x + half} M${x} ${y - BAR + 4} V${y}`} />
        </g>
      )}
      <circle class="mark" cx={x} cy={y} r={RADIUS} />
    </>
  );
}

interface EventProps {
  layout: Layout;
  step: number;
  event: Event;
  mark: string;
  labels: boolean;
}

const EventGroup = memo(({ layout, step, event, mark, labels }: EventProps): JSX.Element => {
  const label = labels ? layout.label(step, event) : null;
  return (
    <g class={`event ${event.kind}${mark}`} data-step={step} data-lane={event.lane}>
      <title>{`Step ${layout.run.number(step)}: ${visible(event.lane)} ${visible(event.label)}`}</title>
      <Mark layout={layout} step={step} event={event} />
      {label?.lines.map((line, i) => (
        <text class={i ? "sends" : "does"} x={label.x} y={label.y + LINE * i} text-anchor={label.anchor} key={line}>
          {line}
        </text>
      ))}
    </g>
  );
});

function origins(run: Run, layout: Layout): JSX.Element[] {
  const senders = new Set(
    run.journeys.filter((journey) => journey.born === 0).map((journey) => journey.message.sender),
  );
  return [...senders]
    .filter((sender) => layout.x.has(sender))
    .map((sender) => <circle class="origin" cx={layout.x.get(sender)} cy={layout.y(0)} r={RADIUS - 1} key={sender} />);
}

/** What a diagram needs to know about the reader: where they are, what they search, where they left notes. */
export interface Highlights {
  step: number | null;
  matches: ReadonlySet<number>;
  notes: Record<number, string>;
}

interface RowProps {
  layout: Layout;
  step: number;
  labels: boolean;
  current: boolean;
  match: boolean;
  note: string | undefined;
}

/** The band of a step. It marks the current step, and can be clicked. */
const Row = memo(({ layout, step, labels, current, match, note }: RowProps): JSX.Element => {
  const y = layout.y(step);
  return (
    <g class={`row${current ? " current" : ""}${match ? " match" : ""}`} data-step={step}>
      {note && <title>{`note: ${note}`}</title>}
      <rect x="0" y={y - ROW / 2} width={layout.width} height={ROW} />
      {note && <path class="note" d={`M2 ${y - 7} h9 v14 l-4.5 -4 l-4.5 4 z`} />}
      {labels && (
        <text x={layout.left - 8} y={y + 4} text-anchor="end">
          {layout.run.number(step)}
        </text>
      )}
    </g>
  );
});

interface DrawingProps {
  layout: Layout;
  part: Part;
  marks: Highlights;
  /** Whether steps have text. */
  labels?: boolean;
}

/** The diagram between two heights. */
export function Drawing({ layout, part, marks, labels = true }: DrawingProps): ComponentChildren {
  const { run } = layout;
  const steps = layout.window(part.top, part.bottom);
  const arrows = layout.crossing(part.top, part.bottom);
  const events = steps.flatMap((step) => {
    const event = run.event(step);
    return event ? [{ step, event }] : [];
  });
  return (
    <>
      <rect class="paper" width={layout.width} height={layout.height} />
      {steps.map((step) => (
        <Row
          layout={layout}
          step={step}
          labels={labels}
          current={step === marks.step}
          match={marks.matches.has(step)}
          note={marks.notes[step]}
          key={step}
        />
      ))}
      <Lanes layout={layout} top={part.top} bottom={part.bottom} />
      <Loop layout={layout} />
      {layout.bands
        .filter(({ label, y }) => label && y > part.top - ROW && y < part.bottom + ROW)
        .map(({ label, y }) => (
          <g class="boundary" key={`${y}`}>
            <line x1="0" y1={y + 4} x2={layout.width} y2={y + 4} />
            <text x={run.trace.loop !== null ? 34 : 4} y={y + 15}>
              {label}
            </text>
          </g>
        ))}
      {events.map(({ step, event }) => (
        <Links layout={layout} step={step} event={event} labels={labels} key={step} />
      ))}
      {arrows.map((arrow) => (
        <Message
          arrow={arrow}
          idle={run.idle.has(arrow.journey.born) || (arrow.to !== null && run.idle.has(arrow.to))}
          touched={
            marks.step !== null && marks.step > 0 && (arrow.journey.born === marks.step || arrow.to === marks.step)
          }
          key={`${arrow.journey.message.id} ${arrow.to}`}
        />
      ))}
      {steps[0] === 0 && origins(run, layout)}
      {events.map(({ step, event }) => (
        <EventGroup
          layout={layout}
          step={step}
          event={event}
          labels={labels}
          mark={`${run.mark(step)}${step === marks.step ? " current" : ""}${run.idle.has(step) ? " idle" : ""}`}
          key={step}
        />
      ))}
    </>
  );
}
