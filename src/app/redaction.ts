import type { Redactor } from "../access/redaction/redactor.ts";
import { createRedactor } from "../access/redaction/redactor.ts";
import { keyedProviders } from "../config/default-model.ts";
import type { LoadedConfig } from "../config/load.ts";
import { secretValues } from "../config/secrets.ts";
import type { HookRegistry } from "../sessions/hooks.ts";

/** Masks secrets by our rules, the user's, and the values of every secret in the configuration and every key in the environment. */
export function redactorOf({ config, variable }: Pick<LoadedConfig, "config" | "variable">): Redactor {
  const keys = keyedProviders.flatMap(({ variables }) => variables.map(variable));
  const secrets = [...secretValues(config), ...keys.filter((each) => each !== undefined && each !== "")];
  return createRedactor({ rules: config.redaction.rules, secrets: secrets as string[] });
}

/** Masks secrets in what is written: for good, in arguments and results too. */
export function redactOnWrite(hooks: HookRegistry, redactor: Redactor): void {
  hooks.on("before_message_write", ({ message }) => {
    const { value, count } = redactor.redactJson(message);
    return count === 0 ? undefined : { replace: value as typeof message };
  });
}
