import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { runCommand } from "../support/gateway-process.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const root = join(import.meta.dirname, "../..");
const readText = (path: string) => readFileSync(join(root, path), "utf8");

interface Metrics {
  /** Includes the series of histograms. */
  readonly names: ReadonlySet<string>;
  readonly labels: ReadonlySet<string>;
}

/** Reads the metrics of a gateway that has answered a message. Counters without a value have only the labels in the docs. */
async function readMetrics(): Promise<Metrics> {
  const gateway = await wholeGateway();
  try {
    const asked = { sessionKey: "main", message: "list the sessions", idempotencyKey: "1" };
    const { body } = await gateway.rpc("chat.send", asked);
    await gateway.rpc("agent.wait", { runId: (body as { runId: string }).runId, timeoutMs: 150_000 });
    const answer = await fetch(`${gateway.url}/metrics`, {
      headers: { authorization: `Bearer ${gateway.admin}` },
    });
    const text = await answer.text();
    const names = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = "", kind]) =>
      kind === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    );
    const reported = [...text.matchAll(/(\w+)="/g)].map(([, label = ""]) => label);
    const documented = [...readText("docs/observability.md").matchAll(/^\| `skein_.*$/gm)].flatMap(([row]) =>
      [...(row.split("|")[3] ?? "").matchAll(/`(\w+)`/g)].map(([, label = ""]) => label),
    );
    // The last three are added by Prometheus.
    return {
      names: new Set([...names, "up"]),
      labels: new Set([...reported, ...documented, "instance", "job", "le"]),
    };
  } finally {
    await gateway.close();
  }
}

function dashboardQueries(): string[] {
  const { panels } = JSON.parse(readText("deploy/grafana-dashboard.json")) as {
    panels: { targets?: { expr: string }[] }[];
  };
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

function alertQueries(): string[] {
  const { groups } = parse(readText("deploy/skein-alerts.yml")) as {
    groups: { rules: { expr: string }[] }[];
  };
  return groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
}

const metricsIn = (query: string) => query.match(/\b(?:skein|nodejs|process)_\w+|\bup\b/g) ?? [];
const labelsIn = (query: string) => [
  ...[...query.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/)),
  ...[...query.matchAll(/(\w+)\s*(?:=~|!=|=)\s*"/g)].map(([, label = ""]) => label),
];

test("[DPL1] the dashboard and the alerts use only metrics and labels that a gateway reports", async () => {
  const { names, labels } = await readMetrics();
  const queries = [...dashboardQueries(), ...alertQueries()];
  expect(queries.length).toBeGreaterThan(25);
  expect(queries.flatMap(metricsIn).filter((name) => !names.has(name))).toEqual([]);
  expect(queries.flatMap(labelsIn).filter((label) => !labels.has(label))).toEqual([]);
  expect(queries.filter((query) => metricsIn(query).length === 0)).toEqual([]);
});

test("the dashboard shows every metric of Skein", async () => {
  const { names } = await readMetrics();
  const shown = new Set(dashboardQueries().flatMap(metricsIn));
  const own = [...names].filter((name) => name.startsWith("skein_") && !/_(?:sum|count)$/.test(name));
  expect(own.filter((name) => !shown.has(name))).toEqual(["skein_gateway_reloads_total"]);
});

test("the container, its Compose file and the systemd unit use options and variables that exist", async () => {
  const help = (await runCommand(root, "start", "--help")).out;
  const dockerfile = readText("deploy/Dockerfile");
  const options = [...dockerfile.matchAll(/"(--[a-z]+)"/g)].map(([, option = ""]) => option);
  expect(options).toEqual(["--host", "--expose"]);
  for (const option of options) expect(help).toContain(option);

  const compose = parse(readText("deploy/compose.yaml")) as {
    services: Record<string, { image: string; environment: Record<string, string> }>;
  };
  const reference = readText("docs/configuration.md") + readText("docs/cli.md");
  const variables = Object.keys(compose.services.skein?.environment ?? {});
  expect(variables).toContain("SKEIN_STORE");
  expect(readText("docs/deployment.md")).toContain(`\nFROM ${compose.services.skein?.image}\n`);
  const unit = readText("deploy/skein.service");
  for (const text of [dockerfile, unit]) expect(text).toContain("SKEIN_DIR=");
  for (const name of [...variables, "SKEIN_DIR"])
    if (name.startsWith("SKEIN_")) expect(reference).toContain(name);

  const { engines, devDependencies } = JSON.parse(readText("package.json")) as {
    engines: { node: string };
    devDependencies: Record<string, string>;
  };
  const needed = Number(/\d+/.exec(engines.node)?.[0]);
  for (const [, version] of dockerfile.matchAll(/^FROM node:(\d+)/gm))
    expect(Number(version)).toBeGreaterThanOrEqual(needed);
  expect(dockerfile).toContain(`pg@${devDependencies.pg}`);
});
