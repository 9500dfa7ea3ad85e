// The explorer inside a notebook: the kernel answers, through the messages of the widget. There is no server and no port.
import { parse } from "../run/trace";
import { type Api, type Problem, Refused } from "./api";

/** What anywidget gives to a widget, as far as this needs it. */
export interface WidgetModel {
  get(name: string): unknown;
  send(content: unknown): void;
  on(event: "msg:custom", heard: (message: unknown) => void): void;
  off(event: "msg:custom", heard: (message: unknown) => void): void;
}

interface Answer {
  id: string;
  status?: number;
  body?: string;
  /** An event of a stream, which goes on. */
  event?: string;
}

interface Waiting {
  done: (answer: Answer) => void;
  heard: ((event: string, data: string) => void) | undefined;
}

/** Seconds after which a question without an answer is given up. The kernel gives up earlier, unless it is busy. */
const PATIENCE = 60;

export class KernelApi implements Api {
  readonly secret = "";
  readonly #waiting = new Map<string, Waiting>();
  /** Several views of a widget hear all messages: each answers only to its own. */
  readonly #name = crypto.getRandomValues(new Uint32Array(2)).join("-");
  #asked = 0;
  readonly #heard = (message: unknown): void => {
    const answer = message as Answer;
    const waiting = this.#waiting.get(answer.id);
    if (answer.event !== undefined) waiting?.heard?.(answer.event, answer.body ?? "");
    else waiting?.done(answer);
  };

  constructor(readonly model: WidgetModel) {
    model.on("msg:custom", this.#heard);
  }

  /** The view was removed: nothing is waited for any more. */
  close(): void {
    this.model.off("msg:custom", this.#heard);
    for (const id of this.#waiting.keys()) this.model.send({ id, method: "ABORT", path: "" });
    this.#waiting.clear();
  }

  async #send(method: string, path: string, body?: unknown, listen?: Waiting["heard"], signal?: AbortSignal) {
    const id = `${this.#name}-${++this.#asked}`;
    let timer: number | undefined;
    const answer = await new Promise<Answer>((done, fail) => {
      this.#waiting.set(id, { done, heard: listen });
      if (!listen)
        timer = window.setTimeout(
          () =>
            fail(
              new Refused(0, {
                message: `the kernel did not answer within ${PATIENCE} s`,
                hint: "it runs a cell, or it was stopped: run the cell of this widget again",
              }),
            ),
          1000 * PATIENCE,
        );
      signal?.addEventListener("abort", () => {
        this.model.send({ id, method: "ABORT", path });
        fail(new DOMException("the page stopped listening", "AbortError"));
      });
      this.model.send({ id, method, path, ...(body === undefined ? {} : { body }) });
    }).finally(() => {
      window.clearTimeout(timer);
      this.#waiting.delete(id);
    });
    if (answer.status === 200) return answer.body ?? "";
    const said = JSON.parse(answer.body || "{}") as { error?: Problem };
    throw new Refused(answer.status ?? 0, said.error ?? { message: `the kernel answered ${answer.status}` });
  }

  async get<T>(path: string): Promise<T> {
    return parse(await this.#send("GET", path)) as T;
  }

  async post<T>(path: string, body: unknown): Promise<T> {
    return parse(await this.#send("POST", path, body)) as T;
  }

  text(path: string, body: unknown): Promise<string> {
    return this.#send("POST", path, body);
  }

  async delete(path: string): Promise<void> {
    await this.#send("DELETE", path);
  }

  async listen(path: string, heard: (event: string, data: string) => void, signal: AbortSignal): Promise<void> {
    await this.#send("GET", path, undefined, heard, signal);
  }

  /** The layout of graphs is large. It comes from the kernel when it is needed, so that no notebook contains it. */
  async worker(): Promise<Worker> {
    const script = new Blob([await this.#send("GET", "/elk-worker.js")], { type: "text/javascript" });
    return new Worker(URL.createObjectURL(script));
  }
}
