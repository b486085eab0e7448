import fc from "fast-check";
import { sessionToolTable } from "../../src/tools/all.ts";

/** Params for a method, generated from its schema, occasionally with errors. */

/** Values that no field expects, or that a field accepts and then fails on. */
const hostileTexts = [
  "",
  "main",
  "global",
  "agent:main:main",
  "agent:main:main:",
  "agent:../..:main",
  "agent:main:subagent:\u0000",
  "a\u0000b",
  "\ud800",
  "\udc00x\ud83d",
  "\u202e\u2066",
  "é\u0301",
  "../../../etc/passwd",
  "/dev/null",
  "file:///dev/null",
  "__proto__",
  "constructor",
  "toString",
  "%00",
  "*",
  "'; drop table runs; --",
  '" OR NEAR( AND *',
  "1970-01-01T00:00:00.000Z",
  "+275760-09-13T00:00:00.001Z",
  "0".repeat(64),
  "00000000-0000-7000-8000-000000000000",
  "x".repeat(300),
  "😀".repeat(2000),
  "Europe/Nowhere",
  "rehearsal/basic",
  "\n\r\t",
];
const hostileNumbers = [
  0,
  -0,
  -1,
  0.5,
  1e21,
  -1e21,
  1e308,
  5e-324,
  Number.MAX_SAFE_INTEGER,
  Number.MAX_SAFE_INTEGER + 1,
  2 ** 31,
  2 ** 63,
  8.64e15,
  8.64e15 + 1,
];

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

const anyText = fc.oneof(fc.constantFrom(...hostileTexts), fc.string({ unit: "binary", maxLength: 40 }));
const anyNumber = fc.oneof(fc.constantFrom(...hostileNumbers), fc.double({ noNaN: true }), fc.integer());

/** Any JSON value, including keys that are special for JavaScript objects. */
export const anyJson: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.constant(null),
    fc.boolean(),
    anyNumber,
    anyText,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(
      fc.oneof(fc.constantFrom("__proto__", "constructor", "prototype", "then", "toJSON", "length"), anyText),
      tie("value"),
      { maxKeys: 3 },
    ),
  ),
})).value;

/** Existing names: keys, IDs, labels. */
export type Known = readonly string[];

/** Fields that accept hardly anything else. */
const usual: Readonly<Record<string, Known>> = {
  agentId: ["main"],
  userId: ["someone"],
  model: ["rehearsal/basic"],
  timeZone: ["Europe/Berlin"],
  name: sessionToolTable.map(({ name }) => name),
};

/** Mostly valid values at the limits of the schema, and sometimes arbitrary values. */
export function paramsOf(schema: object, known: Known): fc.Arbitrary<unknown> {
  const made = fitting(schema as Schema, known);
  return fc.oneof({ weight: 20, arbitrary: made }, { weight: 1, arbitrary: anyJson });
}

function fitting(schema: Schema, known: Known): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.properties !== undefined) return objects(schema, known);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((each) => fitting(each, known)));
  if (schema.type === "array") {
    const { items = {}, minItems = 0, maxItems = 3 } = schema;
    const maxLength = Math.max(minItems, Math.min(maxItems, 3));
    return fc.array(fitting(items, known), { minLength: minItems, maxLength });
  }
  if (schema.type === "object") return toolArguments(known);
  if (schema.type === "boolean") return fc.boolean();
  if (schema.type === "null") return fc.constant(null);
  if (schema.type === "integer" || schema.type === "number") return numbers(schema);
  if (schema.type === "string") return texts(schema, known);
  return anyJson;
}

/**
 * Most fields of an object are omitted, and at most a few are hostile. An object with errors everywhere would never
 * pass its first check.
 */
function objects({ properties = {}, required = [] }: Schema, known: Known): fc.Arbitrary<unknown> {
  const fields = Object.entries(properties).map(([name, each]) => {
    const made = fitting(each, usual[name] ?? known);
    const odd = fc.oneof({ weight: 60, arbitrary: made }, { weight: 1, arbitrary: anyJson });
    const isThere = fc.integer({ min: 0, max: name === "userId" ? 20 : 2 }).map((one) => one === 0);
    const value = required.includes(name) ? odd : isThere.chain((is) => (is ? odd : fc.constant(undefined)));
    return fc.tuple(fc.constant(name), value);
  });
  const more = fc.tuple(fc.constantFrom("__proto__", "constructor", "extra"), anyJson);
  const surplus = fc.oneof({ weight: 30, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: more });
  return fc.tuple(fc.tuple(...fields), surplus).map(([given, other]) => {
    const all = other === null ? given : [...given, other];
    // Own properties, regardless of their names.
    return Object.fromEntries(all.filter(([, value]) => value !== undefined));
  });
}

/** An open object holds the arguments of a session tool. */
function toolArguments(known: Known): fc.Arbitrary<unknown> {
  const named = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...known) },
    { weight: 1, arbitrary: anyJson },
  );
  const count = fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: anyJson });
  const fields = {
    sessionKey: named,
    label: named,
    message: named,
    task: named,
    target: named,
    runId: named,
    action: named,
    query: named,
    limit: count,
    timeoutSeconds: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: anyText }),
    background: fc.boolean(),
  };
  return fc.record(fields, { requiredKeys: [] });
}

function numbers({ minimum = 0, maximum = 8.64e15, type }: Schema): fc.Arbitrary<unknown> {
  const small = fc.integer({ min: minimum, max: Math.min(maximum, minimum + 50) });
  const inside = type === "integer" ? fc.maxSafeInteger() : fc.double({ noNaN: true });
  const odd = fc.oneof(fc.constantFrom(...hostileNumbers), inside);
  return fc.oneof(
    { weight: 6, arbitrary: small },
    { weight: 2, arbitrary: fc.constantFrom(minimum, maximum) },
    { weight: 1, arbitrary: odd },
  );
}

/** Includes the maximum length. */
function texts({ maxLength = 300, pattern }: Schema, known: Known): fc.Arbitrary<unknown> {
  const long = fc.constant("y".repeat(Math.min(maxLength, 4096)));
  const matching = pattern === undefined ? anyText : fc.stringMatching(new RegExp(pattern));
  return fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...known) },
    { weight: 2, arbitrary: matching },
    { weight: 2, arbitrary: anyText },
    { weight: 1, arbitrary: long },
  );
}
