import { join, resolve } from "node:path";
import { fits } from "../../core/check-schema.ts";
import {
  folderTemplateHelp,
  folderTemplatePattern,
  isFolderTemplate,
  readAgentId,
} from "../../core/names.ts";
import type { JsonSchema } from "../../core/schema.ts";
import * as s from "../../core/schema.ts";
import {
  bytesPattern,
  durationPattern,
  formatBytes,
  formatDuration,
  mostAmount,
  parseBytes,
  parseDuration,
} from "./amounts.ts";
import type { Place, Setting, ValueKind, Written } from "./setting.ts";
import { setting } from "./setting.ts";

/** A value that is used as written if it matches its schema. */
function plain<T extends Written>(expected: string, schema: JsonSchema): ValueKind<T> {
  return {
    expected,
    schema,
    read: (written) => (fits(schema, written) ? { value: written as T } : null),
    write: (value) => value,
  };
}

export function choice<const W extends string>(...words: readonly W[]): ValueKind<W> {
  const expected = alternatives(words.map((word) => `"${word}"`));
  return { ...plain<W>(expected, s.string({ enum: words })), words };
}

/** A choice that includes the word `off`, which YAML 1.1 parses as false. */
export function choiceWithOff<const W extends string>(...words: readonly W[]): ValueKind<W | "off"> {
  const kind = choice<W | "off">("off", ...words);
  return {
    ...kind,
    schema: { anyOf: [kind.schema, { const: false }] },
    read: (written, place) => kind.read(written === false ? "off" : written, place),
  };
}

export const text = plain<string>("a non-empty string", s.string({ minLength: 1 }));

/** Text that matches a pattern. */
export function textLike(pattern: string, expected: string): ValueKind<string> {
  return plain(expected, s.string({ pattern }));
}

export const agentIdKind: ValueKind<string> = {
  expected: "an agent ID",
  schema: s.string({ pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" }),
  read: (written) => {
    const id = typeof written === "string" ? readAgentId(written) : null;
    return id === null ? null : { value: id };
  },
  write: (value) => value,
};

export const flag = plain<boolean>("true or false", s.boolean());

/** A whole number between two inclusive bounds. */
export function wholeNumber(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER): ValueKind<number> {
  const end = maximum === Number.MAX_SAFE_INTEGER ? "up" : `to ${maximum}`;
  return plain(`a whole number from ${minimum} ${end}`, s.integer({ minimum, maximum }));
}

/** A fraction greater than 0 and at most 1. */
export const share = plain<number>(
  "a number above 0 and at most 1",
  s.number({ exclusiveMinimum: 0, maximum: 1 }),
);

/** Any number between two inclusive bounds. */
export function numberBetween(minimum: number, maximum: number): ValueKind<number> {
  return plain(`a number from ${minimum} to ${maximum}`, s.number({ minimum, maximum }));
}

/** In milliseconds. */
export const duration: ValueKind<number> = {
  expected: 'a duration such as "30d", "12h" or "45m" (units: ms s m h d w)',
  schema: s.string({ pattern: durationPattern }),
  read: (written) => valueOrNull(typeof written === "string" ? parseDuration(written) : null),
  write: formatDuration,
};

const countOfBytes = wholeNumber(1, mostAmount);

export const bytes: ValueKind<number> = {
  expected: 'a number of bytes, or a size such as "10GB" or "512MiB"',
  schema: { anyOf: [countOfBytes.schema, s.string({ pattern: bytesPattern })] },
  read: (written, place) =>
    typeof written === "string" ? valueOrNull(parseBytes(written)) : countOfBytes.read(written, place),
  write: formatBytes,
};

const pathPattern = "^(?!~[^/])[^\\u0000]+$";

/** A folder or file, as an absolute path. */
export const filePath: ValueKind<string> = {
  expected: "a path (relative paths are resolved against this file's folder, and ~/ is the home folder)",
  schema: s.string({ pattern: pathPattern }),
  read: (written, place) => valueOrNull(typeof written === "string" ? resolvePath(written, place) : null),
  write: (value) => value,
};

/** A working directory for sessions. Its placeholders are replaced for each session. */
export const sessionFolder: ValueKind<string> = {
  ...filePath,
  expected: `${filePath.expected}; ${folderTemplateHelp}`,
  schema: { allOf: [filePath.schema, { pattern: folderTemplatePattern }] },
  read: (written, place) =>
    typeof written === "string" && isFolderTemplate(written) ? filePath.read(written, place) : null,
};

export const httpAddress: ValueKind<string> = textLike(
  "^https?://[^\\s/]\\S*$",
  "a URL that starts with http:// or https://",
);

/** Returns `null` if the text is not a path or if it starts with `~user`, which only a shell can resolve. */
export function resolvePath(
  written: string,
  { folder, home }: Pick<Place, "folder" | "home">,
): string | null {
  if (!new RegExp(pathPattern).test(written)) return null;
  return written === "~" || written.startsWith("~/")
    ? join(home, written.slice(1))
    : resolve(folder, written);
}

/** Extends a kind of value with `null`. */
export function orNone<T>(kind: ValueKind<T>, meaning: string): ValueKind<T | null> {
  return {
    ...kind,
    expected: `${kind.expected}, or null for ${meaning}`,
    schema: s.nullable(kind.schema),
    read: (written, place) => (written === null ? { value: null } : kind.read(written, place)),
    write: (value) => (value === null ? null : kind.write(value)),
  };
}

/** A setting that defaults to `null`. `meaning` explains what `null` means. */
export function optional<T>(about: string, kind: ValueKind<T>, meaning: string): Setting<T | null> {
  return setting<T | null>(about, orNone(kind, meaning), null);
}

/** Joins names for a message, for example "a, b or c". */
export function alternatives(names: readonly string[]): string {
  const last = names.at(-1) ?? "nothing";
  return names.length < 2 ? last : `${names.slice(0, -1).join(", ")} or ${last}`;
}

function valueOrNull<T>(value: T | null): { readonly value: T } | null {
  return value === null ? null : { value };
}
