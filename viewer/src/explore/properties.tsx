// Properties and the reader's watches, in the state that is shown.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { text, visible } from "../run/values";
import type { Walk } from "./walk";

const WORDS = { holds: "✓ holds", violated: "✕ violated", open: "… open", satisfied: "✓ satisfied" };

export function Properties({ walk }: { walk: Walk }): JSX.Element {
  const [expression, setExpression] = useState("");
  const answer = walk.answer;
  const add = (event: Event): void => {
    event.preventDefault();
    const wanted = expression.trim();
    if (!wanted) return;
    setExpression("");
    void walk.watch([...walk.watches.filter((one) => one !== wanted), wanted]);
  };
  const values = new Map((answer?.watches ?? []).map((one) => [one.text, one]));
  return (
    <div class="evaluated">
      <table>
        <thead>
          <tr>
            <th scope="col">property</th>
            <th scope="col">here</th>
          </tr>
        </thead>
        <tbody>
          {(answer?.properties ?? []).map(({ name, kind, status, detail }) => (
            <tr key={name}>
              <th scope="row">
                {visible(name)} {kind && <span class="kind">{visible(kind)}</span>}
              </th>
              <td class={status}>
                <b>{WORDS[status] ?? status}</b> {detail && <span class="detail">{visible(detail)}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <h3>Watches</h3>
      <table>
        <tbody>
          {walk.watches.map((one) => {
            const found = values.get(one);
            return (
              <tr key={one}>
                <th scope="row">
                  <code>{visible(one)}</code>
                </th>
                <td>
                  {found?.error ? (
                    <span class="bad">{visible(found.error)}</span>
                  ) : (
                    <code class="value">{found?.value === undefined ? "" : visible(text(found.value))}</code>
                  )}
                </td>
                <td>
                  <button
                    type="button"
                    aria-label={`remove the watch ${one}`}
                    onClick={() => void walk.watch(walk.watches.filter((other) => other !== one))}
                  >
                    ✕
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <form onSubmit={add}>
        <input
          type="text"
          class="watch-input"
          aria-label="new watch: a Python expression over the view s"
          placeholder="a Python expression over s (w)"
          spellcheck={false}
          value={expression}
          onInput={(event) => setExpression(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
        <button type="submit">Watch</button>
      </form>
    </div>
  );
}
