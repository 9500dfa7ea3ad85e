// The states of two runs side by side: what differs between them, and what the step changed.
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { reveal } from "../reveal";
import type { Data, Fields } from "../run/trace";
import { text, visible } from "../run/values";
import { messageText, STATUS_WORDS } from "../run/wording";
import type { Viewer } from "../viewer-state";
import type { Side } from "./pair";

interface Owner {
  name: string;
  /** The prefix of the names of its fields in the list of hidden fields. */
  owner: string;
  /** The fields of each side, now and before the step. null: this side has no such lane. */
  now: (Fields | null)[];
  before: (Fields | null)[];
  status: (string | undefined)[];
  inbox: string[][];
  acting: boolean;
}

const equal = (one: Data | undefined, other: Data | undefined): boolean =>
  one === other || (one !== undefined && other !== undefined && text(one) === text(other));

function Value({ value, before }: { value: Data | undefined; before: Data | undefined }): JSX.Element {
  const changed = !equal(value, before);
  return <span class={changed ? "value new" : "value"}>{value === undefined ? "–" : visible(text(value))}</span>;
}

/** Pending messages that both sides have, then those of one side. Equal messages are counted. */
export function inboxes(first: string[], second: string[]): { side: string; what: string }[] {
  const left = [...second];
  const both: string[] = [];
  const alone: string[] = [];
  for (const what of first) {
    const at = left.indexOf(what);
    if (at < 0) alone.push(what);
    else both.push(...left.splice(at, 1));
  }
  return [
    ...both.map((what) => ({ side: "", what })),
    ...alone.map((what) => ({ side: "A", what })),
    ...left.map((what) => ({ side: "B", what })),
  ];
}

function differs({ now, status, inbox }: Owner): boolean {
  const [first, second] = now;
  const names = new Set([...Object.keys(first ?? {}), ...Object.keys(second ?? {})]);
  return (
    !first !== !second ||
    status[0] !== status[1] ||
    [...names].some((name) => !equal(first?.[name], second?.[name])) ||
    inboxes(inbox[0] ?? [], inbox[1] ?? []).some(({ side }) => side)
  );
}

function Card({ owner, hidden, few }: { owner: Owner; hidden: ReadonlySet<string>; few: boolean }): JSX.Element {
  const { now, before, status } = owner;
  const names = [...new Set(now.flatMap((fields) => Object.keys(fields ?? {})))].filter(
    (name) => !hidden.has(name) && !hidden.has(`${owner.owner}.${name}`),
  );
  const pending = inboxes(owner.inbox[0] ?? [], owner.inbox[1] ?? []).filter(({ side }) => side || !few);
  const words = status.map((word) => (word ? (STATUS_WORDS[word] ?? visible(word)) : ""));
  return (
    <section class={`card pair-card${owner.acting ? " acting" : ""}`} aria-label={owner.name}>
      <table>
        <thead>
          <tr>
            <th scope="col">{owner.name}</th>
            {["A", "B"].map((side, i) => (
              <th scope="col" key={side}>
                {side} <span class="status">{now[i] ? words[i] : "not in this run"}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {names.map((name) => {
            const same = equal(now[0]?.[name], now[1]?.[name]);
            if (same && few) return null;
            return (
              <tr class={same ? "" : "differs"} key={name}>
                <th scope="row">{visible(name)}</th>
                {[0, 1].map((i) => (
                  <td key={i}>
                    <Value value={now[i]?.[name]} before={before[i]?.[name]} />
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
      {pending.length > 0 && (
        <>
          <div class="pending">pending</div>
          <ul class="inbox">
            {pending.map(({ side, what }, i) => (
              <li class={side ? "differs" : ""} key={i}>
                {side && <b class="whose">{side}</b>}
                {what}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

/** The lanes, the monitors and the budgets of both states. */
function owners(viewer: Viewer): Owner[] {
  const { step } = viewer.view;
  const sides = viewer.run.sides as readonly Side[];
  const now = sides.map((side) => side.state(step));
  const before = sides.map((side) => side.state(Math.max(0, step - 1)));
  const status = sides.map((side) => side.status(step));
  const acting = viewer.run.event(step)?.lane;
  const lanes = viewer.run.trace.lanes
    .filter(({ name }) => !viewer.view.hiddenLanes.has(name))
    .map(({ name }) => ({
      name: visible(name),
      owner: name,
      now: now.map((state) => state.fields[name] ?? null),
      before: before.map((state) => state.fields[name] ?? null),
      status: status.map((words) => words[name]),
      inbox: now.map((state, i) =>
        (state.pending[name] ?? []).map((id) => {
          const m = sides[i]?.messages.get(id);
          return m ? `${messageText(m)} from ${visible(m.sender)}` : "a message that the trace does not describe";
        }),
      ),
      acting: step > 0 && name === acting,
    }));
  const rest = (["monitors", "budgets"] as const).map((part) => ({
    name: part === "monitors" ? "Monitors" : "Faults left",
    owner: part,
    now: now.map((state): Fields => state[part]),
    before: before.map((state): Fields => state[part]),
    status: [],
    inbox: [],
    acting: false,
  }));
  return [...lanes, ...rest.filter((one) => one.now.some((fields) => Object.keys(fields).length > 0))];
}

export function PairState({ viewer }: { viewer: Viewer }): JSX.Element {
  const [few, setFew] = useState(false);
  const { view, run } = viewer;
  const cards = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => reveal(cards.current?.querySelector(".acting")), [view.step, run]);
  const all = owners(viewer);
  const shown = few ? all.filter(differs) : all;
  const hidden = view.hiddenFields.size + view.hiddenLanes.size;
  return (
    <>
      <div class="state-tools">
        <label class="only">
          <input type="checkbox" checked={few} onChange={() => setFew(!few)} />
          only what differs
        </label>
        <button type="button" onClick={() => viewer.set({ dialog: "lanes" })}>
          Lanes and fields{hidden > 0 && ` (${hidden} hidden)`}
        </button>
      </div>
      {few && shown.length === 0 && <p class="empty">The states are the same.</p>}
      <div class="state" ref={cards}>
        {shown.map((owner) => (
          <Card owner={owner} hidden={view.hiddenFields} few={few} key={owner.owner} />
        ))}
      </div>
    </>
  );
}
