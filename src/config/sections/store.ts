import {
  choice,
  flag,
  httpAddress,
  optional,
  orNone,
  resolvePath,
  text,
  textLike,
  wholeNumber,
} from "../settings/kinds.ts";
import type { Setting, ValueKind } from "../settings/setting.ts";
import { group, setting } from "../settings/setting.ts";

/** Where sessions are stored. With PostgreSQL, `path` is the folder for this machine's own files. */
export type StoreAddress =
  | { readonly kind: "files"; readonly path: string }
  | { readonly kind: "postgres"; readonly path: string; readonly url: string };

const prefix = "files:";
/** OpenClaw uses one path per agent. The part before `/agents/{agentId}` is the root folder. */
const agentPart = /\/agents\/\{agentId\}(?:\/sessions(?:\/sessions\.json)?)?\/?$/;

const databasePattern = "^postgres(?:ql)?://[^\\s/]\\S*$";
const databaseText = textLike(
  databasePattern,
  "postgres://<role>:<password>@<host>/<database>, with special characters such as / and # percent-encoded",
);
const databaseUrl: typeof databaseText = {
  ...databaseText,
  read: (written, place) => {
    const found = databaseText.read(written, place);
    return found !== null && URL.canParse(found.value) ? found : null;
  },
};

/** Returns the host and the name of the database, without the password. */
export function databaseNameOf({ store: address }: { readonly store: StoreAddress }): string | null {
  if (address.kind !== "postgres") return null;
  const { host, pathname } = new URL(address.url);
  return `${host}${pathname}`;
}

const storeAddress: ValueKind<StoreAddress> = {
  expected:
    '"files:<folder>", for example "files:~/.skein" or "files:~/.skein/agents/{agentId}", or "postgres://<role>:<password>@<host>/<database>" with special characters such as / and # percent-encoded',
  schema: { type: "string", pattern: `^files:(?!~[^/])[^\\u0000]+$|${databasePattern}` },
  read: (written, place) => {
    const url = databaseUrl.read(written, place)?.value;
    if (url !== undefined) return { value: { kind: "postgres", path: place.root, url } };
    if (typeof written !== "string" || !written.startsWith(prefix)) return null;
    const folder = written.slice(prefix.length).replace(agentPart, "");
    const path = folder.includes("{agentId}") ? null : resolvePath(folder, place);
    return path === null ? null : { value: { kind: "files", path } };
  },
  write: (address) => (address.kind === "postgres" ? address.url : prefix + address.path),
};

export const store: Setting<StoreAddress> = {
  node: "setting",
  about:
    "The folder that sessions are stored in, or the PostgreSQL database that several machines share. Defaults to the root folder.",
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

const otherUrl = (about: string, none = "the role in `store`"): Setting<string | null> => ({
  ...setting<string | null>(about, orNone(databaseUrl, none), null),
  secret: true,
});

export const postgres = group("Connections to PostgreSQL, if `store` is a PostgreSQL database.", {
  workerUrl: otherUrl(
    "The database address for the role that executes runs for all users. `null` means the address in `store`.",
  ),
  migratorUrl: otherUrl(
    "The database address for the role that owns the tables and updates them when a process starts. `null` means the address in `store`.",
  ),
  directUrl: otherUrl(
    "The address of the server itself, if the other addresses point to PgBouncer in transaction mode, which does not deliver notifications between processes. Any role will do.",
    "the address of the worker's role",
  ),
  maxConnections: setting(
    "The maximum number of connections per process and role.",
    wholeNumber(2, 1000),
    10,
  ),
});

const keyText = (about: string): Setting<string | null> => ({
  ...optional(about, text, "none"),
  secret: true,
});

export const blobs = group(
  "Where images and large outputs are stored, if `store` is a PostgreSQL database.",
  {
    s3: group(
      "An S3-compatible object store. By default, images and large outputs are stored in a database table.",
      {
        bucket: optional(
          "The bucket for images and large outputs. `null` means that they are stored in a database table.",
          text,
          "a table",
        ),
        endpoint: optional("The address of the object store.", httpAddress, "none"),
        region: setting("The bucket's region.", text, "us-east-1"),
        prefix: setting(
          "A prefix for the names of all objects, for example `skein/`.",
          textLike("^[A-Za-z0-9._/-]*$", "letters, digits and ._/-"),
          "",
        ),
        accessKeyId: keyText("The access key ID."),
        secretAccessKey: keyText("The secret access key."),
        forcePathStyle: setting(
          "Whether the bucket's name is part of a URL's path (`true`) or host name (`false`).",
          flag,
          true,
        ),
      },
    ),
  },
);
