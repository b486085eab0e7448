import type { TSchema } from "typebox";

type Checks = typeof import("typebox/value")["Value"];

/**
 * What TypeBox checks with is nearly half of its modules, and nothing is checked before somebody asks something: loaded with the
 * first check. In one go, not by `import()`, because who reads a socket checks a frame before it takes the next. Node's loader is
 * asked for no sooner: a browser may load this, and checks nothing.
 */
const load = (name: string): unknown =>
  process.getBuiltinModule("node:module").createRequire(import.meta.url)(name);

let checks: Checks | null = null;

/** Checks that read the schema each time. */
export function schemaChecks(): Checks {
  checks ??= (load("typebox/value") as typeof import("typebox/value")).Value;
  return checks;
}

/** A check of this one schema, a hundred times as fast as reading it anew. */
export function compiledCheck(schema: TSchema): (value: unknown) => boolean {
  const { Compile } = load("typebox/compile") as typeof import("typebox/compile");
  const validator = Compile(schema);
  return (value) => validator.Check(value);
}
