// How wide text is, before it is drawn.

const NARROW = new Map([
  ...[..."ijlI|'`"].map((c): [string, number] => [c, 0.3]),
  ...[...' .,:;!ftr()[]/\\-"'].map((c): [string, number] => [c, 0.41]),
]);
const BROAD = new Map([
  ...[..."mMW@%…"].map((c): [string, number] => [c, 1]),
  ...[..."wOQGDNH→=+<>–"].map((c): [string, number] => [c, 0.84]),
]);

/** An upper bound for the width of a text. It assumes a wide font. */
export function textWidth(raw: string, size: number): number {
  let ems = 0;
  for (const c of raw) ems += NARROW.get(c) ?? BROAD.get(c) ?? (c > "\x7f" ? 1 : c >= "A" && c <= "Z" ? 0.7 : 0.64);
  return ems * size;
}
