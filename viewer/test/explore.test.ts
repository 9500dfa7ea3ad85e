// The parts of `plait explore` that need no browser: links, the tree of branches, streams of events, growing traces.
import assert from "node:assert/strict";
import { test } from "node:test";
import { events } from "../src/explore/api";
import { merged } from "../src/explore/arrange";
import { cycles, folded } from "../src/explore/fold";
import { child, cut, depth, keysOf, root, rows, tip } from "../src/explore/tree";
import { extended } from "../src/explore/walk";
import { decode, encode, type Link } from "../src/link";
import { trace } from "./sample";

test("a link restores what it holds, whatever the names are", () => {
  const link: Link = {
    target: "raft.py:model",
    parameters: { servers: 5 },
    step: 3,
    run: { initial: 0, steps: ["a→b@Ω", 'x"y', "</script>"] },
    notes: { 2: "ünïcode & <b>" },
  };
  assert.deepEqual(decode(`#run=${encode(link)}`), link);
  assert.match(encode(link), /^[\w-]+$/);
});

test("a damaged link is no link", () => {
  const bad = (value: unknown): string => `#run=${encode(value as Link)}`;
  for (const raw of [
    "",
    "#run=",
    "#run=%%%",
    "#run=AAAA",
    "#other=1",
    bad({ step: "x" }),
    bad({ step: 1, run: { initial: 0, steps: [1] } }),
    bad(null),
    bad({ step: 1, lanes: [{}] }),
  ]) {
    assert.equal(decode(raw), null, raw);
  }
});

test("branches stay as a tree", () => {
  const start = root(0);
  const a = child(start, "a");
  const b = child(a, "b");
  const c = child(a, "c");
  assert.equal(child(start, "a"), a, "a step that was taken before is the same node");
  assert.deepEqual(keysOf(c), { initial: 0, steps: ["a", "c"] });
  assert.equal(depth(b), 2);
  assert.equal(tip(start), c, "the branch that was visited last");
  assert.deepEqual(
    rows(start).map(({ node, branch }) => [node.key, branch]),
    [
      ["0", 0],
      ["a", 0],
      ["b", 0],
      ["c", 1],
    ],
  );
  assert.equal(cut(c), a);
  assert.equal(tip(start), b);
  assert.equal(cut(start), null);
});

test("events of a stream may come in pieces", () => {
  const first = events('event: progress\r\ndata: {"states":1}\r\n\r\nevent: do');
  assert.deepEqual(first.events, [{ event: "progress", data: '{"states":1}' }]);
  const second = events(`${first.rest}ne\ndata: a\ndata: b\n\n: a comment\n\n`);
  assert.deepEqual(second, { events: [{ event: "done", data: "a\nb" }], rest: "" });
});

test("a branch drops what only the old branch used", () => {
  const old = trace();
  const other = { ...old.messages[2], id: 3, type: "Refusal" } as (typeof old.messages)[number];
  const event = { ...old.events[2], label: "refuse" } as (typeof old.events)[number];
  const grown = extended(old, 2, { ...old, events: [event], messages: [other] });
  assert.deepEqual(
    grown.events.map((one) => one.label),
    ["ask", "lose", "refuse"],
  );
  assert.deepEqual(
    grown.messages.map((one) => [one.id, one.type]),
    [
      [1, "Ask"],
      [2, "Ask"],
      [3, "Refusal"],
    ],
  );
  assert.equal(extended(grown, 3, { ...old, events: [], messages: [] }).messages.length, 3);
});

test("edges between the same nodes are one line", () => {
  const edge = (from: number, to: number, label: string, count: number) => ({ from, to, label, count });
  assert.deepEqual(merged([edge(1, 2, "a", 2), edge(2, 1, "b", 1), edge(1, 2, "c", 3)]), [
    edge(1, 2, "a, c", 5),
    edge(2, 1, "b", 1),
  ]);
});

const graphOf = (edges: [number, number][]) => ({
  nodes: [...new Set(edges.flat())]
    .sort((a, b) => a - b)
    .map((id) => ({
      id,
      label: `n${id}`,
      count: 10,
      initial: id === 0,
      terminal: Number(id === 5),
      violating: 0,
      run: { initial: 0, steps: Array.from({ length: id }, () => "s") },
    })),
  edges: edges.map(([from, to]) => ({ from, to, label: "a", count: 1 })),
  complete: true,
});

// 0 → 1 ⇄ 2 ⇄ 3 → 4 → 5, and 4 leads to itself.
const looped: [number, number][] = [
  [0, 1],
  [1, 2],
  [2, 1],
  [2, 3],
  [3, 2],
  [3, 4],
  [4, 4],
  [4, 5],
];

test("nodes that reach each other are a cycle", () => {
  assert.deepEqual(
    cycles(graphOf(looped)).map((part) => [...part].sort()),
    [[1, 2, 3]],
  );
  const long = Array.from({ length: 5000 }, (_, i): [number, number] => [i, (i + 1) % 5000]);
  assert.equal(cycles(graphOf(long))[0]?.length, 5000);
});

test("a folded cycle is one node with all states, and unfolds", () => {
  const graph = folded(graphOf(looped), new Set());
  assert.deepEqual(
    graph.nodes.map(({ id, count }) => [id, count]),
    [
      [0, 10],
      [4, 10],
      [5, 10],
      ["cycle 1", 30],
    ],
  );
  assert.deepEqual(
    graph.edges.map(({ from, to }) => [from, to]),
    [
      [0, "cycle 1"],
      ["cycle 1", 4],
      [4, 4],
      [4, 5],
    ],
  );
  assert.equal(folded(graphOf(looped), new Set([2])).nodes.length, 6);
});
