import { resolvePath } from "../settings/kinds.ts";
import type { Setting, ValueKind } from "../settings/setting.ts";

/** Where sessions are kept. */
export interface StoreAddress {
  readonly kind: "files";
  /** Absolute. */
  readonly path: string;
}

const prefix = "files:";

const storeAddress: ValueKind<StoreAddress> = {
  expected: '"files:<folder>", for example "files:~/.skein"',
  schema: { type: "string", pattern: "^files:(?!~[^/])[^\\u0000]+$" },
  read: (written, place) => {
    if (typeof written !== "string" || !written.startsWith(prefix)) return null;
    const path = resolvePath(written.slice(prefix.length), place);
    return path === null ? null : { value: { kind: "files", path } };
  },
  write: ({ path }) => prefix + path,
};

export const store: Setting<StoreAddress> = {
  node: "setting",
  about: "Where sessions are kept: a folder of files. By default the root folder.",
  kind: storeAddress,
  fallback: ({ root }) => ({ kind: "files", path: root }),
};
