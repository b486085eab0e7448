import { isIP } from "node:net";
import { choice, filePath, flag, optional, text, textLike, wholeNumber } from "../settings/kinds.ts";
import type { ValueKind } from "../settings/setting.ts";
import { group, list, setting } from "../settings/setting.ts";

const port = setting("The port to listen on. `0` means any free port.", wholeNumber(0, 65_535), 18_790);

const hostName = textLike(
  "^(?:\\[[0-9A-Fa-f:.]{2,45}\\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?$",
  'a host name with or without a port, such as "skein.example.org" or "localhost:5173"',
);

const network: ValueKind<string> = {
  ...text,
  expected: 'an address or a network, such as "10.0.0.1" or "10.0.0.0/8"',
  schema: { type: "string", pattern: "^[0-9A-Fa-f:.]{2,45}(?:/[0-9]{1,3})?$" },
  read: (written) => (typeof written === "string" && isNetwork(written) ? { value: written } : null),
};

/** Excludes the gateway's own paths because requests for them would be ambiguous. */
export const basePath = textLike(
  "^/(?!(?:assets|channels|events|healthz|link|mcp|metrics|openapi\\.json|readyz|rpc|ws)(?:/|$))[A-Za-z0-9_~-][A-Za-z0-9._~-]*(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$",
  'a path such as "/skein", without a trailing slash',
);

const consoleFolder: ValueKind<string | boolean> = {
  expected: "true, false, or the path to a folder with an index.html",
  schema: { anyOf: [flag.schema, filePath.schema] },
  read: (written, place) =>
    typeof written === "boolean" ? { value: written } : filePath.read(written, place),
  write: (value) => value,
};

export const gateway = group("The server that programs, people and agents connect to.", {
  host: setting(
    "The address or host name to listen on. An address that other machines can reach requires `expose`.",
    text,
    "127.0.0.1",
  ),
  port,
  role: setting(
    "Whether this process serves clients and executes runs (`all`), only serves clients (`gateway`), or only executes runs (`worker`). Processes that share a PostgreSQL database can have different roles.",
    choice("all", "gateway", "worker"),
    "all",
  ),
  expose: setting("Whether the gateway may listen on an address that other machines can reach.", flag, false),
  allowedHosts: list(
    "Host names to accept in addition to localhost and the gateway's own address, such as a proxy's. A name with a port is accepted only for that port.",
    hostName,
  ),
  trustProxy: list("Addresses or networks of the proxies whose X-Forwarded-For header is trusted.", network),
  basePath: optional(
    "The path prefix under which a proxy serves the gateway, such as `/skein`. `null` means no prefix.",
    basePath,
    "none",
  ),
  console: setting(
    "Whether the console is served at `/`. If this is a path, a custom build of the console is served from that folder.",
    consoleFolder,
    true,
  ),
});

/** Whether the text is an IP address or a network such as `10.0.0.0/8`. */
export function isNetwork(value: string): boolean {
  const [address = "", bits, ...more] = value.split("/");
  const version = isIP(address);
  if (version === 0 || address.includes("%") || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}
