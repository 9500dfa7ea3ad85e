// What `plait explore` answers. In a page, its server answers; in a notebook, the kernel does (kernel.ts).
import type { RunKeys } from "../link";
import { type Data, type Fields, type Message, type Picture, parse, type Snapshot, type Sparse } from "../run/trace";

export interface Handler {
  role: string;
  name: string;
  kind: string;
  file: string;
  line: number;
  source?: string;
}

export interface Model {
  name: string;
  target: string;
  parameters: Fields;
  roles: string[];
  lanes: { name: string; role: string }[];
  handlers: Handler[];
  properties: { name: string; kind: string; text: string }[];
  initial: number;
  initials?: string[];
  views: boolean;
  error: null | Problem;
}

export interface Problem {
  message: string;
  hint?: string | null;
}

export type Sketch = Omit<Message, "id"> & { id: number | null };

export interface Enabled {
  key: string;
  lane: string;
  label: string;
  kind: string;
  consumed: Sketch[];
  sent: Sketch[];
  choices: Data[];
  changed: Record<string, [Data, Data]>;
  leads: "new" | "same";
  note?: string | null;
}

export interface Disabled {
  lane: string;
  /** null: none of the process can run. */
  handler: string | null;
  reasons: { text: string; value?: Data }[];
}

export interface Property {
  name: string;
  kind?: string;
  status: "holds" | "violated" | "open" | "satisfied";
  detail?: string | null;
}

export interface Watch {
  text: string;
  value?: Data;
  error?: string | null;
}

export interface Source {
  handler: string;
  file: string;
  first: number;
  lines: string[];
  executed: number[];
  values: Record<string, string>;
}

export interface Walked {
  trace: Sparse;
  valid: number;
  gone: null | { step: number; reason: string };
  state: Snapshot;
  enabled: Enabled[];
  disabled: Disabled[];
  properties: Property[];
  watches: Watch[];
  source: Source[];
  views: Record<string, Picture>;
  terminal?: boolean;
}

export interface Graph {
  nodes: {
    id: number | string;
    label: string;
    count: number;
    initial: boolean;
    /** How many of the states are terminal, and how many violate a property. */
    terminal: number;
    violating: number;
    run: RunKeys;
  }[];
  edges: { from: number | string; to: number | string; label: string; count: number }[];
  complete: boolean;
  states?: number;
  note?: string | null;
}

export interface Coverage {
  over: string;
  files: {
    handler: string;
    file: string;
    first: number;
    lines: string[];
    hits: Record<string, number | null>;
    missed: { line: number; text: string }[];
  }[];
  summary: [string, string][];
}

export interface Search {
  from: RunKeys | null;
  kind: "check" | "find" | "can" | "ways";
  expression?: string;
  lane?: string;
  handler?: string;
  options?: Record<string, Data>;
}

export interface Done {
  status: string;
  text: string;
  run?: RunKeys | null;
  /** For a run that repeats for ever, the number of steps before its loop. */
  loop?: number | null;
  count?: number | null;
  statistics?: [string, string][];
}

export interface Progress {
  text?: string;
  states?: number;
  seconds?: number;
}

/** An error that the server explained. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.hint ? `${problem.message}\n${problem.hint}` : problem.message);
  }
}

/** Questions to the model. An error that was explained is a `Refused`. */
export interface Api {
  /** What a link to the page must contain. */
  readonly secret: string;
  get<T>(path: string): Promise<T>;
  post<T>(path: string, body: unknown): Promise<T>;
  text(path: string, body: unknown): Promise<string>;
  delete(path: string): Promise<void>;
  /** Hears events, until there are no more or the signal ends it. */
  listen(path: string, heard: (event: string, data: string) => void, signal: AbortSignal): Promise<void>;
  /** The program that lays out graphs. */
  worker(): Promise<Worker>;
}

/** Asks the server. All requests carry the secret of the address that the command printed. */
export class ServerApi implements Api {
  constructor(readonly secret: string) {}

  async #send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { "X-Plait-Secret": this.secret };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response: Response;
    try {
      response = await fetch(path, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Refused(0, { message: "the server does not answer", hint: "start it again: plait explore" });
    }
    if (response.ok) return response;
    const said = (await response.json().catch(() => null)) as { error?: Problem } | null;
    throw new Refused(response.status, said?.error ?? { message: `the server answered ${response.status}` });
  }

  async get<T>(path: string): Promise<T> {
    return parse(await (await this.#send("GET", path)).text()) as T;
  }

  async post<T>(path: string, body: unknown): Promise<T> {
    return parse(await (await this.#send("POST", path, body)).text()) as T;
  }

  async text(path: string, body: unknown): Promise<string> {
    return (await this.#send("POST", path, body)).text();
  }

  worker(): Promise<Worker> {
    return Promise.resolve(new Worker("elk-worker.js"));
  }

  async delete(path: string): Promise<void> {
    await this.#send("DELETE", path);
  }

  /** Server-sent events, read with fetch: an EventSource cannot send the secret as a header. */
  async listen(path: string, heard: (event: string, data: string) => void, signal: AbortSignal): Promise<void> {
    const response = await this.#send("GET", path, undefined, signal);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) return;
      rest += value;
      const found = events(rest);
      rest = found.rest;
      for (const { event, data } of found.events) heard(event, data);
    }
  }
}

/** The complete events at the beginning of a stream, and what is left of it. */
export function events(raw: string): { events: { event: string; data: string }[]; rest: string } {
  const blocks = raw.replace(/\r\n?/g, "\n").split("\n\n");
  const rest = blocks.pop() ?? "";
  const found = blocks.flatMap((block) => {
    let event = "message";
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const [, name, value] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
      if (name === "event") event = value ?? "";
      if (name === "data") data.push(value ?? "");
    }
    return data.length || event !== "message" ? [{ event, data: data.join("\n") }] : [];
  });
  return { events: found, rest };
}
