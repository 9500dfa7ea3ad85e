// The steps that are possible now, grouped by process; and for what is not, which guard is false and why.
import type { JSX } from "preact";
import type { Data } from "../run/trace";
import { text, visible } from "../run/values";
import { recordText } from "../run/wording";
import type { Disabled, Enabled, Sketch } from "./api";
import type { Walk } from "./walk";

const message = (m: Sketch): string => `${m.id === null ? "" : `#${m.id} `}${visible(m.type)}(${recordText(m.fields)})`;

/** Messages with the same content are one line. */
function broadcasts(sent: Sketch[]): { to: string[]; what: string }[] {
  const found = new Map<string, string[]>();
  for (const m of sent) found.set(message(m), [...(found.get(message(m)) ?? []), visible(m.receiver)]);
  return [...found].map(([what, to]) => ({ to, what }));
}

const shown = (value: Data | undefined): string =>
  value === undefined ? "" : typeof value === "string" ? visible(value) : visible(text(value));

function Step({ walk, enabled, number }: { walk: Walk; enabled: Enabled; number: number }): JSX.Element {
  const rows: [string, string][] = [
    ...enabled.consumed.map((m): [string, string] => ["takes", `${message(m)} from ${visible(m.sender)}`]),
    ...enabled.choices.map((choice): [string, string] => ["chooses", visible(text(choice))]),
    ...broadcasts(enabled.sent).map(({ to, what }): [string, string] => ["sends", `→ ${to.join(", ")}: ${what}`]),
    ...Object.entries(enabled.changed).map(([field, [before, after]]): [string, string] => [
      "changes",
      `${visible(field)}: ${visible(text(before))} → ${visible(text(after))}`,
    ]),
  ];
  const fault = enabled.kind !== "step" && enabled.kind !== "tick";
  const visited = walk.node.children.some((one) => one.key === enabled.key);
  return (
    <li>
      <button
        type="button"
        class={`take ${enabled.kind}`}
        data-key={enabled.key}
        onClick={() => void walk.take(enabled)}
      >
        <span class="number" aria-hidden="true">
          {number < 10 ? number : ""}
        </span>
        <span class="what">
          <b class={fault ? "fault" : ""}>{visible(enabled.label)}</b>
          {enabled.leads === "same" && <span class="mark"> back to a state of this run</span>}
          {visited && <span class="mark"> walked before</span>}
          {rows.map(([verb, what], i) => (
            <span class={`row ${verb}`} key={i}>
              <i>{verb}</i> <span>{what}</span>
            </span>
          ))}
          {enabled.note && <span class="row bad">{visible(enabled.note)}</span>}
        </span>
      </button>
    </li>
  );
}

function Blocked({ disabled }: { disabled: Disabled[] }): JSX.Element {
  return (
    <details class="disabled">
      <summary>
        {disabled.some((one) => one.handler === null) ? "nothing is possible" : `${disabled.length} not possible`}
      </summary>
      <dl>
        {disabled.map(({ handler, reasons }) => (
          <div key={handler ?? ""}>
            <dt>{handler === null ? "all handlers" : visible(handler)}</dt>
            {reasons.map(({ text: reason, value }) => (
              <dd key={reason}>
                <code>{visible(reason)}</code>{" "}
                {value !== undefined && value !== null && <span class="value">{shown(value)}</span>}
              </dd>
            ))}
          </div>
        ))}
      </dl>
    </details>
  );
}

export function Next({ walk }: { walk: Walk }): JSX.Element {
  const { answer } = walk;
  if (!answer) return <p class="empty">{walk.problem ? "No answer." : "…"}</p>;
  const { enabled, disabled } = answer;
  const failed = walk.viewer.run.event(walk.viewer.view.step)?.note;
  const possible = new Set(enabled.map((one) => one.lane));
  const lanes = [
    ...new Set([
      ...walk.viewer.run.trace.lanes.map((lane) => lane.name),
      ...enabled.map((one) => one.lane),
      ...disabled.map((one) => one.lane),
    ]),
  ];
  return (
    <div class="next">
      <p class="buttons">
        <button type="button" disabled={!walk.can.undo} onClick={() => walk.undo()}>
          Undo (u)
        </button>
        <button type="button" disabled={!walk.can.redo} onClick={() => walk.redo()}>
          Redo (r)
        </button>
        {walk.model.initial > 1 && (
          <button type="button" onClick={() => walk.viewer.set({ dialog: "initial" })}>
            {`Initial state ${walk.run.initial} of ${walk.model.initial}`}
          </button>
        )}
      </p>
      {enabled.length === 0 && (
        <p class="terminal">
          {failed ? "The step raised an exception: the run ends here." : "No step is possible: this state is terminal."}
        </p>
      )}
      {lanes
        .sort((a, b) => Number(possible.has(b)) - Number(possible.has(a)))
        .map((lane) => {
          const own = enabled.filter((one) => one.lane === lane);
          const blocked = disabled.filter((one) => one.lane === lane);
          if (!own.length && !blocked.length) return null;
          return (
            <section aria-label={visible(lane)} key={lane}>
              <h3>{visible(lane)}</h3>
              <ul>
                {own.map((one) => (
                  <Step walk={walk} enabled={one} number={enabled.indexOf(one) + 1} key={one.key} />
                ))}
              </ul>
              {blocked.length > 0 && <Blocked disabled={blocked} />}
            </section>
          );
        })}
    </div>
  );
}
