import type { Redactor } from "../access/redaction/redactor.ts";
import { createRedactor } from "../access/redaction/redactor.ts";
import { keyedProviders } from "../config/default-model.ts";
import type { LoadedConfig } from "../config/load.ts";
import { secretValues } from "../config/secrets.ts";
import type { HookRegistry } from "../sessions/hooks.ts";

/**
 * Masks secrets according to the built-in rules, the user's rules, the values of all secrets in the configuration, and
 * all keys in the environment.
 */
export function redactorOf({ config, variable }: Pick<LoadedConfig, "config" | "variable">): Redactor {
  const keys = keyedProviders.flatMap(({ variables }) => variables.map(variable));
  const secrets = [...secretValues(config), ...keys.filter((each) => each !== undefined && each !== "")];
  return createRedactor({ rules: config.redaction.rules, secrets: secrets as string[] });
}

/** Permanently masks secrets in everything that is written, including tool arguments and results. */
export function redactOnWrite(hooks: HookRegistry, redactor: Redactor): void {
  hooks.on("before_message_write", ({ message }) => {
    const { value, count } = redactor.redactJson(message);
    return count === 0 ? undefined : { replace: value as typeof message };
  });
}
