import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { eventsOf } from "../../test/support/run-events.ts";
import { EventBus } from "../core/events.ts";
import { attributes } from "./genai.ts";
import { logTable } from "./log.ts";
import { metricTable } from "./metric-table.ts";
import { watch } from "./watch.ts";

const event = eventsOf("r1")("session.created", 0, {});
const child = fileURLToPath(new URL("../../test/support/watching-child.ts", import.meta.url));

describe("watching the event bus", () => {
  test("a part that throws affects neither the others nor the sender of the event", async () => {
    const [problems, seen]: [unknown[], string[]] = [[], []];
    const bus = new EventBus((error) => problems.push(error));
    const broken = {
      onEvent: () => {
        throw new Error("event");
      },
      close: () => {
        throw new Error("close");
      },
    };
    const log = { onEvent: () => void seen.push("log"), close: async () => void seen.push("closed") };
    const { close } = watch(bus, [broken, log], (error) => problems.push(error));
    bus.emit(event);
    await close();
    await close();
    bus.emit(event);
    expect(problems).toMatchObject([{ message: "event" }, { message: "close" }]);
    expect(seen).toEqual(["log", "closed"]);
  });

  test("with everything off no package is loaded", () => {
    const { stdout, stderr, status } = spawnSync(process.execPath, [child, "off"], { encoding: "utf8" });
    expect({ stdout, stderr, status }).toEqual({ stdout: "[]", stderr: "", status: 0 });
  });

  test("with everything on nothing keeps the process alive", () => {
    const { stdout, stderr, status } = spawnSync(process.execPath, [child, "on"], {
      encoding: "utf8",
      timeout: 300_000,
    });
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual(
      expect.arrayContaining(["pino", "prom-client", "@opentelemetry/api", "@opentelemetry/sdk-trace-base"]),
    );
    expect(
      stderr
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).msg),
    ).toEqual(["run started", "run ended"]);
  });
});

describe("docs/observability.md", () => {
  const page = readFileSync(fileURLToPath(new URL("../../docs/observability.md", import.meta.url)), "utf8");
  const section = (title: string) => page.split(/^## /m).find((part) => part.startsWith(title)) ?? "";
  const rows = (title: string) =>
    [...section(title).matchAll(/^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|/gm)].map((match) =>
      match.slice(1, 4),
    );

  test("[WRD11] lists every event and the level of its line", () => {
    const expected = Object.entries(logTable).map(([type, line]) => [
      type,
      line === null ? "never" : typeof line.level === "string" ? line.level : "by its outcome",
    ]);
    // The gateway sends this event itself and logs the reload.
    expected.push(["gateway.reloaded", "info"]);
    expect(rows("Events").map(([type, , level]) => [type, level])).toEqual(expected);
  });

  test("[WRD11] lists every attribute of a span", () => {
    expect(rows("Spans").map(([name]) => name)).toEqual(Object.values(attributes));
  });

  test("[WRD11] lists every metric with its kind and labels", () => {
    const expected = Object.entries(metricTable).map(([name, { kind, labels }]) => [
      name,
      kind,
      labels.length === 0 ? "–" : labels.map((label) => `\`${label}\``).join(" "),
    ]);
    expect(rows("Metrics")).toEqual(expected);
  });
});
