import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { ChatPlatform } from "../../config/sections/chat-adapters.ts";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { thrownText } from "../../core/text.ts";
import type { CardElement, Chat, ChatPackages } from "./chat-sdk.ts";

const sdk = "chat";
/** The supported versions: this major version, starting with this minor version. */
const supported = { major: 4, minor: 39, range: "4.39 or newer, but below 5" } as const;

interface FoundPackage {
  readonly name: string;
  readonly version: string;
  readonly entry: string;
}

/**
 * Finds the packages of a platform without loading them. They are looked up from each folder in turn, and then from
 * Skein itself. Throws `unavailable` with the command that installs what is missing.
 */
export function findPackages(
  channel: string,
  platform: ChatPlatform,
  folders: readonly string[],
): readonly FoundPackage[] {
  const names = [sdk, platform.package];
  const from = [...folders, dirname(fileURLToPath(import.meta.url))];
  const manifests = names.map((name) => findManifest({ channel, platform, name }, from));
  const missing = names.filter((_, index) => manifests[index] === null);
  const install = `npm install ${missing.map((name) => `${name}@${supported.major}`).join(" ")}`;
  if (missing.length > 0) {
    const which =
      missing.length > 1 ? `packages ${missing.join(" and ")}, which are` : `package ${missing[0]}, which is`;
    const problem = `Channel "${channel}" (${platform.title}) needs the ${which} not installed`;
    throw new SkeinError("unavailable", { problem, advice: `Run: ${install}` });
  }
  return names.map((name, index) => {
    const { folder, version, entry } = manifests[index] as Manifest;
    const [major = 0, minor = 0] = version.split(".").map(Number);
    if (major === supported.major && minor >= supported.minor)
      return { name, version, entry: join(folder, entry) };
    throw unusable({ channel, platform, name: `${name} ${version}` }, `Skein supports ${supported.range}`);
  });
}

/** Loads the packages of a platform. Throws `unavailable` if one is missing or has an unsupported version. */
export async function loadPackages(
  channel: string,
  platform: ChatPlatform,
  folders: readonly string[],
): Promise<ChatPackages> {
  const [chat, adapter] = await Promise.all(
    findPackages(channel, platform, folders).map(async ({ name, entry }) => {
      try {
        return (await import(pathToFileURL(entry).href)) as Readonly<Record<string, unknown>>;
      } catch (error) {
        const problem = `The package ${name} cannot be loaded (${thrownText(error)})`;
        throw new SkeinError(
          "unavailable",
          { problem, advice: `Run: npm install ${name}` },
          { cause: error },
        );
      }
    }),
  );
  const { Chat, Card, CardText, Actions, Button } = chat as unknown as SdkExports;
  const createAdapter = adapter?.[platform.factory] as ChatPackages["createAdapter"];
  return {
    createChat: (config) => new Chat(config),
    createAdapter: (config) => createAdapter(config),
    createCard: (text, buttons) => {
      const row = buttons.length === 0 ? [] : [Actions(buttons.map((button) => Button(button)))];
      return Card({ children: [CardText(text), ...row] });
    },
  };
}

interface SdkExports {
  readonly Chat: new (config: Readonly<Record<string, unknown>>) => Chat;
  Card(options: { readonly children: readonly unknown[] }): CardElement;
  CardText(text: string): unknown;
  Actions(children: readonly unknown[]): unknown;
  Button(options: object): unknown;
}

interface WantedPackage {
  readonly channel: string;
  readonly platform: ChatPlatform;
  readonly name: string;
}

function unusable({ channel, platform, name }: WantedPackage, why: string, cause?: unknown): SkeinError {
  const problem = `Channel "${channel}" (${platform.title}) cannot use ${name}, because ${why}`;
  const advice = `Run: npm install ${name.split(" ")[0]}@${supported.major}`;
  return new SkeinError("unavailable", { problem, advice }, { cause });
}

interface Manifest {
  readonly folder: string;
  readonly version: string;
  /** Relative to the folder. */
  readonly entry: string;
}

/**
 * Node's own resolution starts at Skein's files. A channel's packages can also be installed next to the configuration,
 * for example if Skein itself is installed globally.
 */
function findManifest(wanted: WantedPackage, folders: readonly string[]): Manifest | null {
  const { name } = wanted;
  for (const start of folders) {
    for (let folder = start; ; folder = dirname(folder)) {
      const found = join(folder, "node_modules", name);
      if (existsSync(join(found, "package.json"))) return readManifest(wanted, found);
      if (dirname(folder) === folder) break;
    }
  }
  return null;
}

function readManifest(wanted: WantedPackage, folder: string): Manifest {
  const file = join(folder, "package.json");
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw unusable(wanted, `${file} cannot be read (${thrownText(error)})`, error);
  }
  const { version, main, exports } = (isRecord(value) ? value : {}) as Readonly<Record<string, unknown>>;
  const root = isRecord(exports) ? exports["."] : exports;
  const entry = isRecord(root) ? (root.import ?? root.default) : root;
  return {
    folder,
    version: typeof version === "string" ? version : "0.0.0",
    entry: typeof entry === "string" ? entry : typeof main === "string" ? main : "index.js",
  };
}
