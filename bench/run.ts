// npm run bench: measures the rows in docs/benchmarks-all.md. The arguments are row names (default: all), --quick (sizes /
// 20), --no-peers, --save (writes results and report) and --report (only writes the report, from saved results).
import { parseArgs } from "node:util";
import { buildPackage, compile } from "./build.ts";
import { installPeers, peerVersions } from "./install-peers.ts";
import { commit, machine } from "./machine.ts";
import { formatFigures } from "./render.ts";
import { writeReport } from "./report.ts";
import type { RowResult } from "./results.ts";
import { writeResult } from "./results.ts";
import { rows } from "./rows/all.ts";
import type { Row } from "./rows/row.ts";
import type { Side } from "./sides.ts";
import { sides } from "./sides.ts";
import { currentLoad, waitForQuiet } from "./wait-for-quiet.ts";
import { Workshop } from "./workshop.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    save: { type: "boolean", default: false },
    report: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});

const unknown = positionals.filter((name) => !rows.some((row) => row.name === name));
if (unknown.length > 0) {
  console.error(`no such row: ${unknown.join(", ")}. Rows: ${rows.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
if (values.report) {
  writeReport();
  process.exit(0);
}

if (!values["no-peers"]) installPeers();
compile();
await buildPackage();
const shop = new Workshop({ isQuick: values.quick, withPeers: !values["no-peers"] });
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    void shop.close().then(() => process.exit(1));
  });
}
const failed: string[] = [];
try {
  for (const row of rows.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
    const result = await measure(row);
    if (result.problem !== undefined) failed.push(row.name);
    if (values.save) writeResult(result);
  }
} finally {
  await shop.close();
}
if (values.save) writeReport();
if (failed.length > 0) {
  console.error(`\nnot measured: ${failed.join(", ")}. To repeat them: npm run bench -- ${failed.join(" ")}`);
  process.exitCode = 1;
}

/** Measures a row. A failure is part of the result, so that the other rows are still measured. */
async function measure(row: Row): Promise<RowResult> {
  console.log(`\n${row.title}${values.quick ? " (quick: sizes / 20)" : ""}`);
  const before = values.save && !values.quick ? await waitForQuiet((text) => shop.note(text)) : currentLoad();
  const started = performance.now();
  const left = shop.leftOut.length;
  const { points, ...problem } = await pointsOf(row);
  for (const point of points)
    console.log(`  ${point.case.padEnd(20)} ${point.side.padEnd(22)} ${formatFigures(point.figures)}`);
  console.log(`  took ${((performance.now() - started) / 1000).toFixed(0)} s`);
  const measured = new Set(points.map(({ side }) => side));
  const packages = (Object.values(sides) as Side[])
    .filter(({ name }) => measured.has(name))
    .flatMap((side) => side.packages);
  return {
    row: row.name,
    measuredAt: new Date().toISOString(),
    machine: machine(),
    commit: commit(),
    ...before,
    isQuick: values.quick,
    versions: peerVersions(packages),
    points,
    leftOut: shop.leftOut.slice(left),
    ...problem,
  };
}

async function pointsOf(row: Row): Promise<Pick<RowResult, "points" | "problem">> {
  try {
    return { points: await row.measure(shop) };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    shop.note(`the row failed: ${problem}`);
    return { points: [], problem: problem.split("\n")[0] ?? "" };
  }
}
