import { shortHash } from "../../core/short-hash.ts";

const longest = 64;
const hashLength = 8;
const other = /[^A-Za-z0-9_-]/g;

/**
 * The name of a server's tool for a model: `<server>__<tool>`, never longer than 64. Where that would not say exactly one
 * server and tool (other characters, too long, a server's name that blurs the `__`), a hash of both is its end. It depends
 * on nothing else, so a tool keeps its name whichever servers are up.
 */
export function mcpToolName(server: string, tool: string): string {
  const whole = `${server}__${tool}`;
  const clean = whole.replace(other, "_");
  const isExact = clean === whole && !server.includes("__") && !server.endsWith("_");
  if (isExact && clean.length <= longest) return clean;
  const hash = shortHash(`${server.length} ${server} ${tool}`).slice(0, hashLength);
  return `${clean.slice(0, longest - hashLength - 1)}_${hash}`;
}

/** What the names of all tools of a server begin with, cut where a hash may be their end. */
export function mcpToolPrefix(server: string): string {
  return `${server}__`.replace(other, "_").slice(0, longest - hashLength - 1);
}
