import { SkeinError } from "./errors.ts";

/** The names of all options in a type. The compiler checks that the list is complete. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

/** Throws `invalid_arguments` for an unknown option, which JavaScript would silently ignore. */
export function checkOptions<Options extends object>(
  name: string,
  given: Options,
  known: OptionNames<Options>,
): void {
  checkObject(name, given);
  const unknown = Object.keys(given).find((option) => !Object.hasOwn(known, option));
  if (unknown === undefined) return;
  throw new SkeinError("invalid_arguments", {
    problem: `${name} has no option "${unknown}"`,
    advice: `Use one of these options: ${Object.keys(known).join(", ")}`,
  });
}

/** Throws `invalid_arguments` if a value such as a session name is passed instead of an object. */
export function checkObject(name: string, given: object, example = "{ … }"): void {
  if (typeof given === "object" && given !== null && !Array.isArray(given)) return;
  throw new SkeinError("invalid_arguments", {
    problem: `${name} received ${JSON.stringify(given)} instead of an object`,
    advice: `Pass an object: ${example}`,
  });
}
