// All keys, and what they do. The help overlay shows this table.
import type { Viewer } from "./viewer-state";

export interface Binding {
  keys: string[];
  shown: string;
  text: string;
  act: (viewer: Viewer) => void;
  /** Only in `plait explore`. */
  walk?: true;
  /** Only for two runs. */
  pair?: true;
  control?: true;
}

export function zoomBy(viewer: Viewer, factor: number): void {
  const now = viewer.view.zoom ?? 1;
  viewer.set({ zoom: Math.min(3, Math.max(0.15, now * factor)) });
}

/** Less than 1: the whole run fits the height of the window, as far as this can be. */
function overview(viewer: Viewer): void {
  viewer.set({ zoom: Math.max(0.15, Math.min(1, (window.innerHeight * 0.6) / viewer.layout.height)) });
}

function focus({ section }: Viewer, selector: string): void {
  const found = section?.querySelector<HTMLElement>(selector);
  found?.focus();
  if (found instanceof HTMLInputElement) found.select();
}

const take = (number: number): Binding => ({
  keys: [String(number)],
  shown: String(number),
  text: `Take enabled step ${number}`,
  walk: true,
  act: (viewer) => viewer.walk?.takeNumber(number),
});

export const GROUPS: { name: string; bindings: Binding[] }[] = [
  {
    name: "Move",
    bindings: [
      { keys: ["ArrowRight", "j"], shown: "→ or j", text: "Next step", act: (v) => v.move(1) },
      { keys: ["ArrowLeft", "k"], shown: "← or k", text: "Previous step", act: (v) => v.move(-1) },
      { keys: ["Home"], shown: "Home", text: "Initial state", act: (v) => v.go(0) },
      { keys: ["End"], shown: "End", text: "Last step", act: (v) => v.go(v.run.last) },
      { keys: ["PageDown"], shown: "Page Down", text: "Ten steps on", act: (v) => v.go(v.view.step + 10) },
      { keys: ["PageUp"], shown: "Page Up", text: "Ten steps back", act: (v) => v.go(v.view.step - 10) },
      { keys: ["g"], shown: "g", text: "Go to a step", act: (v) => v.set({ dialog: "goto" }) },
      { keys: [" "], shown: "Space", text: "Play, pause", act: (v) => v.play(!v.view.playing) },
    ],
  },
  {
    name: "Read",
    bindings: [
      { keys: ["/"], shown: "/", text: "Search", act: (v) => focus(v, 'input[type="search"]') },
      { keys: ["n"], shown: "n", text: "Next match", act: (v) => v.find(1) },
      { keys: ["N"], shown: "N", text: "Previous match", act: (v) => v.find(-1) },
      { keys: ["f"], shown: "f", text: "Show only matches, or all steps", act: (v) => v.set({ only: !v.view.only }) },
      { keys: ["]"], shown: "]", text: "Next difference", pair: true, act: (v) => v.differ(1) },
      { keys: ["["], shown: "[", text: "Previous difference", pair: true, act: (v) => v.differ(-1) },
      { keys: ["l"], shown: "l", text: "Choose lanes and fields", act: (v) => v.set({ dialog: "lanes" }) },
      {
        keys: ["="],
        shown: "=",
        text: "Compare with this state, or with the state before",
        act: (v) => v.set({ compare: v.view.compare === null ? v.view.step : null }),
      },
      {
        keys: ["V"],
        shown: "V",
        text: "Views: pictures of the state, or its fields",
        act: (v) => v.set({ lower: v.view.lower === "views" || !v.hasViews ? "state" : "views" }),
      },
      { keys: ["m"], shown: "m", text: "Note on this step", act: (v) => v.set({ dialog: "note" }) },
      { keys: ["+"], shown: "+", text: "Larger", act: (v) => zoomBy(v, 1.2) },
      { keys: ["-"], shown: "-", text: "Smaller", act: (v) => zoomBy(v, 1 / 1.2) },
      { keys: ["0"], shown: "0", text: "Fit the width", act: (v) => v.set({ zoom: null }) },
      { keys: ["o"], shown: "o", text: "Overview: fit the height", act: overview },
      { keys: ["x"], shown: "x", text: "Link and exports", act: (v) => v.set({ dialog: "export" }) },
      { keys: ["?"], shown: "?", text: "This help", act: (v) => v.set({ dialog: "help" }) },
    ],
  },
  {
    name: "Walk",
    bindings: [
      { keys: [], shown: "1 … 9", text: "Take the enabled step with this number", walk: true, act: () => {} },
      { keys: ["u"], shown: "u or Ctrl+Z", text: "Undo", walk: true, act: (v) => v.walk?.undo() },
      { keys: ["r"], shown: "r or Ctrl+Y", text: "Redo", walk: true, act: (v) => v.walk?.redo() },
      {
        keys: ["e"],
        shown: "e",
        text: "To the enabled steps",
        walk: true,
        act: (v) => {
          v.set({ upper: "next" });
          queueMicrotask(() => focus(v, ".panel-next button.take"));
        },
      },
      { keys: ["t"], shown: "t", text: "The tree of branches", walk: true, act: (v) => v.set({ upper: "tree" }) },
      { keys: ["s"], shown: "s", text: "Source of the step", walk: true, act: (v) => v.set({ upper: "source" }) },
      {
        keys: ["p"],
        shown: "p",
        text: "Properties and watches",
        walk: true,
        act: (v) => v.set({ lower: "properties" }),
      },
      { keys: ["d"], shown: "d", text: "State and differences", walk: true, act: (v) => v.set({ lower: "state" }) },
      {
        keys: ["w"],
        shown: "w",
        text: "Add a watch",
        walk: true,
        act: (v) => {
          v.set({ lower: "properties" });
          queueMicrotask(() => focus(v, ".watch-input"));
        },
      },
      {
        keys: ["c"],
        shown: "c",
        text: "Find: check, search, count ways",
        walk: true,
        act: (v) => v.set({ dialog: "find" }),
      },
      {
        keys: ["v"],
        shown: "v",
        text: "State graph, or diagram",
        walk: true,
        act: (v) => v.set({ page: v.view.page === "graph" ? "diagram" : "graph" }),
      },
      {
        keys: ["i"],
        shown: "i",
        text: "Choose the initial state",
        walk: true,
        act: (v) => v.set({ dialog: "initial" }),
      },
    ],
  },
];

const HIDDEN: Binding[] = [
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map(take),
  { keys: ["z"], shown: "", text: "", walk: true, control: true, act: (v) => v.walk?.undo() },
  { keys: ["y", "Z"], shown: "", text: "", walk: true, control: true, act: (v) => v.walk?.redo() },
];

/** Whether a binding has a meaning for what is shown. */
export function applies(viewer: Viewer, { walk, pair }: Binding): boolean {
  return (!walk || viewer.walk !== null) && (!pair || viewer.run.sides.length > 1);
}

/** Acts on a key. Returns whether the key had a meaning here. */
export function press(viewer: Viewer, event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  const typing = target.matches?.(
    'textarea, select, input:not([type="range"]):not([type="checkbox"]), [contenteditable]',
  );
  if (typing || event.altKey || viewer.view.dialog) return false;
  if (event.key === " " && target.matches?.("button, summary, input, a, [role=tab]")) return false;
  const control = event.ctrlKey || event.metaKey;
  const binding = [...GROUPS.flatMap((group) => group.bindings), ...HIDDEN].find(
    (one) => one.keys.includes(event.key) && applies(viewer, one) && (one.control ?? false) === control,
  );
  if (!binding) return false;
  event.preventDefault();
  binding.act(viewer);
  return true;
}
