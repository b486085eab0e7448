import { join } from "node:path";
import { parseEnv } from "node:util";
import { keyedProviders, keyVariable } from "../../config/default-model.ts";
import { readTextFile } from "../../config/find-file.ts";

/** A key that is there, by the name of its variable. Its value is never kept. */
export interface FoundKey {
  readonly provider: string;
  readonly variable: string;
  readonly from: "environment" | ".env";
}

/** The keys in the environment and in the `.env` of a folder, in the order in which their providers are chosen. */
export async function findKeys(
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly FoundKey[]> {
  const beside = parseEnv((await readTextFile(join(folder, ".env"))) ?? "");
  return keyedProviders.flatMap((known) => {
    // A real variable wins even when it is blank, as it does when the configuration is read.
    const variable = keyVariable(known, (name) => env[name] ?? beside[name]);
    if (variable === null) return [];
    return [
      { provider: known.provider, variable, from: env[variable] === undefined ? ".env" : "environment" },
    ];
  });
}
