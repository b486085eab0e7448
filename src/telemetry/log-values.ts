import { cutText, thrownText } from "../core/text.ts";

/** Values on their way into a log: every text redacted and cut, headers with secrets masked, errors as code and message. */

export interface LogValueSettings {
  /** Applied to every text. One that throws hides the text. */
  readonly redact: (text: string) => string;
  /** Only where details are wanted. */
  readonly withStacks: boolean;
}

const masked = "[redacted]";
const longestText = 2000;
const longestName = 200;
const deepest = 6;
const mostItems = 100;
const secretNames = new Set([
  ...["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "apikey"],
  ...["x-goog-api-key", "token", "accesstoken", "access_token", "password", "secret"],
]);

/** Masks known values wherever they stand, the longest first. */
export function maskerOf(secrets: readonly string[]): (text: string) => string {
  const known = [...new Set(secrets)].filter((secret) => secret !== "");
  const ordered = known.toSorted((a, b) => b.length - a.length);
  return (text) => ordered.reduce((rest, secret) => rest.replaceAll(secret, masked), text);
}

/** The value as it may be written, a copy that JSON can hold; it never throws. */
export function loggable(value: unknown, settings: LogValueSettings, depth = 0): unknown {
  try {
    return written(value, settings, depth);
  } catch (error) {
    return safeText(`not readable: ${thrownText(error)}`, settings);
  }
}

/** Redacted before it is cut: half a secret is not known for one. */
export function safeText(text: string, { redact }: LogValueSettings, longest = longestText): string {
  let shown: string;
  try {
    shown = redact(text);
  } catch {
    // What cannot be redacted is not shown.
    return masked;
  }
  return shown.length <= longest ? shown : `${cutText(shown, longest)}… (${shown.length} characters)`;
}

function written(value: unknown, settings: LogValueSettings, depth: number): unknown {
  if (typeof value === "string") return safeText(value, settings);
  if (value === null || value === undefined || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value !== "object") return safeText(String(value), settings);
  if (depth >= deepest) return "…";
  if (value instanceof Error) return errorOf(value, settings);
  if (value instanceof Date) return safeText(String(value), settings);
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (Array.isArray(value)) {
    return value.slice(0, mostItems).map((item) => loggable(item, settings, depth + 1));
  }
  const entries = Object.keys(value)
    .slice(0, mostItems)
    .map((name) => [safeText(name, settings, longestName), named(value, name, settings, depth)]);
  return Object.fromEntries(entries);
}

function named(value: object, name: string, settings: LogValueSettings, depth: number): unknown {
  return secretNames.has(name.toLowerCase()) ? masked : loggable(read(value, name), settings, depth + 1);
}

/** A getter may throw. */
function read(value: object, name: string): unknown {
  try {
    return Reflect.get(value, name);
  } catch (error) {
    return `not readable: ${thrownText(error)}`;
  }
}

function errorOf(error: Error, settings: LogValueSettings): Record<string, unknown> {
  const code = read(error, "code");
  return {
    ...((typeof code === "string" || typeof code === "number") && { code: loggable(code, settings) }),
    message: safeText(thrownText(error), settings),
    ...(settings.withStacks && typeof error.stack === "string" && { stack: safeText(error.stack, settings) }),
  };
}
