// Find: a check, a state where an expression holds, whether a process can still do something, how many ways lead here.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Modal } from "../panels/dialogs";
import { visible } from "../run/values";
import { plural } from "../run/wording";
import type { Viewer } from "../viewer-state";
import type { Search } from "./api";
import { keysOf } from "./tree";
import type { Finding, Walk } from "./walk";

const KINDS = {
  check: "Check properties",
  find: "Find a state where …",
  can: "Can a process still …",
  ways: "How many different ways lead here",
};

export function Find({ viewer, walk }: { viewer: Viewer; walk: Walk }): JSX.Element {
  const [kind, setKind] = useState<Search["kind"]>("check");
  const [here, setHere] = useState(false);
  const [expression, setExpression] = useState("");
  const [property, setProperty] = useState("");
  const lanes = viewer.run.trace.lanes;
  const [lane, setLane] = useState(lanes[0]?.name ?? "");
  const role = lanes.find((one) => one.name === lane)?.role;
  const handlers = walk.model.handlers.filter((one) => one.role === role).map((one) => one.name);
  const [chosen, setHandler] = useState("");
  const handler = handlers.includes(chosen) ? chosen : (handlers[0] ?? "");
  const start = (event: Event): void => {
    event.preventDefault();
    const where = kind === "ways" ? "" : here ? `, from step ${viewer.view.step}` : ", from the start";
    const search: Search = { from: here || kind === "ways" ? keysOf(walk.node) : null, kind };
    let title = KINDS[kind];
    if (kind === "check") {
      if (property) search.options = { properties: [property] };
      title = property ? `Check ${property}` : "Check all properties";
    }
    if (kind === "find") {
      search.expression = expression.trim();
      title = `A state where ${search.expression}`;
    }
    if (kind === "can") {
      Object.assign(search, { lane, handler });
      title = `Can ${lane} still do ${handler}`;
    }
    viewer.set({ dialog: null });
    void walk.search(search, title + where);
  };
  return (
    <Modal viewer={viewer} title="Find">
      <form class="find" onSubmit={start}>
        <fieldset>
          <legend>What</legend>
          {(Object.keys(KINDS) as Search["kind"][]).map((one, i) => (
            <label key={one}>
              <input
                type="radio"
                name="kind"
                checked={kind === one}
                onChange={() => setKind(one)}
                {...(i === 0 ? { "data-focus": true } : {})}
              />
              {KINDS[one]}
            </label>
          ))}
        </fieldset>
        {kind === "check" && walk.model.properties.length > 1 && (
          <label>
            Property{" "}
            <select value={property} onChange={(event) => setProperty(event.currentTarget.value)}>
              <option value="">all properties</option>
              {walk.model.properties.map(({ name }) => (
                <option value={name} key={name}>
                  {visible(name)}
                </option>
              ))}
            </select>
          </label>
        )}
        {kind === "find" && (
          <label>
            A Python expression over the view s
            <input
              type="text"
              required
              spellcheck={false}
              value={expression}
              onInput={(event) => setExpression(event.currentTarget.value)}
            />
          </label>
        )}
        {kind === "can" && (
          <>
            <label>
              Process{" "}
              <select value={lane} onChange={(event) => setLane(event.currentTarget.value)}>
                {lanes.map(({ name }) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
            <label>
              Handler{" "}
              <select value={handler} onChange={(event) => setHandler(event.currentTarget.value)}>
                {handlers.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          </>
        )}
        {kind !== "ways" && (
          <fieldset>
            <legend>From</legend>
            <label>
              <input type="radio" name="from" checked={!here} onChange={() => setHere(false)} /> the initial states
            </label>
            <label>
              <input type="radio" name="from" checked={here} onChange={() => setHere(true)} /> this state (step{" "}
              {viewer.view.step})
            </label>
          </fieldset>
        )}
        <p class="buttons">
          <button type="submit">Start</button>
        </p>
      </form>
    </Modal>
  );
}

function Found({ walk, finding }: { walk: Walk; finding: Finding }): JSX.Element {
  const { done, progress, title } = finding;
  const states = progress.states === undefined ? "" : plural(progress.states, "state");
  const seconds = progress.seconds === undefined ? "" : `${progress.seconds.toFixed(1)} s`;
  const loop = done?.loop ?? undefined;
  const run = done?.run && { ...done.run, ...(loop === undefined ? {} : { loop }) };
  return (
    <li class={done ? `done ${done.status.replace(/ /g, "-")}` : "running"}>
      <b>{visible(title)}</b>
      {done ? (
        <span class="text">{visible(done.text)}</span>
      ) : (
        <span class="text">
          {progress.text ? visible(progress.text) : ["searching", states, seconds].filter(Boolean).join(", ")}
        </span>
      )}
      <span class="buttons">
        {run && (
          <button type="button" onClick={() => void walk.open(run)}>
            {`Open the run (${plural(run.steps.length, "step")}${loop === undefined ? "" : `, of which ${run.steps.length - loop} repeat`})`}
          </button>
        )}
        {!done && (
          <button type="button" onClick={() => void walk.stop(finding)}>
            Stop
          </button>
        )}
        <button type="button" aria-label={`remove ${title}`} onClick={() => walk.forget(finding)}>
          ✕
        </button>
      </span>
    </li>
  );
}

export function Findings({ walk }: { walk: Walk }): JSX.Element {
  return (
    <div class="findings-panel">
      <p class="buttons">
        <button type="button" onClick={() => walk.viewer.set({ dialog: "find" })}>
          New search (c)
        </button>
      </p>
      <ul class="findings" aria-live="polite">
        {walk.findings.map((finding) => (
          <Found walk={walk} finding={finding} key={finding.id} />
        ))}
      </ul>
      {walk.findings.length === 0 && (
        <p class="empty">
          Searches run in the background. A run that one finds can be opened, and walked on from any step.
        </p>
      )}
    </div>
  );
}
