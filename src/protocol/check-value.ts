import type { TSchema } from "typebox";
import type { TLocalizedValidationError } from "typebox/error";
import { Value } from "typebox/value";

/** What is wrong with a value: where, and what was expected there. */
export interface Mistake {
  readonly path: readonly PropertyKey[];
  readonly expected: string;
}

/** A copy of the value with the schema's defaults, or what is wrong with it. Nothing is converted. */
export function checkValue(
  schema: object,
  value: unknown,
): { readonly value: unknown } | { readonly mistakes: readonly Mistake[] } {
  const type = schema as TSchema;
  const filled = Value.Default(type, structuredClone(value));
  if (Value.Check(type, filled)) return { value: filled };
  return { mistakes: mistakesIn(Value.Errors(type, filled)) };
}

/** Without what only follows: each choice of an alternative that failed, and the `false` behind an unknown property. */
function mistakesIn(errors: readonly TLocalizedValidationError[]): Mistake[] {
  const choices = errors.filter(({ keyword }) => keyword === "anyOf").map(({ schemaPath }) => schemaPath);
  const isChoice = (error: TLocalizedValidationError) =>
    choices.some((path) => error.schemaPath.startsWith(`${path}/anyOf/`));
  return errors
    .filter((error) => error.keyword !== "boolean" && !isChoice(error))
    .flatMap((error) => mistakesOf(error, errors));
}

function mistakesOf(
  error: TLocalizedValidationError,
  all: readonly TLocalizedValidationError[],
): readonly Mistake[] {
  const path = pathOf(error.instancePath);
  switch (error.keyword) {
    case "required":
      return error.params.requiredProperties.map((name) => ({
        path: [...path, name],
        expected: "is required",
      }));
    case "additionalProperties":
      return error.params.additionalProperties.map((name) => ({
        path: [...path, name],
        expected: "is not known",
      }));
    case "const":
      return [{ path, expected: `must be ${JSON.stringify(error.params.allowedValue)}` }];
    case "enum":
      return [{ path, expected: oneOf(error.params.allowedValues) }];
    case "anyOf": {
      const constants = all.flatMap((each) =>
        each.keyword === "const" && each.schemaPath.startsWith(`${error.schemaPath}/anyOf/`)
          ? [each.params.allowedValue]
          : [],
      );
      return [{ path, expected: constants.length > 0 ? oneOf(constants) : "fits none of what it may be" }];
    }
    default:
      return [{ path, expected: error.message }];
  }
}

function oneOf(values: readonly unknown[]): string {
  return `must be one of ${values.map((each) => JSON.stringify(each)).join(", ")}`;
}

/** A JSON pointer as its parts. */
function pathOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}
