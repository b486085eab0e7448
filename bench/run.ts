// npm run bench: measures the rows in docs/benchmarks.md. The arguments are row names (default: all), --quick (sizes /
// 20), --no-peers, --save (writes results and report) and --report (only writes the report, from saved results).
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { compile } from "./build.ts";
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
const shop = new Workshop({ isQuick: values.quick, withPeers: !values["no-peers"] });
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    void shop.close().then(() => process.exit(1));
  });
}
try {
  for (const row of rows.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
    const result = await measure(row);
    if (values.save) writeResult(result);
  }
} finally {
  await shop.close();
}
if (values.save) writeReport();

async function measure(row: Row): Promise<RowResult> {
  const started = performance.now();
  console.log(`\n${row.title}${values.quick ? " (quick: sizes / 20)" : ""}`);
  const left = shop.leftOut.length;
  const load = Number((loadavg()[0] ?? 0).toFixed(1));
  const points = await row.measure(shop);
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
    load,
    isQuick: values.quick,
    versions: peerVersions(packages),
    points,
    leftOut: shop.leftOut.slice(left),
  };
}
