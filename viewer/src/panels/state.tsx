// The state after the step: every field, pending messages, monitors, budgets, and how they differ from another state.
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { memo } from "../memo";
import { reveal } from "../reveal";
import type { Run } from "../run/run";
import type { Data, Fields } from "../run/trace";
import { differences, text, visible } from "../run/values";
import { pendingText, STATUS_WORDS } from "../run/wording";
import type { Viewer } from "../viewer-state";

/** A value that is longer than this shows the places where it changed instead of its whole old value. */
const LONG = 48;
/** At most so many pending messages of a process are listed at first. */
const MANY = 12;
const NONE: number[] = [];

function Old({ before, after }: { before: Data; after: Data }): JSX.Element {
  const was = visible(text(before));
  const inner = differences(before, after);
  if (was.length <= LONG || inner[0]?.path === "") return <del>{was}</del>;
  return (
    <ul class="inner">
      {inner.map(({ path, before: old, after: now }) => (
        <li key={path + text(old ?? null) + text(now ?? null)}>
          <span class="path">{visible(path)}</span> {old !== undefined && <del>{visible(text(old))}</del>}{" "}
          {now !== undefined && <ins>{visible(text(now))}</ins>}
        </li>
      ))}
    </ul>
  );
}

interface CardProps {
  run: Run;
  hidden: ReadonlySet<string>;
  name: string;
  /** The prefix of the names of its fields in the list of hidden fields. */
  owner: string;
  fields: Fields;
  before: Fields;
  acting?: boolean;
  status?: string | undefined;
  inbox?: number[];
  had?: number[];
}

/** The pending messages. Of many, the last ones, until the reader wants all. */
function Inbox({ run, inbox, had }: { run: Run; inbox: number[]; had: number[] }): JSX.Element {
  const [all, setAll] = useState(false);
  const old = new Set(had);
  const few = all || inbox.length <= MANY;
  return (
    <>
      <div class="pending">{few ? "pending" : `${inbox.length} pending, the last ${MANY}:`}</div>
      <ul class="inbox">
        {(few ? inbox : inbox.slice(-MANY)).map((id) => (
          <li class={old.has(id) ? "" : "new"} key={id}>
            {pendingText(id, run.messages.get(id))}
          </li>
        ))}
      </ul>
      {!few && (
        <button type="button" onClick={() => setAll(true)}>
          Show all
        </button>
      )}
    </>
  );
}

const Card = memo(
  ({ run, hidden, name, owner, fields, before, acting, status, inbox = NONE, had = NONE }: CardProps): JSX.Element => {
    const shown = Object.entries(fields).filter(([field]) => !hidden.has(field) && !hidden.has(`${owner}.${field}`));
    const gone = Object.entries(before).filter(([field]) => !(field in fields) && !hidden.has(field));
    return (
      <section class={`card${acting ? " acting" : ""}${status ? " away" : ""}`} aria-label={name}>
        <h4>
          {name}
          {status && <span class="status">{STATUS_WORDS[status] ?? visible(status)}</span>}
        </h4>
        <table>
          <tbody>
            {shown.map(([field, value]) => {
              const was = before[field];
              const same = was !== undefined && (was === value || text(was) === text(value));
              return (
                <tr class={same ? "" : "changed"} key={field}>
                  <th scope="row">{visible(field)}</th>
                  <td>
                    {!same && was !== undefined && <Old before={was} after={value} />}{" "}
                    <span class="value">{visible(text(value))}</span>
                  </td>
                </tr>
              );
            })}
            {gone.map(([field, value]) => (
              <tr class="changed" key={field}>
                <th scope="row">{visible(field)}</th>
                <td>
                  <del>{visible(text(value))}</del>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {inbox.length > 0 && <Inbox run={run} inbox={inbox} had={had} />}
      </section>
    );
  },
);

function Compare({ viewer }: { viewer: Viewer }): JSX.Element {
  const { compare, step } = viewer.view;
  const choose = (value: string): void => {
    viewer.set({ compare: value === "previous" ? null : value === "this" ? step : Number(value) });
  };
  const chosen = compare === null ? "previous" : String(compare);
  const steps = [...new Set([0, ...(compare === null ? [] : [compare]), viewer.run.last])].sort((a, b) => a - b);
  return (
    <label class="compare">
      Differences to{" "}
      <select value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="previous">the state before</option>
        {steps.map((one) => (
          <option value={String(one)} key={one}>
            {one === 0 ? "the initial state" : one === viewer.run.last ? `the last state (step ${one})` : `step ${one}`}
          </option>
        ))}
        {compare !== step && <option value="this">this state, kept while you move</option>}
      </select>
    </label>
  );
}

export function State({ viewer }: { viewer: Viewer }): JSX.Element {
  const { run, view } = viewer;
  const cards = useRef<HTMLDivElement>(null);
  const { step } = view;
  const now = run.state(step);
  const before = run.state(view.compare ?? Math.max(0, step - 1));
  const status = run.status(step);
  const acting = run.event(step)?.lane;
  useLayoutEffect(() => reveal(cards.current?.querySelector(".acting")), [step, run]);
  const rest: [string, string, Fields, Fields][] = [
    ["Monitors", "monitors", now.monitors, before.monitors],
    ["Faults left", "budgets", now.budgets, before.budgets],
  ];
  return (
    <>
      <div class="state-tools">
        <Compare viewer={viewer} />
        <button type="button" onClick={() => viewer.set({ dialog: "lanes" })}>
          Lanes and fields
          {view.hiddenFields.size + view.hiddenLanes.size > 0 &&
            ` (${view.hiddenFields.size + view.hiddenLanes.size} hidden)`}
        </button>
      </div>
      <div class="state" ref={cards}>
        {run.trace.lanes
          .filter(({ name }) => !view.hiddenLanes.has(name))
          .map(({ name }) => (
            <Card
              run={run}
              hidden={view.hiddenFields}
              name={visible(name)}
              owner={name}
              fields={now.fields[name] ?? {}}
              before={before.fields[name] ?? {}}
              acting={step > 0 && name === acting}
              status={status[name]}
              inbox={now.pending[name] ?? NONE}
              had={before.pending[name] ?? NONE}
              key={name}
            />
          ))}
        {rest
          .filter(([, , fields]) => Object.keys(fields).length > 0)
          .map(([name, owner, fields, old]) => (
            <Card
              run={run}
              hidden={view.hiddenFields}
              name={name}
              owner={owner}
              fields={fields}
              before={old}
              key={owner}
            />
          ))}
      </div>
    </>
  );
}
