import { readFileSync } from "node:fs";
import { join } from "node:path";
import { trace } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import Type from "typebox";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { defineTool } from "../../src/index.ts";
import { call } from "../support/family.ts";
import { closeAll, newFolder, withScript } from "../support/skein.ts";

const exporter = new InMemorySpanExporter();
beforeAll(() => {
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  trace.setGlobalTracerProvider(provider);
});
afterAll(() => trace.disable());
afterEach(async () => {
  exporter.reset();
  await closeAll();
});

/** Runs a turn with a tool call and one that fails, and returns the log. Every text in them begins with "private-". */
async function runPrivateTurn(): Promise<string> {
  const dir = newFolder();
  const read = defineTool({
    name: "read",
    description: "Reads.",
    parameters: Type.Object({ path: Type.String() }),
    execute: () => "private-result",
  });
  const steps = [
    { thinking: "private-thought", ...call("read", { path: "private-path" }) },
    { text: "private-answer" },
    { text: "private-half", error: { status: 400, message: "Not valid" } },
  ];
  const file = join(dir, "skein.log");
  const config = { logging: { level: "debug" as const, file } };
  const { skein } = await withScript(steps, { tools: [read] }, { dir: join(dir, "root"), config });
  const session = skein.session({ userId: "ann", sessionId: "s" });
  expect((await session.send("private-question").result).reply).toBe("private-answer");
  await session.send("private-second").result.catch(() => undefined);
  await skein.close();
  return readFileSync(file, "utf8");
}

test("[OBS1] a run, its model calls and its tool call are spans, nested in that of the run", async () => {
  await runPrivateTurn();
  const spans = exporter.getFinishedSpans();
  const named = (name: string) => spans.filter((span) => span.name === name);
  const [run] = named("invoke_agent main");
  const inRun = (span: ReadableSpan) => span.parentSpanContext?.spanId === run?.spanContext().spanId;
  expect(run?.attributes).toMatchObject({ "gen_ai.agent.id": "main", "skein.run.state": "ok" });
  expect(named("chat script").filter(inRun)).toHaveLength(2);
  expect(named("execute_tool read").filter(inRun)).toHaveLength(1);
});

test("[OBS12] logs and spans contain no text of the conversation, its thoughts, arguments or results", async () => {
  const log = await runPrivateTurn();
  expect(log).toContain('"run ended"');
  expect(log).not.toContain("private-");
  const spans = exporter.getFinishedSpans();
  const written = JSON.stringify(spans.map(({ name, attributes, events }) => [name, attributes, events]));
  expect(written).toContain("execute_tool");
  expect(written).not.toContain("private-");
});
