import { choice, resolvePath, wholeNumber } from "../settings/kinds.ts";
import type { Setting, ValueKind } from "../settings/setting.ts";
import { group, setting } from "../settings/setting.ts";

/** Where sessions are stored. */
export interface StoreAddress {
  readonly kind: "files";
  readonly path: string;
}

const prefix = "files:";
/** OpenClaw uses one path per agent. The part before `/agents/{agentId}` is the root folder. */
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
  about: "The folder that sessions are stored in. Defaults to the root folder.",
  kind: storeAddress,
  fallback: ({ root }) => ({ kind: "files", path: root }),
};

export const durability = setting(
  "When a write is acknowledged: once it is on disk (`full`), or once the operating system has accepted it (`os`). With `os`, a power failure can lose acknowledged writes.",
  choice("full", "os"),
  "full",
);

export const lock = group("Locking of session files.", {
  timeoutMs: setting(
    "How long a writer waits for a session that another process has locked, in milliseconds.",
    wholeNumber(0, 86_400_000),
    10_000,
  ),
});
