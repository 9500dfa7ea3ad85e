// Builds the viewer into the Python package, or (--test) the unit tests into .tests/, which Node runs.
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const shared = {
  absWorkingDir: here,
  bundle: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

async function tests() {
  rmSync(`${here}.tests`, { recursive: true, force: true });
  const names = readdirSync(`${here}test`).filter((name) => /\.test\.tsx?$/.test(name));
  await build({
    ...shared,
    entryPoints: names.map((name) => `test/${name}`),
    outdir: ".tests",
    format: "esm",
    platform: "node",
    loader: { ".css": "text" },
    sourcemap: "inline",
  });
}

async function built(options) {
  return (await build({ ...options, write: false })).outputFiles[0].text;
}

/** A style sheet of a page, for a shadow root, which has neither a root element nor a body. */
function shadowed(css) {
  return css
    .replace(/:root\b/g, ":host")
    .replace(/(^|[},])html,body\b/g, "$1.page")
    .replace(/(^|[{},])body\b/g, "$1.page");
}

async function assets() {
  const to = "../src/plait/report/assets";
  // Reports contain the script. So it is ASCII, and esbuild writes no "</script" into it.
  await build({
    ...shared,
    entryPoints: ["src/viewer.tsx"],
    outfile: `${to}/viewer.js`,
    format: "iife",
    target: "es2022",
    loader: { ".css": "text" },
    minify: true,
    charset: "ascii",
    legalComments: "none",
  });
  const styles = { ...shared, entryPoints: ["src/style/viewer.css"], minify: true };
  await build({ ...styles, outfile: `${to}/viewer.css` });
  await build({
    ...shared,
    entryPoints: ["src/widget.tsx"],
    outfile: `${to}/viewer-widget.js`,
    format: "esm",
    target: "es2022",
    loader: { ".css": "text" },
    define: {
      STYLES: JSON.stringify(
        shadowed(await built(styles)) + (await built({ ...styles, entryPoints: ["src/style/widget.css"] })),
      ),
    },
    minify: true,
    charset: "ascii",
    legalComments: "none",
  });
  // The layout of graphs is large. Only `plait explore` serves it, and only its graphs load it.
  copyFileSync(`${here}node_modules/elkjs/lib/elk-worker.min.js`, `${here}${to}/elk-worker.js`);
  const licenses = ["preact/LICENSE", "elkjs/LICENSE.md"].map((file) => {
    const { name, version, license } = JSON.parse(
      readFileSync(`${here}node_modules/${file.split("/")[0]}/package.json`, "utf8"),
    );
    return `${name} ${version} (${license})\n\n${readFileSync(`${here}node_modules/${file}`, "utf8")}`;
  });
  writeFileSync(`${here}${to}/viewer-licenses.txt`, licenses.join(`\n${"-".repeat(80)}\n\n`));
}

await (process.argv.includes("--test") ? tests() : assets());
