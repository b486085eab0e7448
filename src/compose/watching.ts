import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import type { EventBus } from "../core/events.ts";
import type { Log } from "../telemetry/log.ts";
import { createLog } from "../telemetry/log.ts";
import { setUpTracing } from "../telemetry/tracing.ts";
import { watch } from "../telemetry/watch.ts";

/** Logs and spans, as the configuration wants them. */
export async function openWatching(
  { logging, telemetry }: Pick<Config, "logging" | "telemetry">,
  clock: Clock,
  redact: (text: string) => string,
  isQuiet = false,
): Promise<{ readonly log: Log; start(bus: EventBus): () => Promise<void> }> {
  const level = isQuiet && logging.file === null ? "silent" : logging.level;
  const log = await createLog({ level, destination: logging.file ?? 2, clock, redact });
  const tracing = await setUpTracing({ otlp: telemetry.otlp, clock });
  return {
    log,
    start: (bus) => {
      const watching = watch(bus, { tracing, log });
      return () => watching.close();
    },
  };
}
