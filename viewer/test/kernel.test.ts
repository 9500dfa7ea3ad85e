// Questions to a kernel through the messages of a widget, with a kernel whose answers the test gives.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused } from "../src/explore/api";
import { KernelApi } from "../src/explore/kernel";

type Sent = { id: string; method: string; path: string; body?: unknown };

class Widget {
  sent: Sent[] = [];
  heard = new Set<(message: unknown) => void>();
  get(): unknown {
    return undefined;
  }
  send(content: unknown): void {
    this.sent.push(content as Sent);
  }
  on(_: string, heard: (message: unknown) => void): void {
    this.heard.add(heard);
  }
  off(_: string, heard: (message: unknown) => void): void {
    this.heard.delete(heard);
  }
  answer(message: unknown): void {
    for (const heard of this.heard) heard(message);
  }
}

(globalThis as { window?: unknown }).window ??= globalThis;

test("answers come in any order, and each view hears its own", async () => {
  const widget = new Widget();
  const [one, other] = [new KernelApi(widget), new KernelApi(widget)];
  const asked = [one.get("/api/model"), one.post("/api/walk", { run: 1 }), other.get("/api/model")];
  const [a, b, c] = widget.sent as [Sent, Sent, Sent];
  assert.equal(new Set([a.id, b.id, c.id]).size, 3);
  assert.deepEqual([b.method, b.path, b.body], ["POST", "/api/walk", { run: 1 }]);
  widget.answer({ id: c.id, status: 200, body: '"third"' });
  widget.answer({ id: b.id, status: 200, body: '"second"' });
  widget.answer({ id: a.id, status: 200, body: '"first"' });
  assert.deepEqual(await Promise.all(asked), ["first", "second", "third"]);
});

test("a refusal has the words of the kernel", async () => {
  const widget = new Widget();
  const asked = new KernelApi(widget).get("/api/model");
  widget.answer({
    id: widget.sent[0]?.id,
    status: 422,
    body: '{"error": {"message": "too long", "hint": "ask for less"}}',
  });
  await assert.rejects(asked, (error: unknown) => error instanceof Refused && error.problem.hint === "ask for less");
});

test("a stream goes on until its end, or until nobody listens", async () => {
  const widget = new Widget();
  const api = new KernelApi(widget);
  const heard: string[][] = [];
  const listening = api.listen("/api/events", (event, data) => heard.push([event, data]), new AbortController().signal);
  const id = widget.sent[0]?.id;
  widget.answer({ id, event: "reload", body: "{}" });
  widget.answer({ id, event: "done", body: "1" });
  widget.answer({ id, status: 200, body: "" });
  await listening;
  assert.deepEqual(heard, [
    ["reload", "{}"],
    ["done", "1"],
  ]);
  const abort = new AbortController();
  const second = api.listen("/api/events", () => {}, abort.signal);
  abort.abort();
  await assert.rejects(second, { name: "AbortError" });
  assert.deepEqual([widget.sent[2]?.method, widget.sent[2]?.id], ["ABORT", widget.sent[1]?.id]);
  api.close();
  assert.equal(widget.heard.size, 0);
});
