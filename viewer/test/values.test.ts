// Values are written as Python writes them: the expected texts are what `repr` gives.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Data, parse } from "../src/run/trace";
import { differences, text, visible } from "../src/run/values";

test("values are written as in Python", () => {
  const cases: [Data, string][] = [
    [null, "None"],
    [true, "True"],
    [-3, "-3"],
    [0.5, "0.5"],
    [1e-7, "1e-07"],
    ["it's", '"it\'s"'],
    ["'\"", "'\\'\"'"],
    ["a\\b\n", "'a\\\\b\\n'"],
    ["\u200b\u{e0001}", "'\\u200b\\U000e0001'"],
    [{ "#tup": [1] }, "(1,)"],
    [{ "#tup": [] }, "()"],
    [{ "#set": [] }, "set()"],
    [{ "#set": [1, 2] }, "{1, 2}"],
    [{ "#map": [["b", { "#tup": [1, 2] }]] }, "{'b': (1, 2)}"],
    [{ "#call": "deque", arguments: [[1], 3] }, "deque([1], 3)"],
    [{ "#enum": "Phase.READ" }, "Phase.READ"],
    [{ "#bigint": "9007199254740993" }, "9007199254740993"],
    [{ "#type": "Entry", term: 1, value: "x" }, "Entry(term=1, value='x')"],
    [[{ "#pid": "Node0" }], "[Node0]"],
  ];
  for (const [data, expected] of cases) assert.equal(text(data), expected);
});

test("control characters are visible", () => {
  assert.equal(visible("a\x1b[2Jb c"), "a\\x1b[2Jb c");
});

test("differences are as deep as possible", () => {
  const entry = (term: number): Data => ({ "#type": "Entry", term, command: "x" });
  assert.deepEqual(differences([entry(1), entry(2)], [entry(1), entry(3), entry(4)]), [
    { path: "[1].term", before: 2, after: 3 },
    { path: "[2]", after: entry(4) },
  ]);
  assert.deepEqual(differences({ "#set": [1, 2] }, { "#set": [2, 3] }), [
    { path: " lacks", before: 1 },
    { path: " has", after: 3 },
  ]);
  assert.deepEqual(
    differences(
      { "#map": [["a", 1]] },
      {
        "#map": [
          ["a", 1],
          ["b", null],
        ],
      },
    ),
    [{ path: "['b']", after: null }],
  );
  assert.deepEqual(differences(1, { "#tup": [1] }), [{ path: "", before: 1, after: { "#tup": [1] } }]);
  assert.deepEqual(differences({ "#tup": [1] }, [1]), [{ path: "", before: { "#tup": [1] }, after: [1] }]);
});

/** A law: if there is no difference, the values are equal, and the other way round. */
test("no difference means equal", () => {
  const random = (depth: number, seed: () => number): Data => {
    const kind = Math.floor(seed() * (depth ? 7 : 3));
    const many = (): Data[] => Array.from({ length: Math.floor(seed() * 3) }, () => random(depth - 1, seed));
    if (kind === 0) return Math.floor(seed() * 3);
    if (kind === 1) return ["a", "b"][Math.floor(seed() * 2)] as string;
    if (kind === 2) return null;
    if (kind === 3) return many();
    if (kind === 4) return { "#tup": many() };
    if (kind === 5) return { "#set": [...new Map(many().map((one) => [text(one), one])).values()] };
    return { "#type": "T", x: random(depth - 1, seed) };
  };
  let state = 7;
  const seed = (): number => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
  for (let i = 0; i < 3000; i++) {
    const [a, b] = [random(3, seed), random(3, seed)];
    assert.deepEqual(differences(a, a), []);
    if (text(a) !== text(b)) {
      const sets = JSON.stringify([a, b]).includes("#set");
      if (!sets) assert.notEqual(differences(a, b).length, 0, `${text(a)} ${text(b)}`);
    }
  }
});

test("1.0 is not 1, where the runtime tells them apart", () => {
  const [one, point] = parse('[1, 1.0, 2.5, "1.0,"]') as Data[];
  assert.equal(text(one as Data), "1");
  if (process.version >= "v21") assert.equal(text(point as Data), "1.0");
});
