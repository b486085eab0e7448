import { SkeinError } from "../../core/errors.ts";
import { isLoopback, normalizeAddress } from "./addresses.ts";

/**
 * Restricts the `Host` and `Origin` headers so that a page from another site cannot reach the gateway through a user's
 * browser.
 */

export interface HostRules {
  /** The gateway's port. */
  readonly port: number;
  /** The gateway's configured names and addresses, and the local address of this connection. */
  readonly bound: readonly string[];
  /** From `gateway.allowedHosts`: `name`, or `name:port` to allow only that port. */
  readonly allowedHosts: readonly string[];
}

/** The parts of a request that are checked. A value is a list if its header was sent more than once. */
export interface HostHeaders {
  /** The request target. Only paths are served, never absolute URLs. */
  readonly target: string;
  readonly host: Header;
  readonly origin?: Header;
  /** Browsers send this even when they send no `Origin`. */
  readonly fetchSite?: Header;
  readonly fetchMode?: Header;
}

export type Header = string | readonly string[] | undefined;

interface Authority {
  /** In lowercase. An IPv6 address is expanded and has no brackets. */
  readonly name: string;
  readonly port: number | null;
}

const localNames = ["localhost", "127.0.0.1", "::1"];
/** Wildcard addresses stand for all addresses of the machine. They are never accepted as a host name. */
const wildcards = new Set(["0.0.0.0", "0:0:0:0:0:0:0:0"]);

/** Returns the reason why a request is rejected with 403, or `null` if it is allowed. */
export function findHostProblem(headers: HostHeaders, sites: HostRules): string | null {
  if (!headers.target.startsWith("/")) return "The request target must be a path";
  const host = only(headers.host);
  if (host === null) return "The request has no Host header, or more than one";
  const asked = readAuthority(host);
  if (asked === null) return "The Host header is not a valid host name with an optional port";
  if (!isNamed(asked, sites)) return `This gateway does not accept the host name "${asked.name}"`;
  return headers.origin === undefined
    ? strayProblem(headers)
    : originProblem(only(headers.origin), asked, sites);
}

/**
 * Non-browser clients send no `Origin`, and browsers send none with a plain GET. A request from another site's page
 * is rejected unless the user followed a link.
 */
function strayProblem({ fetchSite, fetchMode }: HostHeaders): string | null {
  const isForeign = fetchSite !== undefined && !["same-origin", "none"].includes(only(fetchSite) ?? "");
  return isForeign && only(fetchMode) !== "navigate" ? "The request comes from another site's page" : null;
}

function originProblem(origin: string | null, asked: Authority, sites: HostRules): string | null {
  const page = origin === null ? null : readOrigin(origin);
  if (page === null) return "The Origin header is not a valid origin";
  const { name, port, usual } = page;
  // A proxy that serves a listed name can send a different `Host`.
  if (isListed(page, sites.allowedHosts, port === usual ? "anywhere" : "exactly")) return null;
  // A page on another port of this machine might belong to another program.
  const isOurs = port === sites.port || (asked.name === name && (asked.port ?? usual) === port);
  return isOurs && isNamed(page, sites) ? null : "The request comes from another site's page";
}

/** Accepts any port unless the list entry includes one, because the port might belong to a tunnel or a container. */
function isNamed({ name, port }: Authority, { bound, allowedHosts }: HostRules): boolean {
  return (
    isListed({ name, port }, localNames, "anywhere") ||
    isListed({ name, port }, bound, "anywhere") ||
    isListed({ name, port }, allowedHosts, "anywhere")
  );
}

/** `exactly` matches only entries that have a port. */
function isListed({ name, port }: Authority, list: readonly string[], how: "exactly" | "anywhere"): boolean {
  return list.some((entry) => {
    const listed = listedOf(entry);
    if (listed === null || listed.name !== name || wildcards.has(name)) return false;
    return listed.port === null ? how === "anywhere" : listed.port === port;
  });
}

/** Caches parsed entries. There are only a few: the configured names and this machine's addresses. */
const listedNames = new Map<string, Authority | null>();
const mostListed = 1000;

function listedOf(entry: string): Authority | null {
  const known = listedNames.get(entry);
  if (known !== undefined) return known;
  const listed = readAuthority(bracketed(entry));
  if (listedNames.size >= mostListed) listedNames.clear();
  listedNames.set(entry, listed);
  return listed;
}

/** Adds the brackets that an IPv6 address in a list can omit, and removes its zone. */
function bracketed(entry: string): string {
  const address = normalizeAddress(entry);
  return address?.includes(":") ? `[${address}]` : (address ?? entry);
}

function readAuthority(text: string): Authority | null {
  const [, v6, plain, digits] =
    /^(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,253}))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const port = digits === undefined ? null : Number(digits);
  if (port !== null && (port < 1 || port > 65_535)) return null;
  if (v6 === undefined) return plain === undefined ? null : { name: plain.toLowerCase(), port };
  const name = normalizeAddress(v6);
  return name === null ? null : { name, port };
}

/** Parses a page's origin, including its port. A page with an opaque origin sends `null`. */
function readOrigin(text: string): (Authority & { readonly port: number; readonly usual: number }) | null {
  const [, scheme, behind = ""] = /^(https?):\/\/(.+)$/.exec(text) ?? [];
  const authority = scheme === undefined ? null : readAuthority(behind);
  if (authority === null) return null;
  const usual = scheme === "https" ? 443 : 80;
  return { name: authority.name, port: authority.port ?? usual, usual };
}

/** Returns the only value of a header, or `null` if there is no value or more than one. */
function only(header: Header): string | null {
  if (typeof header === "string") return header;
  return header?.length === 1 ? (header[0] ?? null) : null;
}

/** Throws if other machines could reach the address and exposing the gateway was not requested explicitly. */
export function checkBinding(host: string, isExposed: boolean): void {
  if (isExposed || host.toLowerCase() === "localhost" || isLoopback(host)) return;
  throw new SkeinError("forbidden", {
    problem: `Other machines could reach the gateway at ${host}`,
    advice:
      "If that is intended, start it with --expose or set gateway.expose to true. Otherwise, listen on 127.0.0.1",
  });
}
