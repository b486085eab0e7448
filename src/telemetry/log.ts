import type { Logger } from "pino";
import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import type { SkeinEvent, SkeinEventType } from "../core/events.ts";
import { cutText, thrownText } from "../core/text.ts";
import type { Watcher } from "./watch.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

export interface LogSettings {
  /** With `silent`, nothing is logged and pino is not loaded. */
  readonly level: LogLevel | "silent";
  /** A file, a file descriptor (2 is stderr), or any object that accepts lines. */
  readonly destination: string | number | { write(line: string): unknown };
  /** Applied to every string after secrets have been masked. */
  readonly redact?: (text: string) => string;
  /** Values that must not appear in any log line. */
  readonly secrets?: readonly string[];
  readonly clock?: Clock;
  /** Whether a caller in this process also receives the event. If so, the event is not logged as a warning. */
  readonly isHandled?: (event: SkeinEvent) => boolean;
  /** Called when writing to the destination fails. */
  readonly report?: (error: unknown) => void;
}

/** Writes bus events and other messages as structured lines. Never throws. */
export interface Log extends Watcher {
  write(level: LogLevel, text: string, fields?: Readonly<Record<string, unknown>>): void;
  close(): void;
}

type Pino = typeof import("pino").pino;

const silentLog: Log = { onEvent: () => undefined, write: () => undefined, close: () => undefined };

/** Loads pino, unless the level is `silent`. Throws if a file cannot be opened. Later write errors are reported. */
export async function createLog(settings: LogSettings): Promise<Log> {
  const { level, isHandled = () => false, report = () => undefined, clock = systemClock } = settings;
  if (level === "silent") return silentLog;
  const { pino } = await import("pino");
  const { stream, close } = openDestination(pino, settings.destination, report);
  const logger: Logger = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: () => `,"time":${clock.now()}`,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  const sanitizer = sanitizerOf(settings);
  const write: Log["write"] = (lineLevel, text, fields = {}) => {
    if (!logger.isLevelEnabled(lineLevel)) return;
    try {
      logger[lineLevel](sanitize(fields, sanitizer) as object, sanitizeText(text, sanitizer));
    } catch (error) {
      report(error);
    }
  };
  const onEvent = (event: SkeinEvent) => {
    // Each row is used only for its own event type.
    const row = logTable[event.type] as LogRow<SkeinEventType> | null;
    if (row === null) return;
    const rowLevel = typeof row.level === "function" ? row.level(event) : row.level;
    const eventLevel = rowLevel === "warn" && isHandled(event) ? "info" : rowLevel;
    if (!logger.isLevelEnabled(eventLevel)) return;
    const { type, at, userId, sessionKey, sessionId, runId } = event;
    const about = { event: type, at, userId, sessionKey, sessionId, runId };
    const fields = Object.fromEntries((row.fields ?? []).map((name) => [name, event[name]]));
    write(eventLevel, row.text, { ...about, ...fields, ...row.details?.(event) });
  };
  return { write, onEvent, close };
}

/** Lines are written synchronously so that none are lost when the process exits. Only the owner can read a log file. */
function openDestination(pino: Pino, dest: LogSettings["destination"], report: (error: unknown) => void) {
  if (typeof dest === "object") return { stream: dest, close: () => undefined };
  const stream = pino.destination({ dest, sync: true, mkdir: true, mode: 0o600 });
  // Without a handler, an error such as a full disk would crash the process.
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

interface LogRow<T extends SkeinEventType> {
  readonly level: LogLevel | ((event: SkeinEvent<T>) => LogLevel);
  readonly text: string;
  /** Names and figures from the event, but never messages or tool arguments. */
  readonly fields?: readonly (keyof SkeinEvent<T>)[];
  /** Fields derived from the event. */
  readonly details?: (event: SkeinEvent<T>) => Readonly<Record<string, unknown>>;
}

/**
 * How each event is logged. `null` means that the event is not logged. `docs/observability.md` lists the levels, and a
 * test compares the two.
 */
export const logTable: { readonly [T in SkeinEventType]: LogRow<T> | null } = {
  "run.queued": { level: "debug", text: "run queued", fields: ["lane", "kind", "startedBy"] },
  "run.started": { level: "info", text: "run started", fields: ["attempt", "model", "startedBy"] },
  "run.step": {
    level: "debug",
    text: "model step",
    fields: ["phase", "step", "provider", "model", "finishReason", "code"],
    details: ({ usage }) => ({ tokens: usage && { input: usage.input, output: usage.output } }),
  },
  "run.delta": null,
  "run.tool": {
    level: "debug",
    text: "tool",
    fields: ["phase", "toolName", "toolCallId", "isError", "durationMs"],
  },
  "run.retry": {
    level: "info",
    text: "retrying model request",
    fields: ["attempt", "delayMs"],
    details: ({ code, error }) => ({ error: { code, message: error } }),
  },
  "run.note": {
    level: ({ kind }) => (kind === "image_to_blob" ? "debug" : "warn"),
    text: "message changed",
    fields: ["kind", "note"],
  },
  "run.compaction": {
    level: ({ phase }) => (phase === "not_done" ? "warn" : phase === "done" ? "info" : "debug"),
    text: "compaction",
    fields: ["phase", "measure", "note", "entryId", "freedTokens"],
  },
  "run.waiting": { level: "debug", text: "run waiting", fields: ["for", "runIds"] },
  "run.resumed": { level: "debug", text: "run resumed" },
  "run.steered": { level: "debug", text: "input added to a running turn", fields: ["mergedInto"] },
  "run.sleeping": { level: "debug", text: "run sleeping", fields: ["waitingFor", "wakeAt"] },
  "run.ended": {
    level: ({ state }) => (state === "error" || state === "timeout" ? "warn" : "info"),
    text: "run ended",
    fields: ["state", "mergedInto"],
    details: ({ code, error }) => ({
      error: code === null && error === null ? undefined : { code, message: error },
    }),
  },
  // On its first attempt, the run was interrupted by a clean shutdown. Otherwise, its process was lost.
  "run.recovered": {
    level: ({ attempt }) => (attempt > 1 ? "warn" : "info"),
    text: "run continued after an interruption",
    fields: ["attempt", "action"],
  },
  "run.child": {
    level: "debug",
    text: "child run started",
    fields: ["childSessionKey", "childRunId", "state"],
  },
  "entry.appended": {
    level: "trace",
    text: "entry appended",
    details: ({ entry }) => ({ entryId: entry.id, entryType: entry.type }),
  },
  "session.created": { level: "info", text: "session created" },
  "session.updated": { level: "debug", text: "session updated" },
  "session.reset": { level: "info", text: "session reset", fields: ["freshSessionId"] },
  "session.archived": { level: "info", text: "session archived" },
  "session.deleted": { level: "info", text: "session deleted" },
  "session.restored": { level: "info", text: "session restored" },
  "outbox.queued": { level: "debug", text: "channel message queued", fields: ["outboxId", "channel"] },
  "outbox.delivered": { level: "info", text: "channel message delivered", fields: ["outboxId", "channel"] },
  "outbox.retry": {
    level: "warn",
    text: "channel message not delivered, will be retried",
    fields: ["outboxId", "channel", "nextAt"],
    details: ({ error }) => ({ error: { message: error } }),
  },
  "outbox.dead": {
    level: "error",
    text: "channel message not delivered, no more retries",
    fields: ["outboxId", "channel"],
    details: ({ error }) => ({ error: { message: error } }),
  },
  "outbox.dropped": { level: "info", text: "channel message discarded", fields: ["outboxId", "channel"] },
  "approval.requested": {
    level: "info",
    text: "approval requested",
    fields: ["approvalId", "toolCallId", "toolName", "expiresAt"],
  },
  "approval.resolved": { level: "info", text: "approval resolved", fields: ["approvalId", "answer", "by"] },
};

export interface Sanitizer {
  /** Applied to every string. If it throws, the string is hidden. */
  readonly redact: (text: string) => string;
  readonly withStacks: boolean;
}

const masked = "[redacted]";
const maxTextChars = 2000;
const maxNameChars = 200;
const maxDepth = 6;
const maxItems = 100;
const secretNames = new Set([
  ...["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "apikey"],
  ...["x-goog-api-key", "token", "accesstoken", "access_token", "password", "secret"],
]);

function sanitizerOf({ level, redact = (text) => text, secrets = [] }: LogSettings): Sanitizer {
  const mask = maskerOf(secrets);
  return { redact: (text) => redact(mask(text)), withStacks: level === "debug" || level === "trace" };
}

/** Masks longer secrets first because one secret can contain another. */
export function maskerOf(secrets: readonly string[]): (text: string) => string {
  const known = [...new Set(secrets)].filter((secret) => secret !== "");
  const ordered = known.toSorted((a, b) => b.length - a.length);
  return (text) => ordered.reduce((rest, secret) => rest.replaceAll(secret, masked), text);
}

/**
 * Copies a value for the log. Strings are redacted and truncated, secret fields are masked, and errors are reduced to
 * their code and message. Never throws.
 */
export function sanitize(value: unknown, sanitizer: Sanitizer, depth = 0): unknown {
  try {
    return sanitizeValue(value, sanitizer, depth);
  } catch (error) {
    return sanitizeText(`not readable: ${thrownText(error)}`, sanitizer);
  }
}

/** Redacts before truncating because a truncated secret would not be recognized. */
function sanitizeText(text: string, { redact }: Sanitizer, maxChars = maxTextChars): string {
  let shown: string;
  try {
    shown = redact(text);
  } catch {
    return masked;
  }
  return shown.length <= maxChars ? shown : `${cutText(shown, maxChars)}… (${shown.length} characters)`;
}

function sanitizeValue(value: unknown, sanitizer: Sanitizer, depth: number): unknown {
  if (typeof value === "string") return sanitizeText(value, sanitizer);
  if (value === null || value === undefined || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value !== "object") return sanitizeText(String(value), sanitizer);
  if (depth >= maxDepth) return "…";
  if (value instanceof Error) return sanitizeError(value, sanitizer);
  if (value instanceof Date) return sanitizeText(String(value), sanitizer);
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (Array.isArray(value))
    return value.slice(0, maxItems).map((item) => sanitize(item, sanitizer, depth + 1));
  const names = Object.keys(value).slice(0, maxItems);
  return Object.fromEntries(
    names.map((name) => [
      sanitizeText(name, sanitizer, maxNameChars),
      secretNames.has(name.toLowerCase()) ? masked : sanitize(read(value, name), sanitizer, depth + 1),
    ]),
  );
}

/** A getter can throw. */
function read(value: object, name: string): unknown {
  try {
    return Reflect.get(value, name);
  } catch (error) {
    return `not readable: ${thrownText(error)}`;
  }
}

function sanitizeError(error: Error, sanitizer: Sanitizer): Record<string, unknown> {
  const code = read(error, "code");
  const { stack } = error;
  return {
    ...((typeof code === "string" || typeof code === "number") && { code: sanitize(code, sanitizer) }),
    message: sanitizeText(thrownText(error), sanitizer),
    ...(sanitizer.withStacks && typeof stack === "string" && { stack: sanitizeText(stack, sanitizer) }),
  };
}
