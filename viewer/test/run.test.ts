// What happened to messages and lanes, and what a search finds, in a run whose facts can be read off test/sample.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Layout } from "../src/diagram/layout";
import { CLEAR, distance, flat, type Point } from "../src/diagram/routing";
import { mermaid, plainText } from "../src/export";
import type { Run } from "../src/run/run";
import { prefixes, search, terms } from "../src/run/search";
import { inflate, type Message, type Sparse, stateOf } from "../src/run/trace";
import { compare } from "../src/tables";
import { sample, trace } from "./sample";

test("journeys: lost, delivered", () => {
  const [lost, asked, answer] = sample().journeys;
  assert.deepEqual([lost?.born, lost?.lost, lost?.deliveries], [1, 2, []]);
  assert.deepEqual([asked?.born, asked?.deliveries, asked?.pending], [1, [3], false]);
  assert.deepEqual([answer?.born, answer?.deliveries], [3, [4]]);
});

test("a lane is down after its crash", () => {
  assert.deepEqual(
    [0, 4, 5].map((step) => sample().status(step).Server0),
    [undefined, undefined, "crashed"],
  );
});

test("a search finds words, and words at a place", () => {
  const run = sample();
  assert.deepEqual(search(run, ""), []);
  assert.deepEqual(search(run, "ask"), [1, 2, 3]);
  assert.deepEqual(search(run, "process:server1"), [3]);
  assert.deepEqual(search(run, "message:Answer"), [3, 4]);
  assert.deepEqual(search(run, "field:asked"), [1]);
  assert.deepEqual(search(run, "fault:crash"), [5]);
  assert.deepEqual(search(run, "step:2-3"), [2, 3]);
  assert.deepEqual(search(run, "ask -message:answer"), [1, 2]);
  assert.deepEqual(search(run, "note:odd", { 4: "this is odd" }), [4]);
  assert.deepEqual(terms('handler:"on ask" x:y'), [
    { where: "handler", what: "on ask", negated: false },
    { where: "", what: "x:y", negated: false },
  ]);
});

test("states of a report are whole again", () => {
  const full = trace();
  const events = full.events.map((event) => ({ ...event, state: {} }));
  const sparse: Sparse = { ...full, events };
  (sparse.events[0] as Sparse["events"][number]).state = {
    fields: { Client: { asked: true } },
    pending: { Server1: [2] },
  };
  (sparse.events[1] as Sparse["events"][number]).state = {
    pending: { Server1: { "#gone": true } },
    monitors: { history: null },
  };
  const again = inflate(sparse);
  assert.deepEqual(stateOf(again, 0).fields, { Client: { asked: false } });
  assert.deepEqual(stateOf(again, 1).pending, { Server1: [2] });
  assert.deepEqual(stateOf(again, 2), {
    fields: { Client: { asked: true } },
    pending: {},
    monitors: { history: null },
    status: {},
    budgets: {},
  });
  assert.equal(stateOf(again, 3).fields, stateOf(again, 2).fields, "equal parts are shared");
});

test("rows go down; a hidden lane hides its steps and arrows", () => {
  const all = new Layout(sample(), new Set(), null);
  assert.deepEqual(all.rows, [0, 1, 2, 3, 4, 5]);
  for (let step = 1; step <= 5; step++) assert.ok(all.y(step) > all.y(step - 1));
  const some = new Layout(sample(), new Set(["Server0"]), null);
  assert.deepEqual(some.rows, [0, 1, 3, 4]);
  assert.deepEqual(some.lanes, ["Client", "Server1"]);
  assert.ok(some.arrows.every((arrow) => arrow.journey.message.receiver !== "Server0"));
  assert.deepEqual(new Layout(sample(), new Set(), [0, 4]).rows, [0, 4]);
});

/** A run with many crossing messages, from a fixed sequence of pseudo-random numbers. */
function crowded(steps: number, lanes: number): Run {
  let state = 11;
  const random = (below: number): number => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
  const names = Array.from({ length: lanes }, (_, i) => `P${i}`);
  const pending: Record<string, number[]> = {};
  const messages: Message[] = [];
  const events = Array.from({ length: steps }, () => {
    const lane = names[random(lanes)] as string;
    const inbox = pending[lane] ?? [];
    const consumed = inbox.length ? inbox.splice(random(inbox.length), 1) : [];
    const receiver = names[random(lanes)] as string;
    const id = messages.length + 1;
    messages.push({ id, type: "M", fields: {}, sender: lane, receiver });
    pending[receiver] = [...(pending[receiver] ?? []), id];
    return {
      lane,
      label: "act",
      consumed,
      sent: [id],
      state: { fields: {}, pending: structuredClone(pending), monitors: {}, status: {}, budgets: {} },
    };
  });
  return sample({ lanes: names.map((name) => ({ name, role: "P" })), messages, events: events as never });
}

test("no delivered arrow touches the mark of another event", () => {
  const run = crowded(60, 6);
  const layout = new Layout(run, new Set(), null);
  for (const arrow of layout.arrows) {
    if (arrow.to === null) continue;
    const corners = arrow.routes.flatMap(flat);
    for (let step = 1; step <= run.last; step++) {
      if (step === arrow.to || step === arrow.journey.born) continue;
      const [x, y] = layout.at(run.event(step)?.lane ?? "", step);
      for (let i = 1; i < corners.length; i++) {
        const far = distance(x, y, corners[i - 1] as Point, corners[i] as Point);
        // Paths along a middle may be beside it by two tracks.
        assert.ok(far >= CLEAR - 1e-6, `${arrow.journey.message.id} passes step ${step} at ${far}`);
      }
    }
  }
});

test("the window has exactly the arrows and rows that are near", () => {
  const layout = new Layout(crowded(200, 5), new Set(), null);
  const [top, bottom] = [layout.y(80), layout.y(100)];
  assert.deepEqual(
    new Set(layout.crossing(top, bottom)),
    new Set(layout.arrows.filter((a) => a.bottom >= top && a.top < bottom)),
  );
  const rows = layout.window(top, bottom);
  for (let step = 80; step <= 100; step++) assert.ok(rows.includes(step));
  assert.ok(rows.length < 30);
  assert.equal(layout.stepAt(layout.y(42)), 42);
});

test("exports name every step and message", () => {
  const run = sample();
  const text = plainText(run, { 2: "why?" });
  for (const said of [
    "sample.py:model: 5 steps",
    "3  Server1 on_ask",
    "takes     #2 Ask(n=2) from Client",
    "note      why?",
  ])
    assert.ok(text.includes(said), said);
  const chart = mermaid(run);
  assert.ok(chart.startsWith("sequenceDiagram\n  participant p0 as Client\n"));
  assert.ok(chart.includes("p0-xp1: Ask(n=1)"));
  assert.ok(chart.includes("p0->>p2: Ask(n=2)"));
  assert.ok(chart.includes("Note over p2: 3. on_ask"));
  assert.ok(!mermaid(run, new Set(["Server0"])).includes("p2"));
});

test("a run has the prefixes that can find something", () => {
  assert.ok(prefixes(sample()).includes("message"));
  const plain = sample({ messages: [], events: [], initial: { ...trace().initial, fields: {} } });
  assert.deepEqual(prefixes(plain), ["process", "handler", "note", "step"]);
  assert.equal(plain.stateful, false);
});

test("tables sort numbers by their value", () => {
  const cells = ["[10] → [2]", "b", "1,200", "7", "[9]", "a"];
  assert.deepEqual(cells.sort(compare), ["7", "1,200", "[9]", "[10] → [2]", "a", "b"]);
});
