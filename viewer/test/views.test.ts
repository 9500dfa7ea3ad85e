import assert from "node:assert/strict";
import { test } from "node:test";
import { address } from "../src/panels/views";
import { inflate, type Sparse } from "../src/run/trace";
import { trace } from "./sample";

test("a picture becomes an image with the styles of the page", () => {
  const made = address('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text>a &gt; b #</text></svg>');
  assert.match(made, /^data:image\/svg\+xml,[\w%.!~*'()-]+$/);
  const svg = decodeURIComponent(made.slice(made.indexOf(",") + 1));
  assert.match(
    svg,
    /^<svg xmlns="[^"]*" viewBox="0 0 9 9"><style>[^<]*\.good[^<]*<\/style><text>a &gt; b #<\/text><\/svg>$/,
  );
});

test("states of a report share the pictures that did not change", () => {
  const whole = trace();
  const [first, second] = [{ svg: "<svg/>" }, { error: "late" }];
  const raw = {
    ...whole,
    initial: { ...whole.initial, views: { ring: first, log: first } },
    events: whole.events.map((event, i) => ({ ...event, state: i === 1 ? { views: { log: second } } : {} })),
  } as unknown as Sparse;
  const found = inflate(raw).events.map(({ state }) => state.views);
  assert.deepEqual(found[0], { ring: first, log: first });
  assert.deepEqual(found[1], { ring: first, log: second });
  assert.equal(found.at(-1), found[1]);
  assert.equal(inflate({ ...raw, initial: whole.initial, events: [] }).initial.views, undefined);
});
