// A small run to test with: a client asks two servers; one request is lost, one is answered.
import { Run } from "../src/run/run";
import { type Event, type Message, type Trace, whole } from "../src/run/trace";

const message = (id: number, type: string, sender: string, receiver: string): Message => ({
  id,
  type,
  fields: { n: id },
  sender,
  receiver,
});

const event = (
  lane: string,
  label: string,
  pending: Record<string, number[]>,
  more: Partial<Event> = {},
): Partial<Event> => ({
  lane,
  label,
  state: { fields: {}, pending, monitors: {}, status: {}, budgets: {} },
  ...more,
});

export function trace(more: Partial<Trace> = {}): Trace {
  return whole({
    target: "sample.py:model",
    lanes: ["Client", "Server0", "Server1"].map((name) => ({ name, role: name.replace(/\d/, "") })),
    messages: [
      message(1, "Ask", "Client", "Server0"),
      message(2, "Ask", "Client", "Server1"),
      message(3, "Answer", "Server1", "Client"),
    ],
    initial: { fields: { Client: { asked: false } }, pending: {}, monitors: {}, status: {}, budgets: {} },
    events: [
      event("Client", "ask", { Server0: [1], Server1: [2] }, { sent: [1, 2], changed: { asked: [false, true] } }),
      event("Server0", "lose", { Server1: [2] }, { kind: "lose", consumed: [1] }),
      event("Server1", "on_ask", { Client: [3] }, { consumed: [2], sent: [3] }),
      event("Client", "on_answer", {}, { consumed: [3] }),
      event("Server0", "crash", {}, { kind: "crash" }),
    ] as Event[],
    ...more,
  });
}

export const sample = (more: Partial<Trace> = {}): Run => new Run(trace(more));
