import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterEach, describe, expect, test } from "vitest";
import { eventsOf } from "../../test/support/run-events.ts";
import { EventBus } from "../core/events.ts";
import { setUpTracing } from "./tracing.ts";
import { watch } from "./watch.ts";

interface Sent {
  readonly path: string;
  readonly body: {
    resourceSpans: {
      resource: { attributes: { key: string; value: { stringValue?: string } }[] };
      scopeSpans: {
        spans: { name: string; spanId: string; parentSpanId?: string; startTimeUnixNano: string }[];
      }[];
    }[];
  };
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  trace.disable();
});

/** A collector on the loopback address. With `answers: false`, it never responds. */
async function collector(answers = true): Promise<{ url: string; sent: Sent[] }> {
  const sent: Sent[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    sent.push({ path: request.url ?? "", body: JSON.parse(Buffer.concat(parts).toString()) });
    if (answers) response.setHeader("content-type", "application/json").end("{}");
  });
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent };
}

const began = { attempt: 1, model: null };
const ok = { state: "ok", code: null, error: null } as const;

describe("tracing", () => {
  test("spans arrive at a collector, under the name of the service", async () => {
    const { url, sent } = await collector();
    const bus = new EventBus();
    const tracing = await setUpTracing({ otlp: url, serviceName: "house" });
    const { close } = watch(bus, [tracing]);
    const event = eventsOf("r1");
    bus.emit(event("run.started", 0, began));
    bus.emit(event("run.tool", 1, { phase: "call", toolCallId: "c", toolName: "t" }));
    bus.emit(event("run.tool", 2, { phase: "result", toolCallId: "c", toolName: "t", isError: false }));
    bus.emit(event("run.ended", 3, ok));
    await tracing?.flush();
    bus.emit(eventsOf("r2")("run.started", 0, began));
    await close();
    await tracing?.close();
    expect(sent.map(({ path }) => path)).toEqual(["/v1/traces", "/v1/traces"]);
    const [first] = sent[0]?.body.resourceSpans ?? [];
    const service = first?.resource.attributes.find(({ key }) => key === "service.name");
    expect(service?.value.stringValue).toBe("house");
    const spans = first?.scopeSpans[0]?.spans ?? [];
    expect(spans.map(({ name }) => name)).toEqual(["execute_tool t", "invoke_agent main"]);
    expect(spans[0]?.parentSpanId).toBe(spans[1]?.spanId);
    expect(sent[1]?.body.resourceSpans[0]?.scopeSpans[0]?.spans.map(({ name }) => name)).toEqual([
      "invoke_agent main",
    ]);
  });

  test("close does not wait for a silent collector", async () => {
    const { url, sent } = await collector(false);
    const tracing = await setUpTracing({ otlp: `${url}/custom`, closeMs: 50 });
    tracing?.onEvent(eventsOf("r1")("run.started", 0, began));
    await tracing?.close();
    expect(sent.every(({ path }) => path === "/custom")).toBe(true);
  });

  test("without an address, spans go to the provider that the program has registered, or nowhere", async () => {
    expect(await setUpTracing({ otlp: null })).toBeNull();
    const exporter = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    trace.setGlobalTracerProvider(provider);
    const tracing = await setUpTracing({ otlp: null });
    tracing?.onEvent(eventsOf("r1")("run.started", 0, began));
    await tracing?.close();
    expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(["invoke_agent main"]);
  });

  test.each(["localhost:4318", "ftp://x", "", "not an address"])("[OVF12] %j is refused", async (otlp) => {
    await expect(setUpTracing({ otlp })).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("telemetry.otlp"),
    });
  });

  test("[OVF12] packages that are not installed are named", async () => {
    const missing = async () => {
      throw new Error("Cannot find package");
    };
    await expect(setUpTracing({ otlp: "http://localhost:4318" }, missing)).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("npm install @opentelemetry/sdk-trace-base"),
    });
  });
});
