import fc from "fast-check";

/** Walks and generators for JSON Schemas as TypeBox writes them. */

interface Node {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
  readonly oneOf?: readonly Node[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly uniqueItems?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
}

function* nodes(schema: Node, place = ""): Generator<[string, Node]> {
  yield [place, schema];
  const at = (name: string) => (place === "" ? name : `${place}.${name}`);
  for (const [name, each] of Object.entries(schema.properties ?? {})) yield* nodes(each, at(name));
  if (schema.items !== undefined) yield* nodes(schema.items, `${place}[]`);
  for (const each of schema.properties === undefined ? (schema.anyOf ?? []) : []) yield* nodes(each, place);
}

export function openPlaces(schema: object): string[] {
  return [...nodes(schema as Node)]
    .filter(([, { type, additionalProperties }]) => type === "object" && additionalProperties !== false)
    .map(([place]) => place);
}

export function unlimitedPlaces(schema: object): string[] {
  const isUnlimited = ({ type, maxLength, maxItems, minimum, maxProperties, patternProperties }: Node) =>
    (type === "string" && maxLength === undefined) ||
    (type === "array" && maxItems === undefined) ||
    ((type === "integer" || type === "number") && minimum === undefined) ||
    (patternProperties !== undefined && maxProperties === undefined);
  return [...nodes(schema as Node)].filter(([, node]) => isUnlimited(node)).map(([place]) => place);
}

/** Matching values. */
export function anyOfSchema(schema: object): fc.Arbitrary<unknown> {
  const node = schema as Node;
  if (node.const !== undefined) return fc.constant(node.const);
  if (node.enum !== undefined) return fc.constantFrom(...node.enum);
  if (node.properties !== undefined) return anyObject(node, node.properties);
  if (node.anyOf !== undefined) return fc.oneof(...node.anyOf.map(anyOfSchema));
  switch (node.type) {
    case "string":
      return anyText(node);
    case "array":
      return anyList(node);
    case "object":
      return fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.jsonValue(), { maxKeys: 3 });
    case "integer":
      return fc.integer({ min: node.minimum ?? 0, max: Math.min(node.maximum ?? 1e6, 1e6) });
    case "number":
      return fc.integer({ min: node.minimum ?? 0, max: 1000 });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    default:
      return fc.constantFrom(null, 1, "x", { a: [1] });
  }
}

function anyText({ pattern, minLength = 0, maxLength = 20 }: Node): fc.Arbitrary<string> {
  if (pattern !== undefined)
    return fc.stringMatching(new RegExp(pattern), { maxLength: Math.min(maxLength, 64) });
  return fc.string({ minLength, maxLength: Math.min(maxLength, 20) });
}

function anyList({ items = {}, minItems = 0, maxItems = 3, uniqueItems }: Node): fc.Arbitrary<unknown[]> {
  const lengths = { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, 3)) };
  if (uniqueItems === true) return fc.uniqueArray(anyOfSchema(items), lengths);
  return fc.array(anyOfSchema(items), lengths);
}

function anyObject({ required = [], oneOf, anyOf }: Node, fields: Readonly<Record<string, Node>>) {
  const choices = (oneOf ?? anyOf ?? [{}]).map((each) => each.required ?? []);
  const among = choices.flat();
  return fc.oneof(
    ...choices.map((chosen) => {
      const names = Object.keys(fields).filter((name) => chosen.includes(name) || !among.includes(name));
      const model = Object.fromEntries(names.map((name) => [name, anyOfSchema(fields[name] ?? {})]));
      return fc.record(model, { requiredKeys: [...required, ...chosen], noNullPrototype: true });
    }),
  );
}
