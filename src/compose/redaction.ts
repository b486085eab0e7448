import type { Redactor } from "../access/redaction/redactor.ts";
import { createRedactor } from "../access/redaction/redactor.ts";
import { secretValues } from "../config/secret-values.ts";
import type { Config } from "../config/sections/all.ts";
import type { HookRegistry } from "../sessions/hooks.ts";

/** What takes secrets out of texts: our rules, the user's, and every secret of the configuration by its value. */
export function redactorOf(config: Config): Redactor {
  return createRedactor({ rules: config.redaction.rules, secrets: secretValues(config) });
}

/** Masks secrets in what is written: for good, in arguments and results too. */
export function redactOnWrite(hooks: HookRegistry, redactor: Redactor): void {
  hooks.on("before_message_write", ({ message }) => {
    const { value, count } = redactor.redactJson(message);
    return count === 0 ? undefined : { replace: value as typeof message };
  });
}
