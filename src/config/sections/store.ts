import { choice, resolvePath, wholeNumber } from "../settings/kinds.ts";
import type { Setting, ValueKind } from "../settings/setting.ts";
import { group, setting } from "../settings/setting.ts";

/** Where sessions are stored. */
export interface StoreAddress {
  readonly kind: "files";
  /** The absolute path. */
  readonly path: string;
}

const prefix = "files:";
/** OpenClaw writes a path for each agent; the part before it is the root folder. */
const agentPart = /\/agents\/\{agentId\}(?:\/sessions(?:\/sessions\.json)?)?\/?$/;

const storeAddress: ValueKind<StoreAddress> = {
  expected: '"files:<folder>", for example "files:~/.skein" or "files:~/.skein/agents/{agentId}"',
  schema: { type: "string", pattern: "^files:(?!~[^/])[^\\u0000]+$" },
  read: (written, place) => {
    if (typeof written !== "string" || !written.startsWith(prefix)) return null;
    const folder = written.slice(prefix.length).replace(agentPart, "");
    const path = folder.includes("{agentId}") ? null : resolvePath(folder, place);
    return path === null ? null : { value: { kind: "files", path } };
  },
  write: ({ path }) => prefix + path,
};

export const store: Setting<StoreAddress> = {
  node: "setting",
  about: "Where sessions are stored: a folder of files. By default the root folder.",
  kind: storeAddress,
  fallback: ({ root }) => ({ kind: "files", path: root }),
};

export const durability = setting(
  "When a write is acknowledged: when it is on disk (full), or when the operating system has it (os), which a power failure can lose.",
  choice("full", "os"),
  "full",
);

export const lock = group("The lock of a session file.", {
  timeoutMs: setting(
    "How long a writer waits for a session that another process has locked, in milliseconds.",
    wholeNumber(0, 86_400_000),
    10_000,
  ),
});
