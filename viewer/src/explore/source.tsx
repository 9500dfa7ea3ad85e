// Source: the handler of the step with the executed lines and values beside them; and coverage of all handlers.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { visible } from "../run/values";
import type { Coverage as Covered } from "./api";
import type { Walk } from "./walk";

interface LineProps {
  number: number;
  code: string;
  kind: string;
  note: string | undefined;
  label: string;
}

function Line({ number, code, kind, note, label }: LineProps): JSX.Element {
  return (
    <tr class={kind}>
      <td class="line">{number}</td>
      <td class="mark">
        {label && <span title={label}>{kind === "executed" ? "▸" : kind === "missed" ? "✕" : label}</span>}
      </td>
      <td>
        <code>{code}</code>
        {note && <span class="values">{visible(note)}</span>}
      </td>
    </tr>
  );
}

/** Source without the indentation that all its lines have. */
function dedented(lines: string[]): string[] {
  const least = Math.min(...lines.filter((line) => line.trim()).map((line) => line.search(/\S/)));
  return lines.map((line) => line.slice(Number.isFinite(least) ? least : 0));
}

export function Source({ walk }: { walk: Walk }): JSX.Element {
  const found = walk.answer?.source ?? [];
  if (!found.length)
    return (
      <p class="empty">
        {walk.viewer.view.step === 0 ? "The initial state has no step." : "This step executes no code of the model."}
      </p>
    );
  return (
    <div class="source">
      {found.map(({ handler, file, first, lines, executed, values }) => (
        <section key={handler + first}>
          <h3>
            {visible(handler)} <span class="file">{visible(`${file}:${first}`)}</span>
          </h3>
          <table>
            <tbody>
              {dedented(lines).map((code, i) => {
                const number = first + i;
                const ran = executed.includes(number);
                return (
                  <Line
                    number={number}
                    code={code}
                    kind={ran ? "executed" : ""}
                    note={values[number]}
                    label={ran ? "executed" : ""}
                    key={number}
                  />
                );
              })}
            </tbody>
          </table>
        </section>
      ))}
    </div>
  );
}

export function Coverage({ walk }: { walk: Walk }): JSX.Element {
  const [found, setFound] = useState<Covered | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    walk.api
      .get<Covered>("/api/coverage")
      .then(setFound)
      .catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  }, [walk.model]);
  if (problem) return <p class="bad">{problem}</p>;
  if (!found) return <p class="empty">Searching the state space for coverage …</p>;
  return (
    <div class="source">
      <p>Over {visible(found.over)}</p>
      <dl class="summary-rows">
        {found.summary.map(([name, said]) => (
          <div key={name}>
            <dt>{visible(name)}</dt>
            <dd>{visible(said)}</dd>
          </div>
        ))}
      </dl>
      {found.files.map(({ handler, file, first, lines, hits, missed }) => (
        <section key={file + first}>
          <h3>
            {visible(handler)} <span class="file">{visible(`${file}:${first}`)}</span>
          </h3>
          <table>
            <tbody>
              {dedented(lines).map((code, i) => {
                const number = first + i;
                const count = hits[number];
                const never = count === 0;
                const why = missed.filter(({ line }) => line === number).map((one) => one.text);
                const kind = never ? "missed" : why.length ? "partly" : typeof count === "number" ? "covered" : "";
                const label = never ? "never executed" : typeof count === "number" ? count.toLocaleString("en") : "";
                return (
                  <Line
                    number={number}
                    code={code}
                    kind={kind}
                    note={why.join("; ") || undefined}
                    label={label}
                    key={number}
                  />
                );
              })}
            </tbody>
          </table>
        </section>
      ))}
    </div>
  );
}
