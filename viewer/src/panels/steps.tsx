// The steps as a list: what a screen reader reads, what a search of the browser finds, and what is printed.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { memo } from "../memo";
import { reveal } from "../reveal";
import type { Run } from "../run/run";
import { visible } from "../run/values";
import { eventLabel, FAULTS, placeText, sentGroups } from "../run/wording";
import type { Viewer } from "../viewer-state";

interface Row {
  run: Run;
  step: number;
  current: boolean;
  match: boolean;
  note: string | undefined;
  /** The place in a long list, of which only a part is in the page. */
  place: number;
  of: number;
}

function marks(run: Run, step: number): JSX.Element[] {
  return run.trace.marks
    .filter((mark) => mark.before === step - 1)
    .map((mark) => (
      <div key={mark.label}>
        {sentGroups(run.messages, mark.lost).map(({ to, what, ids }) => (
          <div
            class="loses"
            key={ids.join()}
          >{`lost → ${to.join(", ")}: ${what}  (${ids.map((id) => `#${id}`).join(", ")})`}</div>
        ))}
        <div class="boundary">{visible(mark.label)}</div>
      </div>
    ));
}

const Item = memo(({ run, step, current, match, note, place, of }: Row): JSX.Element => {
  const event = run.event(step);
  const fault = event && FAULTS[event.kind];
  const rows = run.details(step);
  const loop = run.trace.loop === step - 1;
  return (
    <li
      data-step={step}
      class={`${current ? "current" : ""}${run.mark(step)}${run.idle.has(step) ? " idle" : ""}${match ? " match" : ""}`}
      aria-current={current ? "step" : undefined}
      {...(place ? { "aria-posinset": place, "aria-setsize": of } : {})}
    >
      <span class="number">{run.number(step)}</span>
      <div>
        {event && marks(run, step)}
        {loop && <div class="loop">the loop starts here</div>}
        {fault && <span class={`fault ${event.kind}`}>{`${fault} `}</span>}
        <b>{event ? visible(event.lane) : "Initial state"}</b>{" "}
        {event?.place && (
          <>
            <span class="place" title={visible(event.place.file)}>
              {placeText(event)}
            </span>{" "}
          </>
        )}
        {event && <span class="label">{eventLabel(event)}</span>}
        {rows.length > 0 && (
          <dl>
            {rows.map(([verb, what, whose], i) => (
              <div class={verb} key={i}>
                <dt>{i && rows[i - 1]?.[0] === verb ? "" : verb}</dt>
                <dd>
                  {whose && <b class="whose">{whose}</b>}
                  {what}
                </dd>
              </div>
            ))}
          </dl>
        )}
        {note && <p class="own-note">{note}</p>}
      </div>
    </li>
  );
});

/** Only a part of a long list is in the page: this many steps. The rest is room for scrolling. */
const PART = 48;
/** The height of a step that was not drawn yet. */
const GUESS = 72;

export function Steps({ viewer, printing }: { viewer: Viewer; printing: boolean }): JSX.Element {
  const { run, view, layout } = viewer;
  const { rows } = layout;
  const list = useRef<HTMLOListElement>(null);
  const [first, setFirst] = useState(0);
  const found = new Set(view.query ? viewer.matches : []);
  const long = !printing && rows.length > PART;
  const at = rows.indexOf(view.step);
  // The part follows the step; the reader may also scroll away from it.
  const chosen = useRef({ step: -1, layout });
  let start = long ? Math.min(first, Math.max(0, rows.length - PART)) : 0;
  if (
    long &&
    (chosen.current.step !== view.step || chosen.current.layout !== layout) &&
    (at < start + 6 || at >= start + PART - 6)
  ) {
    start = Math.max(0, Math.min(rows.length - PART, at - PART / 2));
  }
  const shown = long ? rows.slice(start, start + PART) : rows;
  useLayoutEffect(() => {
    if (start !== first) setFirst(start);
    if (chosen.current.step === view.step && chosen.current.layout === layout) return;
    chosen.current = { step: view.step, layout };
    reveal(list.current?.querySelector("li.current"));
  });
  useEffect(() => {
    const pane = list.current?.closest<HTMLElement>(".pane");
    if (!pane || !long) return;
    const scrolled = (): void => {
      const items = list.current;
      if (!items) return;
      const top = pane.scrollTop - start * GUESS;
      const outside =
        top < 0 ||
        top + pane.clientHeight > items.offsetHeight - start * GUESS - (rows.length - start - shown.length) * GUESS;
      if (outside) setFirst(Math.max(0, Math.floor(pane.scrollTop / GUESS) - PART / 3));
    };
    pane.addEventListener("scroll", scrolled, { passive: true });
    return () => pane.removeEventListener("scroll", scrolled);
  }, [long, start, rows.length, shown.length]);
  const click = (event: MouseEvent): void => {
    const hit = (event.target as Element).closest<HTMLElement>("[data-step]");
    if (hit && !window.getSelection()?.toString()) viewer.go(Number(hit.dataset.step));
  };
  const { loop } = run.trace;
  const room = { paddingTop: `${start * GUESS}px`, paddingBottom: `${(rows.length - start - shown.length) * GUESS}px` };
  return (
    <>
      <ol class="steplist" ref={list} onClick={click} style={room}>
        {shown.map((step, i) => (
          <Item
            run={run}
            step={step}
            current={step === view.step}
            match={found.has(step)}
            note={view.notes[step]}
            place={long ? start + i + 1 : 0}
            of={rows.length}
            key={step}
          />
        ))}
      </ol>
      {rows.length <= run.last && (
        <p class="hidden-steps">{`${run.last + 1 - rows.length} of ${run.last + 1} rows are hidden.`}</p>
      )}
      {loop !== null && <p class="loop">{`↻ back to step ${loop + 1}: steps ${loop + 1}–${run.last} repeat`}</p>}
    </>
  );
}
