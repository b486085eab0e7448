import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { eventsOf } from "./run-events.ts";

/**
 * Watches a bus in a separate process, with everything off or on, and prints the packages that this loaded. It closes
 * nothing, so anything that keeps the process alive prevents it from exiting.
 */
const packages = new Set<string>();
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    const path = found.url.startsWith("file:") ? fileURLToPath(found.url) : "";
    const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
    if (name !== undefined) packages.add(name);
    return found;
  },
});

const { EventBus } = await import("../../src/core/events.ts");
const { createLog } = await import("../../src/telemetry/log.ts");
const { createMetrics } = await import("../../src/telemetry/metrics.ts");
const { setUpTracing } = await import("../../src/telemetry/tracing.ts");
const { watch } = await import("../../src/telemetry/watch.ts");

const isOn = process.argv[2] === "on";
const bus = new EventBus();
watch(bus, [
  await setUpTracing({ otlp: isOn ? "http://127.0.0.1:9" : null }),
  isOn ? createMetrics() : null,
  await createLog({ level: isOn ? "info" : "silent", destination: 2 }),
]);
const event = eventsOf("r1");
bus.emit(event("run.started", 0, { attempt: 1, model: null }));
bus.emit(event("run.ended", 1, { state: "ok", code: null, error: null }));
process.stdout.write(JSON.stringify([...packages]));
