// The entry point of pages. A report has its traces embedded as JSON; the page of `plait explore` asks its server.
import { ServerApi } from "./explore/api";
import { press } from "./keys";
import { Stage } from "./mount";
import { tables } from "./tables";

/** The secret of this server, from the address or from an earlier visit of this tab. */
function secret(): string {
  const given = new URLSearchParams(location.search).get("secret");
  try {
    if (given !== null) sessionStorage.setItem("plait secret", given);
    return given ?? sessionStorage.getItem("plait secret") ?? "";
  } catch {
    return given ?? "";
  }
}

const stage = new Stage(document, true);
document.addEventListener("keydown", (event) => {
  if (stage.active) press(stage.active, event);
});
const page = document.querySelector<HTMLElement>("section.explorer");
if (page) {
  const api = new ServerApi(secret());
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  void stage.explore(page, api);
} else stage.reports();
tables(document);
