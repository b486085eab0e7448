import type { Setting } from "./settings/setting.ts";

/** Names such as apiKey, token, clientSecret. */
export function isSecretKey(key: string): boolean {
  return /(?:api[_-]?key|private[_-]?key|secret|token|password|passphrase|credentials?|authorization)$/i.test(
    key,
  );
}

/** Whether a setting is never to be shown: it says so, or its name does. */
export function isSecret({ secret }: Setting<unknown>, path: readonly string[]): boolean {
  return secret === true || isSecretKey(path.at(-1) ?? "");
}
