import { join, resolve } from "node:path";
import { folderTemplateHelp, folderTemplatePattern, isFolderTemplate } from "../../core/names.ts";
import {
  bytesPattern,
  durationPattern,
  formatBytes,
  formatDuration,
  mostAmount,
  parseBytes,
  parseDuration,
} from "./amounts.ts";
import type { Place, ValueKind } from "./setting.ts";

/** The kinds of values that settings are made of. */

export function choice<const W extends string>(...words: readonly W[]): ValueKind<W> {
  return {
    expected: alternatives(words.map((word) => `"${word}"`)),
    words,
    schema: { type: "string", enum: words },
    read: (written) => {
      const word = words.find((each) => each === written);
      return word === undefined ? null : { value: word };
    },
    write: (value) => value,
  };
}

/** A choice with `off` among its words. Where somebody's YAML is of version 1.1, that word is read as false. */
export function choiceWithOff<const W extends string>(...words: readonly W[]): ValueKind<W | "off"> {
  const kind = choice<W | "off">("off", ...words);
  return {
    ...kind,
    schema: { anyOf: [kind.schema, { const: false }] },
    read: (written, place) => kind.read(written === false ? "off" : written, place),
  };
}

/** Some text. */
export const text: ValueKind<string> = {
  expected: "text that is not empty",
  schema: { type: "string", minLength: 1 },
  read: (written) => (typeof written === "string" && written !== "" ? { value: written } : null),
  write: (value) => value,
};

/** Text of a form. The pattern is that of JSON Schema too. */
export function textLike(pattern: string, expected: string): ValueKind<string> {
  return {
    ...text,
    expected,
    schema: { type: "string", pattern },
    read: (written) =>
      typeof written === "string" && new RegExp(pattern, "u").test(written) ? { value: written } : null,
  };
}

export const flag: ValueKind<boolean> = {
  expected: "true or false",
  schema: { type: "boolean" },
  read: (written) => (typeof written === "boolean" ? { value: written } : null),
  write: (value) => value,
};

/** A whole number, ends included. */
export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER): ValueKind<number> {
  const isOne = (value: unknown): value is number =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
  return {
    expected:
      most === Number.MAX_SAFE_INTEGER
        ? `a whole number from ${least} up`
        : `a whole number from ${least} to ${most}`,
    schema: { type: "integer", minimum: least, maximum: most },
    read: (written) => (isOne(written) ? { value: written } : null),
    write: (value) => value,
  };
}

/** A part of a whole: above 0, and 1 at the most. */
export const share: ValueKind<number> = {
  expected: "a number above 0, and 1 at the most",
  schema: { type: "number", exclusiveMinimum: 0, maximum: 1 },
  read: (written) => (typeof written === "number" && written > 0 && written <= 1 ? { value: written } : null),
  write: (value) => value,
};

/** Any number, ends included. */
export function numberBetween(least: number, most: number): ValueKind<number> {
  return {
    expected: `a number from ${least} to ${most}`,
    schema: { type: "number", minimum: least, maximum: most },
    read: (written) =>
      typeof written === "number" && written >= least && written <= most ? { value: written } : null,
    write: (value) => value,
  };
}

/** In milliseconds. */
export const duration: ValueKind<number> = {
  expected: 'a length of time such as "30d", "12h" or "45m" (units: ms s m h d w)',
  schema: { type: "string", pattern: durationPattern },
  read: (written) => valueOrNull(typeof written === "string" ? parseDuration(written) : null),
  write: formatDuration,
};

const countOfBytes = wholeNumber(1, mostAmount);

export const bytes: ValueKind<number> = {
  expected: 'a number of bytes, or a size such as "10GB" or "512MiB"',
  schema: {
    anyOf: [countOfBytes.schema, { type: "string", pattern: bytesPattern }],
  },
  read: (written, place) =>
    typeof written === "string" ? valueOrNull(parseBytes(written)) : countOfBytes.read(written, place),
  write: formatBytes,
};

const pathPattern = "^(?!~[^/])[^\\u0000]+$";

/** A folder, as an absolute path. */
export const folderPath: ValueKind<string> = {
  expected: "a path; relative ones begin at the folder of this file, ~/ is the home folder",
  schema: { type: "string", pattern: pathPattern },
  read: (written, place) => valueOrNull(typeof written === "string" ? resolvePath(written, place) : null),
  write: (value) => value,
};

/** A folder that sessions work in. Its placeholders are replaced for each session. */
export const sessionFolder: ValueKind<string> = {
  ...folderPath,
  expected: `${folderPath.expected}; ${folderTemplateHelp}`,
  schema: { allOf: [folderPath.schema, { pattern: folderTemplatePattern }] },
  read: (written, place) =>
    typeof written === "string" && isFolderTemplate(written) ? folderPath.read(written, place) : null,
};

/** A file, in the same way. */
export const filePath: ValueKind<string> = folderPath;

/** Where something is reached on a network. */
export const httpAddress: ValueKind<string> = textLike(
  "^https?://[^\\s/]\\S*$",
  "an address that begins with http:// or https://",
);

/** `null` for what is no path, and for `~somebody`, which only a shell knows. */
export function resolvePath(path: string, { folder, home }: Pick<Place, "folder" | "home">): string | null {
  if (!new RegExp(pathPattern).test(path)) return null;
  return path === "~" || path.startsWith("~/") ? join(home, path.slice(1)) : resolve(folder, path);
}

/** The same, or `null`. */
export function orNone<T>(kind: ValueKind<T>, meaning: string): ValueKind<T | null> {
  return {
    ...kind,
    expected: `${kind.expected}, or null for ${meaning}`,
    schema: { anyOf: [kind.schema, { type: "null" }] },
    read: (written, place) => (written === null ? { value: null } : kind.read(written, place)),
    write: (value) => (value === null ? null : kind.write(value)),
  };
}

/** For example "a, b or c". */
export function alternatives(names: readonly string[]): string {
  const last = names.at(-1) ?? "nothing";
  return names.length < 2 ? last : `${names.slice(0, -1).join(", ")} or ${last}`;
}

function valueOrNull<T>(value: T | null): { readonly value: T } | null {
  return value === null ? null : { value };
}
