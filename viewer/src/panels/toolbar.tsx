// The controls above the diagram: moving, playing, searching, zooming, and what opens a dialog.
import type { JSX } from "preact";
import { zoomBy } from "../keys";
import { prefixes } from "../run/search";
import type { Viewer } from "../viewer-state";

// The icons are drawn, because many fonts have no media symbols.
const ICONS = {
  first: "M3 3h2v10H3z M13 3v10L6 8z",
  back: "M12 3v10L4 8z",
  on: "M4 3v10l8-5z",
  last: "M11 3h2v10h-2z M3 3v10l7-5z",
  play: "M2 3v10l6-5z M8 3v10l6-5z",
  pause: "M4 3h3v10H4z M9 3h3v10H9z",
};

function Icon({ name }: { name: keyof typeof ICONS }): JSX.Element {
  return (
    <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

function Move({
  go,
  label,
  keys,
  act,
}: {
  go: "first" | "back" | "on" | "last";
  label: string;
  keys: string;
  act: () => void;
}): JSX.Element {
  return (
    <button type="button" data-go={go} title={`${label} (${keys})`} aria-label={label} onClick={act}>
      <Icon name={go} />
    </button>
  );
}

function Search({ viewer }: { viewer: Viewer }): JSX.Element {
  const { query, only } = viewer.view;
  return (
    <search class="search">
      <input
        type="search"
        placeholder="Search (/)"
        aria-label="Search steps"
        title={`Words, or ${prefixes(viewer.run)
          .map((prefix) => `${prefix}:`)
          .join(" ")} and a value; -word excludes. Enter: next match.`}
        value={query}
        onInput={(event) => viewer.set({ query: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter") viewer.find(event.shiftKey ? -1 : 1);
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      {query.trim() && (
        <>
          <span class="count">{viewer.matches.length}</span>
          <label class="only">
            <input type="checkbox" checked={only} onChange={() => viewer.set({ only: !only })} />
            only these
          </label>
        </>
      )}
    </search>
  );
}

export function Toolbar({ viewer }: { viewer: Viewer }): JSX.Element {
  const { view, run } = viewer;
  const now = `${run.place(view.step)}: ${run.title(view.step)}`;
  const open = (dialog: typeof view.dialog) => () => viewer.set({ dialog });
  return (
    <div class="controls">
      <Move go="first" label="first step" keys="Home" act={() => viewer.go(0)} />
      <Move go="back" label="previous step" keys="←" act={() => viewer.move(-1)} />
      <button
        type="button"
        class="play"
        title="Play (space)"
        aria-label={view.playing ? "pause" : "play"}
        aria-pressed={view.playing}
        onClick={() => viewer.play(!view.playing)}
      >
        <Icon name={view.playing ? "pause" : "play"} />
      </button>
      <input
        type="range"
        min="0"
        max={run.last}
        step="1"
        value={view.step}
        aria-label="step"
        aria-valuetext={now}
        onInput={(event) => viewer.go(Number(event.currentTarget.value))}
      />
      <Move go="on" label="next step" keys="→" act={() => viewer.move(1)} />
      <Move go="last" label="last step" keys="End" act={() => viewer.go(run.last)} />
      <output class="now" aria-live="polite">
        {now}
      </output>
      <Search viewer={viewer} />
      <div class="tools">
        {viewer.walk && (
          <>
            <button
              type="button"
              title="State graph, or diagram (v)"
              onClick={() => viewer.set({ page: view.page === "graph" ? "diagram" : "graph" })}
            >
              {view.page === "graph" ? "Diagram" : "Graph"}
            </button>
            <button type="button" title="Check, search, count ways (c)" onClick={open("find")}>
              Find
            </button>
          </>
        )}
        {run.sides.length > 1 && (
          <>
            <button type="button" title="Previous difference ([)" onClick={() => viewer.differ(-1)}>
              ‹ Difference
            </button>
            <button type="button" title="Next difference (])" onClick={() => viewer.differ(1)}>
              Difference ›
            </button>
          </>
        )}
        <button type="button" title="Smaller (-)" aria-label="zoom out" onClick={() => zoomBy(viewer, 1 / 1.2)}>
          −
        </button>
        <button type="button" title="Fit (0)" aria-label="fit" onClick={() => viewer.set({ zoom: null })}>
          Fit
        </button>
        <button type="button" title="Larger (+)" aria-label="zoom in" onClick={() => zoomBy(viewer, 1.2)}>
          +
        </button>
        <button type="button" title="Note on this step (m)" onClick={open("note")}>
          Note
        </button>
        <button type="button" title="Link and exports (x)" onClick={open("export")}>
          Export
        </button>
        <button type="button" title="Keys (?)" aria-label="help" onClick={open("help")}>
          ?
        </button>
      </div>
      <div class="said" role="status">
        {view.said}
      </div>
    </div>
  );
}
