// Values as they are written in Python, and the differences between two values.
import type { Data } from "./trace";

type Tagged = { [key: string]: Data };

const SHORT: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  return (
    SHORT[character] ??
    (code < 256
      ? `\\x${hex.padStart(2, "0")}`
      : code < 65536
        ? `\\u${hex.padStart(4, "0")}`
        : `\\U${hex.padStart(8, "0")}`)
  );
}

/** Control characters as escapes, so that a name from a file cannot change how the page reads. */
export function visible(raw: string): string {
  return raw.replace(/(?! )[\p{C}\p{Z}]/gu, escaped);
}

function quoted(raw: string): string {
  const quote = raw.includes("'") && !raw.includes('"') ? '"' : "'";
  const inner = raw.replace(/\\/g, "\\\\");
  return quote + visible(quote === "'" ? inner.replace(/'/g, "\\'") : inner) + quote;
}

function float(value: number): string {
  if (Number.isInteger(value)) return String(value);
  return String(value).replace(/e([-+])(\d)$/, "e$10$2");
}

/** Data as the value is written in Python. */
export function text(data: Data): string {
  if (data === null) return "None";
  if (typeof data === "boolean") return data ? "True" : "False";
  if (typeof data === "number") return float(data);
  if (typeof data === "string") return quoted(data);
  if (Array.isArray(data)) return `[${data.map(text).join(", ")}]`;
  const tagged: Tagged = data;
  const list = (tag: string): Data[] => tagged[tag] as Data[];
  if ("#tup" in tagged)
    return list("#tup").length === 1 ? `(${text(list("#tup")[0] as Data)},)` : `(${list("#tup").map(text).join(", ")})`;
  if ("#set" in tagged) return list("#set").length ? `{${list("#set").map(text).join(", ")}}` : "set()";
  if ("#map" in tagged)
    return `{${pairs(tagged)
      .map(([key, value]) => `${text(key)}: ${text(value)}`)
      .join(", ")}}`;
  if ("#call" in tagged)
    return `${tagged["#call"]}(${((tagged.arguments as Data[] | undefined) ?? []).map(text).join(", ")})`;
  for (const tag of ["#pid", "#enum", "#clock", "#bigint", "#unserializable"])
    if (tag in tagged) return String(tagged[tag]);
  const fields = Object.entries(tagged).filter(([name]) => name !== "#type");
  if ("#type" in tagged)
    return `${tagged["#type"]}(${fields.map(([name, value]) => `${name}=${text(value)}`).join(", ")})`;
  return `{${fields.map(([name, value]) => `${name}: ${text(value)}`).join(", ")}}`;
}

function pairs(tagged: Tagged): [Data, Data][] {
  return tagged["#map"] as [Data, Data][];
}

/** A place inside a value where two values differ. `before` or `after` is missing if only the other value has this place. */
export interface Difference {
  path: string;
  before?: Data;
  after?: Data;
}

/** The parts of a value by their path, or null for a value without parts. A set has none: its members have no place. */
function parts(data: Data): Map<string, Data> | null {
  if (data === null || typeof data !== "object") return null;
  const list = Array.isArray(data) ? data : "#tup" in data ? (data["#tup"] as Data[]) : null;
  if (list) return new Map(list.map((value, i) => [`[${i}]`, value]));
  const tagged = data as Tagged;
  if ("#map" in tagged) return new Map(pairs(tagged).map(([key, value]) => [`[${text(key)}]`, value]));
  if ("#type" in tagged)
    return new Map(
      Object.entries(tagged)
        .filter(([name]) => name !== "#type")
        .map(([name, value]) => [`.${name}`, value]),
    );
  return null;
}

function shape(data: Data): string {
  if (data === null || typeof data !== "object") return "";
  return Array.isArray(data)
    ? "list"
    : "#type" in data
      ? `#type ${String((data as Tagged)["#type"])}`
      : (Object.keys(data)[0] ?? "");
}

function members(data: Data): Map<string, Data> {
  return new Map(((data as Tagged)["#set"] as Data[]).map((value) => [text(value), value]));
}

/** Where two values differ, as deep as possible: a changed entry of a long log is one difference. */
export function differences(before: Data, after: Data, path = ""): Difference[] {
  if (before === after || text(before) === text(after)) return [];
  const one = parts(before);
  const other = parts(after);
  if (shape(before) === "#set" && shape(after) === "#set") {
    const had = members(before);
    const has = members(after);
    return [
      ...[...had].filter(([name]) => !has.has(name)).map(([, value]) => ({ path: `${path} lacks`, before: value })),
      ...[...has].filter(([name]) => !had.has(name)).map(([, value]) => ({ path: `${path} has`, after: value })),
    ];
  }
  if (!one || !other || shape(before) !== shape(after)) return [{ path, before, after }];
  const found: Difference[] = [];
  for (const name of new Set([...one.keys(), ...other.keys()])) {
    const was = one.get(name);
    const is = other.get(name);
    if (was === undefined) found.push({ path: path + name, after: is as Data });
    else if (is === undefined) found.push({ path: path + name, before: was });
    else found.push(...differences(was, is, path + name));
  }
  return found;
}
