// A viewer of one run: controls, the diagram, and panels beside it. The report and `plait explore` are the same component.
import type { JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { Diagram } from "./diagram/diagram";
import { Diagrams } from "./diff/diagrams";
import { PairState } from "./diff/state";
import { Branches } from "./explore/branches";
import { Findings } from "./explore/find";
import { GraphPage } from "./explore/graph";
import { Next } from "./explore/next";
import { Properties } from "./explore/properties";
import { Coverage, Source } from "./explore/source";
import type { Walk } from "./explore/walk";
import { Dialogs } from "./panels/dialogs";
import { State } from "./panels/state";
import { Steps } from "./panels/steps";
import { type Tab, Tabs } from "./panels/tabs";
import { Toolbar } from "./panels/toolbar";
import { Views } from "./panels/views";
import { visible } from "./run/values";
import type { Viewer } from "./viewer-state";

/** Whether the page is being printed: then everything is drawn, not only what is visible. */
function usePrinting(): boolean {
  const [printing, setPrinting] = useState(() => matchMedia("print").matches);
  useLayoutEffect(() => {
    const query = matchMedia("print");
    const changed = (): void => setPrinting(query.matches);
    const on = (): void => setPrinting(true);
    const off = (): void => setPrinting(false);
    query.addEventListener("change", changed);
    window.addEventListener("beforeprint", on);
    window.addEventListener("afterprint", off);
    return () => {
      query.removeEventListener("change", changed);
      window.removeEventListener("beforeprint", on);
      window.removeEventListener("afterprint", off);
    };
  }, []);
  return printing;
}

function upper(viewer: Viewer, walk: Walk | null, printing: boolean): Tab[] {
  const steps: Tab = { id: "steps", name: "Steps", content: () => <Steps viewer={viewer} printing={printing} /> };
  if (!walk) return [steps];
  return [
    {
      id: "next",
      name: `Next${walk.answer ? ` (${walk.answer.enabled.length})` : ""}`,
      content: () => <Next walk={walk} />,
    },
    steps,
    { id: "tree", name: "Tree", content: () => <Branches walk={walk} /> },
    { id: "source", name: "Source", content: () => <Source walk={walk} /> },
    { id: "coverage", name: "Coverage", content: () => <Coverage walk={walk} /> },
  ];
}

function lower(viewer: Viewer, walk: Walk | null): Tab[] {
  if (!walk && !viewer.run.sides.some((side) => side.stateful)) return [];
  const pair = viewer.run.sides.length > 1;
  const state: Tab = {
    id: "state",
    name: pair ? "States" : "State",
    content: () => (pair ? <PairState viewer={viewer} /> : <State viewer={viewer} />),
  };
  const views: Tab[] = viewer.hasViews
    ? [{ id: "views", name: "Views", content: () => <Views viewer={viewer} /> }]
    : [];
  if (!walk) return [state, ...views];
  const violated = walk.answer?.properties.filter((one) => one.status === "violated").length ?? 0;
  const running = walk.findings.filter((finding) => !finding.done).length;
  return [
    state,
    {
      id: "properties",
      name: `Properties${violated ? ` (${violated} ✕)` : ""}`,
      content: () => <Properties walk={walk} />,
    },
    { id: "find", name: `Find${running ? ` (${running} …)` : ""}`, content: () => <Findings walk={walk} /> },
    ...views,
  ];
}

function Banner({ walk }: { walk: Walk }): JSX.Element {
  return (
    <div role="alert" class="banners">
      {walk.problem && (
        <div class="banner error">
          <b>error: </b>
          <span>{walk.problem.message}</span>
          {walk.problem.hint && <div>{`hint: ${walk.problem.hint}`}</div>}
        </div>
      )}
      {walk.gone && (
        <div class="banner">
          {visible(walk.gone)}{" "}
          <button
            type="button"
            onClick={() => {
              walk.gone = null;
              walk.viewer.set({});
            }}
          >
            OK
          </button>
        </div>
      )}
    </div>
  );
}

export function App({ viewer }: { viewer: Viewer }): JSX.Element {
  const [, redraw] = useState({});
  // At once: a key, or the first answer, may come before the first paint.
  useLayoutEffect(() => viewer.subscribe(() => redraw({})), [viewer]);
  const printing = usePrinting();
  const { walk, view } = viewer;
  const prefix = `viewer${viewer.number}`;
  const below = lower(viewer, walk);
  return (
    <>
      {walk && <Banner walk={walk} />}
      <Toolbar viewer={viewer} />
      <div class="panes">
        {walk && view.page === "graph" ? (
          <GraphPage walk={walk} />
        ) : viewer.run.sides.length > 1 ? (
          <Diagrams viewer={viewer} printing={printing} />
        ) : (
          <Diagram viewer={viewer} layout={viewer.layout} printing={printing} />
        )}
        <div class="side">
          <Tabs
            label="steps"
            prefix={`${prefix}-upper`}
            tabs={upper(viewer, walk, printing)}
            chosen={printing ? "steps" : view.upper}
            choose={(id) => viewer.set({ upper: id })}
          />
          {below.length > 0 && (
            <Tabs
              label="state"
              prefix={`${prefix}-lower`}
              tabs={below}
              chosen={printing ? "state" : view.lower}
              choose={(id) => viewer.set({ lower: id })}
            />
          )}
          {printing && viewer.hasViews && <Views viewer={viewer} />}
        </div>
      </div>
      <Dialogs viewer={viewer} />
    </>
  );
}
