// Two runs side by side. The second run is the first one without its loss (event 1), and with a crash before the answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Layout } from "../src/diagram/layout";
import { type AlignedRow, Pair, unnumbered } from "../src/diff/pair";
import { inboxes } from "../src/diff/state";
import { plainText } from "../src/export";
import type { Trace } from "../src/run/trace";
import { Viewer } from "../src/viewer-state";
import { trace } from "./sample";

const ROWS: AlignedRow[] = [
  { relation: "same", first: 0, second: 0 },
  { relation: "one", first: 1, second: null },
  { relation: "same", first: 2, second: 1 },
  { relation: "moved", first: null, second: 2 },
  { relation: "changed", first: 3, second: 3 },
  { relation: "moved", first: 4, second: null },
];

function other(): Trace {
  const whole = trace();
  const [ask, , onAsk, onAnswer, crash] = whole.events as [never, never, never, Trace["events"][number], never];
  return { ...whole, events: [ask, onAsk, crash, { ...onAnswer, changed: { asked: [true, false] } }] };
}

const pair = (first = trace(), second = other()): Pair => new Pair(first, second, ROWS);

test("a row has the numbers of both steps", () => {
  const both = pair();
  assert.deepEqual(
    Array.from({ length: both.last + 1 }, (_, row) => both.number(row)),
    ["0 = 0", "1 = 1", "2 –", "3 = 2", "– ↕ 3", "4 ≠ 4", "5 ↕ –"],
  );
  assert.equal(both.place(2), "A step 2 of 5, only in A");
  assert.equal(both.place(5), "A step 4 of 5, B step 4 of 4, other effects");
  assert.equal(both.title(0), "initial states");
  assert.deepEqual(both.differences, [2, 4]);
});

test("a gap has no event, and the state before it", () => {
  const [, second] = pair().sides;
  assert.equal(second.event(2), undefined);
  assert.deepEqual(second.state(2), second.state(1));
  assert.equal(second.event(3)?.label, "on_ask");
  assert.equal(second.ending, 5);
});

test("messages keep their journeys, in rows", () => {
  const [first, second] = pair().sides;
  assert.deepEqual(
    [first.journeys[0]?.lost, first.journeys[1]?.deliveries, second.journeys[2]?.deliveries],
    [2, [3], [5]],
  );
});

test("both diagrams have their rows at the same heights", () => {
  const marks = [{ before: 1, label: "round 2", lost: [] }];
  const both = pair(trace({ marks }));
  const viewer = new Viewer(both, 0);
  const [a, b] = viewer.layouts as [Layout, Layout];
  assert.deepEqual(a.heights, b.heights);
  assert.equal(a.height, b.height);
  assert.deepEqual(
    [a.bands.map(({ label }) => label), b.bands.map(({ label }) => label)],
    [["round 2"], [""]],
    "a boundary of one run takes room in both",
  );
  assert.deepEqual(
    both.trace.marks.map(({ before, label }) => [before, label]),
    [[1, "A: round 2"]],
  );
  viewer.set({ hiddenLanes: new Set(["Server0"]) });
  assert.deepEqual(
    viewer.layouts.map(({ rows }) => rows),
    [
      [0, 1, 3, 5],
      [0, 1, 3, 5],
    ],
    "a hidden lane hides its rows in both",
  );
});

test("an effect says in which run it is", () => {
  const both = pair();
  assert.deepEqual(both.details(5), [
    ["takes", "Answer(n=3) from Server1"],
    ["changes", "asked: True → False", "B"],
  ]);
  assert.deepEqual(both.details(2), [["loses", "Ask(n=1) from Client", "A"]]);
  assert.match(plainText(both), /4 ≠ 4 {2}Client on_answer\n.*\n +changes {3}B: asked: True → False/);
});

test("a search looks at both runs, and at no gap", () => {
  const viewer = new Viewer(pair(), 0);
  viewer.set({ query: "field:asked" });
  assert.deepEqual(viewer.matches, [1, 5]);
  viewer.set({ query: "step:3" });
  assert.deepEqual(viewer.matches, [3, 4]);
  viewer.set({ query: "initial" });
  assert.deepEqual(viewer.matches, [0]);
});

test("loops and lanes of one run only", () => {
  const lanes = [{ name: "Client", role: "Client" }];
  const [first, second] = pair(trace({ loop: 2 }), { ...other(), lanes }).sides;
  assert.equal(first.trace.loop, 2);
  assert.equal(second.status(3).Server0, "unborn");
  assert.equal(first.status(3).Server0, undefined);
});

test("texts without the numbers of messages", () => {
  assert.equal(unnumbered("#3 Ping() from A"), "Ping() from A");
  assert.equal(unnumbered("→ B: Ping()  (#3, #4)"), "→ B: Ping()");
  assert.equal(unnumbered("x: #3 → 4"), "x: #3 → 4");
});

test("pending messages are compared by content", () => {
  assert.deepEqual(inboxes(["a", "b", "b"], ["b", "c"]), [
    { side: "", what: "b" },
    { side: "A", what: "a" },
    { side: "A", what: "b" },
    { side: "B", what: "c" },
  ]);
});
