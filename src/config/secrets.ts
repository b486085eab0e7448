import type { Config } from "./sections/all.ts";
import { sections } from "./sections/all.ts";
import type { Node, Setting } from "./settings/setting.ts";

/** Whether a name suggests a secret, such as apiKey, token or clientSecret. */
export function isSecretKey(key: string): boolean {
  return /(?:api[_-]?key|private[_-]?key|secret|token|password|passphrase|credentials?|authorization)$/i.test(
    key,
  );
}

/** Whether a setting is marked as secret or has a name that suggests a secret. Such a setting must never be shown. */
export function isSecret({ secret }: Setting<unknown>, path: readonly string[]): boolean {
  return secret === true || isSecretKey(path.at(-1) ?? "");
}

/** Returns all secret values in a configuration so that they can be masked in text. */
export function secretValues(config: Config): readonly string[] {
  return [...new Set([...secretsIn(sections, config, []), ...passwordsIn(config)])];
}

/** Decodes percent-encoded text. Returns the text unchanged if it cannot be decoded, such as `100%`. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Database errors can contain the password without the rest of the address. */
function passwordsIn({ store, postgres: { workerUrl, migratorUrl, directUrl } }: Config): string[] {
  const urls = [store.kind === "postgres" ? store.url : null, workerUrl, migratorUrl, directUrl];
  return urls.flatMap((url) => {
    if (url === null || !URL.canParse(url)) return [];
    const { password, searchParams } = new URL(url);
    const all = [password, decoded(password), searchParams.get("password"), searchParams.get("sslpassword")];
    return all.filter((each) => each !== null && each !== "") as string[];
  });
}

function secretsIn(node: Node, value: unknown, path: readonly string[]): string[] {
  if (node.node === "setting") {
    return typeof value === "string" && value !== "" && isSecret(node, path) ? [value] : [];
  }
  if (node.node === "list" || value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, each]) => {
    const field = node.node === "group" ? node.fields[key] : node.of;
    return field === undefined ? [] : secretsIn(field, each, [...path, key]);
  });
}
