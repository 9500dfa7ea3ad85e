// Links that restore model, parameters and run: `#run=` and JSON in base64 for addresses.
import type { Fields } from "./run/trace";

/** A run of `plait explore`: the number of an initial state, and the key of each step. */
export interface RunKeys {
  initial: number;
  steps: string[];
  /** For a run that repeats for ever, the number of steps before its loop. */
  loop?: number;
}

export interface Link {
  target: string;
  parameters: Fields;
  step: number;
  /** Which trace of a report. */
  trace?: number;
  run?: RunKeys;
  notes?: Record<number, string>;
  query?: string;
  only?: boolean;
  lanes?: string[];
  fields?: string[];
}

export function encode(link: Link): string {
  const bytes = new TextEncoder().encode(JSON.stringify(link));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

const isText = (value: unknown): value is string => typeof value === "string";

/** The link in the fragment of an address. null if there is none, or if it is damaged. */
export function decode(fragment: string): Link | null {
  const [, raw] = /[#&]run=([\w-]+)/.exec(fragment) ?? [];
  if (!raw) return null;
  try {
    const binary = atob(raw.replace(/-/g, "+").replace(/_/g, "/"));
    const link = JSON.parse(new TextDecoder().decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)))) as Link;
    const { step, run, lanes, fields, notes } = link;
    const whole =
      Number.isInteger(step) &&
      (run === undefined ||
        (Number.isInteger(run.initial) &&
          Array.isArray(run.steps) &&
          run.steps.every(isText) &&
          (run.loop === undefined || Number.isInteger(run.loop)))) &&
      [lanes, fields].every((list) => list === undefined || (Array.isArray(list) && list.every(isText))) &&
      (notes === undefined || Object.values(notes).every(isText));
    return whole ? link : null;
  } catch {
    return null;
  }
}
