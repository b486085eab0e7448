import { isRecord } from "./is-record.ts";
import type { JsonSchema, Schema } from "./schema.ts";

/** One problem with a value. */
export interface Problem {
  readonly path: readonly (string | number)[];
  /** The keyword that the value violates, or `unknown` for a property that a closed object does not have. */
  readonly keyword: keyof JsonSchema | "unknown";
  /** The schema that contains the keyword. For a missing property, that property's schema. */
  readonly schema: JsonSchema;
  /** For `anyOf`, the problems with each alternative. */
  readonly alternatives?: readonly Problem[];
}

/** Whether a value matches a schema. */
export function fits<T>(schema: Schema<T>, value: unknown): value is T {
  return compiled(schema)(value, null);
}

/**
 * Returns up to `max` problems with a value. The list is empty if the value is valid. The work is bounded by `max`, not
 * by the value's size.
 */
export function findProblems(schema: JsonSchema, value: unknown, max: number): readonly Problem[] {
  const check = compiled(schema);
  if (check(value, null)) return [];
  const report = new Report(max);
  check(value, report);
  return report.problems;
}

class Report {
  readonly problems: Problem[] = [];
  readonly path: (string | number)[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get isFull(): boolean {
    return this.problems.length >= this.#max;
  }

  add(problem: Omit<Problem, "path">, name?: string): void {
    if (this.isFull) return;
    this.problems.push({ ...problem, path: name === undefined ? [...this.path] : [...this.path, name] });
  }

  /** Returns the problems with one alternative. Their paths start at the root of the value. */
  explain(check: Check, value: unknown): readonly Problem[] {
    const report = new Report(this.#max);
    report.path.push(...this.path);
    check(value, report);
    return report.problems;
  }
}

/**
 * Returns whether a value is valid. Without a report, it stops at the first problem. With a report, it adds problems
 * until the report is full.
 */
type Check = (value: unknown, report: Report | null) => boolean;

const checks = new WeakMap<JsonSchema, Check>();

function compiled(schema: JsonSchema): Check {
  let check = checks.get(schema);
  if (check === undefined) {
    check = compile(schema);
    checks.set(schema, check);
  }
  return check;
}

function compile(schema: JsonSchema): Check {
  const { type, properties, required, patternProperties, items, discriminator } = schema;
  if (discriminator !== undefined) return checkTag(schema, discriminator.propertyName);
  const parts = [
    ...(properties === undefined && required === undefined
      ? type === undefined
        ? []
        : [checkThat(schema, "type", typeTests[type])]
      : [checkObject(schema)]),
    ...(patternProperties === undefined ? [] : [checkRecord(schema, patternProperties)]),
    ...(items === undefined ? [] : [checkItems(schema, items)]),
    ...limits.flatMap(({ keyword, test }) =>
      schema[keyword] === undefined ? [] : [checkThat(schema, keyword, test(schema))],
    ),
    ...(schema.allOf ?? []).map(compiled),
    ...(schema.anyOf === undefined ? [] : [checkAnyOf(schema, schema.anyOf)]),
    ...(schema.oneOf === undefined ? [] : [checkOneOf(schema, schema.oneOf)]),
  ];
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  return (value, report) => {
    let isFit = true;
    for (const part of parts) {
      if (part(value, report)) continue;
      if (report === null) return false;
      isFit = false;
    }
    return isFit;
  };
}

function checkThat(schema: JsonSchema, keyword: keyof JsonSchema, holds: (value: unknown) => boolean): Check {
  return (value, report) => {
    if (holds(value)) return true;
    report?.add({ keyword, schema });
    return false;
  };
}

const typeTests: Readonly<Record<NonNullable<JsonSchema["type"]>, (value: unknown) => boolean>> = {
  object: isRecord,
  array: Array.isArray,
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
  number: Number.isFinite,
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
};

interface Limit {
  readonly keyword: keyof JsonSchema;
  test(schema: JsonSchema): (value: unknown) => boolean;
}

/**
 * Keywords that compare a value with a constant. A keyword that applies to one type accepts values of every other type.
 */
const limits: readonly Limit[] = [
  { keyword: "minLength", test: ({ minLength = 0 }) => ofText((text) => !isShorter(text, minLength)) },
  { keyword: "maxLength", test: ({ maxLength = 0 }) => ofText((text) => isShorter(text, maxLength + 1)) },
  {
    keyword: "pattern",
    test: ({ pattern = "" }) => {
      const expression = new RegExp(pattern, "u");
      return ofText((text) => expression.test(text));
    },
  },
  { keyword: "exclusiveMinimum", test: ({ exclusiveMinimum = 0 }) => ofNumber((n) => n > exclusiveMinimum) },
  { keyword: "minimum", test: ({ minimum = 0 }) => ofNumber((n) => n >= minimum) },
  { keyword: "maximum", test: ({ maximum = 0 }) => ofNumber((n) => n <= maximum) },
  { keyword: "const", test: (schema) => (value) => value === schema.const },
  {
    keyword: "enum",
    test:
      ({ enum: values = [] }) =>
      (value) =>
        values.includes(value),
  },
];

const ofText = (holds: (text: string) => boolean) => (value: unknown) =>
  typeof value !== "string" || holds(value);
const ofNumber = (holds: (number: number) => boolean) => (value: unknown) =>
  typeof value !== "number" || holds(value);

/** Counts code points, but stops as soon as the text is known to be too long. */
function isShorter(text: string, length: number): boolean {
  return text.length < length || (text.length < 2 * length && [...text].length < length);
}

interface Field {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly check: Check;
  readonly isOptional: boolean;
}

function fieldsOf({ properties = {}, required = [] }: JsonSchema): readonly Field[] {
  return [...new Set([...Object.keys(properties), ...required])].map((name) => {
    const schema = properties[name] ?? {};
    return { name, schema, check: compiled(schema), isOptional: !required.includes(name) };
  });
}

/** Reports missing properties first, then unknown ones, then invalid ones in schema order. */
function checkObject(schema: JsonSchema): Check {
  const { type, properties = {}, additionalProperties } = schema;
  const fields = fieldsOf(schema);
  const isClosed = additionalProperties === false;
  const isKnown = (name: string) => Object.hasOwn(properties, name);
  const isAbsent = (value: Readonly<Record<string, unknown>>, { name, isOptional }: Field) =>
    value[name] === undefined && (isOptional || !(name in value));
  const isFit = (value: Readonly<Record<string, unknown>>) => {
    if (isClosed) for (const name in value) if (!isKnown(name)) return false;
    for (const { name, check, isOptional } of fields) {
      const found = value[name];
      if (found === undefined) {
        if (isOptional) continue;
        if (!(name in value)) return false;
      }
      if (!check(found, null)) return false;
    }
    return true;
  };
  const explain = (value: Readonly<Record<string, unknown>>, report: Report) => {
    for (const field of fields)
      if (!field.isOptional && isAbsent(value, field))
        report.add({ keyword: "required", schema: field.schema }, field.name);
    if (isClosed) {
      for (const name in value) {
        if (report.isFull) return;
        if (!isKnown(name)) report.add({ keyword: "unknown", schema }, name);
      }
    }
    for (const field of fields) {
      if (report.isFull) return;
      if (!isAbsent(value, field)) checkAt(field.name, field.check, value[field.name], report);
    }
  };
  return (value, report) => {
    if (!isRecord(value)) {
      if (type === "object") report?.add({ keyword: "type", schema });
      return type !== "object";
    }
    if (isFit(value)) return true;
    if (report !== null) explain(value, report);
    return false;
  };
}

function checkAt(at: string | number, check: Check, value: unknown, report: Report): boolean {
  report.path.push(at);
  const isFit = check(value, report);
  report.path.pop();
  return isFit;
}

function checkRecord(
  schema: JsonSchema,
  { "^.*$": values = {} }: Readonly<Record<string, JsonSchema>>,
): Check {
  const { maxProperties = Number.POSITIVE_INFINITY } = schema;
  const check = compiled(values);
  const isOpen = Object.keys(values).length === 0;
  return (value, report) => {
    if (!isRecord(value)) return true;
    if (maxProperties < Number.POSITIVE_INFINITY && Object.keys(value).length > maxProperties) {
      report?.add({ keyword: "maxProperties", schema });
      return false;
    }
    return isOpen || everyEntry(value, check, report);
  };
}

function everyEntry(value: Readonly<Record<string, unknown>>, check: Check, report: Report | null): boolean {
  return Object.entries(value).every(([name, each]) =>
    report === null ? check(each, null) : checkAt(name, check, each, report),
  );
}

/** A list that is too long is rejected before its items are read. */
function checkItems(schema: JsonSchema, items: JsonSchema): Check {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY, uniqueItems = false } = schema;
  const check = compiled(items);
  const isUnique = (list: readonly unknown[]) =>
    new Set(list.map((each) => JSON.stringify(each))).size === list.length;
  return (value, report) => {
    if (!Array.isArray(value)) return true;
    const refuse = (keyword: keyof JsonSchema) => {
      report?.add({ keyword, schema });
      return false;
    };
    if (value.length > maxItems) return refuse("maxItems");
    let isFit = true;
    for (let index = 0; index < value.length; index++) {
      if (check(value[index], null)) continue;
      if (report === null || report.isFull) return false;
      checkAt(index, check, value[index], report);
      isFit = false;
    }
    if (value.length < minItems) return refuse("minItems");
    if (uniqueItems && !isUnique(value)) return refuse("uniqueItems");
    return isFit;
  };
}

/**
 * If the value has the type of one alternative and only its contents are invalid, reports the problems with that
 * alternative. Otherwise, reports one `anyOf` problem.
 */
function checkAnyOf(schema: JsonSchema, anyOf: readonly JsonSchema[]): Check {
  const checks = anyOf.map(compiled);
  return (value, report) => {
    for (const check of checks) if (check(value, null)) return true;
    if (report === null) return false;
    const found = checks.map((check) => report.explain(check, value));
    const inner = found.find(
      (problems, index) =>
        anyOf[index]?.type !== undefined && problems.every(({ path }) => path.length > report.path.length),
    );
    if (inner === undefined) report.add({ keyword: "anyOf", schema, alternatives: found.flat() });
    else report.problems.push(...inner);
    return false;
  };
}

function checkOneOf(schema: JsonSchema, oneOf: readonly JsonSchema[]): Check {
  const checks = oneOf.map(compiled);
  return checkThat(schema, "oneOf", (value) => checks.filter((check) => check(value, null)).length === 1);
}

function checkTag({ anyOf = [] }: JsonSchema, tag: string): Check {
  const variants = new Map(anyOf.map((each) => [each.properties?.[tag]?.const, compiled(each)]));
  const isObject = compiled({ type: "object" });
  const isText = compiled({ type: "string" });
  return (value, report) => {
    if (!isRecord(value)) return isObject(value, report);
    const found = value[tag];
    if (typeof found !== "string") return report !== null && checkAt(tag, isText, found, report);
    return variants.get(found)?.(value, report) ?? true;
  };
}
