import type { Logger } from "pino";
import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import type { SkeinEvent } from "../core/events.ts";
import type { LogLevel } from "./log-table.ts";
import { levelOf, textAndFields } from "./log-table.ts";
import type { LogValueSettings } from "./log-values.ts";
import { loggable, maskerOf, safeText } from "./log-values.ts";
import type { Watcher } from "./watch.ts";

export interface LogSettings {
  /** `silent`: nothing is logged, and nothing is loaded. */
  readonly level: LogLevel | "silent";
  /** A file, a descriptor (2 is stderr), or whatever takes lines. */
  readonly destination: string | number | { write(line: string): unknown };
  /** Applied to every text that is logged, behind the masking of the secrets. */
  readonly redact?: (text: string) => string;
  /** Values that may stand in no line. */
  readonly secrets?: readonly string[];
  readonly clock?: Clock;
  /** Whether a caller in this process gets the event anyway; then it is not logged as a warning. */
  readonly isHandled?: (event: SkeinEvent) => boolean;
  /** Told when the destination cannot be written; by default nobody is. */
  readonly report?: (error: unknown) => void;
}

/** Structured lines: what happens on the bus, and what others have to say. Never throws. */
export interface Log extends Watcher {
  write(level: LogLevel, text: string, fields?: Readonly<Record<string, unknown>>): void;
  close(): void;
}

interface Sink {
  readonly stream: { write(line: string): unknown };
  close(): void;
}

type Pino = typeof import("pino").pino;

const silent: Log = { onEvent: () => undefined, write: () => undefined, close: () => undefined };

/** Loads pino, unless the level is `silent`. A file that cannot be opened is an error; one that fails later is reported. */
export async function createLog(settings: LogSettings): Promise<Log> {
  if (settings.level === "silent") return silent;
  const { pino } = await import("pino");
  const report = settings.report ?? (() => undefined);
  const sink = openSink(pino, settings.destination, report);
  const logger = loggerOf(pino, settings, sink);
  const values = valuesOf(settings);
  const write: Log["write"] = (level, text, fields = {}) => {
    if (!logger.isLevelEnabled(level)) return;
    try {
      logger[level](loggable(fields, values) as object, safeText(text, values));
    } catch (error) {
      report(error);
    }
  };
  return { write, onEvent: (event) => writeEvent(event, settings, logger, write), close: sink.close };
}

function writeEvent(
  event: SkeinEvent,
  { isHandled = () => false }: Pick<LogSettings, "isHandled">,
  logger: Logger,
  write: Log["write"],
): void {
  const usual = levelOf(event);
  const level = usual === "warn" && isHandled(event) ? "info" : usual;
  if (level === null || !logger.isLevelEnabled(level)) return;
  const { text, fields } = textAndFields(event);
  const { type, at, userId, sessionKey, sessionId, runId } = event;
  write(level, text, { event: type, at, userId, sessionKey, sessionId, runId, ...fields });
}

function loggerOf(pino: Pino, { level, clock = systemClock }: LogSettings, sink: Sink): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: () => `,"time":${clock.now()}`,
      formatters: { level: (label) => ({ level: label }) },
    },
    sink.stream,
  );
}

function valuesOf({ level, redact = (text) => text, secrets = [] }: LogSettings): LogValueSettings {
  const mask = maskerOf(secrets);
  return {
    redact: (text) => redact(mask(text)),
    withStacks: level === "debug" || level === "trace",
  };
}

/** Written at once, so that an end of the process loses no line. A file is for its owner alone. */
function openSink(pino: Pino, dest: LogSettings["destination"], report: (error: unknown) => void): Sink {
  if (typeof dest === "object") return { stream: dest, close: () => undefined };
  const stream = pino.destination({ dest, sync: true, mkdir: true, mode: 0o600 });
  // A full disk may not end the process.
  stream.on("error", report);
  let isClosed = false;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    stream.flushSync();
    if (typeof dest === "string") stream.end();
  };
  return { stream, close };
}
